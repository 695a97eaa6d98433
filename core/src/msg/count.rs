//! Counts of messages, by path and size.

/// The path that a message took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
#[non_exhaustive]
pub enum MessagePath {
    /// Inside its packet.
    Inline,
    /// Through slots: two copies.
    Eager,
    /// Straight into the receiver's buffer.
    Direct,
    /// Fetched by the receiver, or pushed after the receiver had sent its
    /// address.
    Rendezvous,
}

/// Counts of the messages that a rank has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageCounts {
    messages: [[u64; BINS]; PATHS],
    bytes: [u64; PATHS],
    /// Invalid packets, which were dropped.
    pub dropped: u64,
    /// Receives that were offered to their source.
    pub offered: u64,
    /// Sends that had to wait for room.
    pub waited: u64,
    /// Received messages that the kernel has copied, out of a buffer that this
    /// rank does not reach.
    pub by_kernel: u64,
    /// Long messages sent that went through slots, because neither rank reaches
    /// the other's buffer: [`MessagePath::Rendezvous`] with two copies.
    pub through_slots: u64,
}

impl MessagePath {
    /// All paths.
    pub const ALL: [Self; PATHS] = [Self::Inline, Self::Eager, Self::Direct, Self::Rendezvous];

    /// Returns the name of the path.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Inline => "inline",
            Self::Eager => "eager",
            Self::Direct => "direct",
            Self::Rendezvous => "rendezvous",
        }
    }
}

impl MessageCounts {
    /// The longest message of each bin; longer messages are in the last bin.
    pub const BINS: [u64; BINS - 1] =
        [256, 1 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10];

    /// Returns the messages that took this path, by bin.
    pub const fn messages(&self, path: MessagePath) -> &[u64; BINS] {
        &self.messages[path as usize]
    }

    /// Returns the bytes of the messages that took this path.
    pub const fn bytes(&self, path: MessagePath) -> u64 {
        self.bytes[path as usize]
    }

    /// Returns the number of all messages.
    pub fn total(&self) -> u64 {
        self.messages.iter().flatten().sum()
    }

    #[inline(always)]
    pub(super) fn sent(&mut self, path: MessagePath, len: u64) {
        self.messages[path as usize][bin(len)] += 1;
        self.bytes[path as usize] += len;
    }
}

#[inline(always)]
fn bin(len: u64) -> usize {
    if len <= MessageCounts::BINS[0] {
        return 0;
    }
    MessageCounts::BINS.iter().position(|max| len <= *max).unwrap_or(BINS - 1)
}

const BINS: usize = 8;
const PATHS: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_end_at_their_maxima() {
        for (index, max) in MessageCounts::BINS.into_iter().enumerate() {
            assert_eq!((bin(max), bin(max + 1)), (index, index + 1), "{max}");
        }
        assert_eq!((bin(0), bin(u64::MAX)), (0, 7));
    }
    #[test]
    fn sent_messages_are_counted_by_path_and_size() {
        let mut counts = MessageCounts::default();
        for (path, len) in
            [(MessagePath::Inline, 0), (MessagePath::Inline, 256), (MessagePath::Direct, 257)]
        {
            counts.sent(path, len);
        }
        counts.sent(MessagePath::Rendezvous, 1 << 20);
        counts.sent(MessagePath::Rendezvous, 3);
        assert_eq!(counts.messages(MessagePath::Inline), &[2, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(counts.messages(MessagePath::Eager), &[0; BINS]);
        assert_eq!(counts.messages(MessagePath::Direct), &[0, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(counts.messages(MessagePath::Rendezvous), &[1, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(MessagePath::ALL.map(|path| counts.bytes(path)), [256, 0, 257, (1 << 20) + 3]);
        assert_eq!(counts.total(), 5);
    }
}

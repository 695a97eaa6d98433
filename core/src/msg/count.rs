//! How many messages of which size went which way.

/// Which way a message went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Path {
    /// Inside its packet.
    Inline,
    /// Through slots: two copies.
    Eager,
    /// Straight into the receiver's buffer.
    Direct,
    /// Fetched by the receiver, or pushed when it had said where to.
    Rendezvous,
}

/// What a rank has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    messages: [[u64; BINS]; PATHS],
    bytes: [u64; PATHS],
    /// Packets that made no sense and were dropped.
    pub dropped: u64,
    /// Receives that were offered to their source.
    pub offered: u64,
    /// Sends that had to wait for room.
    pub waited: u64,
    /// Received messages that the kernel has copied, out of a buffer that this
    /// rank does not reach.
    pub by_kernel: u64,
    /// Sent messages that went through slots though they are long, as neither
    /// rank reaches the other's buffer: [`Path::Rendezvous`] by two copies.
    pub through_slots: u64,
}

impl Path {
    /// All of them.
    pub const ALL: [Self; PATHS] = [Self::Inline, Self::Eager, Self::Direct, Self::Rendezvous];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Inline => "inline",
            Self::Eager => "eager",
            Self::Direct => "direct",
            Self::Rendezvous => "rendezvous",
        }
    }
}

impl Counts {
    /// The longest message of each bin; the last bin has all others.
    pub const BINS: [u64; BINS - 1] =
        [256, 1 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10];

    /// Messages that went this way, by bin.
    pub const fn messages(&self, path: Path) -> &[u64; BINS] {
        &self.messages[path as usize]
    }

    /// Their bytes.
    pub const fn bytes(&self, path: Path) -> u64 {
        self.bytes[path as usize]
    }

    /// All messages.
    pub fn total(&self) -> u64 {
        self.messages.iter().flatten().sum()
    }

    #[inline(always)]
    pub(super) fn sent(&mut self, path: Path, len: u64) {
        self.messages[path as usize][bin(len)] += 1;
        self.bytes[path as usize] += len;
    }
}

#[inline(always)]
fn bin(len: u64) -> usize {
    if len <= Counts::BINS[0] {
        return 0;
    }
    Counts::BINS.iter().position(|max| len <= *max).unwrap_or(BINS - 1)
}

const BINS: usize = 8;
const PATHS: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_end_where_they_say() {
        for (index, max) in Counts::BINS.into_iter().enumerate() {
            assert_eq!((bin(max), bin(max + 1)), (index, index + 1), "{max}");
        }
        assert_eq!((bin(0), bin(u64::MAX)), (0, 7));
    }
}

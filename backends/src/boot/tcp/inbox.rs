//! Splits a stream of bytes into messages.

use super::frame::{BODY_BYTES_MAX, BootMessage, FrameError, WIDE_BYTES_MAX};

/// The received bytes that are no whole message yet.
#[derive(Debug)]
pub struct Inbox {
    bytes: Vec<u8>,
    body_bytes_max: usize,
}

impl Default for Inbox {
    fn default() -> Self {
        Self { bytes: Vec::new(), body_bytes_max: BODY_BYTES_MAX }
    }
}

impl Inbox {
    /// Accepts longer bodies from now on, because the other end is the server.
    pub(super) fn widen(&mut self) {
        self.body_bytes_max = WIDE_BYTES_MAX;
    }

    /// Adds received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole message, if there is one.
    ///
    /// # Errors
    ///
    /// [`FrameError::Length`] if the next message is empty or too long; the other
    /// errors of [`BootMessage::parse`] if its body is not a message. The rest of the
    /// stream then has no meaning.
    pub fn pop(&mut self) -> Result<Option<BootMessage>, FrameError> {
        let Some((head, rest)) = self.bytes.split_first_chunk() else { return Ok(None) };
        let bytes = u32::from_le_bytes(*head);
        let len = bytes as usize;
        if len == 0 || len > self.body_bytes_max {
            return Err(FrameError::Length { bytes });
        }
        let Some(body) = rest.get(..len) else { return Ok(None) };
        let message = BootMessage::parse(body)?;
        self.bytes.drain(..4 + len);
        Ok(Some(message))
    }

    /// Whether the stream ends between two messages, if it ends here.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::super::frame::tests::all;
    use super::super::heads::HeadRun;
    use super::*;

    #[test]
    fn messages_are_parsed_from_pieces_of_any_size() {
        let stream: Vec<u8> = all().iter().flat_map(BootMessage::to_frame).collect();
        for piece in [1, 3, 1000] {
            let (mut inbox, mut got) = (Inbox::default(), Vec::new());
            for bytes in stream.chunks(piece) {
                inbox.push(bytes);
                while let Some(message) = inbox.pop().unwrap() {
                    got.push(message);
                }
            }
            assert_eq!(got, all());
            assert!(inbox.is_empty());
        }
    }

    #[test]
    fn a_length_beyond_the_buffer_is_refused_at_once() {
        for bytes in [0, BODY_BYTES_MAX as u32 + 1, u32::MAX] {
            let mut inbox = Inbox::default();
            inbox.push(&bytes.to_le_bytes());
            assert_eq!(inbox.pop(), Err(FrameError::Length { bytes }));
        }
        let long =
            BootMessage::Heads { from: 0, runs: vec![HeadRun { count: 1, head: [1; 24] }; 1024] };
        let mut inbox = Inbox::default();
        inbox.push(&long.to_frame());
        assert!(inbox.pop().is_err(), "the bytes of another protocol");
        inbox.widen();
        assert_eq!(inbox.pop(), Ok(Some(long)));
        let mut inbox = Inbox::default();
        inbox.widen();
        inbox.push(&(WIDE_BYTES_MAX as u32 + 1).to_le_bytes());
        assert!(inbox.pop().is_err());
    }
}

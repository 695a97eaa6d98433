//! Access to the buffers of messages.

/// Access to the buffers of messages.
pub trait Buffers {
    /// Copies the bytes at an address into `into`.
    fn read(&mut self, at: u64, into: &mut [u8]);

    /// Copies `bytes` to an address.
    fn write(&mut self, at: u64, bytes: &[u8]);

    /// Returns the word by which remote ranks can fetch the `len` bytes at this
    /// address, if they can. A [`CopyJob`](crate::msg::CopyJob) of such a rank contains this
    /// word.
    fn place(&mut self, at: u64, len: u64) -> Option<u64> {
        let _ = (at, len);
        None
    }
}

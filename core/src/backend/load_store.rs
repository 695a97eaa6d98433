//! Memory that this processor can load and store.

use crate::mem::{AddrError, LocalAddr, Need, RemoteAddr};
use core::ptr::NonNull;

/// Memory of ranks that this processor can load and store.
///
/// # Safety
///
/// `resolve` must return the start of `bytes` mapped bytes that stay mapped as long
/// as `self` lives, and that all threads of all ranks access only as plain bytes or
/// atomics. `local` must do the same for this rank's own registrations of any
/// access.
pub unsafe trait LoadStore: Sync {
    /// The number of ranks of the job.
    fn size(&self) -> u32;

    /// The place of these bytes in memory, after all checks: rank, liveness, key,
    /// range, access. Wait-free.
    ///
    /// # Errors
    ///
    /// - [`AddrError::NoSuchRank`]: the rank is not below [`size`](Self::size).
    /// - [`AddrError::OtherNode`]: this processor cannot reach the rank's memory.
    /// - [`AddrError::PeerLost`]: the rank has died.
    /// - [`AddrError::StaleKey`]: no region is registered under the key, or peers may not
    ///   access it.
    /// - [`AddrError::OutOfRange`]: some of the bytes lie outside the region.
    /// - [`AddrError::ReadOnly`]: `need` is [`Need::Write`], and peers may only read the
    ///   region.
    fn resolve(&self, addr: RemoteAddr, bytes: u64, need: Need) -> Result<NonNull<u8>, AddrError>;

    /// The place of the local end of a put or get.
    ///
    /// # Errors
    ///
    /// - [`AddrError::StaleKey`]: no region of this rank is registered under the key.
    /// - [`AddrError::OutOfRange`]: some of the bytes lie outside the region.
    /// - [`AddrError::PeerLost`]: this rank itself was declared dead.
    fn local(&self, addr: LocalAddr, bytes: u64) -> Result<NonNull<u8>, AddrError>;

    /// Wakes the threads that wait for the word at `addr`, which a sequentially
    /// consistent operation has just changed. `at` is the place that `resolve`
    /// returned.
    fn notify(&self, addr: RemoteAddr, at: NonNull<u8>);
}

//! A registration as one lookup has found it, for later accesses without the lookup.

use crate::sync::{AtomicU32, Ordering};
use core::ptr::NonNull;

/// Where a region lies and what it allows. All of that is fixed for the life of a
/// registration, so [`is_live`](Self::is_live) alone says whether it still holds.
#[derive(Clone, Copy, Debug)]
pub struct RegionView<'t> {
    /// The first byte.
    pub base: NonNull<u8>,
    /// The length in bytes.
    pub bytes: u64,
    /// The accesses that are allowed, as the bits of [`Need`](super::Need).
    pub access: u32,
    /// The life of the registration.
    pub life: u32,
    /// The life that the slot has now.
    pub live: &'t AtomicU32,
}

impl RegionView<'_> {
    /// Whether the registration has not ended, and its rank lives. Wait-free.
    #[inline(always)]
    pub fn is_live(&self) -> bool {
        // Acquire: pairs with the Release store in `publish`; an access comes after
        // this look, as it comes after the looks of `resolve`.
        self.live.load(Ordering::Acquire) == self.life
    }
}

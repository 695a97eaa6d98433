//! A slot of the cache: the word that says which table it has, and the accesses that
//! keep the table.

use tsumugi_core::sync::{AtomicU8, AtomicU32, AtomicU64};

/// One slot of the cache. All zeroes is an empty slot.
#[derive(Debug)]
#[repr(C)]
pub struct CacheSlot {
    pub(super) word: AtomicU64,
    pub(super) pins: AtomicU32,
    pub(super) used: AtomicU8,
    /// The slot drains because the owner asked for that, and the owner must get an
    /// answer. Only the machine uses this field.
    pub(super) asked: AtomicU8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotState {
    Empty = 0,
    Filling = 1,
    Ready = 2,
    Draining = 3,
}

/// The word of a slot.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct SlotWord(pub(super) u64);

impl CacheSlot {
    /// An empty slot.
    pub fn new() -> Self {
        let (used, asked) = (AtomicU8::new(0), AtomicU8::new(0));
        Self { word: AtomicU64::new(0), pins: AtomicU32::new(0), used, asked }
    }
}

impl Default for CacheSlot {
    fn default() -> Self {
        Self::new()
    }
}

impl SlotWord {
    pub(super) const fn new(table: u32, version: u32, state: SlotState) -> Self {
        Self((table as u64) << 32 | ((version & VERSION) as u64) << 2 | state as u64)
    }

    #[inline(always)]
    pub(super) const fn without_version(self) -> Self {
        Self(self.0 & !((VERSION as u64) << 2))
    }

    #[inline(always)]
    pub(super) const fn table(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline(always)]
    pub(super) const fn version(self) -> u32 {
        self.0 as u32 >> 2
    }

    #[inline(always)]
    pub(super) const fn state(self) -> SlotState {
        match self.0 & 3 {
            0 => SlotState::Empty,
            1 => SlotState::Filling,
            2 => SlotState::Ready,
            _ => SlotState::Draining,
        }
    }
}

pub(super) const VERSION: u32 = u32::MAX >> 2;

#[cfg(not(tsumugi_loom))]
const _: () = assert!(size_of::<CacheSlot>() * crate::control::WAYS as usize == 64);

//! A slot: the sequence number that says whose it is, and the element.

use crate::sync::{AtomicU64, UnsafeCell};
use core::mem::MaybeUninit;

#[repr(C)]
pub(super) struct MpscSlot<T> {
    pub(super) sequence: AtomicU64,
    pub(super) value: UnsafeCell<MaybeUninit<T>>,
}

impl<T> MpscSlot<T> {
    #[cfg(not(tsumugi_loom))]
    pub(super) const fn new(index: usize) -> Self {
        Self {
            sequence: AtomicU64::new(index as u64),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    #[cfg(tsumugi_loom)]
    pub(super) fn new(index: usize) -> Self {
        Self {
            sequence: AtomicU64::new(index as u64),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }
}

/// An operation and its slot's sequence share one cache line.
const _: () = assert!(cfg!(tsumugi_loom) || size_of::<MpscSlot<[u64; 7]>>() == 64);

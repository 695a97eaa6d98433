//! The memory of a lane: its lines, and one line in each direction for the counts
//! of its two ends. All of it may be zero at first.

use crate::msg::packet::LINE_WORDS;
use crate::msg::split::Split;
use crate::sync::{AtomicU64, UnsafeCell};

/// One line of a lane. Zero bytes are a line that was never used.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct LaneLine {
    pub(super) head: AtomicU64,
    pub(super) words: UnsafeCell<[u64; LINE_WORDS]>,
}

/// What the receiver of a lane writes for its sender. Zero at first.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct ReturnLine {
    /// Lines taken (32) | messages taken (32).
    pub(super) taken: AtomicU64,
    /// Messages matched (32) | slots (32).
    pub(super) matched: AtomicU64,
}

/// What the sender of a lane writes for its receiver. Zero at first.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct NeedLine {
    pub(super) asked: AtomicU64,
    /// Written by both ends: which end copies which part of a message.
    pub(super) split: Split,
}

/// The memory of one lane, without its slots.
#[derive(Clone, Copy, Debug)]
pub struct Lane<'m> {
    /// As many lines as the shape has: a power of two.
    pub lines: &'m [LaneLine],
    /// Written by the receiver.
    pub returned: &'m ReturnLine,
    /// Written by the sender.
    pub need: &'m NeedLine,
}

impl LaneLine {
    /// A line that was never used.
    #[cfg(not(tsumugi_loom))]
    pub const fn new() -> Self {
        Self { head: AtomicU64::new(0), words: UnsafeCell::new([0; LINE_WORDS]) }
    }

    /// A line that was never used.
    #[cfg(tsumugi_loom)]
    pub fn new() -> Self {
        Self { head: AtomicU64::new(0), words: UnsafeCell::new([0; LINE_WORDS]) }
    }
}

impl ReturnLine {
    /// Makes a line with nothing taken.
    #[cfg(not(tsumugi_loom))]
    pub const fn new() -> Self {
        Self { taken: AtomicU64::new(0), matched: AtomicU64::new(0) }
    }

    /// Makes a line with nothing taken.
    #[cfg(tsumugi_loom)]
    pub fn new() -> Self {
        Self { taken: AtomicU64::new(0), matched: AtomicU64::new(0) }
    }
}

impl NeedLine {
    /// Makes a line without a request.
    #[cfg(not(tsumugi_loom))]
    pub const fn new() -> Self {
        Self { asked: AtomicU64::new(0), split: Split::new() }
    }

    /// Makes a line without a request.
    #[cfg(tsumugi_loom)]
    pub fn new() -> Self {
        Self { asked: AtomicU64::new(0), split: Split::new() }
    }
}

// SAFETY: one end at a time accesses the words of a line: the sender while the
// line is free, the receiver from the stamp until it gives the line back.
unsafe impl Sync for LaneLine {}

impl Default for LaneLine {
    fn default() -> Self {
        Self::new()
    }
}

impl Default for ReturnLine {
    fn default() -> Self {
        Self::new()
    }
}

impl Default for NeedLine {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(not(tsumugi_loom))]
const _: () = assert!(
    size_of::<LaneLine>() == 64 && size_of::<ReturnLine>() == 64 && size_of::<NeedLine>() == 64
);

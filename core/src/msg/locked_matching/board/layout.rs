//! A board in memory: one line for the lock, one for each sender, one for each
//! post. All fields are atomics. A field that another rank writes is read as if
//! it could hold any value.

use crate::msg::outcome::Label;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// The ends of a list of posts. Written by the owner.
#[repr(C)]
pub(super) struct PostList {
    pub(super) first: AtomicU32,
    pub(super) last: AtomicU32,
}

#[repr(C, align(64))]
pub(super) struct BoardHeader {
    /// The rank that has the lock, plus one; 0: the lock is free.
    pub(super) lock: AtomicU32,
    /// 0 until the board is made. Never changes.
    pub(super) shape: AtomicU64,
    /// Posts for any source.
    pub(super) any: PostList,
}

/// The part of a board for one sender.
#[repr(C, align(64))]
pub(super) struct SenderEntry {
    pub(super) list: PostList,
    /// The number of the sender's message that is expected next. Written by the
    /// sender and by the owner.
    pub(super) expected: AtomicU32,
    /// Not 0 if the sender has died. Written by the owner.
    pub(super) lost: AtomicU32,
}

/// A post: one line, so that a sender fetches only this line.
#[repr(C, align(64))]
pub(super) struct PostEntry {
    /// The state in the high byte, and the rank of the sender below. Written by
    /// all, as the drawing in the module above shows.
    pub(super) state: AtomicU32,
    /// The tag of the message. Written by the sender, as is `len`.
    pub(super) got: AtomicU32,
    pub(super) len: AtomicU64,
    // All fields below are written by the owner.
    pub(super) next: AtomicU32,
    pub(super) prev: AtomicU32,
    pub(super) number: AtomicU32,
    pub(super) tag: AtomicU32,
    pub(super) context: AtomicU32,
    pub(super) at: AtomicU64,
    pub(super) room: AtomicU64,
}

#[cfg(not(tsumugi_loom))]
const _: () = assert!(size_of::<BoardHeader>() == 64 && size_of::<SenderEntry>() == 64);
#[cfg(not(tsumugi_loom))]
const _: () = assert!(size_of::<PostEntry>() == 64);

impl PostList {
    pub(super) fn new() -> Self {
        Self { first: AtomicU32::new(NONE), last: AtomicU32::new(NONE) }
    }
}

impl BoardHeader {
    pub(super) fn new() -> Self {
        Self { lock: AtomicU32::new(0), shape: AtomicU64::new(0), any: PostList::new() }
    }
}

impl SenderEntry {
    pub(super) fn new() -> Self {
        Self { list: PostList::new(), expected: AtomicU32::new(0), lost: AtomicU32::new(0) }
    }
}

impl PostEntry {
    pub(super) fn new() -> Self {
        Self {
            state: AtomicU32::new(FREE),
            got: AtomicU32::new(0),
            len: AtomicU64::new(0),
            next: AtomicU32::new(NONE),
            prev: AtomicU32::new(NONE),
            number: AtomicU32::new(0),
            tag: AtomicU32::new(0),
            context: AtomicU32::new(0),
            at: AtomicU64::new(0),
            room: AtomicU64::new(0),
        }
    }

    #[inline(always)]
    pub(super) fn takes(&self, label: Label) -> bool {
        // Relaxed: under the lock.
        let context = self.context.load(Ordering::Relaxed);
        context & !ANY_TAG == u32::from(label.context)
            && (context & ANY_TAG != 0 || self.tag.load(Ordering::Relaxed) == label.tag)
    }

    #[inline(always)]
    pub(super) fn is_before(&self, other: &Self) -> bool {
        let (one, other) =
            (self.number.load(Ordering::Relaxed), other.number.load(Ordering::Relaxed));
        (one.wrapping_sub(other) as i32) < 0
    }
}

/// No post.
pub(super) const NONE: u32 = u32::MAX;
pub(super) const ANY_TAG: u32 = 1 << 31;
pub(super) const OUT_OF_REACH: u64 = u64::MAX;

/// States of a post; the rank of the sender is in the lower bits.
pub(super) const FREE: u32 = 0;
pub(super) const POSTED: u32 = 1 << 24;
pub(super) const CLAIMED: u32 = 2 << 24;
pub(super) const DONE: u32 = 3 << 24;
pub(super) const FAILED: u32 = 4 << 24;
pub(super) const RANK_MASK: u32 = (1 << 24) - 1;

//! A board in memory: one line for the lock, one for each sender, one for each
//! post. All fields are atomics. A field that another rank writes is read as if
//! it could hold any value.

use super::super::Label;
use super::{Board, BoardError, BoardShape};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use core::ptr::NonNull;

impl<'m> Board<'m> {
    /// Alignment of a board's memory.
    pub const ALIGN: usize = align_of::<Head>();

    /// Bytes that a board needs.
    pub const fn memory_size(shape: BoardShape) -> usize {
        size_of::<Head>()
            + shape.peers as usize * size_of::<Source>()
            + shape.posts as usize * size_of::<Entry>()
    }

    /// Makes an empty board in given memory.
    ///
    /// # Errors
    ///
    /// [`BoardError::Unaligned`] if `memory` is not aligned to [`ALIGN`](Self::ALIGN);
    /// [`BoardError::Shape`] if there are no ranks or no posts, or more than a word can
    /// name.
    ///
    /// # Safety
    ///
    /// `memory` points to [`memory_size`](Self::memory_size) bytes that no other
    /// thread accesses before this returns, and that stay valid for `'m`.
    pub unsafe fn init(memory: NonNull<u8>, shape: BoardShape) -> Result<Self, BoardError> {
        let (head, sources, entries) = places(memory, shape)?;
        // SAFETY: inside the caller's memory, to which the caller still has
        // exclusive access.
        unsafe { head.write(Head::new()) };
        for index in 0..shape.peers as usize {
            // SAFETY: inside the caller's memory, as above.
            unsafe { sources.add(index).write(Source::new()) };
        }
        for index in 0..shape.posts as usize {
            // SAFETY: inside the caller's memory, as above.
            unsafe { entries.add(index).write(Entry::new()) };
        }
        // SAFETY: all places were just written, and the caller promises that they
        // stay valid for `'m`.
        let board = unsafe { Self::from_places(head, sources, entries, shape) };
        // Release: pairs with the Acquire in `attach`.
        board.head.shape.store(shape.to_bits(), Ordering::Release);
        Ok(board)
    }

    /// Finds a board that its owner has made.
    ///
    /// # Errors
    ///
    /// Those of [`init`](Self::init), and [`BoardError::Missing`] if the memory has no board
    /// of this shape: the owner has not made it yet, or has made another.
    ///
    /// # Safety
    ///
    /// `memory` points to [`memory_size`](Self::memory_size) bytes that stay
    /// valid for `'m`, and are zero or a board of this shape.
    pub unsafe fn attach(memory: NonNull<u8>, shape: BoardShape) -> Result<Self, BoardError> {
        let (head, sources, entries) = places(memory, shape)?;
        // SAFETY: the caller promises valid memory for `'m`; a board consists of
        // atomics only, for which all byte values are valid.
        let board = unsafe { Self::from_places(head, sources, entries, shape) };
        // Acquire: pairs with the Release in `init`.
        if board.head.shape.load(Ordering::Acquire) != shape.to_bits() {
            return Err(BoardError::Missing(shape));
        }
        Ok(board)
    }

    /// Makes the view of a board from its places.
    ///
    /// # Safety
    ///
    /// The places are those of a board in memory that stays valid for `'m`.
    unsafe fn from_places(
        head: NonNull<Head>,
        sources: NonNull<Source>,
        entries: NonNull<Entry>,
        shape: BoardShape,
    ) -> Self {
        // SAFETY: the caller of `from_places` promises valid places.
        unsafe {
            Self {
                head: head.as_ref(),
                sources: core::slice::from_raw_parts(sources.as_ptr(), shape.peers as usize),
                entries: core::slice::from_raw_parts(entries.as_ptr(), shape.posts as usize),
            }
        }
    }
}

impl BoardShape {
    const fn to_bits(self) -> u64 {
        (self.peers as u64) << 32 | self.posts as u64
    }
}

/// The ends of a list of posts. Written by the owner.
#[repr(C)]
pub(super) struct List {
    pub(super) first: AtomicU32,
    pub(super) last: AtomicU32,
}

#[repr(C, align(64))]
pub(super) struct Head {
    /// The rank that has the lock, plus one; 0: the lock is free.
    pub(super) lock: AtomicU32,
    /// 0 until the board is made. Never changes.
    pub(super) shape: AtomicU64,
    /// Posts for any source.
    pub(super) any: List,
}

/// The part of a board for one sender.
#[repr(C, align(64))]
pub(super) struct Source {
    pub(super) list: List,
    /// The number of the sender's message that is expected next. Written by the
    /// sender and by the owner.
    pub(super) expected: AtomicU32,
    /// Not 0 if the sender has died. Written by the owner.
    pub(super) lost: AtomicU32,
}

/// A post: one line, so that a sender fetches only this line.
#[repr(C, align(64))]
pub(super) struct Entry {
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
const _: () = assert!(size_of::<Head>() == 64 && size_of::<Source>() == 64);
#[cfg(not(tsumugi_loom))]
const _: () = assert!(size_of::<Entry>() == 64);

impl List {
    fn new() -> Self {
        Self { first: AtomicU32::new(NONE), last: AtomicU32::new(NONE) }
    }
}

impl Head {
    fn new() -> Self {
        Self { lock: AtomicU32::new(0), shape: AtomicU64::new(0), any: List::new() }
    }
}

impl Source {
    fn new() -> Self {
        Self { list: List::new(), expected: AtomicU32::new(0), lost: AtomicU32::new(0) }
    }
}

impl Entry {
    fn new() -> Self {
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

type Places = (NonNull<Head>, NonNull<Source>, NonNull<Entry>);

fn places(memory: NonNull<u8>, shape: BoardShape) -> Result<Places, BoardError> {
    let address = memory.as_ptr() as usize;
    if !address.is_multiple_of(Board::ALIGN) {
        return Err(BoardError::Unaligned { address });
    }
    let is_good = (1..=RANK_MASK).contains(&shape.peers) && (1..NONE).contains(&shape.posts);
    if !is_good {
        return Err(BoardError::Shape(shape));
    }
    let sources = size_of::<Head>();
    let entries = sources + shape.peers as usize * size_of::<Source>();
    // SAFETY: offsets inside `memory_size` bytes, which the callers promise.
    unsafe { Ok((memory.cast(), memory.add(sources).cast(), memory.add(entries).cast())) }
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

//! The receives of a rank where its senders can see and claim them: the
//! paper's receive queue, in shared memory and under a lock.
//!
//! ```text
//!              owner, under the lock
//!   free ─────────post─────────► posted ──── try_claim: a sender, under the
//!    ▲                             │  │                  lock ─────┐
//!    ├──withdraw: matched by lane, ┘  │                            ▼
//!    │            or cancelled        └───────────────────────► claimed
//!    │                                                             │ the copy
//!    └──remove── done ◄──────────finish (release)──────────────────┘
//! ```
//!
//! Beside the posts lies, for each sender, the number of the message of that
//! sender that is *expected* next. A message may only claim if it is that one:
//! else earlier ones are still in the lane, and it would overtake them. Whoever
//! gets a message past this point, the sender that claims or the owner that
//! takes it from the lane and matches it, counts it in the same hold of the
//! lock.
//!
//! # Who writes what
//!
//! The owner links and unlinks posts. A sender writes the state of one post
//! and its own expected number, nothing else, so that a sender that dies
//! anywhere in between leaves lists that are whole. The lock holds the rank
//! that has it: when that rank has died, the owner takes the lock over.
//!
//! Progress: `try_claim` is wait-free: it tries the lock once and looks at
//! [`WALK_MAX`] posts at most. `hold`, by the owner, is blocking: it waits for
//! a sender that has the lock. `ended` and `finish` are wait-free.
//!
//! # References
//!
//! The single-copy eager protocol of Open MPI over PVAS: the sender searches
//! the receiver's queue under a try-lock and falls back to the ordinary one.

use super::{Label, Pattern};
use crate::mem::Rank;
use crate::sync::{AtomicU32, AtomicU64, Ordering, mutant, spin_loop};
use core::fmt;
use core::ptr::NonNull;

/// Most posts that a sender looks at before it goes by the lane.
pub const WALK_MAX: usize = 16;

/// A view of the board of one rank; all its ranks have one.
#[derive(Clone, Copy)]
pub struct Board<'m> {
    head: &'m Head,
    sources: &'m [Source],
    entries: &'m [Entry],
}

/// How large a board is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoardShape {
    /// Ranks that may send.
    pub peers: u32,
    /// Posts that can be open.
    pub posts: u32,
}

/// A receive to be put up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Post {
    /// Its place in the order of all receives of the owner; wraps.
    pub number: u32,
    /// Which messages it takes.
    pub pattern: Pattern,
    /// Where its buffer is.
    pub at: u64,
    /// How long that is.
    pub room: u64,
    /// Whether senders may copy to that address. If not, a message that finds
    /// this receive goes by the lane.
    pub in_reach: bool,
}

/// A receive that this sender has claimed and copies into.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the receive waits for the copy"]
pub struct Claim {
    /// Which post.
    pub index: u32,
    /// Where its buffer is.
    pub at: u64,
}

/// Why a message goes by the lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Somebody has the lock.
    Locked,
    /// Earlier messages of this sender are still in the lane.
    Undrained,
    /// No receive takes it, of those that were looked at.
    NoPost,
    /// The receive that takes it is too short, or its buffer out of reach.
    OutOfReach,
}

/// How a post stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nobody has it.
    Posted,
    /// That rank copies into it.
    Claimed(Rank),
    /// The message of that rank is in its buffer.
    Done(Arrival),
}

/// The message that a sender put into a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Who sent it.
    pub source: Rank,
    /// Under which tag.
    pub tag: u32,
    /// How long it is.
    pub len: u64,
}

/// Why a board was not made or found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoardError {
    /// The memory is not aligned to [`Board::ALIGN`].
    Unaligned {
        /// Where it is.
        address: usize,
    },
    /// No ranks, no posts, or more than a word can name.
    Shape(BoardShape),
    /// No board of this shape is there.
    Missing(BoardShape),
}

/// The lock, held by the owner of the board.
#[derive(Debug)]
pub struct Held<'b, 'm>(&'b Board<'m>);

impl<'m> Board<'m> {
    /// What its memory is aligned to.
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
    /// [`BoardError`], which names the value.
    ///
    /// # Safety
    ///
    /// `memory` points to [`memory_size`](Self::memory_size) bytes that nobody
    /// else uses before this returns, and that stay valid for `'m`.
    pub unsafe fn init(memory: NonNull<u8>, shape: BoardShape) -> Result<Self, BoardError> {
        let (head, sources, entries) = places(memory, shape)?;
        // SAFETY: inside the caller's memory, which nobody else uses yet.
        unsafe { head.write(Head::new()) };
        for index in 0..shape.peers as usize {
            // SAFETY: the same.
            unsafe { sources.add(index).write(Source::new()) };
        }
        for index in 0..shape.posts as usize {
            // SAFETY: the same.
            unsafe { entries.add(index).write(Entry::new()) };
        }
        // SAFETY: just written, and valid for `'m` by the caller's word.
        let board = unsafe { Self::from_places(head, sources, entries, shape) };
        // Release: pairs with the Acquire in `attach`.
        board.head.shape.store(shape.to_bits(), Ordering::Release);
        Ok(board)
    }

    /// Finds a board that its owner has made.
    ///
    /// # Errors
    ///
    /// [`BoardError`]; [`Missing`](BoardError::Missing) if it is not made yet.
    ///
    /// # Safety
    ///
    /// `memory` points to [`memory_size`](Self::memory_size) bytes that stay
    /// valid for `'m`, and are zero or a board of this shape.
    pub unsafe fn attach(memory: NonNull<u8>, shape: BoardShape) -> Result<Self, BoardError> {
        let (head, sources, entries) = places(memory, shape)?;
        // SAFETY: the caller's; a board is atomics only, for which any bytes
        // do.
        let board = unsafe { Self::from_places(head, sources, entries, shape) };
        // Acquire: pairs with the Release in `init`.
        if board.head.shape.load(Ordering::Acquire) != shape.to_bits() {
            return Err(BoardError::Missing(shape));
        }
        Ok(board)
    }

    /// Claims the receive that takes message `number` of this sender, all
    /// contexts together. A message that goes by the lane has its number, too,
    /// and so has one that waits to go. Wait-free.
    ///
    /// # Errors
    ///
    /// [`Refused`]: the message goes by the lane.
    #[inline]
    pub fn try_claim(
        &self,
        me: Rank,
        number: u32,
        label: Label,
        len: u64,
    ) -> Result<Claim, Refused> {
        let Some(source) = self.sources.get(me.0 as usize) else { return Err(Refused::NoPost) };
        // Relaxed: a look without the lock. What is missed goes by the lane.
        let is_empty = source.list.first.load(Ordering::Relaxed) == NONE
            && self.head.any.first.load(Ordering::Relaxed) == NONE;
        if is_empty {
            return Err(Refused::NoPost);
        }
        // Acquire: pairs with the Release in `unlock`.
        let order =
            if mutant("board_lock_relaxed") { Ordering::Relaxed } else { Ordering::Acquire };
        let locked = self.head.lock.compare_exchange(0, me.0 + 1, order, Ordering::Relaxed);
        if locked.is_err() {
            return Err(Refused::Locked);
        }
        let found = self.find(source, number, label, len);
        if mutant("board_claim_after_unlock") {
            self.unlock();
        }
        if let Ok(claim) = &found {
            let entry = &self.entries[claim.index as usize];
            // Relaxed, all three: under the lock.
            entry.len.store(len, Ordering::Relaxed);
            entry.got.store(label.tag, Ordering::Relaxed);
            entry.state.store(CLAIMED | me.0, Ordering::Relaxed);
            source.expected.store(number.wrapping_add(1), Ordering::Relaxed);
        }
        if !mutant("board_claim_after_unlock") {
            self.unlock();
        }
        found
    }

    /// The copy into a claimed receive is done. Wait-free.
    #[inline]
    pub fn finish(&self, me: Rank, claim: Claim) {
        // Release: pairs with the Acquire in `standing`; what was copied is
        // for the owner.
        let order =
            if mutant("board_done_relaxed") { Ordering::Relaxed } else { Ordering::Release };
        self.entries[claim.index as usize].state.store(DONE | me.0, order);
    }

    /// How a post stands: by the owner, without the lock. Wait-free.
    ///
    /// # Panics
    ///
    /// If there is no such post.
    #[inline]
    pub fn standing(&self, index: u32) -> Standing {
        let entry = &self.entries[index as usize];
        // Acquire: pairs with the Release in `finish`.
        let state = entry.state.load(Ordering::Acquire);
        let source = Rank(state & RANK_MASK);
        match state & !RANK_MASK {
            CLAIMED => Standing::Claimed(source),
            // Relaxed: written before the state.
            DONE => Standing::Done(Arrival {
                source,
                tag: entry.got.load(Ordering::Relaxed),
                len: entry.len.load(Ordering::Relaxed),
            }),
            _ => Standing::Posted,
        }
    }

    /// Takes the lock, as the owner: waits for a sender that has it, and takes
    /// it from one that has died. Blocking.
    #[inline]
    pub fn hold(&self, owner: Rank, mut is_lost: impl FnMut(Rank) -> bool) -> Held<'_, 'm> {
        let mut seen = 0;
        loop {
            // Acquire: pairs with the Release in `unlock`. A dead rank has
            // released nothing: it wrote the state of one post, which is read
            // whole, and its own expected number, which is not read any more.
            let taken = self.head.lock.compare_exchange(
                seen,
                owner.0 + 1,
                Ordering::Acquire,
                Ordering::Relaxed,
            );
            match taken {
                Ok(_) => return Held(self),
                Err(holder) => {
                    let is_dead = holder != 0 && is_lost(Rank(holder - 1));
                    seen = if is_dead && !mutant("board_dead_keeps_lock") { holder } else { 0 };
                    spin_loop();
                }
            }
        }
    }

    /// The first receive in the order of posts that takes the message.
    fn find(&self, source: &Source, number: u32, label: Label, len: u64) -> Result<Claim, Refused> {
        // Relaxed, here and below: under the lock.
        let expected = source.expected.load(Ordering::Relaxed);
        if expected != number && !mutant("board_expected_ignored") {
            return Err(Refused::Undrained);
        }
        let mut exact = source.list.first.load(Ordering::Relaxed);
        let mut any = self.head.any.first.load(Ordering::Relaxed);
        for _ in 0..WALK_MAX {
            // An index that is out of bounds ends the list.
            let index = match (self.entries.get(exact as usize), self.entries.get(any as usize)) {
                (None, None) => break,
                (Some(_), None) => exact,
                (None, Some(_)) => any,
                (Some(one), Some(other)) => {
                    let exact_first = one.is_before(other) || mutant("board_exact_first");
                    if exact_first { exact } else { any }
                }
            };
            let entry = &self.entries[index as usize];
            if entry.state.load(Ordering::Relaxed) == POSTED && entry.takes(label) {
                let room = entry.room.load(Ordering::Relaxed);
                let at = entry.at.load(Ordering::Relaxed);
                let fits = room != OUT_OF_REACH && len <= room;
                return if fits { Ok(Claim { index, at }) } else { Err(Refused::OutOfReach) };
            }
            let next = entry.next.load(Ordering::Relaxed);
            *(if index == exact { &mut exact } else { &mut any }) = next;
        }
        Err(Refused::NoPost)
    }

    #[inline(always)]
    fn unlock(&self) {
        // Release: pairs with the Acquire of whoever takes the lock next.
        let order =
            if mutant("board_unlock_relaxed") { Ordering::Relaxed } else { Ordering::Release };
        self.head.lock.store(0, order);
    }

    /// # Safety
    ///
    /// The places are those of a board in memory that stays valid for `'m`.
    unsafe fn from_places(
        head: NonNull<Head>,
        sources: NonNull<Source>,
        entries: NonNull<Entry>,
        shape: BoardShape,
    ) -> Self {
        // SAFETY: the caller's.
        unsafe {
            Self {
                head: head.as_ref(),
                sources: core::slice::from_raw_parts(sources.as_ptr(), shape.peers as usize),
                entries: core::slice::from_raw_parts(entries.as_ptr(), shape.posts as usize),
            }
        }
    }
}

impl Held<'_, '_> {
    /// The next message of `source` was taken from the lane, and is matched
    /// before the lock is given back.
    #[inline]
    pub fn expect_next(&self, source: Rank) {
        let expected = &self.0.sources[source.0 as usize].expected;
        // Relaxed: under the lock.
        let next = expected.load(Ordering::Relaxed).wrapping_add(1);
        expected.store(next, Ordering::Relaxed);
    }

    /// Puts a receive up. The owner has looked at its unexpected messages in
    /// the same hold.
    ///
    /// # Panics
    ///
    /// If the place is in use, or there is none.
    #[inline]
    pub fn post(&self, index: u32, post: &Post) {
        let entry = &self.0.entries[index as usize];
        // Relaxed, here and below: under the lock.
        let state = entry.state.load(Ordering::Relaxed);
        assert_eq!(state, FREE, "post {index} is in use");
        let any_tag = if post.pattern.tag.is_none() { ANY_TAG } else { 0 };
        entry.tag.store(post.pattern.tag.unwrap_or(0), Ordering::Relaxed);
        entry.context.store(u32::from(post.pattern.context) | any_tag, Ordering::Relaxed);
        entry.number.store(post.number, Ordering::Relaxed);
        entry.at.store(post.at, Ordering::Relaxed);
        let room = if post.in_reach { post.room } else { OUT_OF_REACH };
        entry.room.store(room, Ordering::Relaxed);
        entry.state.store(POSTED, Ordering::Relaxed);
        let list = self.list(post.pattern.source);
        let last = list.last.load(Ordering::Relaxed);
        entry.prev.store(last, Ordering::Relaxed);
        entry.next.store(NONE, Ordering::Relaxed);
        let from = self.0.entries.get(last as usize).map_or(&list.first, |last| &last.next);
        from.store(index, Ordering::Relaxed);
        list.last.store(index, Ordering::Relaxed);
    }

    /// Takes a receive down that nobody has claimed: it is cancelled, or a
    /// message by lane takes it.
    ///
    /// # Errors
    ///
    /// How it stands: a sender was first, and its message is under way or
    /// there.
    #[inline]
    pub fn withdraw(&self, index: u32, source: Option<Rank>) -> Result<(), Standing> {
        let standing = self.0.standing(index);
        if standing != Standing::Posted && !mutant("board_withdraws_claimed") {
            return Err(standing);
        }
        self.remove(index, source);
        Ok(())
    }

    /// Takes a receive down whose message is there, or whose sender has died.
    #[inline]
    pub fn remove(&self, index: u32, source: Option<Rank>) {
        let entry = &self.0.entries[index as usize];
        let list = self.list(source);
        // Relaxed: under the lock.
        let prev = entry.prev.load(Ordering::Relaxed);
        let next = entry.next.load(Ordering::Relaxed);
        let before = self.0.entries.get(prev as usize).map_or(&list.first, |prev| &prev.next);
        before.store(next, Ordering::Relaxed);
        let after = self.0.entries.get(next as usize).map_or(&list.last, |next| &next.prev);
        after.store(prev, Ordering::Relaxed);
        entry.state.store(FREE, Ordering::Relaxed);
    }

    #[inline(always)]
    fn list(&self, source: Option<Rank>) -> &List {
        match source {
            Some(source) => &self.0.sources[source.0 as usize].list,
            None => &self.0.head.any,
        }
    }
}

impl Drop for Held<'_, '_> {
    #[inline]
    fn drop(&mut self) {
        self.0.unlock();
    }
}

impl fmt::Debug for Board<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Board")
            .field("peers", &self.sources.len())
            .field("posts", &self.entries.len())
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Locked => "the receiver's posts are locked",
            Self::Undrained => "earlier messages are in the lane",
            Self::NoPost => "no receive takes it",
            Self::OutOfReach => "the receive that takes it can not be copied into",
        })
    }
}

impl core::error::Error for Refused {}

impl fmt::Display for BoardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unaligned { address } => {
                write!(f, "memory at {address:#x} is not aligned to {}", Board::ALIGN)
            }
            Self::Shape(shape) => {
                write!(f, "no board has {} posts for {} ranks", shape.posts, shape.peers)
            }
            Self::Missing(shape) => {
                write!(f, "no board of {} posts for {} ranks is here", shape.posts, shape.peers)
            }
        }
    }
}

impl core::error::Error for BoardError {}

impl BoardShape {
    const fn to_bits(self) -> u64 {
        (self.peers as u64) << 32 | self.posts as u64
    }
}

/// The ends of a list of posts. Written by the owner.
#[repr(C)]
struct List {
    first: AtomicU32,
    last: AtomicU32,
}

#[repr(C, align(64))]
struct Head {
    /// The rank that has it, and one; 0: nobody.
    lock: AtomicU32,
    /// 0 until the board is made. Never changes.
    shape: AtomicU64,
    /// Posts for any source.
    any: List,
}

/// What is for one sender.
#[repr(C, align(64))]
struct Source {
    list: List,
    /// The number of its message that is expected next. Written by it and by
    /// the owner.
    expected: AtomicU32,
}

/// A post: one line, which is all of it that a sender fetches.
#[repr(C, align(64))]
struct Entry {
    /// What it is in the high byte, for whom below. Written by all, as the
    /// drawing says.
    state: AtomicU32,
    /// The tag of the message. Written by the sender, as `len`.
    got: AtomicU32,
    len: AtomicU64,
    // All else is written by the owner.
    next: AtomicU32,
    prev: AtomicU32,
    number: AtomicU32,
    tag: AtomicU32,
    context: AtomicU32,
    at: AtomicU64,
    room: AtomicU64,
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
        Self { list: List::new(), expected: AtomicU32::new(0) }
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
    fn takes(&self, label: Label) -> bool {
        // Relaxed: under the lock.
        let context = self.context.load(Ordering::Relaxed);
        context & !ANY_TAG == u32::from(label.context)
            && (context & ANY_TAG != 0 || self.tag.load(Ordering::Relaxed) == label.tag)
    }

    #[inline(always)]
    fn is_before(&self, other: &Self) -> bool {
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
    // SAFETY: offsets inside `memory_size`, which the callers promise.
    unsafe { Ok((memory.cast(), memory.add(sources).cast(), memory.add(entries).cast())) }
}

/// No post.
const NONE: u32 = u32::MAX;
const ANY_TAG: u32 = 1 << 31;
const OUT_OF_REACH: u64 = u64::MAX;

/// States of a post; the rank of the sender is in the lower bits.
const FREE: u32 = 0;
const POSTED: u32 = 1 << 24;
const CLAIMED: u32 = 2 << 24;
const DONE: u32 = 3 << 24;
const RANK_MASK: u32 = (1 << 24) - 1;

#[cfg(all(test, not(tsumugi_loom)))]
mod tests;

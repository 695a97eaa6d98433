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
//! [`WALK_MAX`] posts at most. `lock`, by the owner, is blocking: it waits for
//! a sender that has the lock. All else is wait-free.
//!
//! # References
//!
//! The single-copy eager protocol of Open MPI over PVAS: the sender searches
//! the receiver's queue under a try-lock and falls back to the ordinary one.

#[allow(unsafe_code)]
mod layout;
mod owner;

use super::{Label, Pattern};
use crate::mem::Rank;
use crate::sync::{Ordering, mutant};
use core::fmt;
use layout::{CLAIMED, DONE, Entry, FAILED, Head, NONE, OUT_OF_REACH, POSTED, RANK_MASK, Source};

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// That rank has claimed it and could not copy.
    Failed(Rank),
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

impl<'m> Board<'m> {
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

    /// The copy into a claimed receive is done, or it could not be made.
    /// Wait-free.
    #[inline]
    pub fn finish(&self, me: Rank, index: u32, is_copied: bool) {
        // Release: pairs with the Acquire in `standing`; what was copied is
        // for the owner.
        let order =
            if mutant("board_done_relaxed") { Ordering::Relaxed } else { Ordering::Release };
        let state = if is_copied { DONE } else { FAILED };
        self.entries[index as usize].state.store(state | me.0, order);
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
            FAILED => Standing::Failed(source),
            _ => Standing::Posted,
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

#[cfg(all(test, not(tsumugi_loom)))]
#[allow(unsafe_code)]
mod tests;

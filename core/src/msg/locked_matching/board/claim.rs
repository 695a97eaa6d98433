//! The sender's side of a board: to claim a posted receive under the lock.

use super::layout::{CLAIMED, DONE, FAILED, NONE, OUT_OF_REACH, POSTED, RANK_MASK, SenderEntry};
use super::post::{Arrival, PostState};
use super::view::Board;
use crate::mem::LocalRank;
use crate::msg::outcome::Label;
use crate::mutate;
use crate::sync::Ordering;
use core::fmt;

/// A receive that this sender has claimed and copies into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the receive waits until the claim is ended with `Board::finish`"]
pub struct ClaimedPost {
    /// The index of the post.
    pub index: u32,
    /// The address of its buffer.
    pub at: u64,
}

/// Why a message goes by the lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClaimError {
    /// Another rank has the lock.
    Locked,
    /// Earlier messages of this sender are still in the lane.
    Undrained,
    /// The board has no receive that takes the message, among those that were
    /// looked at.
    NoPost,
    /// The receive that takes the message is too short, or its buffer is out of
    /// reach.
    OutOfReach,
}

impl Board<'_> {
    /// Claims the receive that takes message `number` of this sender; the numbers
    /// count all contexts together. A message that goes by the lane has a number,
    /// too, and so has one that waits for room. Wait-free.
    ///
    /// # Errors
    ///
    /// The message must go by the lane then.
    ///
    /// - [`ClaimError::NoPost`]: none of the posts that were looked at takes the message, or
    ///   the board has no sender `me`.
    /// - [`ClaimError::Locked`]: another rank has the lock.
    /// - [`ClaimError::Undrained`]: earlier messages of this sender are still in the lane.
    /// - [`ClaimError::OutOfReach`]: the buffer of the post that takes the message is shorter
    ///   than `len`, or out of reach.
    #[inline]
    pub fn try_claim(
        &self,
        me: LocalRank,
        number: u32,
        label: Label,
        len: u64,
    ) -> Result<ClaimedPost, ClaimError> {
        let Some(source) = self.sources.get(me.0 as usize) else { return Err(ClaimError::NoPost) };
        // Relaxed: a look without the lock. A message that misses a post goes by
        // the lane.
        let is_empty = source.list.first.load(Ordering::Relaxed) == NONE
            && self.head.any.first.load(Ordering::Relaxed) == NONE;
        if is_empty {
            return Err(ClaimError::NoPost);
        }
        // Acquire: pairs with the Release in `unlock`.
        let order = mutate!("board_lock_relaxed": Ordering::Acquire => Ordering::Relaxed);
        let locked = self.head.lock.compare_exchange(0, me.0 + 1, order, Ordering::Relaxed);
        if locked.is_err() {
            return Err(ClaimError::Locked);
        }
        let found = self.find(source, number, label, len);
        mutate!("board_claim_after_unlock": {} => self.unlock());
        if let Ok(claim) = &found {
            let entry = &self.entries[claim.index as usize];
            // Relaxed, all three: under the lock.
            entry.len.store(len, Ordering::Relaxed);
            entry.got.store(label.tag, Ordering::Relaxed);
            entry.state.store(CLAIMED | me.0, Ordering::Relaxed);
            source.expected.store(number.wrapping_add(1), Ordering::Relaxed);
        }
        mutate!("board_claim_after_unlock": self.unlock() => ());
        found
    }

    /// Marks a claimed receive: the copy is done, or it could not be made.
    /// Wait-free.
    #[inline]
    pub fn finish(&self, me: LocalRank, index: u32, is_copied: bool) {
        // Release: pairs with the Acquire in `standing`, so that the owner sees
        // the copied bytes.
        let order = mutate!("board_done_relaxed": Ordering::Release => Ordering::Relaxed);
        let state = if is_copied { DONE } else { FAILED };
        self.entries[index as usize].state.store(state | me.0, order);
    }

    /// Returns the state of a post. For the owner, without the lock. Wait-free.
    ///
    /// # Panics
    ///
    /// If there is no such post.
    #[inline]
    pub fn standing(&self, index: u32) -> PostState {
        let entry = &self.entries[index as usize];
        // Acquire: pairs with the Release in `finish`.
        let state = entry.state.load(Ordering::Acquire);
        let source = LocalRank(state & RANK_MASK);
        match state & !RANK_MASK {
            CLAIMED => PostState::Claimed(source),
            // Relaxed: both were written before the state.
            DONE => PostState::Done(Arrival {
                source,
                tag: entry.got.load(Ordering::Relaxed),
                len: entry.len.load(Ordering::Relaxed),
            }),
            FAILED => PostState::Failed(source),
            _ => PostState::Posted,
        }
    }

    /// Finds the first receive in the order of posts that takes the message.
    fn find(
        &self,
        source: &SenderEntry,
        number: u32,
        label: Label,
        len: u64,
    ) -> Result<ClaimedPost, ClaimError> {
        // Relaxed, here and below: under the lock.
        let expected = source.expected.load(Ordering::Relaxed);
        if mutate!("board_expected_ignored": expected != number => false) {
            return Err(ClaimError::Undrained);
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
                    let exact_first = mutate!("board_exact_first": one.is_before(other) => true);
                    if exact_first { exact } else { any }
                }
            };
            let entry = &self.entries[index as usize];
            if entry.state.load(Ordering::Relaxed) == POSTED && entry.takes(label) {
                let room = entry.room.load(Ordering::Relaxed);
                let at = entry.at.load(Ordering::Relaxed);
                let fits = room != OUT_OF_REACH && len <= room;
                return if fits {
                    Ok(ClaimedPost { index, at })
                } else {
                    Err(ClaimError::OutOfReach)
                };
            }
            let next = entry.next.load(Ordering::Relaxed);
            *(if index == exact { &mut exact } else { &mut any }) = next;
        }
        Err(ClaimError::NoPost)
    }
}

impl fmt::Display for ClaimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Locked => "another rank holds the lock of the receiver's board",
            Self::Undrained => "earlier messages of this sender are still in the lane",
            Self::NoPost => "no posted receive matches the message",
            Self::OutOfReach => "the buffer of the matching receive is too short or out of reach",
        })
    }
}

impl core::error::Error for ClaimError {}

/// Most posts that a sender looks at before it sends by the lane.
pub const WALK_MAX: usize = 16;

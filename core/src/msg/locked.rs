//! The paper's design: a sender looks into the table of its receiver.
//!
//! Each rank has a [`Board`] in memory that the others reach, and puts up there
//! all receives that are posted. A message that is worth it claims the first
//! one that takes it, is copied into its buffer, and no packet tells of it:
//! the receiver finds that it is done. Whatever cannot (the lock is taken,
//! earlier messages are in the lane, no receive, out of reach) goes by the
//! lane, as without a board.
//!
//! ```text
//!   sender                                    receiver
//!   try_claim ── not the one expected ──┐
//!     │      └── locked, none, too far ─┴──►  lane: lock; count it as expected,
//!     ▼                                       meet the first receive that is
//!   copy, finish ───────────────────────────► not claimed; unlock
//!                                             done? meet
//! ```
//!
//! A message from the lane is counted and meets its receive in one hold of the
//! lock: in between its sender could claim for the next one. To look at the
//! messages that are here and to put a receive up need no common hold: only
//! the owner's machine adds to either.
//!
//! Messages that wait for room keep their order: none passes another, since
//! the receiver's table may change between two looks.

use super::board::{Board, BoardShape, Post, Refused, Standing};
use super::count::Path;
use super::launch::{Launched, Outgoing};
use super::list::List;
use super::machine::Machine;
use super::outcome::{Ended, Pattern};
use super::send::COPY_BYTES_MAX;
use super::setup::Design;
use super::tables::{ANY, Entry, Offered, State};
use super::wire::{Copy, Wire};
use crate::mem::Rank;

impl<'m> Machine<'m> {
    /// How large the boards are: all of a job have the same tables.
    pub fn board_shape(&self) -> BoardShape {
        BoardShape { peers: self.shape.peers, posts: self.tables.requests.len() as u32 }
    }

    /// The boards of all ranks, for [`Design::Locked`]; without them messages
    /// go as with [`Design::TwoCopy`]. In the place of a [far](Self::set_far)
    /// rank stands any board: it is never looked at.
    ///
    /// Whoever learns that a rank has died tells the own board
    /// ([`Board::lost`]) before it asks for the machine: whoever has the
    /// machine may be waiting for the lock that the rank died with.
    ///
    /// # Panics
    ///
    /// If there is not one for each rank, or something is under way.
    pub fn put_up(&mut self, boards: &'m [Board<'m>]) {
        assert_eq!(boards.len(), self.shape.peers as usize, "each rank has a board");
        assert_eq!(self.under_way, 0, "requests are under way");
        if self.design == Design::Locked {
            self.boards = boards;
        }
    }

    /// Whether the design has boards, and they are here.
    #[inline(always)]
    pub(super) fn has_board(&self) -> bool {
        !self.boards.is_empty()
    }

    /// Takes the lock, to take messages from a lane.
    #[inline]
    pub(super) fn lock_board(&mut self) {
        self.boards[self.rank.0 as usize].lock(self.rank);
        self.holds_board = true;
    }

    #[inline]
    pub(super) fn unlock_board(&mut self) {
        self.holds_board = false;
        self.boards[self.rank.0 as usize].unlock();
    }

    /// The message that is taken now is counted; it meets its receive before
    /// the lock is given back.
    #[inline]
    pub(super) fn expect_next(&mut self, from: usize) {
        self.boards[self.rank.0 as usize].expect_next(Rank(from as u32));
    }

    /// Puts up a receive that was just posted, where there is a board.
    #[inline]
    pub(super) fn put_up_post(&mut self, post: usize) {
        let entry = &mut self.tables.requests[post];
        entry.offered = Offered::Yes;
        let pattern = Pattern {
            context: entry.context,
            source: source_of(entry),
            tag: (!entry.any_tag).then_some(entry.tag),
        };
        let up = Post {
            number: entry.number as u32,
            pattern,
            at: entry.at,
            room: entry.len,
            in_reach: entry.in_reach,
        };
        self.boarded.push(self.tables.requests, post);
        self.under_lock(|board| board.post(post as u32, &up));
    }

    /// Takes a receive down, unless a sender has claimed it. Whether it is
    /// down.
    #[inline]
    pub(super) fn take_down(&mut self, post: usize) -> bool {
        let entry = &self.tables.requests[post];
        if !self.has_board() || entry.offered != Offered::Yes {
            return true;
        }
        let source = source_of(entry);
        let is_down = self.under_lock(|board| board.withdraw(post as u32, source).is_ok());
        if is_down {
            self.forget_board(post);
        }
        is_down
    }

    /// Whether a sender has claimed a posted receive: no other message meets
    /// it.
    #[inline(always)]
    pub(super) fn is_claimed(&self, post: usize) -> bool {
        self.has_board()
            && self.boards[self.rank.0 as usize].standing(post as u32) != Standing::Posted
    }

    /// Looks for receives whose message is in their buffer. Whether there was
    /// one.
    #[inline]
    pub(super) fn find_done<W: Wire>(&mut self, wire: &mut W) -> bool {
        if self.boarded.is_empty() { false } else { self.look_at_board(wire) }
    }

    fn look_at_board<W: Wire>(&mut self, wire: &mut W) -> bool {
        let mut has_moved = false;
        let mut at = self.boarded.first();
        while let Some(post) = at {
            at = List::<1>::after(self.tables.requests, post);
            let standing = self.boards[self.rank.0 as usize].standing(post as u32);
            let (source, tag, len, error) = match standing {
                Standing::Posted | Standing::Claimed(_) => continue,
                Standing::Done(arrival) => (arrival.source, arrival.tag, arrival.len, None),
                Standing::Failed(rank) => (rank, 0, 0, Some(Ended::Failed { rank })),
            };
            has_moved = true;
            self.remove_post(post);
            // Only a rank that there is has written it.
            let from = (source.0 as usize).min(self.tables.peers.len() - 1);
            self.meet(post, from, tag, len);
            let peer = &mut self.tables.peers[from];
            peer.here.taken = peer.here.taken.wrapping_add(1);
            self.end(post, error);
            self.settle(wire, from);
        }
        has_moved
    }

    /// The rank has died: it keeps no lock.
    pub(super) fn lose_lock(&mut self, rank: Rank) {
        if self.has_board() {
            self.boards[self.rank.0 as usize].lost(rank);
        }
    }

    /// The rank has died, and nothing of it is in the lane: what it has
    /// claimed waits for it.
    pub(super) fn lose_claims<W: Wire>(&mut self, wire: &mut W, from: usize) {
        if !self.has_board() {
            return;
        }
        self.find_done(wire);
        let mut at = self.boarded.first();
        while let Some(post) = at {
            at = List::<1>::after(self.tables.requests, post);
            let claimed = Standing::Claimed(Rank(from as u32));
            if self.boards[self.rank.0 as usize].standing(post as u32) == claimed {
                self.remove_post(post);
                self.unpost(post);
                let entry = &mut self.tables.requests[post];
                entry.source = from as u32;
                entry.state = State::Coming;
            } else if self.tables.requests[post].peer as usize == from {
                self.take_down(post);
            }
        }
    }

    /// Sends a message into a receive of the other's board, if it can be done
    /// at once.
    #[inline]
    pub(super) fn launch_claimed<W: Wire>(
        &mut self,
        wire: &mut W,
        out: &Outgoing,
    ) -> Option<Launched> {
        let Outgoing { to, label, bytes, .. } = *out;
        if self.tables.peers[to.0 as usize].far {
            return None;
        }
        let streaming = self.streams(to, &bytes)?;
        let number = self.tables.peers[to.0 as usize].sent;
        let board = &self.boards[to.0 as usize];
        let claim = match board.try_claim(self.rank, number, label, bytes.len) {
            Ok(claim) => claim,
            Err(Refused::Locked | Refused::Undrained | Refused::NoPost | Refused::OutOfReach) => {
                return None;
            }
        };
        self.counts.sent(Path::Direct, bytes.len);
        if bytes.len <= COPY_BYTES_MAX {
            let len = bytes.len;
            let (from, at) = (bytes.at, claim.at);
            wire.copy(&Copy { peer: to, from, to: at, len, streaming, by_kernel: false });
            board.finish(self.rank, claim.index, true);
            wire.ring(to);
            return Some(Launched::Done);
        }
        let index = self.request_of(out, State::Claiming);
        let request = &mut self.tables.requests[index];
        request.remote = claim.index;
        request.far = Some(claim.at);
        self.jobs.push(self.tables.requests, index);
        Some(Launched::Running(index))
    }

    /// The copy into a claimed receive is done, or could not be made.
    pub(super) fn claim_done<W: Wire>(&mut self, wire: &mut W, index: usize) {
        let Entry { peer, remote, error, .. } = self.tables.requests[index];
        self.boards[peer as usize].finish(self.rank, remote, error.is_none());
        let lost = self.tables.peers[peer as usize].lost;
        if !lost {
            wire.ring(Rank(peer));
        }
        let error = if lost { Some(Ended::PeerLost { rank: Rank(peer) }) } else { error };
        self.end(index, error);
    }

    /// A receive whose message is there, or will never be, is taken down.
    fn remove_post(&mut self, post: usize) {
        let source = source_of(&self.tables.requests[post]);
        self.under_lock(|board| board.remove(post as u32, source));
        self.forget_board(post);
    }

    fn forget_board(&mut self, post: usize) {
        self.tables.requests[post].offered = Offered::No;
        self.boarded.remove(self.tables.requests, post);
    }

    #[inline]
    fn under_lock<R>(&mut self, with: impl FnOnce(&Board<'m>) -> R) -> R {
        let board = self.boards[self.rank.0 as usize];
        if self.holds_board {
            return with(&board);
        }
        self.lock_board();
        let result = with(&board);
        self.unlock_board();
        result
    }
}

fn source_of(entry: &Entry) -> Option<Rank> {
    (entry.peer != ANY).then_some(Rank(entry.peer))
}

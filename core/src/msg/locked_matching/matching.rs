//! The part of a [`MessageMachine`] that puts receives on its own board, and claims
//! receives of its peers.
//!
//! A message from the lane is counted and meets its receive in one hold of the
//! lock: in between its sender could claim for the next message. Looking at the
//! messages that are here and putting a receive on the board need no common hold,
//! because only the owner's machine adds to either.
//!
//! Messages that wait for room keep their order: none passes another, because the
//! receiver's table may change between two looks.

use super::board::{Board, BoardPost, BoardShape, ClaimError, PostState};
use crate::mem::{LocalRank, PeerIndex};
use crate::msg::count::MessagePath;
use crate::msg::launch::COPY_BYTES_MAX;
use crate::msg::list::IndexList;
use crate::msg::machine::MessageMachine;
use crate::msg::outcome::{Pattern, RequestError};
use crate::msg::outgoing::{Launched, OutgoingMessage};
use crate::msg::shape::MatchingDesign;
use crate::msg::tables::{ANY, OfferState, RequestEntry, RequestState};
use crate::msg::wire::{Copy, LaneTransport};

impl<'m> MessageMachine<'m> {
    /// Returns the shape of the boards: all ranks of a job have tables of one
    /// size.
    pub fn board_shape(&self) -> BoardShape {
        BoardShape { peers: self.shape.peers, posts: self.tables.requests.len() as u32 }
    }

    /// Sets the boards of all ranks, for [`MatchingDesign::Locked`]; without them
    /// messages go as with [`MatchingDesign::TwoCopy`]. The entry of a
    /// [remote](Self::set_remote) rank can be any board: it is never looked at.
    ///
    /// A thread that learns of the death of a rank must call [`Board::lost`] on
    /// its own board before it waits for the machine: the thread that has the
    /// machine may be waiting for the lock that the dead rank holds.
    ///
    /// # Panics
    ///
    /// If there is not one board for each rank, or a request is under way.
    pub fn put_up(&mut self, boards: &'m [Board<'m>]) {
        assert_eq!(
            boards.len(),
            self.shape.peers as usize,
            "the machine needs one board for each rank"
        );
        assert_eq!(self.under_way, 0, "boards must be set while no request is under way");
        if self.design == MatchingDesign::Locked {
            self.boards = boards;
        }
    }

    /// Returns whether the design has boards, and they are set.
    #[inline(always)]
    pub(in crate::msg) fn has_board(&self) -> bool {
        !self.boards.is_empty()
    }

    /// Takes the lock, in order to take messages from a lane.
    #[inline]
    pub(in crate::msg) fn lock_board(&mut self) {
        self.boards[self.own.0 as usize].lock(self.own);
        self.holds_board = true;
    }

    #[inline]
    pub(in crate::msg) fn unlock_board(&mut self) {
        self.holds_board = false;
        self.boards[self.own.0 as usize].unlock();
    }

    /// Counts the message that is being taken; the message must meet its receive
    /// before the lock is given back.
    #[inline]
    pub(in crate::msg) fn expect_next(&mut self, from: usize) {
        self.boards[self.own.0 as usize].expect_next(place_of(from as u32));
    }

    /// Puts a receive that was just posted on the board, if there is one.
    #[inline]
    pub(in crate::msg) fn put_up_post(&mut self, post: usize) {
        let entry = &mut self.tables.requests[post];
        entry.offered = OfferState::Yes;
        let pattern = Pattern {
            context: entry.context,
            source: source_of(entry),
            tag: (!entry.any_tag).then_some(entry.tag),
        };
        let up = BoardPost {
            number: entry.number as u32,
            pattern,
            at: entry.at,
            room: entry.len,
            in_reach: entry.in_reach,
        };
        self.boarded.push(self.tables.requests, post);
        self.under_lock(|board| board.post(post as u32, &up));
    }

    /// Removes a receive from the board, unless a sender has claimed it. Returns
    /// whether it is removed.
    #[inline]
    pub(in crate::msg) fn take_down(&mut self, post: usize) -> bool {
        let entry = &self.tables.requests[post];
        if !self.has_board() || entry.offered != OfferState::Yes {
            return true;
        }
        let source = source_of(entry);
        let is_down = self.under_lock(|board| board.withdraw(post as u32, source).is_ok());
        if is_down {
            self.forget_board(post);
        }
        is_down
    }

    /// Returns whether a sender has claimed a posted receive; then no other
    /// message may meet it.
    #[inline(always)]
    pub(in crate::msg) fn is_claimed(&self, post: usize) -> bool {
        self.has_board()
            && self.boards[self.own.0 as usize].standing(post as u32) != PostState::Posted
    }

    /// Looks for receives that have their message in the buffer. Returns whether
    /// there was one.
    #[inline]
    pub(in crate::msg) fn find_done<W: LaneTransport>(&mut self, wire: &mut W) -> bool {
        if self.boarded.is_empty() { false } else { self.look_at_board(wire) }
    }

    fn look_at_board<W: LaneTransport>(&mut self, wire: &mut W) -> bool {
        let mut has_moved = false;
        let mut at = self.boarded.first();
        while let Some(post) = at {
            at = IndexList::<1>::after(self.tables.requests, post);
            let standing = self.boards[self.own.0 as usize].standing(post as u32);
            let (source, tag, len, error) = match standing {
                PostState::Posted | PostState::Claimed(_) => continue,
                PostState::Done(arrival) => (arrival.source, arrival.tag, arrival.len, None),
                PostState::Failed(source) => {
                    (source, 0, 0, Some(RequestError::Failed { peer: PeerIndex(source.0) }))
                }
            };
            has_moved = true;
            self.remove_post(post);
            // A correct sender has written its own rank; the bound protects from
            // any other.
            let from = (source.0 as usize).min(self.tables.peers.len() - 1);
            self.meet(post, from, tag, len);
            let peer = &mut self.tables.peers[from];
            peer.here.taken = peer.here.taken.wrapping_add(1);
            self.end(post, error);
            self.settle(wire, from);
        }
        has_moved
    }

    /// Marks a dead rank on the own board, so that it keeps no lock.
    pub(in crate::msg) fn lose_lock(&mut self, peer: PeerIndex) {
        if self.has_board() {
            self.boards[self.own.0 as usize].lost(place_of(peer.0));
        }
    }

    /// Takes the receives that a dead rank has claimed off the board, so that
    /// they end. Nothing of that rank is in the lane any more.
    pub(in crate::msg) fn lose_claims<W: LaneTransport>(&mut self, wire: &mut W, from: usize) {
        if !self.has_board() {
            return;
        }
        self.find_done(wire);
        let mut at = self.boarded.first();
        while let Some(post) = at {
            at = IndexList::<1>::after(self.tables.requests, post);
            let claimed = PostState::Claimed(place_of(from as u32));
            if self.boards[self.own.0 as usize].standing(post as u32) == claimed {
                self.remove_post(post);
                self.unpost(post);
                let entry = &mut self.tables.requests[post];
                entry.source = from as u32;
                entry.state = RequestState::Coming;
            } else if self.tables.requests[post].peer as usize == from {
                self.take_down(post);
            }
        }
    }

    /// Sends a message into a receive of the peer's board, if that can be done at
    /// once.
    #[inline]
    pub(in crate::msg) fn launch_claimed<W: LaneTransport>(
        &mut self,
        wire: &mut W,
        out: &OutgoingMessage,
    ) -> Option<Launched> {
        let OutgoingMessage { to, label, bytes, .. } = *out;
        if self.tables.peers[to.0 as usize].remote {
            return None;
        }
        let streaming = self.streams(to, &bytes)?;
        let number = self.tables.peers[to.0 as usize].sent;
        let board = &self.boards[to.0 as usize];
        let claim = match board.try_claim(self.own, number, label, bytes.len) {
            Ok(claim) => claim,
            Err(
                ClaimError::Locked
                | ClaimError::Undrained
                | ClaimError::NoPost
                | ClaimError::OutOfReach,
            ) => {
                return None;
            }
        };
        self.counts.sent(MessagePath::Direct, bytes.len);
        if bytes.len <= COPY_BYTES_MAX {
            let len = bytes.len;
            let (from, at) = (bytes.at, claim.at);
            wire.copy(&Copy { peer: to, from, to: at, len, streaming, by_kernel: false });
            board.finish(self.own, claim.index, true);
            wire.ring(to);
            return Some(Launched::Done);
        }
        let index = self.request_of(out, RequestState::Claiming);
        let request = &mut self.tables.requests[index];
        request.remote = claim.index;
        request.peer_at = Some(claim.at);
        self.jobs.push(self.tables.requests, index);
        Some(Launched::Running(index))
    }

    /// Takes the end of a copy into a claimed receive: it is done, or could not
    /// be made.
    pub(in crate::msg) fn claim_done<W: LaneTransport>(&mut self, wire: &mut W, index: usize) {
        let RequestEntry { peer, remote, error, .. } = self.tables.requests[index];
        self.boards[peer as usize].finish(self.own, remote, error.is_none());
        let lost = self.tables.peers[peer as usize].lost;
        if !lost {
            wire.ring(PeerIndex(peer));
        }
        let error =
            if lost { Some(RequestError::PeerLost { peer: PeerIndex(peer) }) } else { error };
        self.end(index, error);
    }

    /// Removes a receive from the board that has its message, or will never get
    /// it.
    pub(in crate::msg) fn remove_post(&mut self, post: usize) {
        let source = source_of(&self.tables.requests[post]);
        self.under_lock(|board| board.remove(post as u32, source));
        self.forget_board(post);
    }

    fn forget_board(&mut self, post: usize) {
        self.tables.requests[post].offered = OfferState::No;
        self.boarded.remove(self.tables.requests, post);
    }

    #[inline]
    fn under_lock<R>(&mut self, with: impl FnOnce(&Board<'m>) -> R) -> R {
        let board = self.boards[self.own.0 as usize];
        if self.holds_board {
            return with(&board);
        }
        self.lock_board();
        let result = with(&board);
        self.unlock_board();
        result
    }
}

fn source_of(entry: &RequestEntry) -> Option<LocalRank> {
    (entry.peer != ANY).then_some(place_of(entry.peer))
}

/// The place on the node of a near peer: the ranks of the node are the first peers, in
/// the order of their places. Far peers meet no board.
const fn place_of(near: u32) -> LocalRank {
    LocalRank(near)
}

//! The state machine of one rank: the calls from outside.
//!
//! ```text
//!  send ─┬─ in its packet, in slots, or copied ──────────────► Done
//!        ├─ no room ► Waiting ─┐
//!        ├─ Told ◄─────────────┤  ──Fin──────────────────────► Ended
//!        │    └──Cts──►        │
//!        └─ Pushing, Streaming ┘  ──copied, all sent─────────► Ended
//!
//!  receive ─┬─ was there, whole ─────────────────────────────► Done
//!           └─ Posted ─┬─ message of a packet or slots ──────► Ended
//!                      ├─ Coming ──Copied, last Data─────────► Ended
//!                      └─ Fetching ──copied──► (Fin) ────────► Ended
//! ```
//!
//! The setup is in `setup`, the sending in `send`, the receiving in `receive`,
//! the taking of packets in `arrive`, bytes that move after the announcement in
//! `rendezvous`, the sender's copy of posted receives in `mirror`, the death of a
//! rank in `lost`.

use super::count::MessageCounts;
use super::list::{IndexList, IndexStack};
use super::locked_matching::Board;
use super::outcome::{Cancel, CopyJob, ReceivedMessage, RequestError, RequestId};
use super::shape::{MatchingDesign, MessageShape};
use super::tables::{DuePacket, MessageTables, OfferState, RequestEntry, RequestState};
use super::wire::LaneTransport;
use crate::mem::{LocalRank, PeerIndex};
use core::fmt;

/// Messages of one rank. The text of the module shows how to drive the machine.
pub struct MessageMachine<'m> {
    /// This rank's place on its node, where its lanes and its board are.
    pub(super) own: LocalRank,
    pub(super) shape: MessageShape,
    pub(super) design: MatchingDesign,
    pub(super) tables: MessageTables<'m>,
    /// Requests: free ones, ended ones that must be reported, and those with
    /// bytes to be copied.
    pub(super) free: IndexStack<0>,
    pub(super) ended: IndexList<0>,
    pub(super) jobs: IndexList<1>,
    /// Receives from any source; free unexpected messages; used ones, in the
    /// order of their arrival.
    pub(super) any_posted: IndexList<0>,
    pub(super) room: IndexStack<0>,
    pub(super) arrived: IndexList<1>,
    /// Peers with packets to be pushed, and peers that must get credits back.
    pub(super) busy: IndexList<0>,
    pub(super) credits_due: IndexList<1>,
    /// Receives posted, ever.
    pub(super) posts: u64,
    /// Requests that have not ended.
    pub(super) under_way: u32,
    /// Unexpected messages that can still be granted; whether the caller waits
    /// for a message without a receive (has probed).
    pub(super) spare: u32,
    pub(super) is_probed: bool,
    /// Entries for unexpected messages beyond those of the shape; whether a grant was due
    /// and there was none left.
    pub(super) extra: usize,
    pub(super) is_cramped: bool,
    /// A peer has returned something since this was cleared.
    pub(super) has_learned: bool,
    /// The up to four lanes that had packets last, and the next lane in turn.
    pub(super) recent: [u32; 4],
    pub(super) turn: u32,
    pub(super) counts: MessageCounts,
    /// The boards of all ranks, if the design has them; own receives that are on
    /// the board; whether this machine holds the lock.
    pub(super) boards: &'m [Board<'m>],
    pub(super) boarded: IndexList<1>,
    pub(super) holds_board: bool,
}

impl MessageMachine<'_> {
    /// Looks at the lanes that had packets last and at some others, takes what
    /// has come, and pushes packets that waited for room. Returns whether
    /// anything moved.
    ///
    /// Wait-free: it looks at a fixed number of lanes, and takes no more of each
    /// than the lane holds.
    pub fn advance<W: LaneTransport>(&mut self, wire: &mut W) -> bool {
        let mut has_moved = self.find_done(wire);
        for from in self.recent {
            has_moved |= self.drain(wire, from as usize);
        }
        for _ in 0..TURN.min(self.shape.peers) {
            let from = self.turn;
            self.turn = if from + 1 == self.shape.peers { 0 } else { from + 1 };
            if !self.recent.contains(&from) {
                has_moved |= self.drain(wire, from as usize);
            }
        }
        has_moved | self.pump_all(wire)
    }

    /// Does the same for the lane of one rank.
    #[inline]
    pub fn advance_from<W: LaneTransport>(&mut self, wire: &mut W, from: PeerIndex) -> bool {
        let mut has_moved = self.find_done(wire);
        has_moved |= self.drain(wire, from.0 as usize);
        has_moved | self.pump_all(wire)
    }

    /// Does the same for the lanes of all ranks: for a thread that has looked for messages
    /// until now, and ceases.
    pub fn advance_all<W: LaneTransport>(&mut self, wire: &mut W) -> bool {
        let mut has_moved = self.find_done(wire);
        for from in 0..self.shape.peers {
            has_moved |= self.drain(wire, from as usize);
        }
        has_moved | self.pump_all(wire)
    }

    /// Takes what has come from one rank, and pushes nothing: to be called before
    /// a receive is posted, or before a message is sent that could go straight
    /// into a receive of that rank. Returns whether anything came.
    #[inline]
    pub fn look<W: LaneTransport>(&mut self, wire: &mut W, from: PeerIndex) -> bool {
        self.drain(wire, from.0 as usize)
    }

    /// To be called before the rank stops polling for a while. Returns credits to
    /// all peers, above all to those that wait for them, and looks at all lanes
    /// once more. Returns whether anything moved, or waits to be copied or taken:
    /// then the caller must not sleep yet. Otherwise all that this rank waits for
    /// comes with a packet or a [ring](LaneTransport::ring).
    pub fn rest<W: LaneTransport>(&mut self, wire: &mut W) -> bool {
        let mut has_moved = self.find_done(wire);
        for from in 0..self.shape.peers {
            has_moved |= self.drain(wire, from as usize);
        }
        let mut told = self.credits_due.first();
        while let Some(peer) = told {
            if !self.tables.peers[peer].lost && self.owes(wire, peer) {
                self.return_credits(wire, peer);
            }
            told = IndexList::<1>::after(self.tables.peers, peer);
        }
        // A peer that requested more before this fence sees the credits that were
        // returned above, or its request is seen below.
        wire.fence();
        for from in 0..self.tables.peers.len() {
            self.answer_starved(wire, from);
        }
        while let Some(peer) = self.credits_due.pop(self.tables.peers) {
            self.tables.peers[peer].credits_due = false;
            let from = PeerIndex(peer as u32);
            if !self.tables.peers[peer].lost && wire.is_starved(from) {
                // The peer may have looked before it could see the credits.
                wire.ring(from);
            }
        }
        self.has_learned = false;
        has_moved |= self.pump_all(wire);
        // What was learned may take effect when the lane is looked at again.
        has_moved |= self.has_learned;
        has_moved || !self.jobs.is_empty() || !self.ended.is_empty()
    }

    /// Returns the next bytes to be copied. The caller must report the end of the
    /// copy by [`job_done`](Self::job_done).
    pub fn poll_job(&mut self) -> Option<CopyJob> {
        let index = self.jobs.pop(self.tables.requests)?;
        Some(self.job(index))
    }

    /// Requests a report by [`poll_ended`](Self::poll_ended) when a request ends.
    /// Returns whether there will be one: not if the request has ended already.
    pub fn watch(&mut self, request: RequestId) -> bool {
        let Some(index) = self.find(request) else { return false };
        let entry = &mut self.tables.requests[index];
        entry.watched = entry.state != RequestState::Ended;
        entry.watched
    }

    /// Returns the next ended request, of those that are [watched](Self::watch).
    /// The request stays until it is [taken](Self::take).
    #[inline]
    pub fn poll_ended(&mut self) -> Option<RequestId> {
        let index = self.ended.pop(self.tables.requests)?;
        self.tables.requests[index].listed = false;
        Some(self.request(index))
    }

    /// Returns the result of a request; then the request is free. `None`: it has
    /// not ended, or was taken before. Wait-free.
    #[inline(always)]
    pub fn take(&mut self, request: RequestId) -> Option<Result<ReceivedMessage, RequestError>> {
        let entry = self.tables.requests.get(request.index as usize)?;
        if entry.generation != request.generation || entry.state != RequestState::Ended {
            return None;
        }
        let result = result_of(entry);
        self.release(request.index as usize);
        Some(result)
    }

    /// Does the same for a request that has ended with the whole message, and
    /// that [`poll_ended`](Self::poll_ended) need not report any more; otherwise
    /// does nothing. Wait-free.
    #[inline(always)]
    pub fn take_whole(&mut self, request: RequestId) -> Option<ReceivedMessage> {
        let entry = self.tables.requests.get(request.index as usize)?;
        let is_whole = entry.error.is_none() && entry.size <= entry.len && !entry.listed;
        if is_whole { self.take(request)?.ok() } else { None }
    }

    /// Returns whether a request has ended and was not taken.
    #[inline]
    pub fn has_ended(&self, request: RequestId) -> bool {
        self.find(request)
            .is_some_and(|index| self.tables.requests[index].state == RequestState::Ended)
    }

    /// Returns whether a request has not ended yet; false for one that was taken.
    #[inline]
    pub fn is_under_way(&self, request: RequestId) -> bool {
        self.find(request)
            .is_some_and(|index| self.tables.requests[index].state != RequestState::Ended)
    }

    /// Returns whether a request has not been taken yet.
    #[inline]
    pub fn is_held(&self, request: RequestId) -> bool {
        self.find(request).is_some()
    }

    /// Returns the peer of a request, and its tag; `None`: any peer, any tag.
    pub fn about(&self, request: RequestId) -> (Option<PeerIndex>, Option<u32>) {
        let Some(index) = self.find(request) else { return (None, None) };
        let entry = &self.tables.requests[index];
        let peer = (entry.peer < self.shape.peers).then_some(PeerIndex(entry.peer));
        (peer, (!entry.any_tag).then_some(entry.tag))
    }

    /// Returns the context of a request, and whether it is a receive; `None`: it was taken.
    pub fn kind_of(&self, request: RequestId) -> Option<(u16, bool)> {
        let entry = &self.tables.requests[self.find(request)?];
        let is_receive = matches!(
            entry.state,
            RequestState::Posted
                | RequestState::Coming
                | RequestState::Fetching
                | RequestState::Helping
        );
        Some((entry.context, is_receive))
    }

    /// Returns whether a rank was [lost](Self::lost).
    pub fn is_lost(&self, peer: PeerIndex) -> bool {
        self.tables.peers.get(peer.0 as usize).is_some_and(|peer| peer.lost)
    }

    /// Cancels a request: a receive without a message, or a send that waits for
    /// room. If a receive was offered to its source, the machine asks the source
    /// to forget the offer: until the answer comes the receive may still get a
    /// message.
    pub fn cancel<W: LaneTransport>(&mut self, wire: &mut W, request: RequestId) -> Cancel {
        let Some(index) = self.find(request) else { return Cancel::TooLate };
        let entry = self.tables.requests[index];
        match entry.state {
            RequestState::Waiting => {
                let to = entry.peer as usize;
                self.tables.peers[to].waiting.remove(self.tables.requests, index);
            }
            RequestState::Posted if !self.take_down(index) => return Cancel::TooLate,
            RequestState::Posted if !self.withdraw(wire, index) => return Cancel::Asked,
            RequestState::Posted => self.unpost(index),
            _ => return Cancel::TooLate,
        }
        self.end(index, Some(RequestError::Cancelled));
        Cancel::Done
    }

    /// Returns whether there is something to be pushed, copied or taken: then a
    /// thread should soon [advance](Self::advance) the machine.
    pub fn wants_poll(&self) -> bool {
        !self.busy.is_empty() || !self.jobs.is_empty() || !self.ended.is_empty()
    }

    /// Returns whether an ended request may have to be reported, or there are
    /// bytes to be copied.
    #[inline]
    pub fn has_news(&self) -> bool {
        !self.jobs.is_empty() || !self.ended.is_empty()
    }

    /// Returns how many requests have not ended.
    pub const fn under_way(&self) -> u32 {
        self.under_way
    }

    /// Returns the counts of messages sent so far.
    pub const fn counts(&self) -> &MessageCounts {
        &self.counts
    }

    /// Returns the rank of this machine.
    pub const fn own(&self) -> LocalRank {
        self.own
    }

    /// Returns the shape, that is, the sizes of the machine's tables and lanes.
    pub const fn shape(&self) -> MessageShape {
        self.shape
    }

    /// Takes a free entry, for a request that has not ended.
    #[inline(always)]
    pub(super) fn new_entry(&mut self, with: RequestEntry) -> Option<usize> {
        let index = self.free.pop(self.tables.requests)?;
        self.under_way += 1;
        let entry = &mut self.tables.requests[index];
        *entry = RequestEntry { generation: entry.generation, ..with };
        Some(index)
    }

    /// Ends a request, which is in no list except perhaps the list of jobs.
    #[inline(always)]
    pub(super) fn end(&mut self, index: usize, error: Option<RequestError>) {
        let entry = &mut self.tables.requests[index];
        entry.state = RequestState::Ended;
        entry.error = error;
        self.under_way -= 1;
        if entry.watched {
            entry.listed = true;
            self.ended.push(self.tables.requests, index);
        }
    }

    #[inline(always)]
    pub(super) fn request(&self, index: usize) -> RequestId {
        RequestId { index: index as u32, generation: self.tables.requests[index].generation }
    }

    /// Returns the name of a request in packets.
    #[inline]
    pub(super) fn id(&self, index: usize) -> u32 {
        index as u32 | self.tables.requests[index].generation << ID_BITS
    }

    /// Finds the request with such a name, in this state, with the peer `peer`.
    #[inline]
    pub(super) fn named(&self, id: u32, peer: usize, state: RequestState) -> Option<usize> {
        let index = self.named_any(id)?;
        let entry = &self.tables.requests[index];
        let is_it =
            entry.state == state && (entry.peer as usize == peer || entry.source as usize == peer);
        is_it.then_some(index)
    }

    /// Finds the request with such a name, in any state.
    #[inline]
    pub(super) fn named_any(&self, id: u32) -> Option<usize> {
        let index = (id & ((1 << ID_BITS) - 1)) as usize;
        let entry = self.tables.requests.get(index)?;
        (entry.generation << ID_BITS == id & !((1 << ID_BITS) - 1)).then_some(index)
    }

    /// Puts a peer on the list of peers to be pumped.
    #[inline]
    pub(super) fn schedule_pump(&mut self, peer: usize) {
        if !self.tables.peers[peer].busy {
            self.tables.peers[peer].busy = true;
            self.busy.push(self.tables.peers, peer);
        }
    }

    /// Notes that a request has a packet to send, as soon as there is room.
    pub(super) fn queue_packet(&mut self, index: usize, to: usize, due: DuePacket) {
        self.tables.requests[index].due = due;
        self.tables.peers[to].dues.push(self.tables.requests, index);
        self.schedule_pump(to);
    }

    #[inline]
    fn find(&self, request: RequestId) -> Option<usize> {
        let entry = self.tables.requests.get(request.index as usize)?;
        let lives = entry.generation == request.generation && entry.state != RequestState::Free;
        lives.then_some(request.index as usize)
    }

    /// Frees an ended request: its name is not used again before no packet can
    /// contain it any more.
    #[inline(always)]
    pub(super) fn release(&mut self, index: usize) {
        if self.tables.requests[index].listed {
            self.tables.requests[index].listed = false;
            self.ended.remove(self.tables.requests, index);
        }
        let entry = &mut self.tables.requests[index];
        entry.state = RequestState::Free;
        if entry.offered != OfferState::Cancelling {
            entry.generation = entry.generation.wrapping_add(1);
            self.free.push(self.tables.requests, index);
        }
    }
}

#[inline]
fn result_of(entry: &RequestEntry) -> Result<ReceivedMessage, RequestError> {
    match entry.error {
        Some(error) => Err(error),
        None => Ok(ReceivedMessage {
            source: PeerIndex(entry.source),
            tag: entry.found_tag,
            len: entry.size,
            truncated: entry.size > entry.len,
        }),
    }
}

impl fmt::Debug for MessageMachine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageMachine")
            .field("own", &self.own)
            .field("shape", &self.shape)
            .field("design", &self.design)
            .field("under_way", &self.under_way)
            .finish_non_exhaustive()
    }
}

/// Bits of an index in the name of a request; the other bits are the generation.
const ID_BITS: u32 = 20;
/// Requests that a packet can name: the most that a machine can have.
pub const REQUESTS_MAX: usize = 1 << ID_BITS;
/// Lanes that are looked at in turn.
const TURN: u32 = 4;

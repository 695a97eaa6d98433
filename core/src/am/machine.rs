//! The state machine of one rank: requests to send, and calls that have ended.
//!
//! ```text
//!  call ─► Waiting ──reply──────────────────────────► Done, free
//!             │  ──time or death──► Late, Lost ─► Done ─┬──► free
//!             │                                        │ long, and read still
//!             └                           Abandoned ◄──┘
//!                                             └─reply or death─► Released, free
//!
//!  staging cell: free ─► Put ─► (landed) ─► Bell ─► both completed ─► free
//! ```
//!
//! The setup is in `setup`, the sending in `send`, the receiving in `arrive`, the
//! ends of calls in `end`.

use super::cell::{CellKind, Inline, LaneCell};
use super::fifo::Fifo;
use super::lane_address::LaneAddress;
use super::lanes::{AmLane, AmLanes, AmShape, BLOCK_PEERS, LaneBlock};
use super::memory::{AmMemory, DoorbellOrder};
use super::op_tag::{FETCH, tag};
use super::outcome::{
    AmEvent, AmOutput, CallPayload, HandlerAnswer, HandlerId, Landed, ReplyTo, SendError, Token,
};
use super::tables::{AmPeer, AmTables, CallState, LandingBuffer, PendingCall, StagingCell};
use crate::completion::Why;
use crate::mem::{LocalAddr, PeerIndex, Rank, RemoteAddr};
use crate::mutate;
use crate::op::Op;
use crate::time::Instant;
use core::fmt;

/// Active messages of one rank. The text of the module shows how to drive it.
pub struct AmMachine<'m> {
    /// This rank's own index.
    pub(super) own: PeerIndex,
    pub(super) shape: AmShape,
    pub(super) bell: DoorbellOrder,
    pub(super) memory: AmMemory<'m>,
    /// Lanes of the peers of the shape, and of all other peers.
    pub(super) lanes: AmLanes<'m>,
    pub(super) blocks: &'m mut [LaneBlock<'m>],
    pub(super) tables: AmTables<'m>,
    /// Peers with cells to be taken, and those of them that must wait.
    pub(super) active: Fifo<AmPeer>,
    pub(super) later: Fifo<AmPeer>,
    pub(super) notices: Fifo<AmPeer>,
    pub(super) free_calls: Fifo<PendingCall>,
    pub(super) ended: Fifo<PendingCall>,
    pub(super) free_slots: Fifo<StagingCell>,
    pub(super) outgoing: Fifo<StagingCell>,
    pub(super) free_landings: Fifo<LandingBuffer>,
    pub(super) fetches: Fifo<LandingBuffer>,
    pub(super) landed: Fifo<LandingBuffer>,
    /// Staging cells that are reserved for the replies of running handlers.
    pub(super) promised: usize,
    /// Notices (credit updates) in flight.
    pub(super) notices_open: usize,
    pub(super) is_landing: bool,
    pub(super) has_room: bool,
    pub(super) dropped: u64,
    pub(super) earliest: Option<Instant>,
}

impl AmMachine<'_> {
    /// Sets where the lanes of this rank at a peer are. `lanes` is the start of
    /// the peer's memory; `own` is the number that the peer has for this rank,
    /// less the first of the [block](Self::grow) if the number is in one. Until
    /// this is called, sends to the peer find no room. This rank itself is a peer
    /// like any other.
    ///
    /// # Panics
    ///
    /// If there is no such peer, or no such lanes.
    pub fn connect(&mut self, peer: PeerIndex, lanes: RemoteAddr, own: PeerIndex) {
        let peers = self.shape_of(peer.0 as usize).peers;
        assert!(own.0 < peers, "{own} has no lanes in the peer's memory, which has {peers} lanes");
        let index = peer.0 as usize;
        let peer = &mut self.tables.peers[index];
        (peer.at, peer.own) = (Some(lanes), own.0);
        if peer.due > 0 {
            self.activate(index);
        }
        self.has_room = true;
    }

    /// Sends a request that has a reply. [`AmOutput::Done`] comes with the token once:
    /// with the reply, or when `deadline` has passed, or when the rank has died.
    /// Wait-free.
    ///
    /// # Errors
    ///
    /// Nothing has happened then.
    ///
    /// - [`SendError::TooLong`]: an inline payload is longer than
    ///   [`INLINE_BYTES_MAX`](super::INLINE_BYTES_MAX), or a long one is longer than a
    ///   landing buffer (0 bytes without landing buffers).
    /// - [`SendError::NoSuchPeer`]: the machine has no peer `to`.
    /// - [`SendError::PeerLost`]: the peer has died.
    /// - [`SendError::Busy`], for now: with [`Why::NoCredit`] if the peer is not
    ///   connected, or has no free cell for another request or its reply; with
    ///   [`Why::NoTag`] if as many calls are under way as the table of calls can hold;
    ///   with [`Why::NoMemory`] if no staging cell is free.
    pub fn call(
        &mut self,
        to: PeerIndex,
        handler: HandlerId,
        payload: CallPayload<'_>,
        deadline: Option<Instant>,
    ) -> Result<Token, SendError> {
        let (kind, body) = self.body_of(payload)?;
        self.check_room(to, true)?;
        let index = self.free_calls.pop(self.tables.calls).ok_or(SendError::Busy(Why::NoTag))?;
        let call = &mut self.tables.calls[index];
        *call = PendingCall {
            state: CallState::Waiting,
            to,
            handler: handler.0,
            deadline,
            long: kind == CellKind::LongCall,
            ..*call
        };
        let token = Token::new(index, call.generation);
        self.earliest = earlier(self.earliest, deadline);
        self.tables.peers[to.0 as usize].unanswered += 1;
        let cell = LaneCell::new(kind, body).handler(handler.0).token(token.to_bits());
        self.stage(AmLane::Request, to, cell);
        Ok(token)
    }

    /// Sends a request that has no reply. Wait-free.
    ///
    /// # Errors
    ///
    /// Those of [`call`](Self::call) for an inline payload, except [`Why::NoTag`]; nothing
    /// has happened then.
    pub fn cast(
        &mut self,
        to: PeerIndex,
        handler: HandlerId,
        bytes: &[u8],
    ) -> Result<(), SendError> {
        let (_, body) = self.body_of(CallPayload::Inline(bytes))?;
        self.check_room(to, false)?;
        self.stage(AmLane::Request, to, LaneCell::new(CellKind::Cast, body).handler(handler.0));
        Ok(())
    }

    /// Checks whether there is room for a call or a cast now.
    ///
    /// # Errors
    ///
    /// [`SendError::NoSuchPeer`], [`SendError::PeerLost`] and [`SendError::Busy`] as in
    /// [`call`](Self::call); [`Why::NoTag`] only if `wants_reply` is true.
    pub fn check_room(&self, to: PeerIndex, wants_reply: bool) -> Result<(), SendError> {
        let Some(peer) = self.tables.peers.get(to.0 as usize) else {
            let peers = self.tables.peers.len() as u32;
            return Err(SendError::NoSuchPeer { peer: to, peers });
        };
        if peer.lost {
            return Err(SendError::PeerLost { peer: to });
        }
        let cells = self.shape_of(to.0 as usize).cells;
        let has_reply_cell = mutate!("am_no_reply_reservation": peer.unanswered < cells => true);
        let reserved = !wants_reply || has_reply_cell;
        if peer.at.is_none() || peer.sent.wrapping_sub(peer.acked) >= cells || !reserved {
            return Err(SendError::Busy(Why::NoCredit));
        }
        if wants_reply && self.free_calls.is_empty() {
            return Err(SendError::Busy(Why::NoTag));
        }
        if self.free_slots.len() <= self.promised {
            return Err(SendError::Busy(Why::NoMemory));
        }
        Ok(())
    }

    /// Answers a call. Inside a handler there is always room.
    ///
    /// # Errors
    ///
    /// The right to answer comes back, only for an answer that was
    /// [deferred](Self::defer): all staging cells are in use. Try again when an
    /// operation has completed.
    pub fn reply(&mut self, reply_to: ReplyTo, answer: &HandlerAnswer) -> Result<(), ReplyTo> {
        if reply_to.promised {
            self.promised -= 1;
        } else if self.free_slots.len() <= self.promised {
            return Err(reply_to);
        }
        if !self.tables.peers[reply_to.to.0 as usize].lost {
            let body =
                if let HandlerAnswer::Value(value) = answer { *value } else { Inline::EMPTY };
            let cell = LaneCell::new(CellKind::Reply, body).token(reply_to.token);
            self.stage(AmLane::Reply, reply_to.to, LaneCell { status: answer.status(), ..cell });
        }
        self.wake_later();
        Ok(())
    }

    /// Defers an answer: the handler has returned, and the driver will answer
    /// later. The staging cell that was reserved for the reply becomes free for
    /// others.
    pub fn defer(&mut self, reply_to: &mut ReplyTo) {
        if core::mem::take(&mut reply_to.promised) {
            self.promised -= 1;
            self.has_room = true;
            self.wake_later();
        }
    }

    /// Gives a landing buffer back to the machine.
    pub fn release(&mut self, landed: Landed) {
        self.free_landings.push(self.tables.landings, landed.index());
        self.wake_later();
    }

    /// Takes an event that has happened, at `now`.
    pub fn handle(&mut self, event: AmEvent, now: Instant) {
        match event {
            AmEvent::Rang => self.look_at_bells(),
            AmEvent::Completed { tag, result } => self.complete(tag, result),
            AmEvent::Lost(rank) => self.lose(rank),
            AmEvent::Tick => {}
        }
        self.wake_later();
        if self.earliest.is_some_and(|earliest| earliest <= now) {
            self.expire(now);
        }
    }

    /// Returns the next operation to be posted. Its completion goes to
    /// [`handle`](Self::handle). Operations may be carried out and complete in
    /// any order.
    pub fn poll_op(&mut self) -> Option<Op> {
        while let Some(index) = self.outgoing.pop(self.tables.slots) {
            if let Some(op) = self.advance(index) {
                return Some(op);
            }
        }
        while self.notices_open < NOTICES_MAX
            && let Some(index) = self.notices.pop(self.tables.peers)
        {
            if let Some(op) = self.return_credit(index) {
                self.notices_open += 1;
                return Some(op);
            }
        }
        let index = self.fetches.pop(self.tables.landings)?;
        let landing = &self.tables.landings[index];
        let local = LocalAddr {
            offset: self.memory.landing_at.offset + index as u64 * self.memory.landing_bytes,
            ..self.memory.landing_at
        };
        let remote = landing.remote.expect("a fetch has a remote address");
        Some(Op::get(remote, local, landing.bytes).tagged(tag(FETCH, index, landing.generation)))
    }

    /// Returns the next handler to run, or the next call that has ended.
    pub fn poll(&mut self) -> Option<AmOutput> {
        match self.poll_ended() {
            Some(out) => Some(out),
            None => self.poll_arrived(),
        }
    }

    /// Returns the time at which [`handle`](Self::handle) must be called at the
    /// latest.
    pub const fn next_deadline(&self) -> Option<Instant> {
        self.earliest
    }

    /// Returns whether a bell has come before its cell. Then the caller must look
    /// again soon, without an event; except where bells always come after their
    /// cells, because then another bell follows.
    pub const fn is_landing(&self) -> bool {
        self.is_landing
    }

    /// Returns whether [`poll`](Self::poll) has something to look at.
    pub fn wants_poll(&self) -> bool {
        !self.ended.is_empty() || !self.landed.is_empty() || !self.active.is_empty()
    }

    /// Returns whether room may have become free since the last call of this
    /// function.
    pub fn take_room(&mut self) -> bool {
        core::mem::take(&mut self.has_room)
    }

    /// Returns the cells that are on their way: requests and replies that were
    /// sent and that have operations left to complete.
    pub fn staged(&self) -> usize {
        self.tables.slots.len() - self.free_slots.len()
    }

    /// Returns the cells that were dropped: cells without a valid message, and
    /// replies for which no caller waited.
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns the calls under way.
    pub fn calls(&self) -> usize {
        self.tables.calls.len() - self.free_calls.len()
    }

    /// Returns the shape of the memory in which a peer's lanes are.
    #[inline(always)]
    pub(super) fn shape_of(&self, peer: usize) -> AmShape {
        if peer < self.shape.peers as usize { self.shape } else { self.shape.block() }
    }

    /// Returns this rank's place at a peer, if it is known.
    #[inline(always)]
    pub(super) fn place_at(&self, peer: usize) -> Option<LaneAddress> {
        LaneAddress::of(&self.tables.peers[peer], self.shape_of(peer))
    }

    /// Returns the memory in which a peer's lanes are, and their number in it.
    #[inline(always)]
    pub(super) fn lanes_of(&self, peer: usize) -> Option<(AmLanes<'_>, usize)> {
        match peer.checked_sub(self.shape.peers as usize) {
            None => Some((self.lanes, peer)),
            Some(later) => {
                let block = self.blocks[later / BLOCK_PEERS as usize].0;
                Some((block?, later % BLOCK_PEERS as usize))
            }
        }
    }

    /// Returns the rank of a peer that is connected.
    pub(super) fn rank_of(&self, peer: PeerIndex) -> Rank {
        let at = self.tables.peers[peer.0 as usize].at;
        at.expect("only a peer that is connected sends or is sent requests").rank
    }

    /// Puts a peer on the list of peers to be looked at.
    pub(super) fn activate(&mut self, index: usize) {
        if !core::mem::replace(&mut self.tables.peers[index].listed, true) {
            self.active.push(self.tables.peers, index);
        }
    }

    /// Lets the peers that had to wait be looked at again.
    pub(super) fn wake_later(&mut self) {
        self.is_landing = false;
        while let Some(index) = self.later.pop(self.tables.peers) {
            self.active.push(self.tables.peers, index);
        }
    }
}

pub(super) fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// Notices in flight at most.
pub const NOTICES_MAX: usize = 64;

impl fmt::Debug for AmMachine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AmMachine")
            .field("own", &self.own)
            .field("shape", &self.shape)
            .field("calls", &self.calls())
            .field("outgoing", &self.outgoing.len())
            .finish_non_exhaustive()
    }
}

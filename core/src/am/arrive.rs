//! Receiving: first the bells, then the cells in the order of their lanes.
//!
//! A bell (doorbell) counts the cells that have come from a peer, and the machine
//! takes as many cells as were counted. It looks again for a cell that has not
//! landed, and takes no cell before its bell has come. A request stays in its
//! cell as long as it cannot be handled: while a long payload sent before it is
//! fetched, while no staging cell is free for its reply, while no landing buffer
//! is free. Replies are always taken.

use super::cell::{CellKind, Defect, LaneCell};
use super::lanes::{AmLane, AmLanes, BLOCK_PEERS};
use super::machine::AmMachine;
use super::outcome::{
    AmOutput, HandlerAnswer, HandlerId, Incoming, Landed, ReplyTo, RequestBody, Token,
};
use super::tables::{CallState, LandingBuffer};
use crate::mem::{PeerIndex, RegionKey, RemoteAddr};
use crate::mutate;

/// Result of a look at a peer.
enum CellOutcome {
    /// The driver has something to do.
    Out(AmOutput),
    /// A cell was taken, and the driver has nothing to do.
    Quietly,
    /// The next cell must wait.
    Waits,
}

impl AmMachine<'_> {
    pub(super) fn look_at_bells(&mut self) {
        self.look_at_lanes(self.lanes, 0);
        for index in 0..self.blocks.len() {
            if let Some(lanes) = self.blocks[index].0 {
                let first = self.shape.peers as usize + index * BLOCK_PEERS as usize;
                self.look_at_lanes(lanes, first);
            }
        }
    }

    /// Looks at the bells of one memory; its first peer has the number `first`.
    #[inline(always)]
    fn look_at_lanes(&mut self, lanes: AmLanes<'_>, first: usize) {
        let cells = self.shape_of(first).cells;
        lanes.take_arrivals(|peer, count| {
            let peer = first + peer;
            let known = &mut self.tables.peers[peer];
            if !known.lost {
                // A correct peer has no more cells than this.
                known.due = (known.due + count).min(2 * cells);
                // A peer that has got the address of its lanes may send before
                // its answer arrives here: its cells wait until this rank knows
                // the peer's lanes, for the replies.
                if known.at.is_some() {
                    self.activate(peer);
                } else {
                    mutate!("am_unmet_forgotten": {} => known.due = 0);
                }
            }
        });
        lanes.take_notices(|peer, taken| self.acknowledged(first + peer, taken));
    }

    pub(super) fn poll_arrived(&mut self) -> Option<AmOutput> {
        while let Some(index) = self.landed.pop(self.tables.landings) {
            if let Some(out) = self.run_landed(index) {
                return Some(out);
            }
        }
        while let Some(peer) = self.active.pop(self.tables.peers) {
            if self.tables.peers[peer].due == 0 {
                self.tables.peers[peer].listed = false;
                continue;
            }
            match self.take(peer) {
                CellOutcome::Waits => self.later.push(self.tables.peers, peer),
                CellOutcome::Quietly => self.active.push(self.tables.peers, peer),
                CellOutcome::Out(out) => {
                    self.active.push(self.tables.peers, peer);
                    return Some(out);
                }
            }
        }
        None
    }

    /// Takes the end of the get that fetched the payload of a long call.
    pub(super) fn fetched(&mut self, index: usize, generation: u32, has_failed: bool) {
        let Some(landing) = self.tables.landings.get_mut(index) else { return };
        if landing.generation != generation || landing.remote.take().is_none() {
            return;
        }
        landing.generation = generation.wrapping_add(1);
        landing.has_failed = has_failed;
        self.landed.push(self.tables.landings, index);
    }

    fn take(&mut self, index: usize) -> CellOutcome {
        let defect = Defect::planted();
        let careless = mutate!("am_lap_ignored": defect => Defect::Blind);
        let Some((lanes, lane)) = self.lanes_of(index) else { return CellOutcome::Waits };
        let peer = &self.tables.peers[index];
        if let Some(cell) = lanes.read(AmLane::Reply, lane, peer.replies_taken, defect) {
            return self.take_reply(index, &cell);
        }
        if peer.fetching {
            return CellOutcome::Waits;
        }
        match lanes.read(AmLane::Request, lane, peer.requests_taken, careless) {
            Some(cell) => self.take_request(index, &cell),
            None => {
                self.is_landing = true;
                mutate!("am_torn_forgotten": CellOutcome::Waits => {
                    self.tables.peers[index].due -= 1;
                    CellOutcome::Quietly
                })
            }
        }
    }

    fn take_reply(&mut self, index: usize, cell: &LaneCell) -> CellOutcome {
        let peer = &mut self.tables.peers[index];
        peer.replies_taken = peer.replies_taken.wrapping_add(1);
        peer.due -= 1;
        // The reply cell is free again, even if no caller waits for the reply any
        // more.
        peer.unanswered = peer.unanswered.saturating_sub(1);
        self.has_room = true;
        self.acknowledged(index, cell.ack);
        let mut token = Token::from_bits(cell.token);
        let Some(call) = self.tables.calls.get_mut(token.index()) else { return self.drop_cell() };
        let same = mutate!("am_generation_ignored": call.generation == token.generation() => true);
        if call.to.0 as usize != index || !same {
            return self.drop_cell();
        }
        match call.state {
            CallState::Waiting => {
                let handler = HandlerId(call.handler);
                token = Token::new(token.index(), call.generation);
                self.free_call(token.index());
                let result = HandlerAnswer::outcome(cell.status, cell.body, handler);
                CellOutcome::Out(AmOutput::Done { token, result })
            }
            CallState::Late { .. } => {
                call.state = CallState::Late { payload_back: true };
                self.drop_cell()
            }
            CallState::Abandoned => {
                self.dropped += 1;
                self.free_call(token.index());
                CellOutcome::Out(AmOutput::Released { token })
            }
            CallState::Free | CallState::Lost | CallState::PayloadBack => self.drop_cell(),
        }
    }

    fn take_request(&mut self, index: usize, cell: &LaneCell) -> CellOutcome {
        let peer = PeerIndex(index as u32);
        let from = self.rank_of(peer);
        let handler = HandlerId(cell.handler);
        if cell.kind == CellKind::Cast as u8 {
            self.taken(index, cell);
            let body = RequestBody::Inline(cell.body);
            return CellOutcome::Out(AmOutput::Run(Incoming {
                from,
                handler,
                body,
                reply_to: None,
            }));
        }
        let is_long = cell.kind == CellKind::LongCall as u8;
        if !is_long && cell.kind != CellKind::Call as u8 {
            self.taken(index, cell);
            return self.drop_cell();
        }
        if self.free_slots.len() <= self.promised {
            return CellOutcome::Waits;
        }
        if is_long {
            return self.take_long(index, cell);
        }
        self.promised += 1;
        self.taken(index, cell);
        let reply_to = Some(ReplyTo { to: peer, token: cell.token, promised: true });
        let body = RequestBody::Inline(cell.body);
        CellOutcome::Out(AmOutput::Run(Incoming { from, handler, body, reply_to }))
    }

    /// Begins to fetch a long payload. The cell may hold any numbers: a length
    /// above the landing buffer's is refused, and the get reads the sender's
    /// memory in any case.
    fn take_long(&mut self, index: usize, cell: &LaneCell) -> CellOutcome {
        let (from, rank) = (PeerIndex(index as u32), self.rank_of(PeerIndex(index as u32)));
        let word = |at: usize| {
            let bytes = cell.body.get(at * 8..at * 8 + 8)?;
            Some(u64::from_le_bytes(bytes.try_into().ok()?))
        };
        let claim = (word(0), word(1), word(2));
        let (Some(key), Some(offset), Some(bytes)) = claim else {
            return self.refuse_long(index, cell);
        };
        let Ok(key) = u32::try_from(key) else { return self.refuse_long(index, cell) };
        if bytes > self.memory.landing_bytes || self.tables.landings.is_empty() {
            return self.refuse_long(index, cell);
        }
        let Some(at) = self.free_landings.pop(self.tables.landings) else {
            return CellOutcome::Waits;
        };
        self.promised += 1;
        self.taken(index, cell);
        self.tables.peers[index].fetching = true;
        let landing = &mut self.tables.landings[at];
        *landing = LandingBuffer {
            from,
            handler: cell.handler,
            token: cell.token,
            remote: Some(RemoteAddr { offset, rank, key: RegionKey::from_bits(key) }),
            bytes,
            has_failed: false,
            ..*landing
        };
        self.fetches.push(self.tables.landings, at);
        CellOutcome::Quietly
    }

    fn refuse_long(&mut self, index: usize, cell: &LaneCell) -> CellOutcome {
        self.promised += 1;
        self.taken(index, cell);
        self.refuse(PeerIndex(index as u32), cell.token)
    }

    fn refuse(&mut self, from: PeerIndex, token: u64) -> CellOutcome {
        let reply_to = ReplyTo { to: from, token, promised: true };
        // A cell is reserved for this reply, so there is room.
        let _ = self.reply(reply_to, &HandlerAnswer::BadPayload);
        CellOutcome::Quietly
    }

    fn run_landed(&mut self, index: usize) -> Option<AmOutput> {
        let landing = self.tables.landings[index];
        self.tables.peers[landing.from.0 as usize].fetching = false;
        let landed = Landed { index: index as u32, bytes: landing.bytes };
        if landing.has_failed {
            self.release(landed);
            self.refuse(landing.from, landing.token);
            return None;
        }
        Some(AmOutput::Run(Incoming {
            from: self.rank_of(landing.from),
            handler: HandlerId(landing.handler),
            body: RequestBody::Landed(landed),
            reply_to: Some(ReplyTo { to: landing.from, token: landing.token, promised: true }),
        }))
    }

    /// Counts a request cell that was copied out: the sender may use the cell
    /// again.
    fn taken(&mut self, index: usize, cell: &LaneCell) {
        let peer = &mut self.tables.peers[index];
        peer.requests_taken = peer.requests_taken.wrapping_add(1);
        peer.due -= 1;
        self.acknowledged(index, cell.ack);
        self.check_notice(index);
    }

    /// Takes a peer's count of this rank's requests that it has taken. A count
    /// above the requests sent is ignored; an older count that comes late changes
    /// nothing.
    fn acknowledged(&mut self, index: usize, taken: u32) {
        let peer = &mut self.tables.peers[index];
        let more = taken.wrapping_sub(peer.acked);
        if more > 0 && more <= peer.sent.wrapping_sub(peer.acked) {
            peer.acked = taken;
            self.has_room = true;
        }
    }

    fn drop_cell(&mut self) -> CellOutcome {
        self.dropped += 1;
        CellOutcome::Quietly
    }
}

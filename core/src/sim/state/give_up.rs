//! Nodes that have given up other nodes, which may be alive.
//!
//! ```text
//!   by ── give_up ─► whom        under way from by: ends with an error now,
//!                                                   and may land yet
//!      ◄── all that it sends     is refused: it ends when whom gives by up
//! ```

use super::super::flight::DueAction;
use super::super::memory::SimMemory;
use super::{NetState, RegionTables};
use crate::mem::{AddrError, Rank};
use crate::op::{Kind, Op};
use crate::random::SplitMix64;

impl NetState {
    pub(in super::super) fn is_lost(&self, by: Rank, whom: Rank) -> bool {
        self.is_dead(whom) || self.suspicion.has_given_up(by, whom)
    }

    pub(in super::super) fn give_up(&mut self, tables: &RegionTables, by: Rank, whom: Rank) {
        if by == whom || self.is_dead(by) || self.is_lost(by, whom) {
            return;
        }
        self.suspicion.pairs.insert((by, whom));
        let now = self.calendar.now_ns();
        self.calendar.add(now, DueAction::Death, by.0, u64::from(whom.0));
        for slot in self.flights.numbers() {
            let from = self.from(slot);
            let flight = self.flights.get(slot);
            let is_its = from == by && flight.op.remote.rank == whom;
            if is_its && !flight.early && !flight.has_ended {
                self.disown(tables, slot);
            }
        }
    }

    /// Ends a flight for the node that posted it; the flight itself goes on.
    fn disown(&mut self, tables: &RegionTables, slot: u64) {
        let (from, draw) = (self.from(slot), SplitMix64::new(self.draw.next()));
        let flight = self.flights.get(slot);
        let (op, queue) = (flight.op, flight.queue);
        if op.kind == Kind::Put {
            let copied = SimMemory { tables, from }.copy_local(&op, &mut flight.payload);
            if copied.is_err() {
                // The put has no valid source, so the rest of the flight must change
                // nothing.
                flight.op = Op::get(op.remote, op.local(), op.bytes());
            }
        }
        flight.early = true;
        let end = self.flights.add(op, queue, draw);
        self.flights.get(end).result = Err(AddrError::PeerLost { rank: op.remote.rank });
        let later = self.flights.get(end).draw.below(self.config.latency_ns_max + 1);
        self.calendar.add(self.calendar.now_ns() + later, DueAction::Fail, 0, end);
        // If the target had refused the flight, it would stay in flight for ever: it
        // is removed here.
        let was = self.suspicion.unanswered.len();
        self.suspicion.unanswered.retain(|other| *other != slot);
        if self.suspicion.unanswered.len() < was {
            self.flights.remove(slot);
        }
    }

    /// The target has given up the flight's node, and does not accept the flight.
    pub(super) fn refuse(&mut self, slot: u64) {
        self.pass(slot);
        let (from, target) = (self.from(slot), self.flights.get(slot).op.remote.rank);
        if self.flights.get(slot).early || self.is_dead(from) {
            self.flights.remove(slot);
        } else if self.is_dead(target) {
            self.lose_peer(slot, target);
        } else {
            self.suspicion.unanswered.push(slot);
        }
    }

    /// After the death of node `dead`: its own refused flights are removed, and the
    /// refused flights to it end like all flights to a dead node.
    pub(super) fn forget_unanswered(&mut self, dead: Rank) {
        for slot in core::mem::take(&mut self.suspicion.unanswered) {
            if self.from(slot) == dead {
                self.flights.remove(slot);
            } else if self.flights.get(slot).op.remote.rank == dead {
                self.lose_peer(slot, dead);
            } else {
                self.suspicion.unanswered.push(slot);
            }
        }
    }
}

//! The fate of a message: losses and repetitions, delays, and order.

use super::super::config::SimConfig;
use super::super::flight::DueAction;
use super::NetState;
use crate::mem::{AddrError, Rank};
use crate::op::Kind;

impl NetState {
    /// Sends a flight, again and again if it is lost.
    pub(super) fn depart(&mut self, slot: u64) {
        let (queue, op) = (self.flights.get(slot).queue, self.flights.get(slot).op);
        let bytes = if op.kind == Kind::Put { op.bytes() } else { 0 };
        if !self.config.reorder {
            let link = self.links.entry((queue, op.remote.rank.0)).or_default();
            self.flights.get(slot).turn = Some(link.sent);
            link.sent += 1;
        }
        if let Some(mut at) = self.send(slot, bytes) {
            let from = self.queues[queue as usize].rank;
            let now = self.calendar.now_ns();
            if let Some(load) = &mut self.load {
                at += load.send(from, op.remote.rank, now) - now;
            }
            self.calendar.add(at, DueAction::Arrive, 0, slot);
        }
    }

    /// The time at which a message that is sent now arrives. `None`: it was lost too
    /// often, and the flight fails.
    pub(super) fn send(&mut self, slot: u64, bytes: u64) -> Option<u64> {
        let mut at = self.calendar.now_ns();
        while self.strikes(slot, self.config.drop) {
            at += self.config.retry_ns;
            if self.lose(slot, at) {
                return None;
            }
        }
        let SimConfig { latency_ns_min, latency_ns_max, .. } = self.config;
        at += self.flights.get(slot).draw.between(latency_ns_min, latency_ns_max);
        at += self.hold_up(slot);
        if let Some(load) = &self.load {
            let flight = self.flights.get(slot);
            let from = self.queues[flight.queue as usize].rank;
            at += load.wire_ns(from, flight.op.remote.rank);
        }
        Some(at.saturating_add(bytes.saturating_mul(self.config.byte_ps) / 1_000))
    }

    /// The extra time of a message, or of a piece of a put, if it is a slow one.
    pub(super) fn hold_up(&mut self, slot: u64) -> u64 {
        if self.strikes(slot, self.config.slow) {
            self.flights.get(slot).draw.below(self.config.slow_ns_max)
        } else {
            0
        }
    }

    /// Records the loss of a message, detected at `at`. True: it was the last try.
    pub(super) fn lose(&mut self, slot: u64, at: u64) -> bool {
        let flight = self.flights.get(slot);
        flight.lost += 1;
        let is_last = flight.lost > self.config.retries;
        if is_last {
            flight.result = Err(AddrError::PeerLost { rank: flight.op.remote.rank });
            self.calendar.add(at, DueAction::Fail, 0, slot);
            self.pass(slot);
        }
        is_last
    }

    /// Whether it is the flight's turn to arrive. If not, the flight is scheduled
    /// again when its turn comes.
    pub(super) fn has_turn(&mut self, slot: u64) -> bool {
        let flight = self.flights.get(slot);
        if let Some(turn) = flight.turn
            && let Some(link) = self.links.get_mut(&(flight.queue, flight.op.remote.rank.0))
            && turn != link.next
        {
            link.waiting.insert(turn, Some(slot));
            return false;
        }
        true
    }

    /// Ends the flight's turn, if links keep order: the flight has taken effect or
    /// never will, and the next flight has its turn.
    pub(super) fn pass(&mut self, slot: u64) {
        let flight = self.flights.get(slot);
        let Some(turn) = flight.turn.take() else { return };
        let Some(link) = self.links.get_mut(&(flight.queue, flight.op.remote.rank.0)) else {
            return;
        };
        if turn == link.next {
            link.next += 1;
        } else {
            link.waiting.insert(turn, None);
        }
        while let Some(waiting) = link.waiting.remove(&link.next) {
            if let Some(slot) = waiting {
                self.calendar.add(self.calendar.now_ns(), DueAction::Arrive, 0, slot);
                return;
            }
            link.next += 1;
        }
    }

    pub(super) fn is_apart(&self, a: Rank, b: Rank) -> bool {
        self.is_cut && self.nodes[a.0 as usize].side != self.nodes[b.0 as usize].side
    }
}

//! Operations in flight: the job of each, and the regions and tables that it keeps
//! in place.

use super::rank::GlobalMachine;
use super::tables::{FlightPurpose, NONE, OpPin};
use super::traffic::OutgoingOp;
use crate::cache::FetchStep;
use crate::table::Agent;
use tsumugi_core::mem::AddrError;
use tsumugi_core::mutate;
use tsumugi_core::op::{Kind, Op};
use tsumugi_core::tag::Tag;

impl GlobalMachine<'_> {
    pub(super) const fn has_flight(&self) -> bool {
        self.free_flight != NONE
    }

    /// Tags an operation. The caller must have checked that a flight is free.
    pub(super) fn fly(&mut self, op: Op, agent: Agent, what: FlightPurpose) -> OutgoingOp {
        let index = self.free_flight as usize;
        let flight = &mut self.flights[index];
        self.free_flight = flight.link;
        flight.what = what;
        let tag = Tag::from_bits(flight.generation << INDEX_BITS | index as u64);
        OutgoingOp { op: op.tagged(tag), source: None, agent, then: None }
    }

    /// Handles a completion; late and repeated completions are dropped.
    pub(super) fn complete(&mut self, tag: Tag, result: Result<u64, AddrError>) {
        let (index, free) = (tag.index(), self.free_flight);
        let Some(flight) = self.flights.get_mut(index) else { return };
        let is_current = mutate!("gas_late_completions":
            flight.generation == tag.generation() => true);
        if !is_current || flight.what == FlightPurpose::Free {
            return;
        }
        let what = core::mem::replace(&mut flight.what, FlightPurpose::Free);
        flight.generation = (flight.generation + 1) & GENERATION;
        if let Some(hint) = self.hint_after(what).filter(|_| result.is_ok()) {
            // The flight is kept for the hint.
            let flight = &mut self.flights[index];
            (flight.what, flight.link) = (hint, self.hints_due);
            self.hints_due = index as u32;
            return;
        }
        let flight = &mut self.flights[index];
        flight.link = free;
        self.free_flight = index as u32;
        match what {
            // No job waits for a hint, and its result does not matter.
            FlightPurpose::Free | FlightPurpose::Hint | FlightPurpose::AckHint(_) => {}
            FlightPurpose::Ask(rank) | FlightPurpose::AskHint(rank) => {
                if result.is_err() {
                    self.registry.forget(rank);
                }
            }
            FlightPurpose::Cache(step) => self.fetcher.handle(step, result),
            FlightPurpose::Relay { job } => self.relay_left(job as usize, result),
            FlightPurpose::Job { job, near, far, addr } => {
                self.let_go(near);
                self.let_go(far);
                let result = result.map_err(|error| error.at(addr));
                self.advance_completed(job as usize, result);
            }
        }
    }

    /// The hint that shows a peer in which word to look, after a bit has been set
    /// there.
    fn hint_after(&self, what: FlightPurpose) -> Option<FlightPurpose> {
        match what {
            FlightPurpose::Ask(rank) => {
                self.control.drop_hint(rank).map(|_| FlightPurpose::AskHint(rank))
            }
            FlightPurpose::Cache(FetchStep::Ack { rank }) => {
                self.control.ack_hint(rank).map(|_| FlightPurpose::AckHint(rank))
            }
            _ => None,
        }
    }

    /// The next hint to post, in the flight of the operation that it follows.
    pub(super) fn poll_hint(&mut self) -> Option<OutgoingOp> {
        let flight = self.flights.get(self.hints_due as usize)?;
        let index = core::mem::replace(&mut self.hints_due, flight.link);
        let (word, bit) = match flight.what {
            FlightPurpose::AskHint(rank) => self.control.drop_hint(rank)?,
            FlightPurpose::AckHint(rank) => self.control.ack_hint(rank)?,
            _ => return None,
        };
        let op = Op::atomic(Kind::FetchOr, word, bit).notifying();
        let tag = Tag::from_bits(flight.generation << INDEX_BITS | u64::from(index));
        Some(OutgoingOp { op: op.tagged(tag), source: None, agent: Agent::Cpu, then: None })
    }

    pub(super) fn let_go(&mut self, hold: OpPin) {
        match hold {
            OpPin::Nothing => {}
            OpPin::Record(record) => self.registry.unpin(record as usize),
            // Steps that wait for this are polled after each event.
            OpPin::Slot(slot) => {
                self.cache.unpin(slot);
            }
        }
    }
}

const INDEX_BITS: u32 = 24;
const GENERATION: u64 = (1 << 40) - 1;

//! One collective of one rank, as a state machine without IO: steps out, ends of
//! messages in.
//!
//! ```text
//!  round:  local steps ──► messages, all under way together ──► all ended ──► next round
//!                                │
//!            a rank has died ────┴──► no more steps; the messages under way end
//! ```
//!
//! After a death no member makes another step, and none sends a notice: all members learn
//! of a death by themselves. Each of them goes on to take what others send to it in this
//! group, so the sends under way end, too.

use super::blocks::CollTables;
use super::plan::CollPlan;
use super::step::CollStep;
use crate::mem::Rank;
use crate::mutate;
use core::borrow::Borrow;

/// One collective, as one rank takes part in it.
///
/// The driver carries out all [steps](Self::poll_step) that there are, local ones at
/// once; it reports the end of each message, and polls again. A caller that waits lends its
/// plan, which is a kilobyte; a collective that has begun owns one.
#[derive(Clone, Debug)]
pub struct Collective<P = CollPlan> {
    plan: P,
    stage: usize,
    round: u32,
    index: u32,
    /// Messages under way.
    pending: u32,
    lost: Option<Rank>,
}

impl<P: Borrow<CollPlan>> Collective<P> {
    /// Begins the collective of this plan.
    pub const fn new(plan: P) -> Self {
        Self { plan, stage: 0, round: 0, index: 0, pending: 0, lost: None }
    }

    /// The name of the plan, for reports.
    pub fn name(&self) -> &'static str {
        self.plan.borrow().name()
    }

    /// Bytes of the scratch buffer.
    pub fn scratch_bytes(&self) -> usize {
        self.plan.borrow().scratch_bytes()
    }

    /// Returns the next step. `None`: a message must end first, or there is nothing
    /// left to do.
    pub fn poll_step(&mut self, tables: &CollTables<'_>) -> Option<CollStep> {
        let plan = self.plan.borrow();
        while self.lost.is_none() && self.stage < plan.stages() {
            if self.round == plan.rounds(self.stage) {
                (self.stage, self.round) = (self.stage + 1, 0);
                continue;
            }
            if let Some(step) = plan.step(tables, self.stage, self.round, self.index) {
                self.index += 1;
                if matches!(step, CollStep::Send { .. } | CollStep::Receive { .. }) {
                    self.pending += 1;
                }
                return Some(step);
            }
            let waits = mutate!("coll_no_wait": self.pending > 0 => false);
            if waits {
                return None;
            }
            (self.round, self.index) = (self.round + 1, 0);
        }
        None
    }

    /// Takes the end of one message, a sent or a received one.
    pub fn handle_ended(&mut self) {
        self.pending = self.pending.saturating_sub(1);
    }

    /// Takes the death of a rank: the collective fails, because it might not end by
    /// itself. The driver then cancels the receives under way.
    pub fn handle_lost(&mut self, rank: Rank) {
        let lost = self.lost.or(Some(rank));
        self.lost = mutate!("coll_death_ignored": lost => None);
    }

    /// Returns the result, once there is nothing left to do and no message is under
    /// way.
    ///
    /// # Errors
    ///
    /// The rank that has died.
    pub fn poll_done(&self) -> Option<Result<(), Rank>> {
        match self.lost {
            _ if self.pending > 0 => None,
            Some(rank) => Some(Err(rank)),
            None => (self.stage == self.plan.borrow().stages()).then_some(Ok(())),
        }
    }
}

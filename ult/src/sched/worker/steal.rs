//! What a worker takes from other workers: what they have published in their
//! public slots, and by work stealing what they have not.
//!
//! A theft takes a barrier on all processors, see `deque`, and on a virtual
//! machine that stops its victim for microseconds. So a worker that pushes puts
//! the oldest of several ULTs out in advance, see `public_slot`, and a worker that has
//! nothing takes them with a swap. For a while ([`PATIENCE`]) a worker that
//! searches looks only at its hand-off slot and at the public slots, and then it steals: from
//! workers that do not push, and from hand-off slots that their workers do not empty, perhaps
//! because their OS threads do not run.

use super::thread::{LoneUlt, Worker};
use crate::deque::{Steal, WorkDeque};
use crate::handoff::HandoffSlot;
use crate::sched::record::EventKind;
use crate::slab::TaskSlot;
use crate::task::Task;
use core::cell::Cell;
use core::ptr::NonNull;
use tsumugi_core::stats::Counter;

impl Worker {
    /// Takes what another worker has published. It looks first where it found
    /// something last time.
    #[inline]
    pub(super) fn take_public(&self) -> Option<TaskSlot> {
        let worker_slots = &self.shared.worker_slots;
        let mut at = self.asked.get();
        for _ in 1..worker_slots.len() {
            if let Some(batch) = worker_slots[at].public_slot.take() {
                self.asked.set(at);
                return Some(self.accept_batch(batch));
            }
            at = self.after(at);
        }
        None
    }

    /// Whether another worker has published anything.
    pub(crate) fn has_offers(&self) -> bool {
        let slots = self.shared.worker_slots.iter().enumerate();
        slots
            .filter(|(worker, _)| *worker != self.index)
            .any(|(_, slot)| slot.public_slot.is_full())
    }

    /// Returns the next of the other workers.
    fn after(&self, worker: usize) -> usize {
        let workers = self.shared.worker_slots.len();
        let mut next = (worker + 1) % workers;
        if next == self.index {
            next = (next + 1) % workers;
        }
        next
    }

    /// Steals, if this search has been patient.
    pub(super) fn steal(&self) -> Option<TaskSlot> {
        let worker_slots = &self.shared.worker_slots;
        if worker_slots.len() == 1 {
            return None;
        }
        // Until its patience is over it reads no queue of other workers: a load
        // takes the cache line from a worker that pushes, which is to lay ULTs out.
        let looks = self.looks.get();
        if looks < self.shared.spin.min(PATIENCE) {
            self.looks.set(looks + 1);
            return None;
        }
        let start = self.random() as usize;
        for offset in 0..worker_slots.len() {
            let victim = start.wrapping_add(offset) % worker_slots.len();
            let worker_slot = &worker_slots[victim];
            let nothing = worker_slot.ready.is_empty()
                && worker_slot.yielded.is_empty()
                && !worker_slot.handoff.is_full();
            if victim == self.index || nothing {
                continue;
            }
            if let Some(slot) = self.intercept(&worker_slot.handoff) {
                return Some(slot);
            }
            let stolen = self
                .steal_from(&self.lonely[victim][0], &worker_slot.ready)
                .or_else(|| self.steal_from(&self.lonely[victim][1], &worker_slot.yielded));
            if let Some(slot) = stolen {
                self.count(Counter::Steals);
                self.note(EventKind::Steal, slot);
                return stolen;
            }
        }
        None
    }

    /// Takes a ULT that was sent to a worker and that the worker has not taken.
    fn intercept(&self, handoff: &HandoffSlot<Task>) -> Option<TaskSlot> {
        let slot = self.accept_batch(handoff.intercept()?);
        // SAFETY: the ULT was taken out of the hand-off slot, so it is this worker's.
        if unsafe { slot.as_ref() }.is_plain() {
            return Some(slot);
        }
        // The ULT goes to the worker that it stays on, or to the urgent queue.
        self.route(slot);
        None
    }

    /// Takes the oldest ULT of a queue, and of a long queue some more to keep. A
    /// lone ULT is left to its worker until it is seen a second time, because
    /// most lone ULTs are about to be joined.
    fn steal_from(&self, lonely: &Cell<LoneUlt>, queue: &WorkDeque<Task>) -> Option<TaskSlot> {
        let wants = |task: *mut Task| {
            // SAFETY: descriptors stay as long as the scheduler, whichever ULT
            // has this one now.
            let seen = (task.addr(), unsafe { &*task }.stamp());
            // The model need not look at everything twice.
            lonely.replace(seen) == seen || cfg!(tsumugi_loom)
        };
        // SAFETY: we are the owner of our own worker slot.
        let keep = |task: *mut Task| unsafe { self.worker_slot().ready.push(task) };
        match queue.steal(wants, keep) {
            Steal::Taken(task) => NonNull::new(task),
            Steal::Empty | Steal::Lost => None,
        }
    }

    fn random(&self) -> u64 {
        // Xorshift: enough to spread the thieves over their victims.
        let mut x = self.random.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.random.set(x);
        x
    }
}

/// Rounds of a search before the worker steals. A barrier on all processors takes
/// microseconds, and in most cases ULTs are published sooner.
const PATIENCE: u32 = if cfg!(tsumugi_loom) { 0 } else { 64 };

//! What a worker takes from others: what they lay out, and what they do not.
//!
//! A theft takes a barrier on all processors, see `deque`, and on a virtual
//! machine that stops its victim for microseconds. So whoever pushes lays the
//! oldest of several ULTs out before anybody asks, see `offer`, and who has
//! nothing takes it with a swap. Who searches looks at its mail and at what is
//! laid out alone for a while ([`PATIENCE`]), and then steals: from workers that
//! do not push, and mail from those that do not come for it, having lost their
//! processors perhaps.

use super::{Seen, Worker};
use crate::deque::{Deque, Steal};
use crate::mail::Mail;
use crate::sched::record::Kind;
use crate::slab::Slot;
use crate::task::Task;
use core::cell::Cell;
use core::ptr::NonNull;
use tsumugi_core::stats::Counter;

impl Worker {
    /// Takes what another worker has laid out, first where there was something
    /// last time.
    #[inline]
    pub(super) fn take_offered(&self) -> Option<Slot> {
        let seats = &self.shared.seats;
        let mut at = self.asked.get();
        for _ in 1..seats.len() {
            if let Some(letter) = seats[at].offer.take() {
                self.asked.set(at);
                return Some(self.open_letter(letter));
            }
            at = self.after(at);
        }
        None
    }

    /// The next of the other workers.
    fn after(&self, worker: usize) -> usize {
        let workers = self.shared.seats.len();
        let mut next = (worker + 1) % workers;
        if next == self.index {
            next = (next + 1) % workers;
        }
        next
    }

    /// Steals, if this search has been patient.
    pub(super) fn steal(&self) -> Option<Slot> {
        let seats = &self.shared.seats;
        if seats.len() == 1 {
            return None;
        }
        // Until its patience is over it looks at nothing of others': a look takes
        // the line from a worker that pushes, who is to give.
        let looks = self.looks.get();
        if looks < self.shared.spin.min(PATIENCE) {
            self.looks.set(looks + 1);
            return None;
        }
        let start = self.random() as usize;
        for offset in 0..seats.len() {
            let victim = start.wrapping_add(offset) % seats.len();
            let seat = &seats[victim];
            let nothing = seat.ready.is_empty() && seat.yielded.is_empty() && !seat.mail.is_full();
            if victim == self.index || nothing {
                continue;
            }
            if let Some(slot) = self.intercept(&seat.mail) {
                return Some(slot);
            }
            let stolen = self
                .steal_from(&self.lonely[victim][0], &seat.ready)
                .or_else(|| self.steal_from(&self.lonely[victim][1], &seat.yielded));
            if let Some(slot) = stolen {
                self.count(Counter::Steals);
                self.note(Kind::Steal, slot);
                return stolen;
            }
        }
        None
    }

    /// Takes what a worker was sent that did not come for it.
    fn intercept(&self, mail: &Mail<Task>) -> Option<Slot> {
        let slot = self.open_letter(mail.intercept()?);
        // SAFETY: it is ours now.
        if unsafe { slot.as_ref() }.is_plain() {
            return Some(slot);
        }
        // Back to the worker that it stays on, or before all others.
        self.route(slot);
        None
    }

    /// Takes the oldest of a queue, and of a long one some more to keep. A lone
    /// ULT is left to its worker until the second look at it: most such are
    /// about to be joined.
    fn steal_from(&self, lonely: &Cell<Seen>, queue: &Deque<Task>) -> Option<Slot> {
        let wants = |task: *mut Task| {
            // SAFETY: descriptors stay, whoever has this one by now.
            let seen = (task.addr(), unsafe { &*task }.stamp());
            // The model need not look at everything twice.
            lonely.replace(seen) == seen || cfg!(tsumugi_loom)
        };
        // SAFETY: we are the owner of our own seat.
        let keep = |task: *mut Task| unsafe { self.seat().ready.push(task) };
        match queue.steal(wants, keep) {
            Steal::Taken(task) => NonNull::new(task),
            Steal::Empty | Steal::Lost => None,
        }
    }

    fn random(&self) -> u64 {
        // Xorshift: enough to spread thieves.
        let mut x = self.random.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.random.set(x);
        x
    }
}

/// Rounds of a search before anything is stolen: a barrier on all processors
/// takes microseconds, and most come to give in less.
const PATIENCE: u32 = if cfg!(tsumugi_loom) { 0 } else { 64 };

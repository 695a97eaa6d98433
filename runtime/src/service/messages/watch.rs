//! How a caller polls for a message in a rank with several workers.
//!
//! The caller keeps its worker while no other ULT wants it, and marks that it watches
//! ([`Attendance`]): peers ring no sleeping worker for a short message, and workers without
//! a ULT leave the messages to the watcher. The mark is set only while the caller can look:
//!
//! ```text
//!   look ── found ──────────────────────────────► done
//!    │ nothing                                      ▲
//!    ▼                                              │ found
//!   watch ─► look ─► look ─► ... ─► unwatch ─► look at all lanes
//!    ▲                                │ another ULT wants the worker,
//!    │                                │ or a long copy comes first
//!    └──────── yield, or copy ◄───────┘
//! ```
//!
//! A caller that looks in vain sleeps when another worker has ULTs to give away, so that
//! its own worker takes some. After `unwatch` all lanes are looked at if a worker sleeps: a peer may have left it
//! asleep because of the mark. If no worker sleeps, no peer would have rung.

use super::drive::Messages;
use super::route::on_wire;
use super::state::MessageState;
use super::wait::LOOKS;
use tsumugi_core::sync::{Ordering, spin_loop};
use tsumugi_core::wait::{Attendance, DoorbellSet, Wait};
use tsumugi_ult::{Here, internals, is_alone};

impl Messages {
    /// Polls for a while as [`look`](Self::look) does, so that peers and workers see it.
    #[inline(never)]
    pub(super) fn look_seen<T>(
        &self,
        mut look: impl FnMut(&mut MessageState, u32) -> (bool, Option<T>),
        leave: &mut dyn FnMut(),
    ) -> Option<T> {
        self.is_watched.store(true, Ordering::Relaxed);
        self.lookers.note();
        let mut leave = || {
            self.is_watched.store(false, Ordering::Relaxed);
            leave();
        };
        let mut result = None;
        for round in 0..self.rounds {
            self.poll_net();
            if round > 0 {
                self.attendance().watch();
            }
            let mut state = self.lock();
            let mut has_moved = state.take_arrived();
            for number in 0..LOOKS {
                let (moved, found) = look(&mut state, number);
                has_moved |= moved;
                result = found;
                if has_moved || result.is_some() {
                    break;
                }
                spin_loop();
            }
            let is_last = result.is_some()
                || round + 1 == self.rounds
                || round % OFFERS == OFFERS - 1 && internals::has_offers();
            let yields = !is_last && !has_moved && !is_alone();
            if (is_last || yields) && round > 0 {
                has_moved |= self.unwatch(&mut state);
            }
            state.has_moved |= has_moved;
            if state.machine.has_news() || has_moved && !state.probers.is_empty() {
                self.work_on(state, false);
            } else {
                drop(state);
            }
            if is_last {
                break;
            }
            if yields {
                // SAFETY: `leave` only takes locks, and a thread that yields holds
                // none of them.
                unsafe { Here.yield_or_leave(&mut leave) };
            }
        }
        self.is_watched.store(false, Ordering::Relaxed);
        result
    }

    /// Which threads of the rank look for its messages.
    #[inline]
    pub(super) fn attendance(&self) -> &Attendance {
        self.bells().attendance()
    }

    /// Whether a caller takes what comes, so that workers are to leave messages to it.
    #[inline]
    pub(crate) fn is_taken_care_of(&self) -> bool {
        self.is_seen && self.attendance().is_watched()
    }

    /// Whether the attendant is to leave messages to callers in this round: a caller looks,
    /// or has begun to since the last round. Between the calls of a busy caller an attendant
    /// that took its messages would only be in its way, and stay awake for that.
    #[inline]
    pub(crate) fn is_in_hand(&self) -> bool {
        self.attendance().is_watched() || self.lookers.have_come()
    }

    /// Looks at all lanes once more, for a worker that has polled until now.
    pub(crate) fn look_again(&self) {
        if self.bells().asleep() > 0 {
            let mut state = self.lock();
            let has_moved = on_wire!(state, |machine, wire| machine.advance_all(wire));
            state.has_moved |= has_moved;
            self.work_on(state, false);
        }
    }

    /// The calling thread, if it attends, does so no longer. Returns whether it did: then
    /// the messages must be looked at once more.
    #[cold]
    pub(super) fn gives_way(&self) -> bool {
        let attendance = self.attendance();
        // If another thread watches, that thread looks, too, and marks it again.
        let watched = attendance.is_watched();
        if watched {
            attendance.unwatch();
        }
        let worker = internals::worker_of_thread();
        worker.is_some_and(|worker| attendance.leave(worker)) | watched
    }

    /// Takes the mark back, and looks at all lanes once more, for which the caller has the
    /// lock. Returns whether anything has moved.
    fn unwatch(&self, state: &mut MessageState) -> bool {
        self.attendance().unwatch();
        self.bells().asleep() > 0 && on_wire!(state, |machine, wire| machine.advance_all(wire))
    }

    fn bells(&self) -> &DoorbellSet {
        self.member.control().bells()
    }
}

/// Rounds between two looks at what other workers offer, which takes a load for each.
const OFFERS: u32 = 16;

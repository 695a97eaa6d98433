//! Making all workers stand still for a moment, so that a thread can look at the
//! stacks of sleeping ULTs.
//!
//! ```text
//!   caller:    call ──► all stand? ──► look ──► release
//!   worker:    at a fair turn or while it searches: stand until released
//! ```
//!
//! A worker does not stand while its ULT does not let go, and the caller gives up
//! after a while. Sleeping workers are woken, because a worker that wakes by itself
//! must not run a ULT meanwhile.

use crate::futex::{SystemFutex, os_yield};
use crate::sched::current;
use crate::sched::halt::Halt;
use crate::sched::shared::SchedulerShared;
use std::time::{Duration, Instant};
use tsumugi_core::sync::Ordering;
use tsumugi_core::wait::Futex;

/// Keeps all workers standing until it is dropped.
pub(super) struct Standstill<'a>(&'a Halt);

impl SchedulerShared {
    /// Makes all workers stand still, except the one that the caller runs on. `None`:
    /// some worker did not within `patience`, or another thread has stopped them.
    pub(super) fn halt(&self, patience: Duration) -> Option<Standstill<'_>> {
        let own = current::worker().is_some_and(|worker| {
            // SAFETY: this thread's worker, used only here.
            core::ptr::eq(&raw const **unsafe { worker.as_ref() }.shared(), self)
        });
        let wanted = self.worker_slots.len() as u32 - u32::from(own);
        let halt = &self.halt;
        // AcqRel: after the end of the previous standstill, and before the loads of
        // `standing`.
        if halt.called.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return None;
        }
        let standstill = Standstill(halt);
        let start = Instant::now();
        // Acquire: pairs with `wait`.
        while halt.standing.load(Ordering::Acquire) < wanted {
            // In each turn, because a worker may have gone to sleep after the last
            // one.
            self.bells.ring_all(&SystemFutex);
            if start.elapsed() > patience {
                return None;
            }
            os_yield();
        }
        Some(standstill)
    }
}

impl Drop for Standstill<'_> {
    fn drop(&mut self) {
        // Release: pairs with the worker's Acquire, so that our reads of the stacks
        // come before its next run.
        self.0.called.store(0, Ordering::Release);
        SystemFutex.wake(&self.0.called, u32::MAX);
        // The next caller must not count workers that have not left yet. Acquire:
        // pairs with their leaving.
        while self.0.standing.load(Ordering::Acquire) != 0 {
            os_yield();
        }
    }
}

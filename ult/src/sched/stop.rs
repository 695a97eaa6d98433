//! Stopping the workers, once no outside scope is left.

use super::current;
use super::outside_scopes::OutsideScope;
use super::shared::SchedulerShared;
use crate::futex::SystemFutex;
use tsumugi_core::mutate;
use tsumugi_core::sync::Ordering;

impl SchedulerShared {
    /// Whether the caller is inside of a scope on this scheduler.
    pub(crate) fn has_outside_scope(&self) -> bool {
        self.outside_scopes.has(current::caller())
    }

    /// Keeps the scheduler from its end; false if the scheduler has ended.
    ///
    /// # Safety
    ///
    /// The outside scope stays where it is until it has left.
    pub(crate) unsafe fn enter(&self, outside: &OutsideScope) -> bool {
        // SAFETY: the caller's.
        unsafe { outside.enter(&self.outside_scopes, current::caller()) }
    }

    /// Lets the scheduler end.
    ///
    /// # Safety
    ///
    /// The outside scope has entered on this scheduler.
    pub(crate) unsafe fn leave(&self, outside: &OutsideScope) {
        // SAFETY: the caller's.
        let (stops, waiting) = unsafe { outside.leave(&self.outside_scopes) };
        if stops {
            mutate!("guests_stop_nobody": self.stop_workers() => ());
        }
        if let Some(waker) = waiting {
            mutate!("guests_tell_nobody": waker.wake() => ());
        }
    }

    /// Ends the workers at their next turn, as soon as no outside scope is left.
    pub(crate) fn stop(&self) {
        if self.outside_scopes.end() {
            self.stop_workers();
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        // Acquire: pairs with `stop_workers`, because main's result is read after
        // this.
        let order = mutate!("stop_relaxed": Ordering::Acquire => Ordering::Relaxed);
        self.stop.load(order)
    }

    /// Ends the workers at their next turn.
    pub(super) fn stop_workers(&self) {
        // Release: pairs with the Acquire in `is_stopped`.
        self.stop.store(true, Ordering::Release);
        self.bells.ring_all(&SystemFutex);
    }
}

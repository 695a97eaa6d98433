//! Scopes that others than a scheduler's own ULTs have on it. It does not end
//! under them.
//!
//! What a ULT of a scope borrows, it may have lent on: to a thread, to a receive
//! under way, to another scheduler's scope. So it is not enough that a ULT that
//! is cut off never touches it again, and none of a scope is cut off while the
//! one who waits for it lives on:
//!
//! ```text
//!   scope of a ULT of the scheduler     its owner is cut off with its members:
//!                                       what they borrow is never given back
//!   scope of anybody else, a guest      the end waits until it has ended
//!
//!   end wanted ──► guests left? ──no──► stop: the workers end
//!                     └yes: the last one to leave stops them
//! ```
//!
//! A guest comes in until the scheduler stops, after that no more.

use super::current;
use super::shared::Shared;
use crate::lock::Lock;
use core::ptr;
use tsumugi_core::sync::{UnsafeCell, mutant};
use tsumugi_core::wait::Waker;

/// Those who have a scope on a scheduler and are none of its ULTs.
pub(crate) struct Guests(Lock<List>);

struct List {
    first: *mut Guest,
    is_ending: bool,
    /// One that waits until there are none.
    waiting: Option<Waker>,
}

/// One scope, on the stack of whoever waits for it.
pub(crate) struct Guest(UnsafeCell<Entry>);

struct Entry {
    next: *mut Guest,
    who: usize,
}

// SAFETY: entries are reached under the lock, and taken out before they go.
unsafe impl Send for List {}

impl Guests {
    pub(super) fn new() -> Self {
        Self(Lock::new(List { first: ptr::null_mut(), is_ending: false, waiting: None }))
    }

    /// Whether the calling thread is inside of a scope on this scheduler.
    pub(super) fn has_caller(&self) -> bool {
        let who = current::caller();
        self.0.with(|list| {
            let mut at = list.first;
            while !at.is_null() {
                // SAFETY: a guest stays until it is taken out; under the lock.
                let (next, one) = unsafe { (*at).0.with(|entry| ((*entry).next, (*entry).who)) };
                if one == who {
                    return true;
                }
                at = next;
            }
            false
        })
    }

    /// From here on the last guest stops the workers. Whether there is none.
    fn end(&self) -> bool {
        self.0.with(|list| {
            list.is_ending = true;
            list.first.is_null() || mutant("guests_end_under")
        })
    }

    /// Leaves word for when there is no guest; false if there is none.
    pub(crate) fn wait(&self, waker: Waker) -> bool {
        self.0.with(|list| {
            let waits = !list.first.is_null() || mutant("guests_wait_for_nobody");
            if waits {
                list.waiting = Some(waker);
            }
            waits
        })
    }
}

impl Guest {
    pub(crate) fn new() -> Self {
        Self(UnsafeCell::new(Entry { next: ptr::null_mut(), who: 0 }))
    }

    /// Keeps the scheduler from its end; false if that has come.
    ///
    /// # Safety
    ///
    /// The guest stays where it is until it has left.
    pub(crate) unsafe fn enter(&self, shared: &Shared) -> bool {
        let who = current::caller();
        shared.guests.0.with(|list| {
            if list.is_ending && list.first.is_null() && !mutant("guests_enter_late") {
                return false;
            }
            // SAFETY: nobody else knows it yet.
            self.0.with_mut(|entry| unsafe { *entry = Entry { next: list.first, who } });
            list.first = ptr::from_ref(self).cast_mut();
            true
        })
    }

    /// Lets the scheduler end.
    ///
    /// # Safety
    ///
    /// It has entered there.
    pub(crate) unsafe fn leave(&self, shared: &Shared) {
        let this = ptr::from_ref(self).cast_mut();
        let (stops, waiting) = shared.guests.0.with(|list| {
            // SAFETY: entered, so ours; under the lock.
            let next = self.0.with(|entry| unsafe { (*entry).next });
            if list.first == this || mutant("guests_leave_first") {
                list.first = next;
            } else {
                let mut at = list.first;
                // SAFETY: guests stay until they are taken out, and one of those
                // before us has us as its next.
                unsafe {
                    while (*at).0.with(|entry| (*entry).next) != this {
                        at = (*at).0.with(|entry| (*entry).next);
                    }
                    (*at).0.with_mut(|entry| (*entry).next = next);
                }
            }
            let is_last = list.first.is_null();
            (is_last && list.is_ending, if is_last { list.waiting.take() } else { None })
        });
        if stops && !mutant("guests_stop_nobody") {
            shared.stop_workers();
        }
        if let Some(waker) = waiting.filter(|_| !mutant("guests_tell_nobody")) {
            waker.wake();
        }
    }
}

impl Shared {
    /// Ends the workers at their next turn, once no guest is left.
    pub(crate) fn stop(&self) {
        if self.guests.end() {
            self.stop_workers();
        }
    }
}

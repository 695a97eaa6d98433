//! Outside scopes: scopes on a scheduler with an owner that is none of the scheduler's
//! own ULTs. The scheduler does not end before they do.
//!
//! What a ULT of a scope borrows, it may have lent on: to a thread, to a receive
//! that is posted, to another scheduler's scope. So it is not enough that a ULT
//! that is cut off never accesses it again: a ULT of a scope must not be cut off
//! while the owner of the scope, which waits for it, lives on.
//!
//! ```text
//!   scope of a ULT of the scheduler     its owner is cut off with its members:
//!                                       what they borrow is never given back
//!   scope of another owner, outside     the end waits until the scope has ended
//!
//!   end wanted ──► any left? ──no──► stop: the workers end
//!                     └yes: the last one to leave stops them
//! ```
//!
//! Outside scopes enter until the scheduler stops, and none enters after that.

use crate::lock::Lock;
use core::ptr;
use tsumugi_core::mutate;
use tsumugi_core::sync::UnsafeCell;
use tsumugi_core::wait::Waker;

/// The scopes on a scheduler with owners that are none of its ULTs.
pub(crate) struct OutsideScopes(Lock<ScopeList>);

struct ScopeList {
    first: *mut OutsideScope,
    is_ending: bool,
    /// The waker of a thread that waits until there is no outside scope.
    waiting: Option<Waker>,
}

/// One scope, on the stack of the caller that waits for it.
pub(crate) struct OutsideScope(UnsafeCell<ScopeEntry>);

struct ScopeEntry {
    next: *mut OutsideScope,
    who: usize,
}

// SAFETY: entries are accessed under the lock, and they are taken out before they
// are dropped.
unsafe impl Send for ScopeList {}

impl OutsideScopes {
    pub(super) fn new() -> Self {
        Self(Lock::new(ScopeList { first: ptr::null_mut(), is_ending: false, waiting: None }))
    }

    /// Whether the caller `who` is inside of a scope on this scheduler.
    pub(super) fn has(&self, who: usize) -> bool {
        self.0.with(|list| {
            let mut at = list.first;
            while !at.is_null() {
                // SAFETY: an outside scope stays where it is until it is taken out, and
                // this is under the lock.
                let (next, one) = unsafe { (*at).0.with(|entry| ((*entry).next, (*entry).who)) };
                if one == who {
                    return true;
                }
                at = next;
            }
            false
        })
    }

    /// Lets the last outside scope stop the workers from here on. Returns true if there
    /// is no outside scope.
    pub(super) fn end(&self) -> bool {
        self.0.with(|list| {
            list.is_ending = true;
            mutate!("guests_end_under": list.first.is_null() => true)
        })
    }

    /// Leaves a waker that is called when there is no outside scope; false if there is
    /// none now.
    pub(crate) fn wait(&self, waker: Waker) -> bool {
        self.0.with(|list| {
            let waits = mutate!("guests_wait_for_nobody": !list.first.is_null() => true);
            if waits {
                list.waiting = Some(waker);
            }
            waits
        })
    }
}

impl OutsideScope {
    pub(crate) fn new() -> Self {
        Self(UnsafeCell::new(ScopeEntry { next: ptr::null_mut(), who: 0 }))
    }

    /// Enters as the caller `who`; false if the scheduler has ended.
    ///
    /// # Safety
    ///
    /// The outside scope stays where it is until it has left.
    pub(super) unsafe fn enter(&self, outside_scopes: &OutsideScopes, who: usize) -> bool {
        outside_scopes.0.with(|list| {
            let has_ended = list.is_ending && list.first.is_null();
            if mutate!("guests_enter_late": has_ended => false) {
                return false;
            }
            // SAFETY: the entry is in no list yet, so no other thread accesses it.
            self.0.with_mut(|entry| unsafe { *entry = ScopeEntry { next: list.first, who } });
            list.first = ptr::from_ref(self).cast_mut();
            true
        })
    }

    /// Leaves. Returns whether the workers must stop now, and the waker of a thread
    /// that waits until there is no outside scope.
    ///
    /// # Safety
    ///
    /// The outside scope has entered.
    pub(super) unsafe fn leave(&self, outside_scopes: &OutsideScopes) -> (bool, Option<Waker>) {
        let this = ptr::from_ref(self).cast_mut();
        outside_scopes.0.with(|list| {
            // SAFETY: the outside scope has entered, so it is in the list; under the
            // lock.
            let next = self.0.with(|entry| unsafe { (*entry).next });
            if mutate!("guests_leave_first": list.first == this => true) {
                list.first = next;
            } else {
                let mut at = list.first;
                // SAFETY: outside scopes stay where they are until they are taken out.
                // This scope is in the list and not the first, so one of the
                // outside scopes before has it as its next.
                unsafe {
                    while (*at).0.with(|entry| (*entry).next) != this {
                        at = (*at).0.with(|entry| (*entry).next);
                    }
                    (*at).0.with_mut(|entry| (*entry).next = next);
                }
            }
            let is_last = list.first.is_null();
            (is_last && list.is_ending, if is_last { list.waiting.take() } else { None })
        })
    }
}

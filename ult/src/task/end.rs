//! The end of a ULT, and who waits for it: the join word.

use super::Task;
use super::state::DONE;
use crate::body::Outcome;
use core::ptr;
use tsumugi_core::sync::{Ordering, UnsafeCell, mutant};
use tsumugi_core::wait::Waker;

/// Whoever waits for a ULT's end, on its own stack.
pub(crate) struct Joiner(UnsafeCell<Option<Waker>>);

/// What the end of a ULT found in its join word.
pub(crate) enum End {
    /// The handle is alive and nobody waits.
    Alone,
    /// The handle is gone: the result, and the slot, are for the finisher.
    Detached,
    /// Somebody waits; wake them last, the slot is theirs.
    Joined(Waker),
}

impl Task {
    /// The ULT has ended, and left its stack; answers who is concerned.
    /// On `Alone` and `Joined` the slot is no longer the caller's.
    #[inline]
    pub(crate) fn end(&self) -> End {
        self.set_state(DONE);
        // Release: the result is for the joiner. Acquire: the joiner is for us.
        let found = if mutant("join_load_then_store") {
            let found = self.join.load(Ordering::Acquire);
            self.join.store(FINISHED, Ordering::Release);
            found
        } else if mutant("join_relaxed") {
            self.join.swap(FINISHED, Ordering::Relaxed)
        } else {
            self.join.swap(FINISHED, Ordering::AcqRel)
        };
        match found {
            ALONE => End::Alone,
            DETACHED => End::Detached,
            joiner => {
                let joiner = ptr::with_exposed_provenance::<Joiner>(joiner);
                // Read and not taken: a write would take the line, too.
                // SAFETY: a joiner waits on its stack until its waker is used,
                // and that is once, here; dropping a waker does nothing.
                let waker = unsafe { (*joiner).0.with(|waker| waker.read()) };
                End::Joined(waker.expect("a joiner has a waker"))
            }
        }
    }

    /// Whether the result is there.
    #[inline]
    pub(crate) fn has_finished(&self) -> bool {
        // Acquire: pairs with `end`: the result is to be read.
        self.join.load(Ordering::Acquire) == FINISHED
    }

    /// Leaves a joiner in the join word. False: the ULT has ended already.
    ///
    /// # Safety
    ///
    /// If true, `joiner` stays until its waker is woken; it is not touched
    /// after this.
    pub(crate) unsafe fn join(&self, joiner: *const Joiner, waker: Waker) -> bool {
        // SAFETY: nobody else knows the joiner yet.
        unsafe { (*joiner).0.with_mut(|slot| *slot = Some(waker)) };
        let word = joiner.expose_provenance();
        if mutant("join_no_second_look") {
            self.join.store(word, Ordering::Release);
            return true;
        }
        // Release: the joiner is for `end`. Acquire: the result is for us.
        self.join.swap(word, Ordering::AcqRel) != FINISHED
    }

    /// Takes a joiner back. False: the ULT has ended and wakes it.
    pub(crate) fn unjoin(&self, joiner: *const Joiner) -> bool {
        let word = joiner.expose_provenance();
        // Acquire: pairs with `end`: the result is to be read.
        self.join.compare_exchange(word, ALONE, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Gives the handle up. True: the ULT has ended, result and slot are the
    /// caller's.
    pub(crate) fn detach(&self) -> bool {
        // AcqRel: as in `join`.
        self.join.swap(DETACHED, Ordering::AcqRel) == FINISHED
    }

    /// Drops the result if it is still there.
    pub(crate) fn drop_result(&self) {
        // SAFETY: only called by whoever the result belongs to, see `End`.
        let body = self.body.with_mut(|body| unsafe { (*body).take() });
        if let Some(body) = body {
            // SAFETY: the room holds the result, once.
            unsafe { (body.drop_result)(&self.room) };
        }
    }

    /// Takes the result.
    ///
    /// # Safety
    ///
    /// Once, after the join word said `FINISHED` to the caller; `T` is the
    /// type that the task was filled with.
    pub(crate) unsafe fn take_result<T>(&self) -> Outcome<T> {
        // SAFETY: the caller's.
        unsafe { self.room.take() }
    }
}

impl Joiner {
    pub(crate) fn new() -> Self {
        Self(UnsafeCell::new(None))
    }
}

// Words that are no pointers to a `Joiner`, which is aligned.
// Words that are no pointers to a `Joiner`, which is aligned.
pub(super) const ALONE: usize = 0;
const FINISHED: usize = 1;
pub(super) const DETACHED: usize = 2;

//! The end of a ULT, and its joiner: the join word.

use super::descriptor::Task;
use super::join_word::{ALONE, DETACHED, FINISHED, HandleState, Joiner};
use super::state::DONE;
use crate::body::UltOutcome;
use core::ptr;
use tsumugi_core::mutate;
use tsumugi_core::sync::Ordering;
use tsumugi_core::wait::Waker;

impl Task {
    /// Notes that the ULT has ended and left its stack; returns the state of its
    /// handle. On `Alone` and `Joined` the slot is no longer the caller's.
    #[inline]
    pub(crate) fn end(&self) -> HandleState {
        self.set_state(DONE);
        // Release: the joiner must see the result. Acquire: this must see the joiner.
        let order = mutate!("join_relaxed": Ordering::AcqRel => Ordering::Relaxed);
        let found = mutate!("join_load_then_store": self.join.swap(FINISHED, order) => {
            let found = self.join.load(Ordering::Acquire);
            self.join.store(FINISHED, Ordering::Release);
            found
        });
        match found {
            ALONE => HandleState::Alone,
            DETACHED => HandleState::Detached,
            joiner => {
                let joiner = ptr::with_exposed_provenance::<Joiner>(joiner);
                // The waker is copied, not taken out, because a write would take the
                // cache line too.
                // SAFETY: a joiner stays on its stack until its waker is used, and
                // only this call uses it, once; dropping a waker does nothing.
                let waker = unsafe { (*joiner).0.with(|waker| waker.read()) };
                HandleState::Joined(waker.expect("a joiner has a waker"))
            }
        }
    }

    /// Whether the ULT has ended, so that the result can be read.
    #[inline]
    pub(crate) fn has_finished(&self) -> bool {
        // Acquire: pairs with the Release in `end`, so that the caller may read the
        // result.
        self.join.load(Ordering::Acquire) == FINISHED
    }

    /// Puts a joiner into the join word. False: the ULT has ended already.
    ///
    /// # Safety
    ///
    /// After true, `joiner` stays until its waker is used, and the caller does not
    /// touch it.
    pub(crate) unsafe fn join(&self, joiner: *const Joiner, waker: Waker) -> bool {
        // SAFETY: no other thread has the joiner's address yet.
        unsafe { (*joiner).0.with_mut(|slot| *slot = Some(waker)) };
        let word = joiner.expose_provenance();
        // Release: `end` must see the joiner. Acquire: the caller may read the
        // result.
        mutate!("join_no_second_look": self.join.swap(word, Ordering::AcqRel) != FINISHED => {
            self.join.store(word, Ordering::Release);
            true
        })
    }

    /// Takes a joiner back. False: the ULT has ended and wakes the joiner.
    pub(crate) fn unjoin(&self, joiner: *const Joiner) -> bool {
        let word = joiner.expose_provenance();
        // AcqRel: the Acquire pairs with `end`, because the caller reads the result
        // on failure.
        self.join.compare_exchange(word, ALONE, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Gives the handle up. True: the ULT has ended, and the result and the slot
    /// belong to the caller.
    pub(crate) fn detach(&self) -> bool {
        // AcqRel: as in `join`.
        self.join.swap(DETACHED, Ordering::AcqRel) == FINISHED
    }

    /// Drops the result, if it is still there.
    pub(crate) fn drop_result(&self) {
        // SAFETY: only the owner of the result calls this, see `HandleState`.
        let body = self.body.with_mut(|body| unsafe { (*body).take() });
        if let Some(body) = body {
            // SAFETY: the room holds the result; the body was taken, so this runs
            // once.
            unsafe { (body.drop_result)(&self.room) };
        }
    }

    /// Takes the result.
    ///
    /// # Safety
    ///
    /// Called once, after the caller read `FINISHED` in the join word; `T` is the
    /// type that the task was filled with.
    pub(crate) unsafe fn take_result<T>(&self) -> UltOutcome<T> {
        // SAFETY: the room holds the result, an `UltOutcome<T>`, and this takes it once.
        unsafe { self.room.take() }
    }
}

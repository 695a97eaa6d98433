//! Generalized requests: operations of the program, which says when they have ended.

use crate::abi::{self, MPI_Status};
use crate::fault::{Answer, Fault};
use std::ffi::{c_int, c_void};
use tsumugi_core::sync::{AtomicU32, Ordering};
use tsumugi_runtime::service::messages::Messages;

/// An operation of the program. It lasts until the program has completed it, and has waited for
/// its request or freed it.
pub(crate) struct Generalized {
    query: Option<QueryFn>,
    free: Option<FreeFn>,
    cancel: Option<CancelFn>,
    state: *mut c_void,
    /// [`COMPLETE`], [`FREED`].
    ends: AtomicU32,
}

pub(crate) type QueryFn = unsafe extern "C" fn(*mut c_void, *mut MPI_Status) -> c_int;
pub(crate) type FreeFn = unsafe extern "C" fn(*mut c_void) -> c_int;
pub(crate) type CancelFn = unsafe extern "C" fn(*mut c_void, c_int) -> c_int;

// SAFETY: the functions are the program's, which may be called by any of its threads.
unsafe impl Send for Generalized {}
// SAFETY: the same.
unsafe impl Sync for Generalized {}

impl Generalized {
    pub(crate) fn new(
        (query, free, cancel): (Option<QueryFn>, Option<FreeFn>, Option<CancelFn>),
        state: *mut c_void,
    ) -> Self {
        Self { query, free, cancel, state, ends: AtomicU32::new(0) }
    }

    pub(crate) fn is_complete(&self) -> bool {
        // Acquire: pairs with the Release of `complete`; what the thread has done before is
        // seen by the caller of the wait.
        self.ends.load(Ordering::Acquire) & COMPLETE != 0
    }

    /// The program has completed the operation. Returns whether it had freed the request before:
    /// then the caller ends it.
    pub(crate) fn complete(&self) -> bool {
        // AcqRel: Release pairs with the Acquire of `is_complete` and of `free`; Acquire pairs with
        // the Release of `free`.
        self.ends.fetch_or(COMPLETE, Ordering::AcqRel) == FREED
    }

    /// The program has freed the request. Returns whether the operation was complete: then the
    /// caller ends it.
    pub(crate) fn free(&self) -> bool {
        // AcqRel: both halves pair with those of `complete`.
        self.ends.fetch_or(FREED, Ordering::AcqRel) == COMPLETE
    }

    /// Has the program free what it keeps; called once.
    pub(crate) fn end(&self) -> Answer {
        // SAFETY: as in `query`; nothing uses the state after it.
        answered(self.free.map_or(abi::SUCCESS, |free| unsafe { free(self.state) }))
    }

    /// The status that the program gives.
    pub(crate) fn query(&self) -> (MPI_Status, Answer) {
        let mut status = MPI_Status::EMPTY;
        // SAFETY: the program's function, with its state.
        let code =
            self.query.map_or(abi::SUCCESS, |query| unsafe { query(self.state, &raw mut status) });
        (status, answered(code))
    }

    /// Waits until the operation is complete.
    pub(crate) fn wait(&self, messages: &Messages) {
        while !self.is_complete() {
            messages.make_progress();
            give_way();
        }
    }

    /// Ends the operation, when it is complete.
    pub(crate) fn finish(&self, messages: &Messages) -> (MPI_Status, Answer) {
        self.wait(messages);
        let (status, asked) = self.query();
        let freed = self.end();
        (status, asked.and(freed))
    }

    pub(crate) fn cancel(&self) -> Answer {
        let is_complete = c_int::from(self.is_complete());
        // SAFETY: as in `query`.
        let code =
            self.cancel.map_or(abi::SUCCESS, |cancel| unsafe { cancel(self.state, is_complete) });
        answered(code)
    }
}

fn answered(code: c_int) -> Answer {
    match code {
        abi::SUCCESS => Ok(()),
        _ => Err(Fault::new(code, "a function of the generalized request has failed")),
    }
}

/// The program has completed the operation.
const COMPLETE: u32 = 1;
/// The program has freed the request.
const FREED: u32 = 2;

/// Lets others run that may bring what the caller waits for: other ULTs of the rank, and other
/// threads.
pub(crate) fn give_way() {
    tsumugi_ult::yield_now();
    std::thread::yield_now();
}

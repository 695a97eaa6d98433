//! Copies and atomics that are begun by one call and end later, in an order that
//! the program states.
//!
//! ```text
//!  begin ─► waits for what it comes after ─► under way ─► ended ─► wait
//!    │                                                      ▲
//!    └── dropped: it goes on, without a report of its end ──┘
//! ```
//!
//! An operation has ended when its bytes are in the destination's memory, on any
//! rank. Operations that were begun [after](After) it start then, even when it has
//! ended with an error.

use super::{Global, GlobalAddr};
use crate::{AddrError, Busy, Rank};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tsumugi_core::completion::Why;
use tsumugi_gas::order::{After, Full, Handle};
use tsumugi_gas::request::GlobalRequest;
use tsumugi_runtime::panic::call_back;
use tsumugi_runtime::service::global_memory::GlobalDriver;

/// An operation on global memory that was begun.
#[must_use = "the error of an operation that is dropped is lost"]
pub struct Operation {
    driver: Arc<GlobalDriver>,
    handle: Handle,
    /// The place of its result; `None` once the result was taken.
    place: Option<u32>,
}

impl Global {
    /// Begins a [`Copy`](super::Copy), a [`ListCopy`](super::ListCopy) or a
    /// [`Change`](super::Change). Sleeps while there is no room for one more.
    /// Blocking.
    pub fn begin(&self, request: impl Into<GlobalRequest>) -> Operation {
        self.begin_after(request, After::Nothing)
    }

    /// Begins an operation that starts when those in `after` have ended. The caller
    /// continues at once, but sleeps while there is no room for one more. Blocking.
    pub fn begin_after(&self, request: impl Into<GlobalRequest>, after: After<'_>) -> Operation {
        let request = request.into();
        self.issue(Some(request), after, None)
    }

    /// Begins an operation, if there is room. Never waits.
    ///
    /// # Errors
    ///
    /// [`Full`] if this rank has as many operations in progress as its tables can
    /// hold; then no operation was begun.
    pub fn try_begin_after(
        &self,
        request: impl Into<GlobalRequest>,
        after: After<'_>,
    ) -> Result<Operation, Full> {
        self.try_issue(Some(request.into()), after, None)
    }

    /// Begins an operation that ends when all operations that were begun so far and
    /// touch `rank` have ended.
    pub fn flush(&self, rank: Rank) -> Operation {
        self.issue(None, After::Nothing, Some(rank))
    }

    /// Begins an operation that ends when all operations that were begun so far
    /// have ended.
    pub fn flush_all(&self) -> Operation {
        self.issue(None, After::All, None)
    }

    /// Begins an operation that calls `then` with its result. Never waits.
    ///
    /// # Errors
    ///
    /// `then`: there is no room, and nothing happened.
    pub(super) fn begin_then<F>(&self, request: GlobalRequest, then: F) -> Result<(), (F, Why)>
    where
        F: FnOnce(Result<u64, AddrError<GlobalAddr>>) + Send + 'static,
    {
        self.driver.try_begin_then(request, then)
    }

    fn issue(
        &self,
        request: Option<GlobalRequest>,
        after: After<'_>,
        flush: Option<Rank>,
    ) -> Operation {
        loop {
            match self.try_issue(request, after, flush) {
                Ok(operation) => return operation,
                Err(_) => self.driver.wait_for_room(),
            }
        }
    }

    fn try_issue(
        &self,
        request: Option<GlobalRequest>,
        after: After<'_>,
        flush: Option<Rank>,
    ) -> Result<Operation, Full> {
        let (handle, place) = self.driver.try_begin(request, after, flush)?;
        Ok(Operation { driver: self.driver.clone(), handle, place: Some(place) })
    }
}

impl Operation {
    /// The handle by which other operations are ordered [after](After) this one.
    pub fn handle(&self) -> Handle {
        self.handle
    }

    /// Whether the operation has ended (`acp_inquire` in ACP). Never waits.
    pub fn has_ended(&self) -> bool {
        self.place.is_none_or(|place| self.driver.has_ended(place))
    }

    /// Waits until the operation has ended. Returns the old value for an atomic,
    /// else 0.
    ///
    /// # Errors
    ///
    /// The first error of an access: those of [`Global::get`] for what is read, and
    /// of [`Global::put`] for what is changed; [`AddrError::OtherRank`] if an
    /// entry of a [`ListCopy`](super::ListCopy) does not lie between the two ranks of the
    /// list. A part of the operation may have been done.
    pub fn wait(mut self) -> Result<u64, AddrError<GlobalAddr>> {
        match self.place.take() {
            Some(place) => self.driver.wait(self.handle, place),
            None => Ok(0),
        }
    }
}

impl Operation {
    /// Calls `then` with the result, once, on the thread that ends the operation; at once
    /// if it has ended. Never waits, and allocates nothing. The rules for `then` are those
    /// of [`Deferred::then`](crate::Deferred::then).
    ///
    /// # Errors
    ///
    /// [`Busy`], with the operation and `then`: there is no room for `then` now. The
    /// operation goes on.
    pub fn then<F>(mut self, then: F) -> Result<(), Busy<(Self, F)>>
    where
        F: FnOnce(Result<u64, AddrError<GlobalAddr>>) + Send + 'static,
    {
        let Some(place) = self.place.take() else {
            call_back(|| then(Ok(0)));
            return Ok(());
        };
        self.driver.end_with(place, then).map_err(|(then, why)| {
            self.place = Some(place);
            Busy { operation: (self, then), why }
        })
    }
}

/// Completes with the result, as [`wait`](Operation::wait) returns it. Panics if it is
/// polled after that.
impl Future for Operation {
    type Output = Result<u64, AddrError<GlobalAddr>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let place = this.place.expect("an operation was polled after it had completed");
        let polled = this.driver.poll_end(place, context);
        if polled.is_ready() {
            this.place = None;
        }
        polled
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            self.driver.let_go(place);
        }
    }
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Operation({})", self.handle)
    }
}

//! Copies and atomics that are begun now and end later, in an order that the
//! program states.
//!
//! ```text
//!  begin ─► waits for what it comes after ─► under way ─► ended ─► wait
//!    │                                                      ▲
//!    └── dropped: it goes on, and nobody hears of its end ──┘
//! ```
//!
//! An operation has ended when its bytes are there, at whatever rank; what
//! comes [after](After) it begins then, also when it ended with an error.

use super::Global;
use crate::Rank;
use crate::gas::Driver;
use std::fmt;
use std::sync::Arc;
use tsumugi_gas::error::AccessError;
use tsumugi_gas::order::{After, Full, Handle};
use tsumugi_gas::request::Request;

/// An operation on global memory that was begun.
#[must_use = "what is let go ends without a word"]
pub struct Operation {
    driver: Arc<Driver>,
    handle: Handle,
    /// Until somebody has heard of its end.
    place: Option<u32>,
}

impl Global {
    /// Begins a [`Copy`](super::Copy), a [`List`](super::List) or a
    /// [`Change`](super::Change); sleeps while there is no room. Blocking.
    pub fn begin(&self, request: impl Into<Request>) -> Operation {
        self.begin_after(request, After::Nothing)
    }

    /// Begins one when what it comes after has ended; the caller goes on at
    /// once, but sleeps while there is no room. Blocking.
    pub fn begin_after(&self, request: impl Into<Request>, after: After<'_>) -> Operation {
        let request = request.into();
        self.issue(Some(request), after, None)
    }

    /// Begins one, if there is room. Never waits.
    ///
    /// # Errors
    ///
    /// [`Full`]; nothing was begun.
    pub fn try_begin_after(
        &self,
        request: impl Into<Request>,
        after: After<'_>,
    ) -> Result<Operation, Full> {
        self.try_issue(Some(request.into()), after, None)
    }

    /// Begins what ends when all that was begun so far and touches `rank` has.
    pub fn flush(&self, rank: Rank) -> Operation {
        self.issue(None, After::Nothing, Some(rank))
    }

    /// Begins what ends when all that was begun so far has.
    pub fn flush_all(&self) -> Operation {
        self.issue(None, After::All, None)
    }

    fn issue(&self, request: Option<Request>, after: After<'_>, flush: Option<Rank>) -> Operation {
        loop {
            match self.try_issue(request, after, flush) {
                Ok(operation) => return operation,
                Err(_) => self.driver.wait_for_room(),
            }
        }
    }

    fn try_issue(
        &self,
        request: Option<Request>,
        after: After<'_>,
        flush: Option<Rank>,
    ) -> Result<Operation, Full> {
        let (handle, place) = self.driver.try_begin(request, after, flush)?;
        Ok(Operation { driver: self.driver.clone(), handle, place: Some(place) })
    }
}

impl Operation {
    /// Its name, for what comes [after](After) it.
    pub fn handle(&self) -> Handle {
        self.handle
    }

    /// Whether it has ended: what ACP calls inquire. Never waits.
    pub fn has_ended(&self) -> bool {
        self.place.is_none_or(|place| self.driver.has_ended(place))
    }

    /// Waits until it has ended; of an atomic, the old value, else 0.
    ///
    /// # Errors
    ///
    /// [`AccessError`]: some of it may have been done.
    pub fn wait(mut self) -> Result<u64, AccessError> {
        match self.place.take() {
            Some(place) => self.driver.wait(self.handle, place),
            None => Ok(0),
        }
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

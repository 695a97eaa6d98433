//! A wait until a word of the rank's own memory satisfies a condition.

use super::begin::sealed::Internal;
use super::begin::{Begin, Begun, Flight};
use crate::{AddrError, Remote, Runtime, Until};
use std::task::{Context, Poll};
use tsumugi_core::completion::Why;
use tsumugi_runtime::signal_wait::{SignalBegun, SignalInFlight};

/// A wait for a word.
#[derive(Clone, Copy, Debug)]
pub struct WaitUntil<'a> {
    pub(super) runtime: &'a Runtime,
    pub(super) word: Remote<u64>,
    pub(super) until: Until,
}

impl Internal for WaitUntil<'_> {}

impl<'a> Begin for WaitUntil<'a> {
    type Output = Result<u64, AddrError>;
    type Flight = SignalInFlight<'a>;

    fn wait(self) -> Self::Output {
        self.runtime.wait_until(self.word, self.until)
    }

    fn try_begin(self) -> Result<Begun<Self>, (Self, Why)> {
        match self.runtime.handle().begin_wait(self.word, self.until) {
            Ok(SignalBegun::Ended(result)) => Ok(Begun::Done(result)),
            Ok(SignalBegun::InFlight(wait)) => Ok(Begun::Pending(wait)),
            Err(why) => Err((self, why)),
        }
    }

    fn then<F>(self, then: F) -> Result<(), (Self, F, Why)>
    where
        F: FnOnce(Self::Output) + Send + 'static,
    {
        let begun = self.runtime.handle().begin_wait_then(self.word, self.until, then);
        begun.map_err(|(then, why)| (self, then, why))
    }

    fn make_room(&self) {}
}

impl Flight for SignalInFlight<'_> {
    type Output = Result<u64, AddrError>;

    fn is_done(&self) -> bool {
        SignalInFlight::is_done(self)
    }

    fn wait(self) -> Self::Output {
        SignalInFlight::wait(self)
    }

    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<Self::Output> {
        SignalInFlight::poll_end(self, context)
    }
}

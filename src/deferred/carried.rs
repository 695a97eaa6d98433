//! Operations of several steps, which a ULT carries out if they do not end at once.

use super::begin::sealed::Internal;
use super::begin::{Begin, Begun, Deferred, Flight};
use crate::Runtime;
use std::fmt;
use std::task::{Context, Poll};
use tsumugi_core::completion::Why;
use tsumugi_runtime::carried::{CarriedTicket, Carry};
use tsumugi_runtime::panic::call_back;

/// An operation of several steps on an object of a rank: the rank itself, an array, or the
/// global memory.
pub struct Carried<'a, Y, S> {
    on: &'a Y,
    steps: S,
}

/// The steps of an operation on a `Y`.
#[doc(hidden)]
pub trait Steps<Y>: Send + 'static {
    type Output: Send + 'static;

    /// Carries the operation out if that needs no wait. Never waits.
    fn at_once(self, on: &Y) -> Result<Self::Output, Self>
    where
        Self: Sized;

    /// Carries the operation out. Called once. Blocking. If the rank ends meanwhile, the
    /// call does not return.
    fn carry(&mut self, on: &Y) -> Self::Output;

    /// The result of an operation that has not ended before its rank: an error.
    fn cut_off(&mut self) -> Self::Output;
}

/// An object of a rank.
#[doc(hidden)]
pub trait OfRank: Sized + 'static {
    /// What a ULT keeps of the object.
    type Kept: Send + 'static;

    fn of_rank(&self) -> &Runtime;

    fn keep(&self) -> Self::Kept;

    /// Calls `call` with the object.
    fn with_kept<R>(kept: &Self::Kept, call: impl FnOnce(&Self) -> R) -> R;
}

/// The operation, with a handle of its object, as its ULT has it.
#[doc(hidden)]
pub struct Owned<Y: OfRank, S> {
    on: Y::Kept,
    steps: S,
}

/// The operation on `on` with these steps.
#[inline(always)]
pub(crate) fn carry_out<Y: OfRank, S: Steps<Y>>(on: &Y, steps: S) -> Deferred<Carried<'_, Y, S>> {
    Deferred::new(Carried { on, steps })
}

impl OfRank for Runtime {
    type Kept = Self;

    fn of_rank(&self) -> &Runtime {
        self
    }

    fn keep(&self) -> Self {
        self.clone()
    }

    fn with_kept<R>(kept: &Self, call: impl FnOnce(&Self) -> R) -> R {
        call(kept)
    }
}

impl<Y: OfRank, S: Steps<Y>> Carry for Owned<Y, S> {
    type Output = S::Output;

    fn carry(&mut self) -> S::Output {
        Y::with_kept(&self.on, |on| self.steps.carry(on))
    }

    fn cut_off(&mut self) -> S::Output {
        self.steps.cut_off()
    }
}

impl<'a, Y: OfRank, S: Steps<Y>> Carried<'a, Y, S> {
    fn owned(on: &Y, steps: S) -> Owned<Y, S> {
        Owned { on: on.keep(), steps }
    }
}

impl<Y, S> Internal for Carried<'_, Y, S> {}

impl<'a, Y: OfRank, S: Steps<Y>> Begin for Carried<'a, Y, S> {
    type Output = S::Output;
    type Flight = CarriedTicket<'a, Owned<Y, S>>;

    #[inline(always)]
    fn wait(mut self) -> S::Output {
        self.steps.carry(self.on)
    }

    fn try_begin(self) -> Result<Begun<Self>, (Self, Why)> {
        let on = self.on;
        let steps = match self.steps.at_once(on) {
            Ok(output) => return Ok(Begun::Done(output)),
            Err(steps) => steps,
        };
        match on.of_rank().handle().begin_carried(Self::owned(on, steps)) {
            Ok(ticket) => Ok(Begun::Pending(ticket)),
            Err((Owned { steps, .. }, why)) => Err((Self { on, steps }, why)),
        }
    }

    fn then<F>(self, then: F) -> Result<(), (Self, F, Why)>
    where
        F: FnOnce(S::Output) + Send + 'static,
    {
        let on = self.on;
        let steps = match self.steps.at_once(on) {
            Ok(output) => {
                call_back(|| then(output));
                return Ok(());
            }
            Err(steps) => steps,
        };
        let begun = on.of_rank().handle().begin_carried_then(Self::owned(on, steps), then);
        begun.map_err(|(Owned { steps, .. }, then, why)| (Self { on, steps }, then, why))
    }

    fn make_room(&self) {}
}

impl<C: Carry> Flight for CarriedTicket<'_, C> {
    type Output = C::Output;

    fn is_done(&self) -> bool {
        CarriedTicket::is_done(self)
    }

    fn wait(self) -> C::Output {
        CarriedTicket::wait(self)
    }

    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<C::Output> {
        CarriedTicket::poll_end(self, context)
    }
}

impl<Y, S> fmt::Debug for Carried<'_, Y, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Carried")
    }
}

impl<Y: OfRank, S> fmt::Debug for Owned<Y, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Owned")
    }
}

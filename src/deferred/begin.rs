//! An operation that has not begun, and one that is in flight.

use super::busy::Busy;
use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::task::{Context, Poll};
use tsumugi_core::completion::Why;

/// An operation that has not begun. See the [module](super).
#[must_use = "an operation does nothing until it is waited for, awaited, tried or given a function"]
pub struct Deferred<C: Begin> {
    call: C,
}

/// An operation in flight. If it is dropped, the operation goes on, and its result is
/// lost; the memory that the operation owns is freed when it ends.
#[must_use = "the result of an operation that is dropped is lost"]
pub struct InFlight<C: Begin> {
    flight: C::Flight,
}

/// The state of an operation that has begun. The enum is exhaustive: a caller needs either the
/// result or the operation.
#[must_use = "wait for the operation in flight, or drop it on purpose"]
pub enum Status<C: Begin> {
    /// The operation has ended inside the call.
    Done(C::Output),
    /// The operation is in flight.
    Pending(InFlight<C>),
}

/// The future of an operation. It begins at the first poll. A future that is dropped
/// later leaves the operation in flight.
pub struct Awaited<C: Begin>(AwaitStage<C>);

enum AwaitStage<C: Begin> {
    Deferred(C),
    InFlight(C::Flight),
    Over,
}

/// A kind of operation, with its arguments. Only this crate implements it.
pub trait Begin: Sized + sealed::Internal {
    /// The result.
    type Output;
    /// The operation in flight.
    #[doc(hidden)]
    type Flight: Flight<Output = Self::Output>;

    /// Carries the operation out. Blocking.
    #[doc(hidden)]
    fn wait(self) -> Self::Output;

    /// Begins the operation. Never waits.
    #[doc(hidden)]
    fn try_begin(self) -> Result<Begun<Self>, (Self, Why)>;

    /// Begins the operation; `then` gets its result. Never waits.
    #[doc(hidden)]
    fn then<F>(self, then: F) -> Result<(), (Self, F, Why)>
    where
        F: FnOnce(Self::Output) + Send + 'static;

    /// Makes progress, after an attempt that found no room.
    #[doc(hidden)]
    fn make_room(&self);
}

/// The state of an operation that has begun, below [`Status`].
#[doc(hidden)]
#[derive(Debug)]
pub enum Begun<C: Begin> {
    Done(C::Output),
    Pending(C::Flight),
}

/// An operation in flight, below [`InFlight`].
#[doc(hidden)]
pub trait Flight: Sized + Unpin {
    type Output;

    /// Whether it has ended; makes progress on it if it has not. Never waits.
    fn is_done(&self) -> bool;

    /// Waits for the result. Blocking.
    fn wait(self) -> Self::Output;

    /// Polls for the result. Not called again after it was ready.
    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<Self::Output>;
}

/// Keeps other crates from implementing [`Begin`].
#[doc(hidden)]
pub(crate) mod sealed {
    pub trait Internal {}
}

impl<C: Begin> Deferred<C> {
    #[inline(always)]
    pub(crate) fn new(call: C) -> Self {
        Self { call }
    }

    /// Carries the operation out and returns its result. The caller sleeps if it must
    /// wait, whether it is a ULT or an OS thread; a ULT leaves its core to others. Between
    /// ranks of a node this costs what the blocking call of the same name costs. Blocking.
    #[inline(always)]
    pub fn wait(self) -> C::Output {
        self.call.wait()
    }

    /// Begins the operation. Never waits.
    ///
    /// # Errors
    ///
    /// [`Busy`], with the operation: there is no room for it now, and nothing happened. A
    /// wrong address or a dead rank is an error of the result.
    #[inline]
    pub fn try_begin(self) -> Result<Status<C>, Busy<Self>> {
        match self.call.try_begin() {
            Ok(Begun::Done(output)) => Ok(Status::Done(output)),
            Ok(Begun::Pending(flight)) => Ok(Status::Pending(InFlight { flight })),
            Err((call, why)) => Err(Busy { operation: Self { call }, why }),
        }
    }

    /// Begins the operation, and calls `then` with its result, once, on the thread that
    /// ends the operation: if it is done at once, on the calling thread before this
    /// returns. Never waits, and allocates nothing: `then` lies in the operation's slot.
    ///
    /// `then` must not block: a call in it that would sleep panics; let it start a ULT that
    /// may block instead. It may begin other operations. A panic of `then` ends the
    /// callback alone, on any thread: it is printed on the standard error, and the program
    /// gets no other notice.
    ///
    /// # Errors
    ///
    /// [`Busy`], with the operation and `then`, which is not called: there is no room now,
    /// and nothing happened. A wrong address or a dead rank is an error of the result.
    #[inline]
    pub fn then<F>(self, then: F) -> Result<(), Busy<(Self, F)>>
    where
        F: FnOnce(C::Output) + Send + 'static,
    {
        self.call
            .then(then)
            .map_err(|(call, then, why)| Busy { operation: (Self { call }, then), why })
    }
}

impl<C: Begin> Status<C> {
    /// The result; waits for it if the operation is in flight. Blocking.
    pub fn wait(self) -> C::Output {
        match self {
            Self::Done(output) => output,
            Self::Pending(in_flight) => in_flight.wait(),
        }
    }
}

impl<C: Begin> InFlight<C> {
    /// Whether the operation has ended; makes progress on it if it has not. Never waits.
    pub fn is_done(&self) -> bool {
        self.flight.is_done()
    }

    /// Returns the result if the operation has ended. Never waits.
    ///
    /// # Errors
    ///
    /// This value: the operation is still in flight.
    pub fn try_finish(self) -> Result<C::Output, Self> {
        if self.is_done() { Ok(self.wait()) } else { Err(self) }
    }

    /// Waits for the result. Blocking.
    pub fn wait(self) -> C::Output {
        self.flight.wait()
    }
}

/// Completes with the result. Panics if it is polled after that.
impl<C: Begin> Future for InFlight<C> {
    type Output = C::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<C::Output> {
        self.get_mut().flight.poll_end(context)
    }
}

// The flight is `Unpin`, and is all that this has.
impl<C: Begin> Unpin for InFlight<C> {}

impl<C: Begin> IntoFuture for Deferred<C> {
    type Output = C::Output;
    type IntoFuture = Awaited<C>;

    fn into_future(self) -> Awaited<C> {
        Awaited(AwaitStage::Deferred(self.call))
    }
}

/// Completes with the result. Panics if it is polled after that.
impl<C: Begin> Future for Awaited<C> {
    type Output = C::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<C::Output> {
        let stage = &mut self.get_mut().0;
        if let AwaitStage::Deferred(_) = stage {
            let AwaitStage::Deferred(call) = std::mem::replace(stage, AwaitStage::Over) else {
                unreachable!("checked above")
            };
            match call.try_begin() {
                Ok(Begun::Done(output)) => return Poll::Ready(output),
                Ok(Begun::Pending(flight)) => *stage = AwaitStage::InFlight(flight),
                Err((call, _)) => {
                    call.make_room();
                    *stage = AwaitStage::Deferred(call);
                    // Other tasks run, and this one tries again.
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
            }
        }
        let AwaitStage::InFlight(flight) = stage else {
            panic!("the future of an operation was polled after it had completed")
        };
        let polled = flight.poll_end(context);
        if polled.is_ready() {
            *stage = AwaitStage::Over;
        }
        polled
    }
}

// Nothing in it is pinned: the call is moved out, and the flight is `Unpin`.
impl<C: Begin> Unpin for Awaited<C> {}

impl<C: Begin> fmt::Debug for Status<C>
where
    C::Output: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done(output) => f.debug_tuple("Done").field(output).finish(),
            Self::Pending(in_flight) => f.debug_tuple("Pending").field(in_flight).finish(),
        }
    }
}

impl<C: Begin> fmt::Debug for Deferred<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Deferred")
    }
}

impl<C: Begin> fmt::Debug for InFlight<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InFlight")
    }
}

impl<C: Begin> fmt::Debug for Awaited<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            AwaitStage::Deferred(_) => "Awaited(deferred)",
            AwaitStage::InFlight(_) => "Awaited(in flight)",
            AwaitStage::Over => "Awaited(over)",
        })
    }
}

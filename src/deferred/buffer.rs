//! Puts and gets of a buffer, which the operation owns until it ends.

use super::begin::sealed::Internal;
use super::begin::{Begin, Begun, Flight};
use super::word::{look, poll_ticket};
use crate::{AddrError, Buffer, Outcome, Plain, Runtime};
use std::fmt;
use std::task::{Context, Poll};
use tsumugi_core::backend::execute;
use tsumugi_core::completion::{self, OnEnd, Ticket, Why};
use tsumugi_core::op::Op;
use tsumugi_runtime::panic::call_back;
use tsumugi_runtime::route::Route;
use tsumugi_ult::Here;

/// A put or a get of a whole buffer.
pub struct OnBuffer<'a, T> {
    runtime: &'a Runtime,
    op: Op,
    buf: Buffer<T>,
}

/// A put or a get of a buffer in flight.
#[doc(hidden)]
pub struct BufferFlight<'a, T: Plain>(Ticket<'a, Buffer<T>>, Route<'a>);

/// The callback of a put or a get, with the buffer.
struct ThenBuffer<T, F>(Buffer<T>, F);

impl<'a, T: Plain> OnBuffer<'a, T> {
    pub(super) fn new(runtime: &'a Runtime, op: Op, buf: Buffer<T>) -> Self {
        Self { runtime, op, buf }
    }

    fn carry_out(self) -> Outcome<Buffer<T>> {
        Outcome { result: execute(self.runtime.handle().direct(), &self.op), buf: self.buf }
    }
}

impl<T> Internal for OnBuffer<'_, T> {}

impl<'a, T: Plain> Begin for OnBuffer<'a, T> {
    type Output = Outcome<Buffer<T>>;
    type Flight = BufferFlight<'a, T>;

    fn wait(mut self) -> Self::Output {
        tsumugi_ult::assert_may_block("completion");
        loop {
            match self.try_begin() {
                Ok(Begun::Done(outcome)) => return outcome,
                Ok(Begun::Pending(flight)) => return flight.wait(),
                Err((back, _)) => {
                    back.make_room();
                    tsumugi_ult::yield_now();
                    self = back;
                }
            }
        }
    }

    fn try_begin(self) -> Result<Begun<Self>, (Self, Why)> {
        let Self { runtime, op, buf } = self;
        let route = runtime.handle().route(&op.remote);
        let begun = match route {
            Route::Here => return Ok(Begun::Done(Self { runtime, op, buf }.carry_out())),
            Route::Queue(queue) => queue.submit(&op, buf),
            Route::Net(net) => net.submit(&op, buf),
        };
        match begun {
            Ok(completion::Status::Done(outcome)) => Ok(Begun::Done(outcome)),
            Ok(completion::Status::Pending(ticket)) => {
                Ok(Begun::Pending(BufferFlight(ticket, route)))
            }
            Err(busy) => Err((Self { runtime, op, buf: busy.buf }, busy.why)),
        }
    }

    fn then<F>(self, then: F) -> Result<(), (Self, F, Why)>
    where
        F: FnOnce(Self::Output) + Send + 'static,
    {
        let Self { runtime, op, buf } = self;
        let begun = match runtime.handle().route(&op.remote) {
            Route::Here => {
                let outcome = Self { runtime, op, buf }.carry_out();
                call_back(|| then(outcome));
                return Ok(());
            }
            Route::Queue(queue) => queue.submit_owned(&op, ThenBuffer(buf, then)),
            Route::Net(net) => net.post_owned(&op, ThenBuffer(buf, then)),
        };
        begun.map_err(|busy| {
            let ThenBuffer(buf, then) = busy.buf;
            (Self { runtime, op, buf }, then, busy.why)
        })
    }

    fn make_room(&self) {
        look(&self.runtime.handle().route(&self.op.remote));
    }
}

impl<T: Plain, F: FnOnce(Outcome<Buffer<T>>) + Send + 'static> OnEnd for ThenBuffer<T, F> {
    fn ended(self, result: Result<u64, AddrError>) {
        let Self(buf, then) = self;
        call_back(|| then(Outcome { result, buf }));
    }
}

impl<T: Plain> Flight for BufferFlight<'_, T> {
    type Output = Outcome<Buffer<T>>;

    fn is_done(&self) -> bool {
        self.0.is_done() || {
            look(&self.1);
            self.0.is_done()
        }
    }

    fn wait(self) -> Self::Output {
        look(&self.1);
        self.0.wait(&Here)
    }

    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<Self::Output> {
        poll_ticket(&mut self.0, &self.1, context)
    }
}

impl<T: Plain> fmt::Debug for BufferFlight<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T> fmt::Debug for OnBuffer<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OnBuffer({:?} at {})", self.op.kind, self.op.remote)
    }
}

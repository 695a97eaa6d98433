//! Operations on one word: its value is in the operation, and its result in the slot.

use super::begin::sealed::Internal;
use super::begin::{Begin, Begun, Flight};
use crate::{AddrError, Agent, Plain, Runtime};
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tsumugi_core::backend::execute;
use tsumugi_core::completion::{self, OnEnd, Ticket, Why};
use tsumugi_core::mem::Width;
use tsumugi_core::op::{Kind, Op};
use tsumugi_runtime::carried::{CarriedTicket, Carry};
use tsumugi_runtime::net::NetLayer;
use tsumugi_runtime::panic::call_back;
use tsumugi_runtime::route::Route;
use tsumugi_ult::Here;

/// An operation on one word; `V` says what it returns: [`Loaded`] or [`Nothing`].
pub struct OnWord<'a, V> {
    runtime: &'a Runtime,
    op: Op,
    value: PhantomData<fn() -> V>,
}

/// The value of the word is returned, as a `T`.
#[derive(Debug)]
pub struct Loaded<T>(PhantomData<fn() -> T>);

/// Nothing is returned.
#[derive(Debug)]
pub struct Nothing;

/// What is made of the bits that an operation returns.
#[doc(hidden)]
pub trait Value: 'static {
    type Value: Send + 'static;

    fn of(bits: u64) -> Self::Value;
}

/// An operation on a word in flight.
#[doc(hidden)]
pub struct WordFlight<'a, V: Value>(Way<'a, V>);

enum Way<'a, V: Value> {
    Posted(Ticket<'a, ()>, Route<'a>),
    Carried(CarriedTicket<'a, InSteps<V>>),
}

/// The callback of an operation on a word.
struct ThenWord<V, F>(F, PhantomData<fn() -> V>);

/// An atomic that the device does not have: a loop of operations that it has.
struct InSteps<V>(Arc<NetLayer>, Op, PhantomData<fn() -> V>);

impl<'a, V: Value> OnWord<'a, V> {
    #[inline(always)]
    pub(super) fn new(runtime: &'a Runtime, op: Op) -> Self {
        Self { runtime, op, value: PhantomData }
    }

    fn in_steps(&self) -> Option<InSteps<V>> {
        let net = self.runtime.handle().net().filter(|_| is_in_steps(&self.op))?;
        Some(InSteps(net.clone(), self.op, PhantomData))
    }
}

/// Whether the device of the word needs a loop for this operation.
fn is_in_steps(op: &Op) -> bool {
    op.remote.key.agent() == Agent::Device
        && match op.kind {
            Kind::Put | Kind::Get | Kind::PutWord | Kind::GetWord => false,
            Kind::FetchAdd | Kind::CompareSwap => op.width() != Some(Width::W8),
            _ => true,
        }
}

impl<V> Internal for OnWord<'_, V> {}

impl<'a, V: Value> Begin for OnWord<'a, V> {
    type Output = Result<V::Value, AddrError>;
    type Flight = WordFlight<'a, V>;

    #[inline(always)]
    fn wait(self) -> Self::Output {
        self.runtime.handle().carry(&self.op).map(V::of)
    }

    fn try_begin(self) -> Result<Begun<Self>, (Self, Why)> {
        let handle = self.runtime.handle();
        let route = handle.route(&self.op.remote);
        let begun = match route {
            Route::Here => return Ok(Begun::Done(execute(handle.direct(), &self.op).map(V::of))),
            Route::Queue(queue) => queue.submit(&self.op, ()),
            Route::Net(net) => match self.in_steps() {
                None => net.submit(&self.op, ()),
                Some(steps) => {
                    return match handle.begin_carried(steps) {
                        Ok(ticket) => Ok(Begun::Pending(WordFlight(Way::Carried(ticket)))),
                        Err((_, why)) => Err((self, why)),
                    };
                }
            },
        };
        match begun {
            Ok(completion::Status::Done(outcome)) => Ok(Begun::Done(outcome.result.map(V::of))),
            Ok(completion::Status::Pending(ticket)) => {
                Ok(Begun::Pending(WordFlight(Way::Posted(ticket, route))))
            }
            Err(busy) => Err((self, busy.why)),
        }
    }

    fn then<F>(self, then: F) -> Result<(), (Self, F, Why)>
    where
        F: FnOnce(Self::Output) + Send + 'static,
    {
        let handle = self.runtime.handle();
        let done = ThenWord::<V, F>(then, PhantomData);
        let begun = match handle.route(&self.op.remote) {
            Route::Here => {
                done.ended(execute(handle.direct(), &self.op));
                return Ok(());
            }
            Route::Queue(queue) => queue.submit_owned(&self.op, done),
            Route::Net(net) => match self.in_steps() {
                None => net.post_owned(&self.op, done),
                Some(steps) => {
                    let begun = handle.begin_carried_then(steps, done.0);
                    return begun.map_err(|(_, then, why)| (self, then, why));
                }
            },
        };
        begun.map_err(|busy| (self, busy.buf.0, busy.why))
    }

    fn make_room(&self) {
        look(&self.runtime.handle().route(&self.op.remote));
    }
}

/// Makes progress on the operations of a route. Never waits.
pub(super) fn look(route: &Route<'_>) {
    match route {
        Route::Here => {}
        Route::Queue(queue) => queue.look(),
        Route::Net(net) => net.look(),
    }
}

impl<V: Value> Carry for InSteps<V> {
    type Output = Result<V::Value, AddrError>;

    fn carry(&mut self) -> Self::Output {
        self.0.run(&self.1).map(V::of)
    }

    fn cut_off(&mut self) -> Self::Output {
        Err(AddrError::Ended)
    }
}

impl<V: Value, F: FnOnce(Result<V::Value, AddrError>) + Send + 'static> OnEnd for ThenWord<V, F> {
    fn ended(self, result: Result<u64, AddrError>) {
        let result = result.map(V::of);
        call_back(|| (self.0)(result));
    }
}

impl<V: Value> Flight for WordFlight<'_, V> {
    type Output = Result<V::Value, AddrError>;

    fn is_done(&self) -> bool {
        match &self.0 {
            Way::Posted(ticket, route) => {
                ticket.is_done() || {
                    look(route);
                    ticket.is_done()
                }
            }
            Way::Carried(ticket) => ticket.is_done(),
        }
    }

    fn wait(self) -> Self::Output {
        match self.0 {
            Way::Posted(ticket, route) => {
                look(&route);
                ticket.wait(&Here).result.map(V::of)
            }
            Way::Carried(ticket) => ticket.wait(),
        }
    }

    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Way::Posted(ticket, route) => {
                poll_ticket(ticket, route, context).map(|outcome| outcome.result.map(V::of))
            }
            Way::Carried(ticket) => ticket.poll_end(context),
        }
    }
}

/// Polls for the end of an operation that an engine carries out. The operation is posted
/// first: there may be no other thread that would.
pub(super) fn poll_ticket<B: Send + 'static>(
    ticket: &mut Ticket<'_, B>,
    route: &Route<'_>,
    context: &mut Context<'_>,
) -> Poll<completion::Outcome<B>> {
    if !ticket.is_done() {
        look(route);
    }
    Pin::new(ticket).poll(context)
}

impl<T: Plain> Value for Loaded<T> {
    type Value = T;

    #[inline(always)]
    fn of(bits: u64) -> T {
        crate::ops::value_of(bits)
    }
}

impl Value for Nothing {
    type Value = ();

    #[inline(always)]
    fn of(_: u64) {}
}

impl<V: Value> fmt::Debug for WordFlight<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Way::Posted(ticket, _) => ticket.fmt(f),
            Way::Carried(ticket) => ticket.fmt(f),
        }
    }
}

impl<V> fmt::Debug for OnWord<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OnWord({:?} at {})", self.op.kind, self.op.remote)
    }
}

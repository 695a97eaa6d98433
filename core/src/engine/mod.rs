//! The path from a submit to a completion: which thread posts, polls and waits.
//!
//! ```text
//!  caller                                             device
//!  submit(op, buf) ── Done: it ended inside the call
//!     │ take a tag, fill its slot
//!     ▼
//!  executor ── gather ── doorbell ─────────────────►  endpoint
//!     │ Delegate: any calling thread works the endpoint  │
//!     │ Offload: the owner thread works it               │
//!     ▼                                                  ▼
//!  Pending(ticket)  ◄── callback · wake · flag ◄──── completer (poll)
//! ```
//!
//! | | uncontended | contended | which thread polls |
//! |---|---|---|---|
//! | [`Delegate`] | two atomics | a thread leaves its work to the lock's holder | a thread without other work |
//! | [`Offload`] | a push | a push | the owner |
//!
//! Memory that can be loaded and stored needs neither of them: see
//! [`execute`](crate::backend::execute).
//!
//! A batch goes out when [`BATCH_MAX`] operations have gathered, when a thread
//! calls [`poll`](Engine::poll) (idle workers do), and at every
//! [`flush`](Engine::flush).

mod work;
mod port;
mod delegate;
mod offload;
mod waiter_stack;

pub use delegate::Delegate;
pub use offload::{DeviceOwner, Idle, Offload};
pub use port::{BATCH_MAX, Port, PortCounts};
pub use waiter_stack::WaiterStack;
pub use work::{DeferredCall, Work};

use crate::backend::Endpoint;
use crate::completion::{Busy, Callback, Completions, OnEnd, Outcome, Status, Ticket, Why};
use crate::mem::AddrError;
use crate::op::Op;
use crate::stats::Counter;
use crate::tag::Tag;
use crate::wait::{Futex, Wait};
use core::fmt;

/// Which thread works an endpoint.
#[expect(clippy::large_enum_variant, reason = "a few a rank, and a box would be a miss an op")]
pub enum Executor<'t, E: Endpoint> {
    /// Any thread that calls.
    Delegate(Delegate<'t, E>),
    /// A thread of the endpoint's own.
    Offload(Offload<'t>, &'t dyn Futex),
}

/// What a caller does when a submit returns [`Busy`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Retry {
    /// Tries again at once. For callers that poll themselves.
    AtOnce,
    /// Lets other threads run first.
    #[default]
    Yield,
    /// Sleeps until an operation has ended.
    Room,
}

/// Executors, and the operations in flight on them.
pub struct Engine<'t, E: Endpoint> {
    completions: Completions<'t>,
    executors: &'t [Executor<'t, E>],
    room: WaiterStack,
}

impl<'t, E: Endpoint> Engine<'t, E> {
    /// Makes an engine; its ports report the ends of operations to `completions`.
    ///
    /// # Panics
    ///
    /// If there is no executor.
    pub fn new(completions: Completions<'t>, executors: &'t [Executor<'t, E>]) -> Self {
        assert!(!executors.is_empty(), "an engine needs at least one executor");
        Self { completions, executors, room: WaiterStack::new() }
    }

    /// Begins an operation that owns `buf` until it ends. `hint` is the worker's
    /// number: it chooses the executor and the tags. Never waits.
    ///
    /// # Errors
    ///
    /// [`Busy`], with the operation and its buffer: with [`Why::NoTag`] if all tags are in
    /// flight, with [`Why::RingFull`] if the executor's ring is full. Nothing happened.
    #[inline]
    pub fn submit<B: Send + 'static>(
        &self,
        hint: usize,
        op: Op,
        buf: B,
    ) -> Result<Status<'t, B>, Busy<B>> {
        let executor = self.executor(hint);
        if let Some(result) = executor.try_now(&op) {
            return Ok(Status::Done(Outcome { result, buf }));
        }
        self.post(hint, op, buf).map(Status::Pending)
    }

    /// Begins an operation as [`submit`](Self::submit) does, but never carries it
    /// out inside the call.
    ///
    /// # Errors
    ///
    /// [`Busy`], with the operation and its buffer: with [`Why::NoTag`] if all tags are in
    /// flight, with [`Why::RingFull`] if the executor's ring is full. Nothing happened.
    #[inline]
    pub fn post<B: Send + 'static>(
        &self,
        hint: usize,
        op: Op,
        buf: B,
    ) -> Result<Ticket<'t, B>, Busy<B>> {
        self.post_by(op, hint, buf, |executor, op| executor.enqueue(op))
    }

    /// Begins an operation as [`post`](Self::post) does, for a caller that will
    /// wait for this operation and for nothing before it. The operation is posted
    /// at once, with what has gathered, and completions are taken; except if
    /// another thread is working the endpoint.
    ///
    /// # Errors
    ///
    /// [`Busy`], with the operation and its buffer: with [`Why::NoTag`] if all tags are in
    /// flight, with [`Why::RingFull`] if the executor's ring is full. Nothing happened.
    #[inline]
    pub fn post_now<B: Send + 'static>(
        &self,
        hint: usize,
        op: Op,
        buf: B,
    ) -> Result<Ticket<'t, B>, Busy<B>> {
        self.post_by(op, hint, buf, |executor, op| match executor {
            Executor::Delegate(delegate) => delegate.enqueue_now(op),
            offload => offload.enqueue(op),
        })
    }

    #[inline(always)]
    fn post_by<B: Send + 'static>(
        &self,
        op: Op,
        hint: usize,
        buf: B,
        enqueue: impl FnOnce(&Executor<'t, E>, Op) -> Result<(), Op>,
    ) -> Result<Ticket<'t, B>, Busy<B>> {
        let ticket = match self.completions.try_begin(hint, buf) {
            Ok(ticket) => ticket,
            Err(buf) => return Err(Busy { op, buf, why: Why::NoTag }),
        };
        match enqueue(self.executor(hint), op.tagged(ticket.tag())) {
            Ok(()) => Ok(ticket),
            Err(_) => {
                // SAFETY: the ring refused the operation, so no device has it.
                let buf = unsafe { ticket.retract() };
                Err(Busy { op, buf, why: Why::RingFull })
            }
        }
    }

    /// Begins an operation that calls `callback` when it has ended: at once if
    /// the operation ended inside the call, else on the thread that polls. Never
    /// waits.
    ///
    /// # Errors
    ///
    /// [`Busy`]: with [`Why::NoTag`] if all tags are in flight, with [`Why::RingFull`] if
    /// the executor's ring is full. Nothing happened, and the callback will not be called.
    #[inline]
    pub fn submit_callback(&self, hint: usize, op: Op, callback: Callback) -> Result<(), Busy<()>> {
        if let Some(result) = self.executor(hint).try_now(&op) {
            callback.call(result);
            return Ok(());
        }
        self.post_callback(hint, op, callback).map(drop)
    }

    /// Begins an operation as [`submit_callback`](Self::submit_callback) does,
    /// but never carries it out inside the call. Returns its tag.
    ///
    /// # Errors
    ///
    /// [`Busy`]: with [`Why::NoTag`] if all tags are in flight, with [`Why::RingFull`] if
    /// the executor's ring is full. Nothing happened, and the callback will not be called.
    #[inline]
    pub fn post_callback(&self, hint: usize, op: Op, callback: Callback) -> Result<Tag, Busy<()>> {
        let busy = |why| Busy { op, buf: (), why };
        let tag = self.completions.try_begin_callback(hint, callback).ok_or(busy(Why::NoTag))?;
        if self.executor(hint).enqueue(op.tagged(tag)).is_err() {
            self.completions.retract_callback(tag);
            return Err(busy(Why::RingFull));
        }
        Ok(tag)
    }

    /// Begins an operation that owns `callback`, in its slot, and calls it when the
    /// operation has ended: at once if the operation ended inside the call, else on the
    /// thread that polls. Never waits.
    ///
    /// # Errors
    ///
    /// [`Busy`], with the operation and its callback: with [`Why::NoTag`] if all tags are in
    /// flight, with [`Why::RingFull`] if the executor's ring is full. Nothing happened.
    #[inline]
    pub fn submit_owned<C: OnEnd>(&self, hint: usize, op: Op, callback: C) -> Result<(), Busy<C>> {
        let executor = self.executor(hint);
        if let Some(result) = executor.try_now(&op) {
            callback.ended(result);
            return Ok(());
        }
        let tag = match self.completions.try_begin_owned(hint, callback) {
            Ok(tag) => tag,
            Err(buf) => return Err(Busy { op, buf, why: Why::NoTag }),
        };
        if executor.enqueue(op.tagged(tag)).is_err() {
            // SAFETY: the ring refused the operation, so no device has it.
            let buf = unsafe { self.completions.retract_owned(tag) };
            return Err(Busy { op, buf, why: Why::RingFull });
        }
        Ok(())
    }

    /// Carries an operation out and returns its result. The caller sleeps
    /// meanwhile, so another thread must poll.
    ///
    /// # Errors
    ///
    /// The [`AddrError`] with which the endpoint has ended the operation. A [`Busy`] is not
    /// returned but tried again.
    pub fn run(
        &self,
        hint: usize,
        op: Op,
        retry: Retry,
        wait: &dyn Wait,
    ) -> Result<u64, AddrError> {
        loop {
            match self.submit(hint, op, ()) {
                Ok(Status::Done(outcome)) => return outcome.result,
                Ok(Status::Pending(ticket)) => return self.wait(ticket, wait),
                Err(_) => self.retry(retry, wait),
            }
        }
    }

    /// Waits for an operation that was begun, and returns its result. The caller sleeps
    /// meanwhile, so another thread must poll.
    ///
    /// # Errors
    ///
    /// The [`AddrError`] with which the endpoint has ended the operation.
    #[inline]
    pub fn wait(&self, ticket: Ticket<'t>, wait: &dyn Wait) -> Result<u64, AddrError> {
        let outcome = ticket.try_finish();
        let result = outcome.unwrap_or_else(|ticket| ticket.wait(wait)).result;
        self.room.made();
        result
    }

    /// Does what `retry` names, after a [`Busy`].
    pub fn retry(&self, retry: Retry, wait: &dyn Wait) {
        wait.count(Counter::Busy);
        match retry {
            Retry::AtOnce => {
                self.poll();
            }
            Retry::Yield => {
                self.poll();
                wait.yield_now();
            }
            Retry::Room => self.room.wait(wait, &|| self.has_room()),
        }
    }

    /// Has `call` made by the thread that works the executor chosen by `hint`, in
    /// turn with the executor's operations: an executor with a thread of its own
    /// uses that thread. Never waits.
    ///
    /// # Errors
    ///
    /// The call: the ring is full.
    pub fn call(&self, hint: usize, call: DeferredCall) -> Result<(), DeferredCall> {
        let pushed = match self.executor(hint) {
            Executor::Delegate(delegate) => delegate.leave(Work::Call(call)),
            Executor::Offload(offload, futex) => offload.push(Work::Call(call), *futex),
        };
        pushed.map_err(|_| call)
    }

    /// Posts what has gathered and takes what has completed, on every
    /// executor that has no thread of its own. Returns how many completions
    /// there were.
    pub fn poll(&self) -> usize {
        let completed = self.executors.iter().map(Executor::poll).sum();
        if completed > 0 {
            self.room.made();
        }
        completed
    }

    /// Posts at once what has gathered: for a caller that goes on computing.
    pub fn flush(&self) {
        for executor in self.executors {
            if let Executor::Delegate(delegate) = executor {
                delegate.flush();
            }
        }
    }

    /// Returns whether a thread should call [`poll`](Self::poll).
    pub fn needs_poll(&self) -> bool {
        self.executors.iter().any(|executor| !executor.is_quiet())
    }

    /// Returns whether operations wait to be posted: for a caller that polls for
    /// the operations in flight in another way.
    pub fn has_gathered(&self) -> bool {
        self.executors.iter().any(Executor::has_gathered)
    }

    /// Returns the operations in flight.
    pub fn completions(&self) -> Completions<'t> {
        self.completions
    }

    fn has_room(&self) -> bool {
        self.completions.in_flight() < self.completions.capacity()
    }

    #[inline(always)]
    fn executor(&self, hint: usize) -> &'t Executor<'t, E> {
        match self.executors {
            [only] => only,
            several => &several[hint % several.len()],
        }
    }
}

impl<E: Endpoint> Executor<'_, E> {
    #[inline(always)]
    fn try_now(&self, op: &Op) -> Option<Result<u64, AddrError>> {
        match self {
            Self::Delegate(delegate) => delegate.try_now(op),
            Self::Offload(..) => None,
        }
    }

    #[inline(always)]
    fn enqueue(&self, op: Op) -> Result<(), Op> {
        match self {
            Self::Delegate(delegate) => delegate.enqueue(op),
            Self::Offload(offload, futex) => offload.enqueue(op, *futex),
        }
    }

    fn poll(&self) -> usize {
        match self {
            Self::Delegate(delegate) => delegate.poll(),
            Self::Offload(..) => 0,
        }
    }

    fn is_quiet(&self) -> bool {
        match self {
            Self::Delegate(delegate) => delegate.is_quiet(),
            Self::Offload(..) => true,
        }
    }

    fn has_gathered(&self) -> bool {
        match self {
            Self::Delegate(delegate) => delegate.has_gathered(),
            Self::Offload(..) => false,
        }
    }
}

impl<E: Endpoint> fmt::Debug for Engine<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Engine({} executors, {:?})", self.executors.len(), self.completions)
    }
}

impl<E: Endpoint> fmt::Debug for Executor<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Delegate(delegate) => delegate.fmt(f),
            Self::Offload(offload, _) => offload.fmt(f),
        }
    }
}

#[cfg(all(test, not(tsumugi_loom)))]
mod tests;

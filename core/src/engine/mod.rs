//! From a submit to a completion: who posts, who polls, who waits.
//!
//! ```text
//!  caller                                             device
//!  submit(op, buf) ── Done: it ended inside the call
//!     │ take a tag, fill its slot
//!     ▼
//!  executor ── gather ── doorbell ─────────────────►  endpoint
//!     │ Delegate: whoever comes works the endpoint       │
//!     │ Offload: its owner does                          │
//!     ▼                                                  ▼
//!  Pending(ticket)  ◄── callback · wake · flag ◄──── completer (poll)
//! ```
//!
//! | | uncontended | contended | who polls |
//! |---|---|---|---|
//! | [`Delegate`] | two atomics | one leaves its work to the other | whoever has nothing else to do |
//! | [`Offload`] | a push | a push | the owner |
//!
//! Memory that can be loaded and stored needs neither: that is
//! [`execute`](crate::backend::execute).
//!
//! Batches go out when [`BATCH_MAX`] operations have gathered, when somebody
//! [`poll`](Engine::poll)s (which idle workers do), and at every
//! [`flush`](Engine::flush).

mod work;
mod port;
mod delegate;
mod offload;
mod room;

pub use delegate::Delegate;
pub use offload::{Idle, Offload, Owner};
pub use port::{BATCH_MAX, Port, PortCounts};
pub use room::Room;
pub use work::{Call, Work};

use crate::backend::Endpoint;
use crate::completion::{Busy, Callback, Completions, Outcome, Status, Ticket, Why};
use crate::mem::AddrError;
use crate::op::Op;
use crate::stats::Counter;
use crate::tag::Tag;
use crate::wait::{Futex, Wait};
use core::fmt;

/// Who works an endpoint.
#[expect(clippy::large_enum_variant, reason = "a few a rank, and a box would be a miss an op")]
pub enum Executor<'t, E: Endpoint> {
    /// Whoever comes.
    Delegate(Delegate<'t, E>),
    /// A thread of its own.
    Offload(Offload<'t>, &'t dyn Futex),
}

/// What a caller does when a submit answers [`Busy`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Retry {
    /// Tries again at once. For callers that poll themselves.
    AtOnce,
    /// Lets other threads run first.
    #[default]
    Yield,
    /// Sleeps until something has ended.
    Room,
}

/// Executors, and the operations in flight on them.
pub struct Engine<'t, E: Endpoint> {
    completions: Completions<'t>,
    executors: &'t [Executor<'t, E>],
    room: Room,
}

impl<'t, E: Endpoint> Engine<'t, E> {
    /// An engine whose ports tell `completions`.
    ///
    /// # Panics
    ///
    /// If there is no executor.
    pub fn new(completions: Completions<'t>, executors: &'t [Executor<'t, E>]) -> Self {
        assert!(!executors.is_empty(), "an engine without an executor");
        Self { completions, executors, room: Room::new() }
    }

    /// Begins an operation that owns `buf` until it ends. `hint` is the
    /// worker's number: it chooses the executor and the tags. Never waits.
    ///
    /// # Errors
    ///
    /// [`Busy`]: nothing happened.
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

    /// The same, never carried out inside the call.
    ///
    /// # Errors
    ///
    /// [`Busy`]: nothing happened.
    #[inline]
    pub fn post<B: Send + 'static>(
        &self,
        hint: usize,
        op: Op,
        buf: B,
    ) -> Result<Ticket<'t, B>, Busy<B>> {
        self.post_by(op, hint, buf, |executor, op| executor.enqueue(op))
    }

    /// The same for a caller that will wait for it and has nothing to wait for
    /// before: it goes out at once, with what has gathered, and what has
    /// completed by then is taken; unless somebody else is at it.
    ///
    /// # Errors
    ///
    /// [`Busy`]: nothing happened.
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
                // SAFETY: the ring gave it back, so no device has it.
                let buf = unsafe { ticket.retract() };
                Err(Busy { op, buf, why: Why::RingFull })
            }
        }
    }

    /// Begins an operation that calls `callback` when it has ended: at once if
    /// it ended inside the call, else on whoever polls. Never waits.
    ///
    /// # Errors
    ///
    /// [`Busy`]: nothing happened, and the callback will not be called.
    #[inline]
    pub fn submit_callback(&self, hint: usize, op: Op, callback: Callback) -> Result<(), Busy<()>> {
        if let Some(result) = self.executor(hint).try_now(&op) {
            callback.call(result);
            return Ok(());
        }
        self.post_callback(hint, op, callback).map(drop)
    }

    /// The same, never carried out inside the call.
    ///
    /// # Errors
    ///
    /// [`Busy`]: nothing happened, and the callback will not be called.
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

    /// Carries an operation out and returns its result; the caller sleeps
    /// meanwhile, and somebody polls.
    ///
    /// # Errors
    ///
    /// [`AddrError`].
    pub fn run(
        &self,
        hint: usize,
        op: Op,
        retry: Retry,
        wait: &dyn Wait,
    ) -> Result<u64, AddrError> {
        self.run_by(retry, wait, || self.submit(hint, op, ()), |_| {})
    }

    /// The same for an operation that `begin` begins here; before the caller
    /// sleeps `watch` is called once, which may poll for a while.
    ///
    /// # Errors
    ///
    /// [`AddrError`].
    #[inline]
    pub fn run_by(
        &self,
        retry: Retry,
        wait: &dyn Wait,
        begin: impl Fn() -> Result<Status<'t, ()>, Busy<()>>,
        watch: impl Fn(&Ticket<'t>),
    ) -> Result<u64, AddrError> {
        loop {
            match begin() {
                Ok(Status::Done(outcome)) => return outcome.result,
                Ok(Status::Pending(ticket)) => {
                    watch(&ticket);
                    let outcome = ticket.try_finish();
                    let result = outcome.unwrap_or_else(|ticket| ticket.wait(wait)).result;
                    self.room.made();
                    return result;
                }
                Err(_) => self.retry(retry, wait),
            }
        }
    }

    /// What `retry` says, after a [`Busy`].
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

    /// Has `call` made by whoever works the executor that `hint` chooses, in
    /// turn with its operations: by its own thread, where it has one. Never
    /// waits.
    ///
    /// # Errors
    ///
    /// The call: the ring is full.
    pub fn call(&self, hint: usize, call: Call) -> Result<(), Call> {
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

    /// Posts what has gathered now: for a caller that goes on computing.
    pub fn flush(&self) {
        for executor in self.executors {
            if let Executor::Delegate(delegate) = executor {
                delegate.flush();
            }
        }
    }

    /// Whether somebody should [`poll`](Self::poll).
    pub fn needs_poll(&self) -> bool {
        self.executors.iter().any(|executor| !executor.is_quiet())
    }

    /// Whether something waits to be posted: for a caller that looks after
    /// what is in flight in another way.
    pub fn has_gathered(&self) -> bool {
        self.executors.iter().any(Executor::has_gathered)
    }

    /// The operations in flight.
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

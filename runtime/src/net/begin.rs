//! How callers begin operations on ranks of other nodes, and wait for their results.

use super::layer::NetLayer;
use crate::engine_call::hint;
use crate::lasting::{Lasting, Stays};
use tsumugi_core::completion::{Busy, Status, Why};
use tsumugi_core::completion::{Callback, OnEnd, Ticket};
use tsumugi_core::engine::Retry;
use tsumugi_core::mem::AddrError;
use tsumugi_core::op::Op;
use tsumugi_core::stats::Counter;
use tsumugi_core::sync::{AtomicBool, Ordering};
use tsumugi_core::wait::{Reason, Wait, Waker};
use tsumugi_ult::Here;

/// Marks that one caller polls for the end of an operation. The mark ends when this
/// is dropped, also when a callback panics and when the caller is cut off.
struct Looking<'f>(&'f AtomicBool);

impl Drop for Looking<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// Sleeps as [`Here`] does, after the operations that have begun were flushed.
struct Hurried<'f>(&'f NetLayer);

impl NetLayer {
    /// Carries out an operation on a rank of another node. The caller polls for its
    /// end for a while, and then sleeps. Blocking.
    pub fn run(&self, op: &Op) -> Result<u64, AddrError> {
        // SAFETY: `leave` is called only if the holder of the ticket never goes on.
        self.run_by(&Lasting::new(*op), &Hurried(self), |ticket| unsafe { ticket.leave() })
    }

    /// Does the same for an operation that may outlive its caller.
    pub(crate) fn run_lasting(&self, lasting: &Lasting) -> Result<u64, AddrError> {
        self.run_by(lasting, &Stays(Hurried(self)), |_| ())
    }

    /// Begins an operation and waits for it. A caller that is cut off runs `leave`.
    fn run_by(
        &self,
        lasting: &Lasting,
        wait: &dyn Wait,
        leave: impl Fn(&Ticket<'static>),
    ) -> Result<u64, AddrError> {
        loop {
            let begun = match lasting.under_way() {
                Some(ticket) => Ok(ticket),
                None => self.begin(&lasting.op(), |ticket| lasting.begun(ticket)),
            };
            let Ok(ticket) = begun else {
                self.engine.retry(Retry::Room, wait);
                continue;
            };
            lasting.begun(&ticket);
            self.look_for(|| ticket.is_done(), || leave(&ticket));
            if let Some(result) = lasting.ended(self.engine.wait(ticket, wait)) {
                return result;
            }
        }
    }

    /// Begins an operation for which its caller waits: at once, if no other ULT is
    /// ready that could begin operations for the same doorbell. `begun` is called
    /// before anything else runs.
    fn begin(
        &self,
        op: &Op,
        begun: impl Fn(&Ticket<'static>),
    ) -> Result<Ticket<'static>, Busy<()>> {
        if self.shared().rounds == 0 || !tsumugi_ult::is_alone() {
            return self.engine.post(hint(), *op, ());
        }
        self.count_poll();
        let before = self.begin_turn();
        let posted = self.engine.post_now(hint(), *op, ());
        let has_ended = posted.as_ref().is_ok_and(|ticket| {
            begun(ticket);
            ticket.is_done()
        });
        self.end_turn(before, has_ended);
        posted
    }

    /// Polls until `has_ended`, at most for as many rounds as an idle worker does;
    /// returns at once if another caller polls already. ULTs that are ready run
    /// between the rounds, so operations that many of them begin share a doorbell. A
    /// caller that is cut off runs `leave`, and another caller may poll.
    pub(super) fn look_for(&self, has_ended: impl Fn() -> bool, leave: impl Fn()) {
        let shared = self.shared();
        // Relaxed: two callers that poll do no harm.
        if has_ended() || shared.rounds == 0 || shared.is_looked_for.swap(true, Ordering::Relaxed) {
            return;
        }
        let _looking = Looking(&shared.is_looked_for);
        let is_ult = tsumugi_ult::id().is_some();
        let mut leave = || {
            drop(Looking(&shared.is_looked_for));
            leave();
        };
        for _ in 0..shared.rounds {
            if is_ult {
                // SAFETY: `leave` takes no lock.
                unsafe { Here.yield_or_leave(&mut leave) };
            }
            if has_ended() {
                break;
            }
            self.poll();
        }
    }

    /// Begins an operation. Never waits.
    pub fn submit<B: Send + 'static>(&self, op: &Op, buf: B) -> Result<Status<'_, B>, Busy<B>> {
        let begun = self.engine.submit(hint(), *op, buf);
        self.hurry();
        begun
    }

    /// Begins an operation; the thread that polls calls `done`, once. Never waits.
    ///
    /// # Errors
    ///
    /// [`Busy`]: there is no room now, and `done` is not called.
    pub fn post(&self, op: &Op, done: Callback) -> Result<(), Busy<()>> {
        self.engine.post_callback(hint(), *op, done).map(drop)?;
        self.hurry();
        Ok(())
    }

    /// Begins an operation; the thread that polls calls `done`, which lies in the
    /// operation's slot. Never waits.
    ///
    /// # Errors
    ///
    /// [`Busy`], with `done`: there is no room now.
    pub fn post_owned<C: OnEnd>(&self, op: &Op, done: C) -> Result<(), Busy<C>> {
        self.engine.submit_owned(hint(), *op, done)?;
        self.hurry();
        Ok(())
    }

    /// Does the same for a put of at most [`JOINED_BYTES`](super::JOINED_BYTES)
    /// bytes and an operation on a word of the same rank, which are one parcel: the
    /// word is changed after the bytes have landed, and not at all if the put fails.
    ///
    /// # Errors
    ///
    /// [`Busy`]: there is no room now, and `done` is not called.
    pub(crate) fn post_joined(&self, put: &Op, then: &Op, done: Callback) -> Result<(), Busy<()>> {
        let shared = self.shared();
        let Some(along) = shared.joined.keep(then) else {
            return Err(Busy { op: *put, buf: (), why: Why::RingFull });
        };
        let mut put = *put;
        put.along = along;
        let posted = self.post(&put, done);
        if posted.is_err() {
            shared.joined.take(along);
        }
        posted
    }

    /// Takes completions and what has come, for a caller that looks for the end of an
    /// operation. Never waits.
    pub fn look(&self) {
        self.hurry();
        self.poll();
    }

    /// Flushes operations that have begun, unless the caller is a ULT: then its
    /// worker does it.
    pub(super) fn hurry(&self) {
        if tsumugi_ult::id().is_none() {
            self.engine.flush();
        }
    }
}

// SAFETY: it sleeps by `Here`, which keeps the contract of `Wait`.
unsafe impl Wait for Hurried<'_> {
    unsafe fn sleep(&self, reason: Reason, commit: &mut dyn FnMut(Waker) -> bool) {
        self.0.hurry();
        // SAFETY: the caller's promise, which `Here` requires in the same words.
        unsafe { Here.sleep(reason, commit) };
    }

    fn yield_now(&self) {
        Here.yield_now();
    }

    unsafe fn sleep_or_leave(
        &self,
        reason: Reason,
        commit: &mut dyn FnMut(Waker) -> bool,
        leave: &mut dyn FnMut(),
    ) {
        self.0.hurry();
        // SAFETY: the caller's promise, as in `sleep`.
        unsafe { Here.sleep_or_leave(reason, commit, leave) };
    }

    unsafe fn yield_or_leave(&self, leave: &mut dyn FnMut()) {
        // SAFETY: the caller's promise, as in `sleep`.
        unsafe { Here.yield_or_leave(leave) };
    }

    fn count(&self, counter: Counter) {
        Here.count(counter);
    }
}

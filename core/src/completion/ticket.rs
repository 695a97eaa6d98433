//! The caller's end of an operation in flight.

use super::outcome::Outcome;
use super::slot::{Armed, CompletionSlot};
use super::table::Completions;
use super::waiter::SlotWaiter;
use crate::mutate;
use crate::tag::Tag;
use crate::wait::{Interrupted, Reason, Wait, WaitFor};
use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

/// An operation in flight, as its caller holds it. The ticket owns the buffer of
/// the operation and gives it back when the operation has ended.
///
/// If the ticket is dropped early, the operation goes on: buffer and tag stay in
/// the table until the device is done with them. If the ticket is forgotten
/// (`mem::forget`), they stay there for good.
#[must_use = "without its ticket the result of the operation is lost"]
pub struct Ticket<'t, B: Send + 'static = ()> {
    table: Completions<'t>,
    tag: Tag,
    buf: PhantomData<B>,
}

/// State of an operation after its submit.
#[derive(Debug)]
#[must_use = "wait for the pending operation, or drop its ticket on purpose"]
pub enum Status<'t, B: Send + 'static> {
    /// The operation ended inside the call.
    Done(Outcome<B>),
    /// The operation is in flight; the ticket reports its end.
    Pending(Ticket<'t, B>),
}

/// An operation that has not ended within its limit.
#[derive(Debug)]
pub struct Overdue<T> {
    /// The ticket of the operation, which is still in flight.
    pub ticket: T,
    /// Why the wait ended: the limit, or another cause.
    pub why: Interrupted,
}

impl<T> fmt::Display for Overdue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the operation is still in flight: {}", self.why)
    }
}

impl<T: fmt::Debug> core::error::Error for Overdue<T> {}

impl<'a> Completions<'a> {
    /// Begins an operation that owns `buf`, or gives `buf` back when no tag is
    /// free. The caller must post the operation with the ticket's
    /// [`tag`](Ticket::tag). `hint` is the worker's number. Lock-free.
    ///
    /// # Errors
    ///
    /// Returns the buffer: all tags are in flight.
    #[inline]
    pub fn try_begin<B: Send + 'static>(&self, hint: usize, buf: B) -> Result<Ticket<'a, B>, B> {
        match self.tags.try_take(hint) {
            Some(tag) => {
                self.slot(tag).begin(tag, buf);
                Ok(Ticket::new(*self, tag))
            }
            None => Err(buf),
        }
    }
}

impl<'t, B: Send + 'static> Ticket<'t, B> {
    pub(super) fn new(table: Completions<'t>, tag: Tag) -> Self {
        Self { table, tag, buf: PhantomData }
    }

    /// Returns the tag with which the caller must post the operation.
    #[inline(always)]
    pub const fn tag(&self) -> Tag {
        self.tag
    }

    /// Returns whether the operation has ended.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.slot().is_done()
    }

    /// Returns the outcome if the operation has ended, otherwise the ticket.
    /// Lock-free, never waits.
    ///
    /// # Errors
    ///
    /// The ticket: the operation is still in flight.
    #[inline]
    pub fn try_finish(self) -> Result<Outcome<B>, Self> {
        if self.is_done() { Ok(self.finish()) } else { Err(self) }
    }

    /// Sleeps until the operation has ended. Another thread must poll.
    pub fn wait(self, wait: &dyn Wait) -> Outcome<B> {
        let reason = self.reason();
        self.wait_because(wait, reason)
    }

    /// Does the same for an operation that is a part of something else, which `reason` names in
    /// reports.
    pub fn wait_because(self, wait: &dyn Wait, reason: Reason) -> Outcome<B> {
        while !self.is_done() {
            // SAFETY: an armed slot holds the waker, and the thread that ends the
            // operation uses it. A thread that is cut off in its sleep calls
            // `leave` and does not use the ticket again.
            unsafe {
                let commit = &mut |waker| {
                    // Copied out of the caller's frame, because the frame may be
                    // gone as soon as another thread can find the waker.
                    let (slot, tag) = (self.slot(), self.tag);
                    slot.arm(tag, SlotWaiter::Sleeper(waker)) == Armed::Yes
                };
                wait.sleep_or_leave(reason, commit, &mut || self.leave());
            }
            if !self.is_done() {
                // Claimed and not done yet: another thread needs a few
                // instructions more, and perhaps this processor.
                // SAFETY: as for the sleep above.
                unsafe { wait.yield_or_leave(&mut || self.leave()) };
            }
        }
        self.finish()
    }

    /// Sleeps until the operation has ended, for `limit` at most. Another thread
    /// must poll.
    ///
    /// # Errors
    ///
    /// [`Overdue`] if the wait ended before the operation did:
    /// [`why`](Overdue::why) is [`Interrupted::TimedOut`] after `limit`, or
    /// [`Interrupted::Cancelled`] if the caller was cancelled. The operation goes on; the
    /// caller may wait for the returned ticket again, or drop it.
    pub fn wait_timeout(
        self,
        wait: &dyn WaitFor,
        limit: Duration,
    ) -> Result<Outcome<B>, Overdue<Self>> {
        while !self.is_done() {
            // SAFETY: as in `wait`; `disarm` drops the waker that it takes back.
            let slept = unsafe {
                wait.sleep_for_or_leave(
                    self.reason(),
                    limit,
                    &mut |waker| {
                        // Copied out of the caller's frame, as in `wait`.
                        let (slot, tag) = (self.slot(), self.tag);
                        slot.arm(tag, SlotWaiter::Sleeper(waker)) == Armed::Yes
                    },
                    &mut || self.slot().disarm(self.tag),
                    &mut || self.leave(),
                )
            };
            match slept {
                Err(why) if !self.is_done() => return Err(Overdue { ticket: self, why }),
                // Claimed and perhaps not done yet. SAFETY: as in `wait`.
                _ if !self.is_done() => unsafe { wait.yield_or_leave(&mut || self.leave()) },
                _ => {}
            }
        }
        Ok(self.finish())
    }

    /// Gives the buffer of an operation back that was never posted: there was a
    /// tag, but no place in the queue.
    ///
    /// # Panics
    ///
    /// If the operation was completed all the same.
    ///
    /// # Safety
    ///
    /// The operation with this tag was not and will not be given to a device.
    pub unsafe fn retract(self) -> B {
        let ticket = ManuallyDrop::new(self);
        ticket.slot().retract(ticket.tag);
        // SAFETY: the slot is live and the operation was never posted, so no
        // completion claims the slot: it is the ticket's.
        let buf = unsafe { ticket.slot().take_buffer::<B>() };
        ticket.table.free(ticket.tag);
        buf
    }

    /// Does what dropping the ticket does, for a thread that holds the ticket and
    /// will never run again.
    ///
    /// # Safety
    ///
    /// The caller calls nothing on the ticket afterwards, and does not drop it.
    pub unsafe fn leave(&self) {
        let slot = self.slot();
        if slot.abandon(self.tag) {
            slot.drop_buffer();
            self.table.free(self.tag);
        }
    }

    /// Takes the outcome; `is_done` has returned true.
    #[inline(always)]
    fn finish(self) -> Outcome<B> {
        let ticket = ManuallyDrop::new(self);
        // SAFETY: `ManuallyDrop`: this ticket is neither used again nor dropped.
        unsafe { ticket.take() }
    }

    /// # Safety
    ///
    /// `is_done` has returned true, and the caller calls nothing on this ticket
    /// afterwards.
    #[inline(always)]
    unsafe fn take(&self) -> Outcome<B> {
        let slot = self.slot();
        let result = slot.result();
        // SAFETY: DONE is set, so the slot is the ticket's; the caller of `take`
        // promises to call it once.
        let buf = unsafe { slot.take_buffer::<B>() };
        self.table.free(self.tag);
        Outcome { result, buf }
    }

    fn reason(&self) -> Reason {
        let (at, wanted) = (self.tag.index() as u64, self.tag.generation());
        Reason { what: "completion", at, wanted }
    }

    #[inline(always)]
    fn slot(&self) -> &'t CompletionSlot {
        self.table.slot(self.tag)
    }
}

/// Completes with the outcome. Panics if it is polled after that.
impl<B: Send + 'static> Future for Ticket<'_, B> {
    type Output = Outcome<B>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome<B>> {
        let this = self.get_mut();
        assert!(this.tag != Tag::NONE, "a ticket was polled after it had completed");
        let slot = this.slot();
        if !slot.is_done() {
            let waiting = SlotWaiter::Task(context.waker().clone());
            if slot.arm(this.tag, waiting) == Armed::Yes {
                return Poll::Pending;
            }
            if !slot.is_done() {
                // Claimed and not done yet: the task asks to be polled again.
                mutate!("completion_window_unwoken": context.waker().wake_by_ref() => ());
                return Poll::Pending;
            }
        }
        // SAFETY: DONE is set; `Tag::NONE` below keeps later calls, and the drop,
        // from the slot.
        let outcome = unsafe { this.take() };
        this.tag = Tag::NONE;
        Poll::Ready(outcome)
    }
}

impl<B: Send + 'static> Unpin for Ticket<'_, B> {}

impl<B: Send + 'static> Drop for Ticket<'_, B> {
    fn drop(&mut self) {
        if self.tag == Tag::NONE {
            return;
        }
        // SAFETY: the ticket is being dropped, so it is not used again.
        unsafe { self.leave() };
    }
}

impl<B: Send + 'static> fmt::Debug for Ticket<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ticket({:?})", self.tag)
    }
}

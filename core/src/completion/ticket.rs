//! The caller's end of an operation in flight.

use super::slot::{Armed, Slot, Waiting};
use super::{Completions, Outcome};
use crate::sync::mutant;
use crate::tag::Tag;
use crate::wait::{Interrupted, Reason, Wait, WaitFor};
use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

/// An operation that will end. It owns the buffer of the operation and gives
/// it back then.
///
/// Dropped early, the operation goes on: buffer and tag stay where they are
/// until the device is done with them. Forgotten (`mem::forget`), they stay
/// there for good.
#[must_use = "dropped, nobody learns how the operation ended"]
pub struct Ticket<'t, B: Send + 'static = ()> {
    table: Completions<'t>,
    tag: Tag,
    buf: PhantomData<B>,
}

/// An operation that has not ended within its limit.
#[derive(Debug)]
pub struct Overdue<T> {
    /// It goes on.
    pub ticket: T,
    /// Whose fault the end of the wait was.
    pub why: Interrupted,
}

impl<T> fmt::Display for Overdue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the operation has not ended: {}", self.why)
    }
}

impl<T: fmt::Debug> core::error::Error for Overdue<T> {}

impl<'t, B: Send + 'static> Ticket<'t, B> {
    pub(super) fn new(table: Completions<'t>, tag: Tag) -> Self {
        Self { table, tag, buf: PhantomData }
    }

    /// What the operation is to be posted with.
    #[inline(always)]
    pub const fn tag(&self) -> Tag {
        self.tag
    }

    /// Whether the operation has ended.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.slot().is_done()
    }

    /// The outcome if the operation has ended, otherwise the ticket again.
    /// Lock-free, never waits.
    ///
    /// # Errors
    ///
    /// The ticket.
    #[inline]
    pub fn try_finish(self) -> Result<Outcome<B>, Self> {
        if self.is_done() { Ok(self.finish()) } else { Err(self) }
    }

    /// Sleeps until the operation has ended. Somebody else must poll.
    pub fn wait(self, wait: &dyn Wait) -> Outcome<B> {
        while !self.is_done() {
            // SAFETY: the slot has the waker if it is armed, and whoever ends
            // the operation uses it. Who never goes on uses the ticket no more.
            unsafe {
                let commit = &mut |waker| {
                    // Copied out of the caller's frame, which may be gone as
                    // soon as the waker can be found.
                    let (slot, tag) = (self.slot(), self.tag);
                    slot.arm(tag, Waiting::Sleeper(waker)) == Armed::Yes
                };
                wait.sleep_or_leave(self.reason(), commit, &mut || self.leave());
            }
            if !self.is_done() {
                // Claimed and not done yet: a few instructions of another
                // thread, which may need this processor.
                // SAFETY: the same.
                unsafe { wait.yield_or_leave(&mut || self.leave()) };
            }
        }
        self.finish()
    }

    /// Sleeps until the operation has ended, for `limit` at most. Somebody else
    /// must poll.
    ///
    /// # Errors
    ///
    /// [`Overdue`]: the operation goes on, and so does the ticket, which may
    /// be waited for again or dropped.
    pub fn wait_for(
        self,
        wait: &dyn WaitFor,
        limit: Duration,
    ) -> Result<Outcome<B>, Overdue<Self>> {
        while !self.is_done() {
            // SAFETY: as in `wait`; a waker that is disarmed is dropped.
            let slept = unsafe {
                wait.sleep_for_or_leave(
                    self.reason(),
                    limit,
                    &mut |waker| {
                        // Copied out of the caller's frame, as in `wait`.
                        let (slot, tag) = (self.slot(), self.tag);
                        slot.arm(tag, Waiting::Sleeper(waker)) == Armed::Yes
                    },
                    &mut || self.slot().disarm(self.tag),
                    &mut || self.leave(),
                )
            };
            match slept {
                Err(why) if !self.is_done() => return Err(Overdue { ticket: self, why }),
                // Claimed and not done yet, if it is not. SAFETY: as in `wait`.
                _ if !self.is_done() => unsafe { wait.yield_or_leave(&mut || self.leave()) },
                _ => {}
            }
        }
        Ok(self.finish())
    }

    /// Ends the operation without its having begun and gives the buffer back:
    /// there was a tag, but no place in the queue.
    ///
    /// # Panics
    ///
    /// If it was completed all the same.
    ///
    /// # Safety
    ///
    /// No device has been or will be given the operation with this tag.
    pub unsafe fn retract(self) -> B {
        let ticket = ManuallyDrop::new(self);
        ticket.slot().retract(ticket.tag);
        // SAFETY: live and never posted, so the slot is the ticket's.
        let buf = unsafe { ticket.slot().take_buffer::<B>() };
        ticket.table.free(ticket.tag);
        buf
    }

    /// Does what dropping the ticket does, in the place of one who has it and
    /// never goes on.
    ///
    /// # Safety
    ///
    /// Nothing is called on the ticket from here on, and it is not dropped.
    pub unsafe fn leave(&self) {
        let slot = self.slot();
        if slot.abandon(self.tag) {
            slot.drop_buffer();
            self.table.free(self.tag);
        }
    }

    /// After `is_done`.
    #[inline(always)]
    fn finish(self) -> Outcome<B> {
        let ticket = ManuallyDrop::new(self);
        // SAFETY: `ManuallyDrop`: this ticket is not used again.
        unsafe { ticket.take() }
    }

    /// # Safety
    ///
    /// `is_done`, and nothing is called on this ticket afterwards.
    #[inline(always)]
    unsafe fn take(&self) -> Outcome<B> {
        let slot = self.slot();
        let result = slot.result();
        // SAFETY: done, so the slot is the ticket's; once, by the caller's.
        let buf = unsafe { slot.take_buffer::<B>() };
        self.table.free(self.tag);
        Outcome { result, buf }
    }

    fn reason(&self) -> Reason {
        let (at, wanted) = (self.tag.index() as u64, self.tag.generation());
        Reason { what: "completion", at, wanted }
    }

    #[inline(always)]
    fn slot(&self) -> &'t Slot {
        self.table.slot(self.tag)
    }
}

/// Completes with the outcome. Polled after that, it panics.
impl<B: Send + 'static> Future for Ticket<'_, B> {
    type Output = Outcome<B>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome<B>> {
        let this = self.get_mut();
        assert!(this.tag != Tag::NONE, "a ticket was polled after it had completed");
        let slot = this.slot();
        if !slot.is_done() {
            let waiting = Waiting::Task(context.waker().clone());
            if slot.arm(this.tag, waiting) == Armed::Yes {
                return Poll::Pending;
            }
            if !slot.is_done() {
                // Claimed and not done yet: the task comes again.
                if !mutant("completion_window_unwoken") {
                    context.waker().wake_by_ref();
                }
                return Poll::Pending;
            }
        }
        // SAFETY: done; the tag below keeps everybody from the slot.
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
        // SAFETY: it goes.
        unsafe { self.leave() };
    }
}

impl<B: Send + 'static> fmt::Debug for Ticket<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ticket({:?})", self.tag)
    }
}

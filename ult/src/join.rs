//! Waiting for the end of a ULT.
//!
//! A ULT's value, or the panic that ended it, waits in its descriptor until
//! [`JoinHandle::join`] takes it. Dropping the handle lets the ULT go on by
//! itself. Small closures and results (up to 40 bytes) lie in the descriptor,
//! so that neither spawn nor join allocates.
//!
//! # Joining a child that has not begun
//!
//! If the child is still the youngest of the worker's own queue, nobody has
//! anything better to do than the joiner: it takes the child back and runs it
//! in its own place, as a call on its own stack.
//!
//! ```text
//!   joiner's stack  │ main │ joiner │ join │ child │ grandchild │  ► free
//!   who runs         Lending  Lending         Lending  Running
//! ```
//!
//! - **Identity.** The child runs as itself: `id`, `unparker`, the park token,
//!   ULT-local values, cancellation and everything else that goes by the
//!   running ULT are the child's.
//! - **If it parks or yields**, the stack leaves the worker with all that is
//!   on it, and the innermost ULT is the one that sleeps, is woken and may go
//!   on on another worker. The others wait for it in any case: each has joined
//!   the next. They are [`State::Lending`](crate::State::Lending) meanwhile.
//! - **If it panics**, the panic is caught at the child's bottom, as always.
//! - **Stack.** A child runs there only if
//!   [`Config::inline_bytes`](crate::Config::inline_bytes) are left of the
//!   joiner's stack, and if it asked for no size of its own. So every ULT has
//!   at least so much.
//! - **A pinned joiner** lends nobody its stack, which has to stay.
//!
//! Where it may not run there, the joiner still runs it in its place, but on a
//! stack of the child's own, which it resumes itself: if the child ends, it
//! returns to the joiner, and no scheduler was asked. If the child leaves
//! before, it comes back to the joiner too, who then leaves in its turn, with
//! word of what the child left for ([`Follow`]); and so do all that run in
//! somebody's place, down to the worker, where everybody sleeps as if they had
//! never done so.
//!
//! Nothing of the kind is done where the worker itself has to see who runs:
//! for ULTs that keep their floating-point control words, and as long as
//! somebody watches or traces. Nor while an urgent ULT waits.
//!
//! Progress: `join` blocks.

use crate::body::Outcome;
use crate::limit::Limit;
use crate::park::{Here, ult};
use crate::sched::UltId;
use crate::sched::current;
use crate::sched::shared::Shared;
use crate::sched::worker::{Claim, Worker};
use crate::slab::Slot;
use crate::stack::Head;
use crate::task::{Follow, Joiner, Request, Task};
use core::fmt;
use core::marker::PhantomData;
use core::mem::{self, MaybeUninit};
use core::ptr::{self, NonNull};
use core::time::Duration;
use tsumugi_core::wait::{Interrupted, Reason, Wait};

/// Owns a ULT's result to be.
pub struct JoinHandle<T> {
    slot: Slot,
    result: PhantomData<T>,
}

// SAFETY: a handle is the right to take one `T`, or to drop it.
unsafe impl<T: Send> Send for JoinHandle<T> {}
// SAFETY: a shared handle only tells whether the ULT has ended.
unsafe impl<T: Send> Sync for JoinHandle<T> {}

/// Lets other ULTs, or threads, run.
#[inline(always)]
pub fn yield_now() {
    Here.yield_now();
}

/// Whether the caller is a ULT whose [`yield_now`] would come back at once:
/// no other one of its worker is ready. Every so often it says no, so that a
/// loop over it lets the worker look further.
pub fn is_alone() -> bool {
    // SAFETY: this thread's worker, not kept across a suspension.
    let worker = current::worker().map(|worker| unsafe { worker.as_ref() });
    worker.is_some_and(|worker| worker.current().is_some() && worker.is_alone())
}

impl<T> JoinHandle<T> {
    /// The handle of a ULT that was just filled.
    #[inline(always)]
    pub(crate) fn new(slot: Slot) -> Self {
        Self { slot, result: PhantomData }
    }

    /// Waits for the ULT's end. From a ULT, this one sleeps meanwhile; from
    /// any other thread, that thread does.
    ///
    /// # Errors
    ///
    /// The ULT's panic, or [`Cancelled`](crate::Cancelled).
    ///
    /// # Panics
    ///
    /// Inside of [`on_os_stack`](crate::on_os_stack) on a worker of the ULT's
    /// scheduler, if the ULT has not ended: the worker runs nothing meanwhile.
    // Where nothing is optimised, all that is inlined here takes pages of stack,
    // which a caller would have in each of its own calls, too.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn join(self) -> Outcome<T> {
        if let Some(worker) = current::worker() {
            // SAFETY: we have the handle, and nothing suspends before the
            // claim is used.
            match unsafe { worker.as_ref().claim(self.slot) } {
                // SAFETY: claimed; the joiner is this ULT.
                Some(Claim::Call(joiner)) => return unsafe { self.join_inline(worker, joiner) },
                // SAFETY: the same.
                Some(Claim::Switch(joiner, head)) => unsafe {
                    self.run_claimed(worker, joiner, head)
                },
                None => self.wait(),
            }
        } else {
            self.wait();
        }
        self.take()
    }

    /// Runs the ULT on its own stack, and if it leaves before its end, waits
    /// for it.
    ///
    /// # Safety
    ///
    /// It was claimed, for the ULT that runs, on this thread's worker.
    #[inline(always)]
    unsafe fn run_claimed(&self, worker: NonNull<Worker>, joiner: Slot, head: NonNull<Head>) {
        // SAFETY: the caller's.
        if let Some(left) = unsafe { worker.as_ref().run_claimed(joiner, self.slot, head) } {
            let node = Joiner::new();
            let follow = Follow { joiner, child: self.slot, node: &node, left };
            // SAFETY: we run as the joiner again, if only to say this.
            unsafe { joiner.as_ref().ask(Request::Follow(follow)) };
        }
    }

    /// Runs the ULT as a call.
    ///
    /// # Safety
    ///
    /// It was claimed, for the ULT that runs, on this thread's worker.
    #[inline(always)]
    unsafe fn join_inline(self, worker: NonNull<Worker>, joiner: Slot) -> Outcome<T> {
        let slot = self.slot;
        mem::forget(self);
        let mut outcome = MaybeUninit::<Outcome<T>>::uninit();
        // SAFETY: the caller's.
        unsafe {
            worker.as_ref().set_current(slot);
            slot.as_ref().run_on(joiner.as_ref(), outcome.as_mut_ptr().cast());
        }
        // Perhaps another one.
        let worker = current::worker();
        // SAFETY: the joiner runs on it, the child has ended, its handle goes.
        unsafe {
            let worker = worker.unwrap_unchecked();
            worker.as_ref().set_current(joiner);
            worker.as_ref().release(slot);
            outcome.assume_init()
        }
    }

    /// Waits until the ULT has ended.
    #[inline(always)]
    fn wait(&self) {
        // SAFETY: a handle keeps its task. Without a limit nothing interrupts.
        let _ = unsafe { wait_end(self.slot, Limit::NONE) };
    }

    /// As [`join`](Self::join), within a limit.
    ///
    /// # Errors
    ///
    /// The handle, if the ULT did not end in time, and why the wait ended.
    pub fn join_within(self, limit: impl Into<Limit>) -> Result<Outcome<T>, (Self, Interrupted)> {
        // SAFETY: a handle keeps its task.
        match unsafe { wait_end(self.slot, limit.into()) } {
            Ok(()) => Ok(self.take()),
            Err(why) => Err((self, why)),
        }
    }

    /// As [`join`](Self::join), for `limit` at most.
    ///
    /// # Errors
    ///
    /// The handle, if the ULT did not end in time.
    pub fn join_timeout(self, limit: Duration) -> Result<Outcome<T>, Self> {
        self.join_within(limit).map_err(|(this, _)| this)
    }

    /// Asks the ULT to give up. It goes on until it looks: its
    /// [`is_cancelled`] is true from now on, and a wait of it that is
    /// [`CANCELLABLE`](Limit::CANCELLABLE), present or to come, ends with
    /// [`Interrupted::Cancelled`]. Nothing else is interrupted.
    ///
    /// ```
    /// # use tsumugi_ult::{Config, Scheduler, StackArea};
    /// # let config = Config { main_stack_bytes: 256 << 10, ..Config::new(StackArea::map(1 << 20)?) };
    /// # Scheduler::new(config)?.run(|| {
    /// use tsumugi_ult::{Interrupted, Limit, sleep_within, spawn};
    ///
    /// let sleeper = spawn(|| sleep_within(Limit::CANCELLABLE));
    /// sleeper.cancel();
    /// assert_eq!(sleeper.join().unwrap(), Interrupted::Cancelled);
    /// # });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cancel(&self) {
        // SAFETY: a handle keeps its task, and that its home.
        let task = unsafe { self.slot.as_ref() };
        // SAFETY: as above.
        unsafe { &*task.home().cast::<Shared>() }.cancel(task);
    }

    /// The result of a ULT that has ended.
    #[inline(always)]
    fn take(self) -> Outcome<T> {
        // SAFETY: finished; the handle is used up; `T` is what it was made for.
        let outcome = unsafe { self.slot.as_ref().take_result() };
        // SAFETY: the ULT has ended and the handle goes.
        unsafe { Shared::release(self.slot) };
        mem::forget(self);
        outcome
    }

    /// Gives up the handle without letting the ULT go: whoever takes the slot
    /// must release it.
    pub(crate) fn into_slot(self) -> Slot {
        let slot = self.slot;
        mem::forget(self);
        slot
    }

    /// # Safety
    ///
    /// The slot comes from `into_slot` of a handle of the same type, and
    /// stands for that handle.
    pub(crate) unsafe fn from_slot(slot: Slot) -> Self {
        Self { slot, result: PhantomData }
    }

    /// Whether the ULT has ended, so that `join` would not wait.
    pub fn is_finished(&self) -> bool {
        // SAFETY: a handle keeps its task.
        unsafe { self.slot.as_ref() }.has_finished()
    }

    /// A `join` would not panic.
    pub(crate) fn assert_may_wait(&self) {
        if !self.is_finished() {
            // SAFETY: a handle keeps its task.
            assert_may_wait(unsafe { self.slot.as_ref() });
        }
    }

    /// The handle as one word, for whoever cannot keep the type.
    pub fn into_raw(self) -> NonNull<()> {
        self.into_slot().cast()
    }

    /// The handle that a word stands for.
    ///
    /// # Safety
    ///
    /// `raw` comes from `into_raw` of a handle of the same type, and this is
    /// the one handle made of it, or the only one that is not forgotten.
    pub unsafe fn from_raw(raw: NonNull<()>) -> Self {
        // SAFETY: the caller's.
        unsafe { Self::from_slot(raw.cast()) }
    }

    /// The ULT's number.
    pub fn id(&self) -> UltId {
        UltId::of(self.slot)
    }
}

impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        // SAFETY: a handle keeps its task.
        let task = unsafe { self.slot.as_ref() };
        if task.detach() {
            task.drop_result();
            // SAFETY: the ULT has ended and the handle goes.
            unsafe { Shared::release(self.slot) };
        }
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JoinHandle({})", self.id())
    }
}

/// Whether somebody asked the calling ULT to give up; false on other threads.
///
/// See [`JoinHandle::cancel`].
pub fn is_cancelled() -> bool {
    // SAFETY: the running ULT.
    ult().is_some_and(|slot| unsafe { slot.as_ref() }.is_cancelled())
}

/// Lets others run, this ULT first, if it is ready and among the 64 youngest
/// of the caller's worker; else as [`yield_now`]. Whether it was.
///
/// ```
/// # use tsumugi_ult::{Config, Scheduler, StackArea};
/// # let config = Config { main_stack_bytes: 256 << 10, ..Config::new(StackArea::map(1 << 20)?) };
/// # Scheduler::new(Config { workers: 1, ..config })?.run(|| {
/// let child = tsumugi_ult::spawn(|| 1);
/// assert!(tsumugi_ult::yield_to(&child), "one worker, and nobody stole it");
/// # });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn yield_to<T>(handle: &JoinHandle<T>) -> bool {
    // SAFETY: this thread's worker, not kept across the suspension.
    let found = current::worker()
        .is_some_and(|worker| unsafe { worker.as_ref() }.bring_forward(handle.slot));
    Here.yield_now();
    found
}

/// The caller may wait for the end of this ULT, however long that takes.
#[inline(always)]
pub(crate) fn assert_may_wait(task: &Task) {
    if let Some(worker) = current::worker() {
        // SAFETY: this thread's worker, not kept.
        let worker = unsafe { worker.as_ref() };
        let is_own = worker.current().is_none() && ptr::eq(worker.home(), task.home().cast());
        assert!(!is_own, "join waits for a ULT: {ON_OS_STACK}");
    }
}

/// Why a worker on its own stack waits for none of its scheduler's ULTs.
pub(crate) const ON_OS_STACK: &str =
    "inside of on_os_stack a worker runs no ULT, and would wait for ever";

/// Waits until the ULT has ended.
///
/// # Safety
///
/// The caller keeps the task, and nobody else waits for its end.
#[inline(always)]
pub(crate) unsafe fn wait_end(slot: Slot, limit: Limit) -> Result<(), Interrupted> {
    // SAFETY: the caller's.
    let task = unsafe { slot.as_ref() };
    if task.has_finished() {
        return Ok(());
    }
    if limit.deadline().is_none() {
        assert_may_wait(task);
    }
    let joiner = Joiner::new();
    let joiner = &raw const joiner;
    let reason = Reason { what: "join", at: task.slot().into(), wanted: 0 };
    let mut publish = |waker| {
        let (task, joiner) = (slot, joiner);
        // SAFETY: the joiner stays until we are woken, or have withdrawn it.
        // From here on nothing of the sleeper's is touched.
        unsafe { task.as_ref().join(joiner, waker) }
    };
    // SAFETY: the ULT's end takes the waker out, unless we have.
    unsafe { Here.sleep_within(reason, limit, &mut publish, &mut || task.unjoin(joiner)) }
}

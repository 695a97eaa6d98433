//! Waiting for the end of a ULT.
//!
//! The value of a ULT, or the panic that ended it, stays in the ULT's descriptor
//! until [`JoinHandle::join`] takes it. A ULT runs on when its handle is dropped.
//! Small closures and results (up to 40 bytes) lie in the descriptor, so that neither
//! spawn nor join allocates.
//!
//! # Joining a child that has not begun
//!
//! If the child is still the youngest of the worker's own queue, no worker has begun
//! it, and the joiner has nothing better to do. The joiner takes the child back and
//! runs it in its own place, as a call on its own stack.
//!
//! ```text
//!   joiner's stack  │ main │ joiner │ join │ child │ grandchild │  ► free
//!   state            Lending  Lending         Lending  Running
//! ```
//!
//! - **Identity.** The child runs as itself: `id`, `unparker`, the park token,
//!   ULT-local values, cancellation and everything else that depends on the running
//!   ULT are the child's.
//! - **If the child parks or yields**, the stack leaves the worker with all that is
//!   on it. The innermost ULT is the one that sleeps, is woken and may resume on
//!   another worker. The other ULTs on the stack wait for it in any case, because
//!   each has joined the next. They are [`UltState::Lending`](crate::UltState::Lending)
//!   meanwhile.
//! - **If the child panics**, the panic is caught at the child's bottom frame, as
//!   always.
//! - **Stack.** A child runs there only if
//!   [`Config::inline_bytes`](crate::Config::inline_bytes) are left of the joiner's
//!   stack, and if it requested no stack size of its own. So every ULT has at least
//!   that many bytes.
//! - **A pinned joiner** does not lend its stack, which must stay on its worker.
//!
//! If the child may not run on the joiner's stack, the joiner still runs it in its
//! place, but on a stack of the child's own, which the joiner resumes directly. If
//! the child ends, it returns to the joiner, and the scheduler is not involved. If
//! the child leaves the worker before its end, it returns to the joiner too. The
//! joiner then leaves in its turn, and hands on why the child left ([`Follow`]). All
//! ULTs that run in another ULT's place do the same, down to the worker. After that,
//! all of them sleep as if none had run in another's place.
//!
//! The worker itself must see each switch of a ULT that keeps its floating-point
//! control words, and each switch while a watchdog or a trace is on. In these cases,
//! and while an urgent ULT waits, a joiner does not run the child.
//!
//! Progress: `join` blocks.

use crate::body::UltOutcome;
use crate::limit::Limit;
use crate::park::{Here, ult};
use crate::sched::UltId;
use crate::sched::current;
use crate::sched::shared::SchedulerShared;
use crate::sched::worker::{ClaimMode, Worker};
use crate::slab::TaskSlot;
use crate::stack::StackHead;
use crate::task::{Follow, Joiner, SuspendRequest, Task};
use core::fmt;
use core::marker::PhantomData;
use core::mem::{self, MaybeUninit};
use core::ptr::{self, NonNull};
use core::time::Duration;
use tsumugi_core::wait::{Interrupted, Reason, Wait};

/// Owns the future result of a ULT.
pub struct JoinHandle<T> {
    slot: TaskSlot,
    result: PhantomData<T>,
}

// SAFETY: a handle is the right to take one `T`, or to drop it, and `T` is `Send`.
unsafe impl<T: Send> Send for JoinHandle<T> {}
// SAFETY: a shared handle only shows whether the ULT has ended.
unsafe impl<T: Send> Sync for JoinHandle<T> {}

/// Lets other ULTs, or OS threads, run.
#[inline(always)]
pub fn yield_now() {
    Here.yield_now();
}

/// Whether the caller is a ULT and its [`yield_now`] would return at once, because no
/// other ULT of its worker is ready. Every so often it returns false, so that a loop
/// over it lets the worker look further.
pub fn is_alone() -> bool {
    // SAFETY: this thread's worker, not kept across a suspension.
    let worker = current::worker().map(|worker| unsafe { worker.as_ref() });
    worker.is_some_and(|worker| worker.current().is_some() && worker.is_alone())
}

impl<T> JoinHandle<T> {
    /// The handle of a ULT that was just filled.
    #[inline(always)]
    pub(crate) fn new(slot: TaskSlot) -> Self {
        Self { slot, result: PhantomData }
    }

    /// Waits for the ULT's end. If the caller is a ULT, that ULT sleeps meanwhile;
    /// else the calling thread sleeps.
    ///
    /// # Errors
    ///
    /// [`JoinError`](crate::JoinError), if the ULT has panicked, or if its scheduler ended first.
    ///
    /// # Panics
    ///
    /// Inside of [`on_os_stack`](crate::on_os_stack) on a worker of the ULT's
    /// scheduler, if the ULT has not ended, because the worker runs nothing
    /// meanwhile.
    // In builds without optimisation, all that is inlined here takes pages of stack,
    // which a caller would need in each of its own calls, too.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn join(self) -> UltOutcome<T> {
        if let Some(worker) = current::worker() {
            // SAFETY: this thread's worker; we have the handle, and nothing suspends
            // before the claim is used.
            match unsafe { worker.as_ref().claim(self.slot) } {
                Some(ClaimMode::Call(joiner)) => {
                    // SAFETY: the ULT was claimed, and the joiner is the running ULT.
                    return unsafe { self.join_inline(worker, joiner) };
                }
                // SAFETY: as above.
                Some(ClaimMode::Switch(joiner, head)) => unsafe {
                    self.run_claimed(worker, joiner, head)
                },
                None => self.wait(),
            }
        } else {
            self.wait();
        }
        self.take()
    }

    /// Runs the ULT on its own stack; if it leaves the worker before its end, waits
    /// for it.
    ///
    /// # Safety
    ///
    /// It was claimed for the running ULT, on this thread's worker.
    #[inline(always)]
    unsafe fn run_claimed(
        &self,
        worker: NonNull<Worker>,
        joiner: TaskSlot,
        head: NonNull<StackHead>,
    ) {
        // SAFETY: the caller has claimed the ULT on this worker.
        if let Some(left) = unsafe { worker.as_ref().run_claimed(joiner, self.slot, head) } {
            let node = Joiner::new();
            let follow = Follow { joiner, child: self.slot, node: &node, left };
            // SAFETY: we run as the joiner again, if only to leave with this request.
            unsafe { joiner.as_ref().ask(SuspendRequest::Follow(follow)) };
        }
    }

    /// Runs the ULT as a call on the joiner's stack.
    ///
    /// # Safety
    ///
    /// It was claimed for the running ULT, on this thread's worker.
    #[inline(always)]
    unsafe fn join_inline(self, worker: NonNull<Worker>, joiner: TaskSlot) -> UltOutcome<T> {
        let slot = self.slot;
        mem::forget(self);
        let mut outcome = MaybeUninit::<UltOutcome<T>>::uninit();
        // SAFETY: the caller has claimed the ULT; the place has the outcome's type.
        unsafe {
            worker.as_ref().set_current(slot);
            slot.as_ref().run_on(joiner.as_ref(), outcome.as_mut_ptr().cast());
        }
        // The joiner may be on another worker now.
        let worker = current::worker();
        // SAFETY: the joiner runs on this worker, the child has ended, and its handle
        // is used up; the child has written its outcome.
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
        // SAFETY: a handle keeps its task. Without a limit nothing interrupts the
        // wait.
        let _ = unsafe { wait_end(self.slot, Limit::NONE) };
    }

    /// As [`join`](Self::join), within a limit.
    ///
    /// # Errors
    ///
    /// The handle, if the ULT did not end in time: with [`Interrupted::TimedOut`] at the
    /// limit's point in time, with [`Interrupted::Cancelled`] at a cancellation of the caller.
    pub fn join_within(
        self,
        limit: impl Into<Limit>,
    ) -> Result<UltOutcome<T>, (Self, Interrupted)> {
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
    pub fn join_timeout(self, limit: Duration) -> Result<UltOutcome<T>, Self> {
        self.join_within(limit).map_err(|(this, _)| this)
    }

    /// Requests that the ULT gives up. The ULT runs on until it checks: its
    /// [`is_cancelled`] is true from now on, and a wait of it that is
    /// [`CANCELLABLE`](Limit::CANCELLABLE), present or to come, ends with
    /// [`Interrupted::Cancelled`]. No other wait is interrupted.
    ///
    /// ```
    /// # use tsumugi_ult::{Config, Scheduler, StackArea};
    /// # let config = Config::new(StackArea::map(1 << 20)?).main_stack_bytes(256 << 10);
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
        // SAFETY: a handle keeps its task, and the task keeps its scheduler's shared
        // part.
        let task = unsafe { self.slot.as_ref() };
        // SAFETY: as above.
        unsafe { &*task.home().cast::<SchedulerShared>() }.cancel(task);
    }

    /// Takes the result of a ULT that has ended.
    #[inline(always)]
    pub(crate) fn take(self) -> UltOutcome<T> {
        // SAFETY: the ULT has ended, the handle is used up, and `T` is the type it
        // was made for.
        let outcome = unsafe { self.slot.as_ref().take_result() };
        // SAFETY: the ULT has ended and the handle is used up.
        unsafe { SchedulerShared::release(self.slot) };
        mem::forget(self);
        outcome
    }

    /// Gives up the handle without letting the ULT go: the caller must later release
    /// the slot.
    pub(crate) fn into_slot(self) -> TaskSlot {
        let slot = self.slot;
        mem::forget(self);
        slot
    }

    /// Makes a handle of a slot again.
    ///
    /// # Safety
    ///
    /// The slot comes from `into_slot` of a handle of the same type, and
    /// stands for that handle.
    pub(crate) unsafe fn from_slot(slot: TaskSlot) -> Self {
        Self { slot, result: PhantomData }
    }

    /// Whether the ULT has ended, so that `join` would not wait.
    pub fn is_finished(&self) -> bool {
        // SAFETY: a handle keeps its task.
        unsafe { self.slot.as_ref() }.has_finished()
    }

    /// Asserts that a `join` would not panic.
    pub(crate) fn assert_may_wait(&self) {
        if !self.is_finished() {
            // SAFETY: a handle keeps its task.
            assert_may_wait(unsafe { self.slot.as_ref() });
        }
    }

    /// Turns the handle into one word, for a caller that cannot keep the type.
    pub fn into_raw(self) -> NonNull<()> {
        self.into_slot().cast()
    }

    /// Turns a word back into a handle.
    ///
    /// # Safety
    ///
    /// `raw` comes from `into_raw` of a handle of the same type. This is the only
    /// handle made of it, or the only one that is not forgotten.
    pub unsafe fn from_raw(raw: NonNull<()>) -> Self {
        // SAFETY: by the caller's contract the word stands for a handle of this type.
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
            // SAFETY: the ULT has ended and the handle is used up.
            unsafe { SchedulerShared::release(self.slot) };
        }
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JoinHandle({})", self.id())
    }
}

/// Whether [`JoinHandle::cancel`] was called for the calling ULT; false on other
/// threads.
///
/// The ULT should give up then.
pub fn is_cancelled() -> bool {
    // SAFETY: the running ULT is alive.
    ult().is_some_and(|slot| unsafe { slot.as_ref() }.is_cancelled())
}

/// Lets other ULTs run. The given ULT runs first if it is ready and among the 64
/// youngest of the caller's worker; else this is [`yield_now`]. Returns whether it
/// was.
///
/// ```
/// # use tsumugi_ult::{Config, Scheduler, StackArea};
/// # let config = Config::new(StackArea::map(1 << 20)?).main_stack_bytes(256 << 10);
/// # Scheduler::new(config.workers(1))?.run(|| {
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

/// Asserts that the caller may wait for the end of this ULT, however long that takes.
#[inline(always)]
pub(crate) fn assert_may_wait(task: &Task) {
    if let Some(worker) = current::worker() {
        // SAFETY: this thread's worker, used only here.
        let worker = unsafe { worker.as_ref() };
        let is_own = worker.current().is_none() && ptr::eq(worker.home(), task.home().cast());
        assert!(!is_own, "join: {ON_OS_STACK}");
    }
}

/// The reason why a worker on its own stack must not wait for its scheduler's ULTs.
pub(crate) const ON_OS_STACK: &str =
    "inside on_os_stack the worker runs no ULTs, so the wait would never end";

/// Waits until the ULT has ended.
///
/// # Safety
///
/// The caller keeps the task, and no other thread waits for its end.
#[inline(always)]
pub(crate) unsafe fn wait_end(slot: TaskSlot, limit: Limit) -> Result<(), Interrupted> {
    // SAFETY: the caller keeps the task.
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
        // SAFETY: the joiner stays until this ULT or thread is woken, or has
        // withdrawn it. From here on no memory of the sleeper is touched.
        unsafe { task.as_ref().join(joiner, waker) }
    };
    // SAFETY: the ULT's end takes the waker out, unless `unjoin` has taken the joiner
    // back.
    unsafe { Here.sleep_within(reason, limit, &mut publish, &mut || task.unjoin(joiner)) }
}

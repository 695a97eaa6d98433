//! Running a ULT: its switches, and the call of its closure.

use super::descriptor::{NO_STACK, Task};
use super::join_word::DETACHED;
use super::state::{LENDING, NEW, RUNNABLE, UltState};
use crate::local::Locals;
use crate::stack::{Left, StackHead};
use core::hint::cold_path;
use core::ptr::NonNull;
use tsumugi_core::sync::Ordering;

impl Task {
    /// Runs this unstarted ULT as a call on the stack of `joiner`, which waits for it
    /// meanwhile, and writes its outcome to `place`. Afterwards the joiner may be on
    /// another worker.
    ///
    /// # Safety
    ///
    /// Both tasks belong to the caller, which runs on `joiner`'s stack as this ULT;
    /// `place` has the outcome's type.
    #[inline(always)]
    pub(crate) unsafe fn run_on(&self, joiner: &Self, place: *mut ()) {
        self.head.store(joiner.head.load(Ordering::Relaxed), Ordering::Relaxed);
        joiner.step(RUNNABLE, LENDING);
        self.step(NEW, RUNNABLE);
        // SAFETY: a task that is new was filled.
        let body = self.body.with(|body| unsafe { (*body).unwrap_unchecked() });
        // SAFETY: the room holds the closure that `body` was made for, and `place`
        // has the type of its outcome.
        unsafe { (body.call)(&self.room, place) };
        self.end_locals();
        self.head.store(NO_STACK, Ordering::Relaxed);
        joiner.step(LENDING, RUNNABLE);
    }

    /// Switches to the ULT `next`, which may be this one: then this returns at once.
    /// `None`: leaves the worker. Returns when this ULT is resumed.
    ///
    /// # Safety
    ///
    /// The caller runs as this ULT, and has the right to the next one, which is on a
    /// stack.
    // Inlined, as all functions that suspend: a processor predicts the target of a
    // return by the last call, and after a switch that call was made by another ULT.
    #[inline(always)]
    pub(crate) unsafe fn leave(&self, next: Option<NonNull<Self>>, left: Left) {
        // SAFETY: the caller has the right to the next ULT.
        let Some(next) = next.map(|next| unsafe { next.as_ref() }) else {
            cold_path();
            // SAFETY: the caller runs as this ULT.
            return unsafe { self.suspend(left) };
        };
        // SAFETY: both ULTs are on stacks.
        let head = |task: &Self| unsafe { &*task.head_at() };
        // SAFETY: the caller runs as this ULT, and has the next one.
        unsafe { StackHead::pass(&self.saved, &next.saved, || [head(self), head(next)]) };
    }

    /// Leaves the worker; returns when the ULT is resumed, perhaps by another worker.
    ///
    /// # Safety
    ///
    /// The caller runs as this ULT.
    #[inline(always)]
    pub(crate) unsafe fn suspend(&self, left: Left) {
        // SAFETY: the caller runs as this ULT, so it is on a stack.
        unsafe { self.head().unwrap_unchecked().suspend(&self.saved, left) }
    }

    /// Runs one life on a stack: runs the closure and keeps the result.
    ///
    /// # Safety
    ///
    /// `this` is a task that was filled, runs for the first time, and is on this
    /// stack.
    pub(crate) unsafe fn live(this: *const ()) {
        // SAFETY: the caller's `this` is a task; descriptors outlive their ULTs.
        let this = unsafe { &*this.cast::<Self>() };
        // SAFETY: the caller promises that the task was filled.
        let body = this.body.with(|body| unsafe { (*body).unwrap_unchecked() });
        // SAFETY: the room holds the closure that `body` was made for.
        unsafe { (body.run)(&this.room) };
        this.end_locals();
        // A detached ULT usually drops its result here, where the destructor may
        // block.
        if this.join.load(Ordering::Acquire) == DETACHED {
            this.drop_result();
        }
    }

    /// Drops the ULT-local values. Called by the running ULT.
    #[inline(always)]
    fn end_locals(&self) {
        // SAFETY: the values belong to the running ULT.
        let locals = self.locals.with(|locals| unsafe { *locals });
        if Locals::has_values(locals) {
            // SAFETY: the values belong to this ULT, and are not dropped yet.
            unsafe { Locals::end(&self.locals) };
        }
    }

    /// Ends a ULT that the end of its scheduler cut off. Its result is
    /// [`Cancelled`](crate::Cancelled); its closure, if it did not run, is dropped. A
    /// detached ULT that was cut off in the destructor of its own result has no result.
    ///
    /// # Safety
    ///
    /// The ULT did not end, runs nowhere, and never will again.
    pub(crate) unsafe fn cancel(&self) {
        let started = self.state() != Some(UltState::New);
        // SAFETY: the ULT did not end, so its task was filled, and no other thread
        // uses it.
        let body = self.body.with(|body| unsafe { *body });
        // `drop_result` takes the body of a detached ULT, which never needs it again.
        let Some(body) = body else { return };
        // SAFETY: the closure is in the room exactly if the ULT never ran.
        unsafe { (body.cancel)(&self.room, started) };
    }
}

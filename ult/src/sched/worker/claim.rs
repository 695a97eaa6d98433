//! Running an unstarted ULT in the place of its joiner: when that is allowed, and
//! what follows when the ULT leaves before its end. See `join`.

use super::thread::Worker;
use crate::sched::turn::CALL;
use crate::slab::TaskSlot;
use crate::stack::{Left, ResumeLink, StackHead, stack_pointer};
use crate::task::Task;
use core::ptr::NonNull;

/// How a ULT that was claimed by its joiner is to run.
pub(crate) enum ClaimMode {
    /// By a call, on the stack of the joiner given.
    Call(TaskSlot),
    /// On its own stack, in the place of the joiner given.
    Switch(TaskSlot, NonNull<StackHead>),
}

impl Worker {
    /// Takes an unstarted ULT, if it is the youngest of the own deque, so that
    /// the running ULT can run it in its own place. Returns `None` now and then,
    /// so that the hub has its turn.
    ///
    /// # Safety
    ///
    /// The caller has the handle of `child`, runs on this thread's worker, and
    /// suspends nothing between that and the run of the claimed ULT.
    #[inline(always)]
    pub(crate) unsafe fn claim(&self, child: TaskSlot) -> Option<ClaimMode> {
        let joiner = self.current()?;
        self.look_at_join(joiner, child);
        // SAFETY: we are the worker slot's owner.
        let Some(place) = (unsafe { self.worker_slot().ready.place_of(child.as_ptr()) }) else {
            // SAFETY: by the caller's contract it has the handle of `child`.
            return unsafe { self.claim_published(joiner, child) };
        };
        // SAFETY: by the caller's contract it has the handle of `child`, which is
        // at that place.
        unsafe { self.claim_youngest(joiner, child, place) }
    }

    /// Does what `claim` does for a ULT that is not the youngest of the deque. All
    /// of it is in this function, so that `claim` keeps its values in registers.
    #[cold]
    #[inline(never)]
    unsafe fn claim_published(&self, joiner: TaskSlot, child: TaskSlot) -> Option<ClaimMode> {
        if !self.queues_again(child) {
            return None;
        }
        // SAFETY: we are the worker slot's owner.
        let place = unsafe { self.worker_slot().ready.place_of(child.as_ptr()) }?;
        // SAFETY: by the caller's contract it has the handle of `child`, which is
        // at that place.
        unsafe { self.claim_youngest(joiner, child, place) }
    }

    /// Does what `claim` does for the youngest of the own deque, which is at
    /// `place`.
    #[inline(always)]
    unsafe fn claim_youngest(
        &self,
        joiner: TaskSlot,
        child: TaskSlot,
        place: i64,
    ) -> Option<ClaimMode> {
        // SAFETY: the caller has the handle of the child; the joiner runs.
        let (task, host) = unsafe { (child.as_ref(), joiner.as_ref()) };
        let (turn, spent) = (self.turn(), self.turn().get());
        if !task.is_new() || !spent.leaves(CALL) || !self.may_claim(host, task) {
            return None;
        }
        turn.set(spent.less(CALL));
        // SAFETY: we are the worker slot's owner, and have only looked at the child.
        if !unsafe { self.worker_slot().ready.pop_at(place) } {
            return None;
        }
        // SAFETY: the running ULT is on a stack.
        let head = unsafe { host.head().unwrap_unchecked() };
        let room = head.room_below(stack_pointer());
        // With the child all that is on the stack may move to another worker, so
        // the joiner must not be bound to one.
        if room >= self.shared.inline_bytes && task.is_ordinary() && host.worker().is_none() {
            return Some(ClaimMode::Call(joiner));
        }
        // SAFETY: the child was in a queue and now is this worker's.
        match unsafe { self.stack_of(task) } {
            Some(head) => Some(ClaimMode::Switch(joiner, NonNull::from(head))),
            None => {
                self.wait_for_stack(child);
                None
            }
        }
    }

    /// Runs a claimed ULT on its own stack until it leaves or ends. `None`: it
    /// has ended, and its result is in its place.
    ///
    /// # Safety
    ///
    /// `child` was claimed for `joiner`, which is the caller, with this head.
    #[inline(always)]
    pub(crate) unsafe fn run_claimed(
        &self,
        joiner: TaskSlot,
        child: TaskSlot,
        head: NonNull<StackHead>,
    ) -> Option<Left> {
        // SAFETY: by the caller's contract the three are alive: the joiner runs,
        // and the child was claimed with this head.
        let (joiner, task, head) = unsafe { (joiner.as_ref(), child.as_ref(), head.as_ref()) };
        joiner.begin_lending();
        task.set_runnable();
        self.set_current(child);
        // If the child leaves, it must come back here, so it must not switch to
        // another ULT.
        self.block_direct_switches();
        let link = ResumeLink::new();
        // SAFETY: the task is new, and has this stack.
        let left = unsafe { head.resume(task.saved(), &link, child.as_ptr().cast_const().cast()) };
        self.unblock_direct_switches();
        // SAFETY: the child has left, and the hub resumes it from here on.
        unsafe { head.relink(&self.link) };
        if !left.is_end() {
            return Some(left);
        }
        self.check_canary(child, head);
        // SAFETY: the child ended on this stack.
        self.put_stack(unsafe { task.unbind() });
        joiner.end_lending();
        self.set_current(TaskSlot::from(joiner));
        None
    }

    /// Whether `task` may run in the place of `host`. It may not if one of the two
    /// has control words of its own, because only the hub changes those; nor while
    /// events are recorded, which the hub does; nor while an urgent ULT waits.
    #[inline(always)]
    fn may_claim(&self, host: &Task, task: &Task) -> bool {
        !host.keeps_fp() && !task.keeps_fp() && !self.shared.is_wanted()
    }
}

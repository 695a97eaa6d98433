//! Running an unstarted ULT in the place of the one that joins it: who may, and
//! what follows when it leaves before its end. See `join`.

use super::{Served, Worker, wake};
use crate::sched::turn::CALL;
use crate::slab::Slot;
use crate::stack::{Head, Left, Link, stack_pointer};
use crate::task::{Follow, Task};
use core::ptr::NonNull;
use tsumugi_core::stats::Counter;
use tsumugi_core::wait::{Reason, Waker};

/// How a ULT that was claimed by its joiner is to be run.
pub(crate) enum Claim {
    /// As a call, on the stack of the joiner given.
    Call(Slot),
    /// On its own stack, in the place of the joiner given.
    Switch(Slot, NonNull<Head>),
}

impl Worker {
    /// Takes an unstarted ULT, the youngest of the own queue, so that the
    /// running one can run it in its place. Now and then it does not, so that
    /// the hub has its turn.
    ///
    /// # Safety
    ///
    /// The caller has the handle of `child`, runs on this thread's worker, and
    /// suspends nothing in between.
    #[inline(always)]
    pub(crate) unsafe fn claim(&self, child: Slot) -> Option<Claim> {
        let joiner = self.current()?;
        self.look_at_join(joiner, child);
        // SAFETY: we are the seat's owner.
        let Some(place) = (unsafe { self.seat().ready.place_of(child.as_ptr()) }) else {
            // SAFETY: the caller's.
            return unsafe { self.claim_laid_out(joiner, child) };
        };
        // SAFETY: the caller's; it is there.
        unsafe { self.claim_youngest(joiner, child, place) }
    }

    /// As `claim`, of one that is not the youngest of the queue. All in a call
    /// of its own, so that `claim` keeps its values in registers.
    #[cold]
    #[inline(never)]
    unsafe fn claim_laid_out(&self, joiner: Slot, child: Slot) -> Option<Claim> {
        if !self.queues_again(child) {
            return None;
        }
        // SAFETY: we are the seat's owner.
        let place = unsafe { self.seat().ready.place_of(child.as_ptr()) }?;
        // SAFETY: the caller's; it is there.
        unsafe { self.claim_youngest(joiner, child, place) }
    }

    /// As `claim`, of the youngest of the own queue, which is at that place.
    #[inline(always)]
    unsafe fn claim_youngest(&self, joiner: Slot, child: Slot, place: i64) -> Option<Claim> {
        // SAFETY: we have its handle; the joiner runs.
        let (task, host) = unsafe { (child.as_ref(), joiner.as_ref()) };
        let (turn, spent) = (self.turn(), self.turn().get());
        if !task.is_new() || !spent.leaves(CALL) || !self.may_claim(host, task) {
            return None;
        }
        turn.set(spent.less(CALL));
        // SAFETY: we are the seat's owner, and have only looked at it.
        if !unsafe { self.seat().ready.pop_at(place) } {
            return None;
        }
        // SAFETY: the running ULT is on a stack.
        let head = unsafe { host.head().unwrap_unchecked() };
        let room = head.room_below(stack_pointer());
        // With the child all that is on the stack may go to another worker.
        if room >= self.shared.inline_bytes && task.is_ordinary() && host.worker().is_none() {
            return Some(Claim::Call(joiner));
        }
        // SAFETY: it was in a queue and now is ours.
        match unsafe { self.stack_of(task) } {
            Some(head) => Some(Claim::Switch(joiner, NonNull::from(head))),
            None => {
                self.starve(child);
                None
            }
        }
    }

    /// Runs a claimed ULT on its own stack until it leaves or ends. `None`: it
    /// has ended, its result is in its room.
    ///
    /// # Safety
    ///
    /// `child` was claimed for `joiner`, who calls, with this head.
    #[inline(always)]
    pub(crate) unsafe fn run_claimed(
        &self,
        joiner: Slot,
        child: Slot,
        head: NonNull<Head>,
    ) -> Option<Left> {
        // SAFETY: the caller's.
        let (joiner, task, head) = unsafe { (joiner.as_ref(), child.as_ref(), head.as_ref()) };
        joiner.begin_lending();
        task.set_runnable();
        self.set_current(child);
        // If it leaves, it is to come back here.
        self.tie();
        let link = Link::new();
        // SAFETY: the task is new, and has this stack.
        let left = unsafe { head.resume(task.saved(), &link, child.as_ptr().cast_const().cast()) };
        self.untie();
        // SAFETY: it has left, and is the hub's from here on.
        unsafe { head.relink(&self.link) };
        if !left.is_end() {
            return Some(left);
        }
        self.check_canary(child, head);
        // SAFETY: it ended on this stack.
        self.put_stack(unsafe { task.unbind() });
        joiner.end_lending();
        self.set_current(Slot::from(joiner));
        None
    }

    /// Whether nothing is against running `task` in the place of `host`: control
    /// words are changed by the worker only, which is also who writes down
    /// what runs, and urgent ULTs come first.
    #[inline(always)]
    fn may_claim(&self, host: &Task, task: &Task) -> bool {
        !host.keeps_fp() && !task.keeps_fp() && !self.shared.is_wanted()
    }

    /// A ULT waits for one that it ran in its place, and that has left.
    ///
    /// # Safety
    ///
    /// Both are suspended on this worker, and nobody knows yet.
    #[cold]
    pub(super) unsafe fn follow(&self, follow: &Follow) -> Served {
        self.count(Counter::Parks);
        // SAFETY: the caller's.
        let child = unsafe { follow.child.as_ref() };
        // SAFETY: the same: it asked from its stack.
        let head = unsafe { follow.joiner.as_ref().head().unwrap_unchecked() };
        self.check_canary(follow.joiner, head);
        head.set_reason(&Reason { what: "join", at: child.slot().into(), wanted: 0 });
        self.put_to_sleep(follow.joiner, head);
        // SAFETY: as in `serve`.
        let waker = unsafe { Waker::new(follow.joiner.as_ptr().cast(), wake) };
        let left = follow.left;
        // SAFETY: the node stays until the joiner is woken, by the child's
        // end: it is suspended, so it has not ended.
        let joined = unsafe { child.join(follow.node, waker) };
        debug_assert!(joined, "a suspended ULT has not ended");
        Served::Followed(left)
    }
}

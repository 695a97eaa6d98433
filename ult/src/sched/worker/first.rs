//! Child-first spawns without the hub: the parent begins its child on the child's own
//! stack, and the child's end switches to the youngest ULT of the deque, which is the
//! parent unless a thief has taken it.
//!
//! ```text
//!   parent's stack ──enter──► child's stack: push the parent · the child's life
//!        ▲                                                        │ its end
//!        └───────────── the youngest of the own deque ◄───────────┘
//! ```
//!
//! The parent is pushed on the child's stack, because a thief may resume it from then
//! on. At its end the child gives back its stack while it still runs there. That is
//! possible because the stack goes to this worker's own cache, and the worker takes
//! nothing out of the cache before it has left the stack.
//!
//! The hub does it all instead if the turn is over, if the worker is to record events or
//! to run an urgent ULT, if the worker has ULTs of its own, if one of the two ULTs has
//! particular needs, and if a new ULT waits for a stack. After each begin the hub has its
//! turn as if the child were run in its joiner's place, see `turn`.
//!
//! # References
//!
//! - Mohr, Kranz, Halstead: Lazy Task Creation: A Technique for Increasing the
//!   Granularity of Parallel Programs. IEEE TPDS 2(3), 1991: the parent is what thieves
//!   take.
//! - Nakashima, Taura: MassiveThreads: A Thread Library for High Productivity
//!   Languages. Concurrent Objects and Beyond, LNCS 8665, 2014.

use super::thread::Worker;
use crate::sched::current;
use crate::sched::turn::CALL;
use crate::slab::TaskSlot;
use crate::stack::{ENTERS, Lives, Saved, StackHead};
use crate::task::{HandleState, SuspendRequest, Task};
use core::ptr::{self, NonNull};
use tsumugi_core::mutate;
use tsumugi_core::sync::Ordering;

/// The lives of all stacks.
pub(in crate::sched) const LIVES: Lives = Lives { run: Task::live, run_entered: live_entered };

impl Worker {
    /// Runs a new ULT at once in place of the running one, its parent, which is queued.
    /// Returns when the parent is resumed, perhaps by another worker.
    ///
    /// # Safety
    ///
    /// The caller runs as `parent` on this thread's worker. The child was filled, is in
    /// no queue, and may run on any worker.
    #[inline(always)]
    pub(crate) unsafe fn run_first(&self, parent: TaskSlot, child: TaskSlot) {
        // SAFETY: the parent runs, and the child is the caller's.
        let (task, new) = unsafe { (parent.as_ref(), child.as_ref()) };
        // SAFETY: as above.
        let Some(head) = (unsafe { self.may_enter(task, new) }) else {
            // SAFETY: we run as the parent.
            return unsafe { task.ask(SuspendRequest::RunFirst(child)) };
        };
        let turn = self.turn();
        turn.set(turn.get().less(CALL));
        new.set_runnable();
        self.set_current(child);
        self.note_panics();
        // SAFETY: the parent runs as `task`; the child is new, and bound to this stack,
        // which is linked to this worker.
        unsafe {
            head.relink(&self.link);
            let life = child.as_ptr().cast_const().cast();
            head.enter(task.saved(), new.saved(), life, show, parent.as_ptr().cast_const().cast());
        }
    }

    /// Returns the stack on which a child can begin without the hub.
    ///
    /// # Safety
    ///
    /// As for [`run_first`](Self::run_first).
    #[inline(always)]
    unsafe fn may_enter<'a>(&self, parent: &Task, child: &'a Task) -> Option<&'a StackHead> {
        if !ENTERS
            || !self.turn().get().leaves(CALL)
            || self.is_blocked()
            || !child.is_usual_new()
            || parent.free_head().is_none()
        {
            return None;
        }
        // SAFETY: the child is this worker's.
        unsafe { self.usual_stack_of(child) }
    }

    /// Whether a ULT may not leave for another one without the hub.
    #[inline(always)]
    fn is_blocked(&self) -> bool {
        self.has_switch_blockers() || self.shared.is_wanted()
    }

    /// Ends a ULT that was entered, and makes the youngest of the own deque the running
    /// one: the caller must switch to it. `None`: the ULT must leave to the hub, and
    /// nothing has changed.
    ///
    /// # Safety
    ///
    /// The ULT runs on this worker, on its own stack, and its life is over.
    #[inline(always)]
    unsafe fn end_first(&self, slot: TaskSlot) -> Option<TaskSlot> {
        // SAFETY: the running ULT.
        let task = unsafe { slot.as_ref() };
        // The thread sanitizer must not see a fiber end that runs.
        if cfg!(tsumugi_tsan)
            || !self.turn().get().leaves(CALL)
            || self.is_blocked()
            || !self.shared.stack_waiters.is_empty()
            || task.free_head().is_none()
        {
            return None;
        }
        let worker_slot = self.worker_slot();
        // SAFETY: we are the worker slot's owner; a queued ULT is alive.
        let next = unsafe { worker_slot.ready.pop_if(|youngest| (*youngest).is_usual()) };
        let next = NonNull::new(next?)?;
        // No ULT is current meanwhile, so what blocks in a destructor does not do so as
        // this ULT.
        worker_slot.place.current.store(ptr::null_mut(), Ordering::Relaxed);
        self.note_panics();
        // SAFETY: the life on the stack is over, and the stack is not taken again before
        // this worker has left it.
        let stack = unsafe { task.unbind() };
        match task.end() {
            HandleState::Alone => {}
            HandleState::Detached => {
                task.drop_result();
                // SAFETY: neither a handle nor the ULT is left.
                unsafe { self.release(slot) };
            }
            HandleState::Joined(waker) => waker.wake(),
        }
        self.put_usual_stack(stack);
        self.set_current(next);
        // SAFETY: the next ULT is on a stack, and this worker's.
        unsafe { next.as_ref().head().unwrap_unchecked().relink(&self.link) };
        Some(next)
    }
}

/// Queues a parent that has left its stack. Called on its child's stack.
unsafe extern "C" fn show(parent: *const ()) {
    let parent = NonNull::new(parent.cast_mut().cast::<Task>());
    // SAFETY: a worker runs the child, and has the parent.
    let (worker, parent) =
        unsafe { (current::worker().unwrap_unchecked(), parent.unwrap_unchecked()) };
    // SAFETY: this thread's worker; nothing suspends here.
    mutate!("parent_not_shown": unsafe { worker.as_ref() }.push(parent) => ());
}

/// Runs a life that was entered; returns where its end switches to.
///
/// # Safety
///
/// As for [`Task::live`].
unsafe fn live_entered(this: *const ()) -> *const Saved {
    // SAFETY: the caller's.
    unsafe { Task::live(this) };
    let slot = NonNull::new(this.cast_mut().cast::<Task>());
    // SAFETY: a worker runs the ULT, perhaps another one than at its begin.
    let next = unsafe {
        let worker = current::worker().unwrap_unchecked();
        worker.as_ref().end_first(slot.unwrap_unchecked())
    };
    // SAFETY: the next ULT is this worker's.
    next.map_or(ptr::null(), |next| ptr::from_ref(unsafe { next.as_ref() }.saved()))
}

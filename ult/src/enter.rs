//! A thread that enters a scheduler: what the thread runs is a ULT from then on, on the
//! thread's own stack, and the thread is the last worker.
//!
//! ```text
//!   thread's stack │ main │ f │ enter ═══► a stack of the area: the hub of worker 0
//!                      │                        │ resumes any ULT, the entered one too
//!                      ▼                        ▼
//!                  goes on as a ULT   ...   leave: the hub ends, and switches back
//! ```
//!
//! The entered ULT is queued on the hub's stack, because another worker may resume it
//! from then on. It may be on any worker later, so `leave` puts it to sleep and stops the
//! workers: the end of worker 0's hub resumes it on the thread that had entered.

use crate::body::{ClosureStorage, ClosureVtable};
use crate::host;
use crate::sched::shared::SchedulerShared;
use crate::sched::worker::Worker;
use crate::sched::{Scheduler, Spawner, current};
use crate::slab::TaskSlot;
use crate::stack::{ENTERS, Lives, Saved, StackHead};
use crate::task::{SuspendRequest, Traits};
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;
use core::mem::transmute;
use core::ptr::NonNull;
use tsumugi_core::wait::Waker;

/// A scheduler whose last worker is the thread that made this by [`Scheduler::enter`].
pub struct Entered {
    scheduler: Scheduler,
    slot: TaskSlot,
    head: NonNull<StackHead>,
}

// SAFETY: the ULT that has this may be on any worker; only `leave` uses the pointers.
unsafe impl Send for Entered {}

impl Scheduler {
    /// Makes the caller a ULT of this scheduler, on the stack that it has, and its thread
    /// the last worker. From then on the rules for what must not live across a suspension
    /// hold for the caller too, see [`spawn`](crate::spawn#suspension): each wait may
    /// continue it on another OS thread, until it [leaves](Entered::leave).
    ///
    /// # Errors
    ///
    /// The scheduler, if all its workers run already, if the caller is a ULT or a worker,
    /// or on a system where a thread cannot enter: on x86-64 and Linux it can, except
    /// under a sanitizer.
    pub fn enter(self) -> Result<Entered, Self> {
        self.enter_with(Traits::default())
    }

    /// Does the same, and the caller stays on its thread: its waits continue on no other one.
    ///
    /// # Errors
    ///
    /// Those of [`enter`](Self::enter).
    pub fn enter_pinned(self) -> Result<Entered, Self> {
        self.enter_with(Traits { worker: Some(0), ..Traits::default() })
    }

    fn enter_with(self, traits: Traits) -> Result<Entered, Self> {
        let possible = ENTERS && cfg!(all(feature = "std", not(any(tsumugi_tsan, tsumugi_loom))));
        if !possible || self.is_started() || current::worker().is_some() {
            return Err(self);
        }
        let shared = &self.shared;
        let Some(hub) = shared.stacks.take_main() else { return Err(self) };
        let slot = shared.slab.take_shared(shared.home());
        let (floor, bytes) = host::thread_stack();
        let head = NonNull::from(Box::leak(Box::new(StackHead::of_thread(floor, bytes))));
        // SAFETY: the slot was just taken, so no other thread uses it; the head stays until
        // the ULT has left.
        let task = unsafe {
            let task = slot.as_ref();
            task.fill_with((), &ENTERED);
            task.adorn(Some("main".into()), traits);
            task.bind_thread(head);
            task.set_runnable();
            task
        };
        let begin = HubStart { shared: shared.clone(), slot, is_pinned: traits.worker.is_some() };
        let begin = (&raw const begin).cast();
        let idle = Saved::new();
        // SAFETY: the hub's stack is new and belongs to this function; the caller runs on
        // its own stack as the task. `begin` stays until the hub has taken it, which is
        // before the task is resumed.
        unsafe {
            let hub = hub.head().as_ref();
            hub.begin_lives(Lives {
                run: |_| unreachable!("the hub is entered"),
                run_entered: live,
            });
            hub.begin(&idle);
            hub.enter(task.saved(), &idle, begin, nothing, begin);
        }
        Ok(Entered { slot, head, scheduler: self })
    }
}

impl Entered {
    /// Returns a handle for other threads.
    pub fn spawner(&self) -> Spawner {
        self.scheduler.spawner()
    }

    /// Whether the caller is the ULT that has entered.
    pub fn is_caller(&self) -> bool {
        // SAFETY: this thread's worker, used only here.
        let running = current::worker().and_then(|worker| unsafe { worker.as_ref() }.current());
        running == Some(self.slot)
    }

    /// Ends the scheduler, as [`Scheduler`] describes, and makes the caller an ordinary
    /// thread again: the one that has entered. Blocks until all workers have stopped.
    ///
    /// # Panics
    ///
    /// If the caller is not the ULT that has entered.
    pub fn leave(self) {
        let shared: &SchedulerShared = &self.scheduler.shared;
        assert!(self.is_caller(), "only the ULT that has entered can leave");
        // SAFETY: the running ULT.
        let task = unsafe { self.slot.as_ref() };
        let mut stop = |_: Waker| {
            shared.stop();
            true
        };
        let stop: *mut (dyn FnMut(Waker) -> bool + '_) = &raw mut stop;
        // SAFETY: this only makes the lifetime longer; the request is used before the ULT
        // is resumed.
        let stop = unsafe {
            transmute::<
                *mut (dyn FnMut(Waker) -> bool + '_),
                *mut (dyn FnMut(Waker) -> bool + 'static),
            >(stop)
        };
        // SAFETY: the running ULT; the end of worker 0's hub resumes it.
        unsafe { task.ask(SuspendRequest::Sleep(stop)) };
        // SAFETY: this is the thread that has entered, and no worker any more. No handle
        // of the ULT is left.
        unsafe {
            task.unbind_thread();
            task.detach();
            task.end();
            SchedulerShared::release(self.slot);
            drop(Box::from_raw(self.head.as_ptr()));
        }
    }
}

impl fmt::Debug for Entered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Entered({:?})", self.scheduler)
    }
}

/// What the hub of an entered scheduler begins with; on the stack of the ULT.
struct HubStart {
    shared: Arc<SchedulerShared>,
    slot: TaskSlot,
    is_pinned: bool,
}

/// Called first on the hub's stack: `live` queues the ULT.
unsafe extern "C" fn nothing(_: *const ()) {}

/// The life of the hub: returns the place of the entered ULT, to which its end switches.
unsafe fn live(start: *const ()) -> *const Saved {
    // SAFETY: the ULT is in no queue, so what it keeps on its stack is still there.
    let (shared, slot, is_pinned) = unsafe {
        let start = &*start.cast::<HubStart>();
        (start.shared.clone(), start.slot, start.is_pinned)
    };
    // SAFETY: the ULT is in no queue. From here on another worker may resume it, unless it
    // stays here.
    unsafe {
        if is_pinned {
            shared.post(0, slot);
        } else {
            shared.inject.push(slot.as_ptr());
        }
    }
    Worker::new(shared, 0).run();
    // SAFETY: the ULT is asleep, and its scheduler has stopped for it.
    unsafe { slot.as_ref() }.saved()
}

/// The body of a ULT that was entered, which never runs from its begin.
static ENTERED: ClosureVtable = ClosureVtable {
    run: |_: &ClosureStorage| unreachable!("an entered ULT has begun"),
    call: |_, _| unreachable!("an entered ULT has begun"),
    drop_result: |_| (),
    cancel: |_, _| (),
};

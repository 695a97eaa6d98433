//! The scheduler loop, the hub: finds a ULT, resumes it, and does what it requests
//! when it leaves.

use super::abort::AbortOnUnwind;
use super::follow::Served;
use super::thread::Worker;
use crate::sched::current;
use crate::sched::waker::wake;
use crate::slab::TaskSlot;
use crate::stack::{Left, StackHead};
use crate::task::{HandleState, SuspendRequest, Task};
use core::hint::cold_path;
use core::ptr;
use tsumugi_core::stats::Counter;
use tsumugi_core::sync::Ordering;
use tsumugi_core::wait::Waker;

impl Worker {
    /// Runs ULTs until the scheduler stops.
    pub(crate) fn run(&self) {
        #[cfg(all(feature = "std", not(tsumugi_loom)))]
        let _signals = crate::overflow::SignalStack::ensure();
        #[cfg(all(feature = "std", not(tsumugi_loom)))]
        let _stays = crate::host::ThreadStays::begin();
        let _unwinding = AbortOnUnwind;
        let before = current::set_worker(self);
        let alone = self.shared.worker_slots.len() == 1;
        self.shared.parks().claim(if alone { self.name } else { 0 });
        self.shared.progress.on_start(self.index);
        while let Some(slot) = self.find() {
            self.execute(slot);
        }
        current::set_worker(before);
        self.stacks.with_mut(|cache| {
            // SAFETY: the cache is this thread's own, and nothing below accesses it.
            self.shared.stacks.drain(unsafe { &mut *cache })
        });
        // SAFETY: as above.
        self.slots.with_mut(|cache| self.shared.slab.drain(unsafe { &mut *cache }));
        core::mem::forget(_unwinding);
    }

    /// Runs one ULT until it leaves, or until the ULT leaves that has its place
    /// by then.
    #[inline]
    pub(super) fn execute(&self, mut slot: TaskSlot) {
        // SAFETY: the ULT came from a queue, so it is alive and this worker's.
        let task = unsafe { slot.as_ref() };
        // SAFETY: as above.
        let Some(mut head) = (unsafe { self.stack_of(task) }) else {
            return self.wait_for_stack(slot);
        };
        if task.is_new() {
            task.set_runnable();
        }
        assert!(
            !NEXT_CHECKED || self.next.get().is_null(),
            "`next` has a ULT, which thieves do not see"
        );
        loop {
            self.set_current(slot);
            // SAFETY: a task that this worker has is suspended or new.
            let mut left = unsafe { self.resume(slot, head) };
            // The ULT to which the resumed one has switched, or the innermost of
            // the ULTs that run in the place of their joiners.
            // SAFETY: a worker that has resumed a ULT has a current one, which is on
            // a stack.
            (slot, head) = unsafe {
                let slot = self.current().unwrap_unchecked();
                (slot, (*slot.as_ptr()).head().unwrap_unchecked())
            };
            self.worker_slot().place.current.store(ptr::null_mut(), Ordering::Relaxed);
            self.check_canary(slot, head);
            loop {
                if left.is_yield() {
                    return self.queue_yielded(slot);
                }
                if left.is_park() {
                    if self.park(slot, head) {
                        return;
                    }
                    break;
                }
                if left.is_end() {
                    return self.finish(slot);
                }
                if left.is_asleep() {
                    return;
                }
                // SAFETY: the request is on the suspended ULT's stack.
                match unsafe { self.serve(slot, head, left.into_request()) } {
                    Served::Gone => return,
                    Served::Stays => break,
                    Served::Followed(inner) => left = inner,
                }
            }
        }
    }

    /// Resumes a ULT until it leaves.
    ///
    /// # Safety
    ///
    /// As for `StackHead::resume`.
    #[inline(always)]
    pub(super) unsafe fn resume(&self, slot: TaskSlot, head: &StackHead) -> Left {
        self.note_panics();
        // SAFETY: the caller's.
        unsafe {
            if self.shared.wanted.any() | slot.as_ref().keeps_fp() {
                self.resume_with_care(slot, head)
            } else {
                head.resume(slot.as_ref().saved(), &self.link, slot.as_ptr().cast_const().cast())
            }
        }
    }

    /// Does what a ULT requested.
    ///
    /// # Safety
    ///
    /// The request is there as long as the ULT is suspended, which it is.
    #[inline(always)]
    pub(super) unsafe fn serve(
        &self,
        slot: TaskSlot,
        head: &StackHead,
        request: *mut SuspendRequest,
    ) -> Served {
        // SAFETY: the ULT is suspended on this worker.
        let task = unsafe { slot.as_ref() };
        // SAFETY: the caller's.
        match unsafe { &*request } {
            &SuspendRequest::Sleep(commit) => {
                self.count(Counter::Parks);
                self.put_to_sleep(slot, head);
                // SAFETY: a waker that is used up makes the task ready, once,
                // and the task is kept until then.
                let waker = unsafe { Waker::new(slot.as_ptr().cast(), wake) };
                // SAFETY: the closure is on the suspended ULT's stack. If it returns
                // true, that ULT may be gone: the task is not accessed after.
                if unsafe { (*commit)(waker) } {
                    return Served::Gone;
                }
                task.set_runnable();
                Served::Stays
            }
            &SuspendRequest::OnOsStack(f) => {
                // SAFETY: as above; the ULT stays suspended until it is done.
                unsafe { (*f)() };
                self.comes_back.set(true);
                Served::Stays
            }
            &SuspendRequest::RunFirst(child) => {
                task.set_runnable();
                self.set_next(child);
                if task.is_plain() {
                    self.push(slot)
                } else {
                    self.route(slot)
                }
                Served::Gone
            }
            // SAFETY: the caller's.
            SuspendRequest::Follow(follow) => unsafe { self.follow(follow) },
        }
    }

    /// Puts a ULT that parks to sleep. False: there was a token, and the ULT goes
    /// on.
    #[inline(always)]
    pub(super) fn park(&self, slot: TaskSlot, head: &StackHead) -> bool {
        // SAFETY: the ULT is suspended on this worker.
        let task = unsafe { slot.as_ref() };
        self.count(Counter::Parks);
        self.note_sleep(task, head);
        // If this returns true, the ULT may be awake and gone already.
        let asleep = self.shared.begin_park(task, self.name);
        if !asleep {
            task.set_runnable();
        }
        asleep
    }

    #[inline(always)]
    pub(super) fn put_to_sleep(&self, slot: TaskSlot, head: &StackHead) {
        // SAFETY: the ULT is suspended on this worker.
        let task = unsafe { slot.as_ref() };
        self.note_sleep(task, head);
        task.set_sleeping();
    }

    /// Notes where and when a ULT goes to sleep.
    #[inline(always)]
    fn note_sleep(&self, task: &Task, head: &StackHead) {
        task.set_last(self.index);
        self.note_since(head);
    }

    /// Notes when a ULT goes to sleep.
    #[inline(always)]
    pub(super) fn note_since(&self, head: &StackHead) {
        let now = self.now.get().as_ns();
        // The time changes once a turn: a load is cheaper than a store.
        if head.since.load(Ordering::Relaxed) != now {
            cold_path();
            // Release: this store stays behind the state "runnable"; pairs with
            // the fence in `look`.
            head.since.store(now, Ordering::Release);
        }
    }

    #[inline]
    pub(super) fn finish(&self, slot: TaskSlot) {
        // SAFETY: the ULT ended on this worker.
        let task = unsafe { slot.as_ref() };
        // SAFETY: as above.
        self.put_stack(unsafe { task.unbind() });
        match task.end() {
            HandleState::Alone => {}
            HandleState::Detached => {
                task.drop_result();
                // SAFETY: neither a handle nor the ULT is left.
                unsafe { self.release(slot) };
            }
            HandleState::Joined(waker) => {
                self.handing_over.set(true);
                waker.wake();
                self.handing_over.set(false);
            }
        }
    }
}

/// Whether each resume checks that `next` is empty: a ULT there is invisible to
/// thieves.
const NEXT_CHECKED: bool = cfg!(any(debug_assertions, tsumugi_loom));

//! The gate of a scheduler: how other threads access it, and its end.
//!
//! Threads that are no workers enter and leave through a gate, so that the end of
//! the scheduler can wait for the threads inside and refuse later ones:
//!
//! ```text
//!   gate: visitors · 4 + bits       OPEN ──close──► CLOSED ──sweep──► SWEPT
//! ```
//!
//! The sweep finds the ULTs that are left. From then on each live descriptor
//! holds a count of the `Arc` around [`SchedulerShared`], which is given up with the
//! descriptor, so that join handles may outlive the scheduler. A ULT that was cut
//! off while it slept holds one more count, which is never given up, because
//! other threads may have pointers into its stack.

use super::current;
use super::shared::SchedulerShared;
use crate::cleanup::CutOffCleanup;
use crate::futex::os_yield;
use crate::host::contain;
use crate::slab::TaskSlot;
use crate::task::{HandleState, UltState};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ptr;
use tsumugi_core::stats::CounterValues;
use tsumugi_core::sync::{AtomicUsize, Ordering};

/// The stay of a thread that is no worker. The end of the scheduler waits for it.
pub(crate) struct Visit<'a>(&'a AtomicUsize);

impl SchedulerShared {
    /// Lets a thread in that is no worker; `None` if the scheduler has ended.
    pub(crate) fn visit(&self) -> Option<Visit<'_>> {
        // Acquire: pairs with `close`.
        let gate = self.gate.fetch_add(VISITOR, Ordering::Acquire);
        let visit = Visit(&self.gate);
        (gate & CLOSED == 0).then_some(visit)
    }

    /// Gives back a slot that neither a handle nor a ULT uses any more.
    ///
    /// # Safety
    ///
    /// No thread uses the task any more, and its result is gone.
    #[inline]
    pub(crate) unsafe fn release(slot: TaskSlot) {
        // SAFETY: the descriptor is not released yet, so it is alive.
        let home = unsafe { slot.as_ref() }.home().cast::<Self>();
        // SAFETY: a live descriptor keeps its home alive, see the module.
        let shared = unsafe { &*home };
        if let Some(worker) = current::worker() {
            // SAFETY: the pointer is this thread's own worker.
            let worker = unsafe { worker.as_ref() };
            if shared.has(worker) {
                // SAFETY: the caller's.
                return unsafe { worker.release(slot) };
            }
        }
        // SAFETY: the caller's.
        unsafe { Self::release_outside(home, slot) }
    }

    #[cold]
    unsafe fn release_outside(home: *const Self, slot: TaskSlot) {
        // SAFETY: as in `release`.
        let shared = unsafe { &*home };
        if let Some(_visit) = shared.visit() {
            // SAFETY: the caller's.
            return unsafe { shared.slab.put_shared(slot) };
        }
        // Acquire: pairs with the Release at the end of the sweep.
        while shared.gate.load(Ordering::Acquire) & SWEPT == 0 {
            os_yield();
        }
        // SAFETY: by the caller's contract the slot is given back once; the sweep
        // gave this descriptor a count of the `Arc`.
        unsafe {
            shared.slab.put_shared(slot);
            Arc::decrement_strong_count(home);
        }
    }

    /// Refuses visitors, waits for the visitors inside, and cuts off the ULTs
    /// that are left.
    ///
    /// # Safety
    ///
    /// All workers have ended; `self` is in the `Arc` given; this is called once.
    pub(crate) unsafe fn close(self: &Arc<Self>) {
        self.gate.fetch_or(CLOSED, Ordering::AcqRel);
        // Acquire: pairs with the Release of a visitor that leaves.
        while self.gate.load(Ordering::Acquire) / VISITOR != 0 {
            os_yield();
        }
        let (mut unfinished, mut abandoned) = (Vec::new(), false);
        self.slab.each(&mut |task| {
            let Some(state) = task.state() else { return };
            // SAFETY: `self` is in an `Arc`, alive.
            unsafe { Arc::increment_strong_count(Arc::as_ptr(self)) };
            if state != UltState::Done {
                unfinished.push(TaskSlot::from(task));
            }
            if !matches!(state, UltState::Done | UltState::New) {
                abandoned = true;
                // This count is never given up: see the module.
                // SAFETY: as above.
                unsafe { Arc::increment_strong_count(Arc::as_ptr(self)) };
            }
        });
        if !abandoned {
            // SAFETY: the workers are gone, and no ULT has begun without ending.
            unsafe { self.stacks.release() };
        }
        // All ULTs leave their queues before any passes on what it was handed.
        // Otherwise one could pass it on to another that is cut off.
        let left: Vec<_> = unfinished
            .iter()
            // SAFETY: no worker will run the ULT; if it is on a stack, that stack
            // stays.
            .filter_map(|slot| unsafe {
                Some(CutOffCleanup::all(slot.as_ref().head()?.set_cleanup(ptr::null_mut())))
            })
            .flatten()
            .collect();
        // Release: pairs with the Acquire in `release_outside`.
        self.gate.fetch_or(SWEPT, Ordering::Release);
        // A waker of the program may panic; the other ULTs end all the same.
        left.into_iter().for_each(|cleanup| contain(|| cleanup.pass_on()));
        for slot in unfinished {
            // SAFETY: the descriptor is alive, and no worker will run its ULT.
            let task = unsafe { slot.as_ref() };
            // SAFETY: as above.
            unsafe { task.cancel() };
            match task.end() {
                HandleState::Alone => {}
                HandleState::Joined(waker) => waker.wake(),
                HandleState::Detached => {
                    task.drop_result();
                    // SAFETY: neither a handle nor the ULT is left.
                    unsafe { Self::release(slot) };
                }
            }
        }
    }

    /// Returns what each worker has counted so far.
    pub(crate) fn counts(&self) -> impl Iterator<Item = CounterValues> {
        // SAFETY: the pointer is this thread's own worker.
        if let Some(worker) = current::worker().map(|worker| unsafe { worker.as_ref() })
            && self.has(worker)
        {
            worker.tell();
        }
        self.worker_slots.iter().map(|worker_slot| worker_slot.counters.snapshot())
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `close`. The visitor accesses
        // nothing after.
        self.0.fetch_sub(VISITOR, Ordering::Release);
    }
}

const CLOSED: usize = 1;
const SWEPT: usize = 2;
const VISITOR: usize = 4;

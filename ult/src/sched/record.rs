//! The events that workers record for an observer (`inside`). Nothing is recorded
//! until that is requested.
//!
//! Each worker has a ring of events that only this worker writes, and a word with
//! the ULT that it runs. A reader copies the events, and drops those that may
//! have been overwritten meanwhile (`inside::notes`):
//!
//! ```text
//!   writer: head := h · fence · slot[h] := event · head := h + 1
//!   reader: h := head · copy the slots · fence · keep those above head - len
//! ```
//!
//! When nothing is recorded, that costs one predictable branch each time that a
//! ULT runs, is started or is woken.
//!
//! Progress: writing is wait-free.

use crate::task::Task;
use alloc::boxed::Box;
use core::ptr;
use tsumugi_core::sync::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};
use tsumugi_core::time::Instant;

/// What all workers are requested to do: to record events, or to run an urgent ULT.
pub(crate) struct WorkerRequests(pub(crate) AtomicU32);

/// One worker's notes.
pub(crate) struct Notes {
    /// Goes up whenever a ULT is resumed or left.
    pub(crate) changes: AtomicU64,
    pub(crate) running: AtomicPtr<Task>,
    pub(crate) events: AtomicPtr<Events>,
}

/// A ring of events.
pub(crate) struct Events {
    pub(crate) head: AtomicU64,
    pub(crate) slots: Box<[[AtomicU64; WORDS]]>,
}

/// What happened to a ULT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    Spawn,
    Run,
    Yield,
    Sleep,
    End,
    Wake,
    Steal,
    /// The ULT came from another thread. `what` has what happened to it there,
    /// unless a worker has recorded that already.
    Come,
}

/// What happened, to which ULT, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UltEvent {
    pub(crate) at: Instant,
    pub(crate) kind: EventKind,
    pub(crate) slot: u32,
    pub(crate) generation: u32,
    /// What a sleep is for, or why the ULT came.
    pub(crate) what: &'static str,
}

impl WorkerRequests {
    /// Events are to be recorded.
    pub(crate) const TRACE: u32 = 2;
    /// An urgent ULT is to be run; set after it was queued.
    pub(crate) const URGENT: u32 = 4;
    /// Suspensions are to be checked on the slow path, in builds that do not
    /// check them on the fast path. Never cleared.
    pub(crate) const CHECK: u32 = 8;

    pub(crate) fn new(flags: u32) -> Self {
        Self(AtomicU32::new(flags))
    }

    /// Whether events are recorded, or suspensions checked, or an urgent ULT
    /// waits. In the model this is always false.
    #[inline(always)]
    pub(crate) fn any(&self) -> bool {
        cfg!(not(tsumugi_loom)) && self.0.load(Ordering::Relaxed) != 0
    }

    /// Announces that an urgent ULT was queued.
    pub(crate) fn ask_for_urgent(&self) {
        // Release: pairs with the Acquire in `hear_of_urgent`.
        self.0.fetch_or(Self::URGENT, Ordering::Release);
    }

    /// Clears the announcement. The worker that clears it must look at the queue
    /// after that; a ULT that is queued after that look is announced again.
    pub(crate) fn hear_of_urgent(&self) {
        // Acquire: pairs with the Release in `ask_for_urgent`.
        self.0.fetch_and(!Self::URGENT, Ordering::Acquire);
    }

    #[inline(always)]
    pub(crate) fn has(&self, flag: u32) -> bool {
        self.0.load(Ordering::Relaxed) & flag != 0
    }
}

impl Notes {
    pub(crate) fn new() -> Self {
        Self {
            changes: AtomicU64::new(0),
            running: AtomicPtr::new(ptr::null_mut()),
            events: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Publishes which ULT runs now; null for none.
    pub(crate) fn set_running(&self, task: *mut Task) {
        self.changes.store(self.changes.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        // Release: a reader that sees the ULT sees its count.
        self.running.store(task, Ordering::Release);
    }

    /// Records an event. Called by the worker that owns the notes.
    pub(crate) fn record(&self, event: UltEvent) {
        // Acquire: pairs with `set_events`.
        let events = self.events.load(Ordering::Acquire);
        // SAFETY: a ring of events stays as long as its scheduler.
        if let Some(events) = unsafe { events.as_ref() } {
            events.push(event);
        }
    }
}

impl Events {
    pub(crate) fn push(&self, event: UltEvent) {
        let head = self.head.load(Ordering::Relaxed);
        // Release: a reader that sees one of the stores below sees a head of at
        // least this.
        fence(Ordering::Release);
        let what = event.what;
        let words = [
            event.at.as_ns(),
            u64::from(event.slot) << 32 | u64::from(event.generation),
            what.as_ptr().expose_provenance() as u64,
            (what.len() as u64) << 8 | event.kind as u64,
        ];
        for (slot, word) in self.slot(head).iter().zip(words) {
            slot.store(word, Ordering::Relaxed);
        }
        // Release: a reader that sees the new head sees the event.
        self.head.store(head + 1, Ordering::Release);
    }

    pub(crate) fn slot(&self, index: u64) -> &[AtomicU64; WORDS] {
        &self.slots[(index % self.slots.len() as u64) as usize]
    }
}

pub(crate) const WORDS: usize = 4;

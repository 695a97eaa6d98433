//! What workers write down for whoever looks inside: nothing, until asked.
//!
//! Each worker has a ring of events that it alone writes, and says which ULT
//! it runs. A reader takes what is there and drops what may have been
//! overwritten meanwhile (`inside::notes`):
//!
//! ```text
//!   writer: head := h · fence · slot[h] := event · head := h + 1
//!   reader: h := head · copy the slots · fence · keep those above head - len
//! ```
//!
//! Off, it costs one predictable branch each time that a ULT runs, is started
//! or is woken.
//!
//! Progress: writing is wait-free.

use crate::task::Task;
use alloc::boxed::Box;
use core::ptr;
use tsumugi_core::sync::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};
use tsumugi_core::time::Instant;

/// What is asked for, of all workers: to write down, or to run an urgent ULT.
pub(crate) struct Wanted(pub(crate) AtomicU32);

/// One worker's notes.
pub(crate) struct Notes {
    /// Goes up whenever a ULT is run or left.
    pub(crate) beat: AtomicU64,
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
pub(crate) enum Kind {
    Spawn,
    Run,
    Yield,
    Sleep,
    End,
    Wake,
    Steal,
    /// It came from another thread: what happened to it there, unless a worker
    /// has written that down already.
    Come,
}

/// What happened, to whom, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) at: Instant,
    pub(crate) kind: Kind,
    pub(crate) slot: u32,
    pub(crate) generation: u32,
    /// What a sleep is for, or why it came.
    pub(crate) what: &'static str,
}

impl Wanted {
    /// That events are written down.
    pub(crate) const TRACE: u32 = 2;
    /// That an urgent ULT is run; said after it was queued.
    pub(crate) const URGENT: u32 = 4;
    /// That suspensions are looked at, where the usual way does not; for good.
    pub(crate) const CHECK: u32 = 8;

    pub(crate) fn new(flags: u32) -> Self {
        Self(AtomicU32::new(flags))
    }

    /// Whether anybody looks, or an urgent ULT waits. In the model nobody looks.
    #[inline(always)]
    pub(crate) fn any(&self) -> bool {
        cfg!(not(tsumugi_loom)) && self.0.load(Ordering::Relaxed) != 0
    }

    /// Says that an urgent ULT was queued.
    pub(crate) fn ask_for_urgent(&self) {
        // Release: pairs with the Acquire in `hear_of_urgent`.
        self.0.fetch_or(Self::URGENT, Ordering::Release);
    }

    /// Takes note of it: whoever does is to look at the queue then, and whatever
    /// is queued after that look is said anew.
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
            beat: AtomicU64::new(0),
            running: AtomicPtr::new(ptr::null_mut()),
            events: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Says which ULT runs now; null for none.
    pub(crate) fn set_running(&self, task: *mut Task) {
        self.beat.store(self.beat.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        // Release: a reader that sees the ULT sees its beat.
        self.running.store(task, Ordering::Release);
    }

    /// Writes an event down. By the worker.
    pub(crate) fn record(&self, event: Event) {
        // Acquire: pairs with `set_events`.
        let events = self.events.load(Ordering::Acquire);
        // SAFETY: rings stay as long as the scheduler.
        if let Some(events) = unsafe { events.as_ref() } {
            events.push(event);
        }
    }
}

impl Events {
    pub(crate) fn push(&self, event: Event) {
        let head = self.head.load(Ordering::Relaxed);
        // Release: whoever reads what follows sees a head of at least this.
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
        // Release: the event is for the reader.
        self.head.store(head + 1, Ordering::Release);
    }

    pub(crate) fn slot(&self, index: u64) -> &[AtomicU64; WORDS] {
        &self.slots[(index % self.slots.len() as u64) as usize]
    }
}

pub(crate) const WORDS: usize = 4;

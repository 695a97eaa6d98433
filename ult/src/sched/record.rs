//! What workers write down for whoever looks inside: nothing, until asked.
//!
//! Each worker has a ring of events that it alone writes, and says which ULT
//! it runs. A reader takes what is there and drops what may have been
//! overwritten meanwhile:
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
use alloc::vec::Vec;
use core::ptr;
use tsumugi_core::sync::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};
use tsumugi_core::time::Instant;

/// What is asked for, of all workers.
pub(crate) struct Wanted(AtomicU32);

/// One worker's notes.
pub(crate) struct Notes {
    /// Goes up whenever a ULT is run or left.
    beat: AtomicU64,
    running: AtomicPtr<Task>,
    events: AtomicPtr<Events>,
}

/// A ring of events.
pub(crate) struct Events {
    head: AtomicU64,
    slots: Box<[[AtomicU64; WORDS]]>,
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
}

/// What happened, to whom, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) at: Instant,
    pub(crate) kind: Kind,
    pub(crate) slot: u32,
    pub(crate) generation: u32,
    /// What a sleep is for.
    pub(crate) what: &'static str,
}

impl Wanted {
    pub(crate) const WATCH: u32 = 1;
    pub(crate) const TRACE: u32 = 2;

    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Whether anybody looks.
    #[inline(always)]
    pub(crate) fn any(&self) -> bool {
        cfg!(not(tsumugi_loom)) && self.0.load(Ordering::Relaxed) != 0
    }

    pub(crate) fn has(&self, flag: u32) -> bool {
        self.0.load(Ordering::Relaxed) & flag != 0
    }

    /// Asks for something; false if it was asked for already.
    pub(crate) fn set(&self, flag: u32) -> bool {
        // AcqRel: the rings are set up before, and torn down after.
        self.0.fetch_or(flag, Ordering::AcqRel) & flag == 0
    }

    pub(crate) fn clear(&self, flag: u32) {
        self.0.fetch_and(!flag, Ordering::AcqRel);
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

    /// The beat, and the ULT that runs.
    pub(crate) fn running(&self) -> (u64, *mut Task) {
        // Acquire: pairs with `set_running`.
        let task = self.running.load(Ordering::Acquire);
        (self.beat.load(Ordering::Relaxed), task)
    }

    /// Gives the worker a ring. The one before is kept by whoever made it.
    pub(crate) fn set_events(&self, events: *const Events) {
        // Release: the ring is for the worker.
        self.events.store(events.cast_mut(), Ordering::Release);
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
    /// A ring of `count`, at least one.
    pub(crate) fn new(count: usize) -> Self {
        let slots = (0..count.max(1)).map(|_| core::array::from_fn(|_| AtomicU64::new(0)));
        Self { head: AtomicU64::new(0), slots: slots.collect() }
    }

    fn push(&self, event: Event) {
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

    /// What is there, the oldest first, and how many came before.
    pub(crate) fn read(&self) -> (Vec<Event>, u64) {
        let count = self.slots.len() as u64;
        // Acquire: pairs with `push`.
        let head = self.head.load(Ordering::Acquire);
        let first = head.saturating_sub(count);
        let words: Vec<[u64; WORDS]> = (first..head)
            .map(|index| self.slot(index).each_ref().map(|word| word.load(Ordering::Relaxed)))
            .collect();
        // Acquire: pairs with the Release fence in `push`.
        fence(Ordering::Acquire);
        let whole = (self.head.load(Ordering::Relaxed) + 1).saturating_sub(count).max(first);
        let events = words.iter().skip((whole - first) as usize).map(|words| Event {
            at: Instant::from_ns(words[0]),
            slot: (words[1] >> 32) as u32,
            generation: words[1] as u32,
            // SAFETY: not overwritten meanwhile, so the two are of one `str`.
            what: unsafe { text(words[2] as usize, (words[3] >> 8) as usize) },
            kind: KINDS[(words[3] & 0xff) as usize],
        });
        (events.collect(), whole)
    }

    fn slot(&self, index: u64) -> &[AtomicU64; WORDS] {
        &self.slots[(index % self.slots.len() as u64) as usize]
    }
}

/// # Safety
///
/// The two are of a `&'static str`.
unsafe fn text(start: usize, bytes: usize) -> &'static str {
    let start = ptr::with_exposed_provenance(start);
    // SAFETY: the caller's.
    unsafe { core::str::from_utf8_unchecked(core::slice::from_raw_parts(start, bytes)) }
}

const WORDS: usize = 4;
const KINDS: [Kind; 7] =
    [Kind::Spawn, Kind::Run, Kind::Yield, Kind::Sleep, Kind::End, Kind::Wake, Kind::Steal];

#[cfg(all(test, not(tsumugi_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_ring_keeps_the_youngest() {
        let events = Events::new(4);
        let event = |n: u64| Event {
            at: Instant::from_ns(n),
            kind: Kind::Sleep,
            slot: n as u32,
            generation: 2,
            what: "mutex",
        };
        (0..3).for_each(|n| events.push(event(n)));
        let (read, lost) = events.read();
        assert_eq!((read.len(), lost), (3, 0));
        assert_eq!((read[2].slot, read[2].generation, read[2].what), (2, 2, "mutex"));
        assert_eq!(read[0].kind, Kind::Sleep);
        (3..9).for_each(|n| events.push(event(n)));
        // One may be written at any moment, so one less than fits is sure.
        let (read, lost) = events.read();
        assert_eq!((read.len(), lost), (3, 6));
        assert!(read.iter().map(|event| event.slot).eq(6..9));
    }
}

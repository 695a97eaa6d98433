//! Reading what workers record of their ULTs, see `sched::record`.

use crate::sched::record::{EventKind, Events, Notes, UltEvent, WORDS, WorkerRequests};
use crate::task::Task;
use core::ptr;
use tsumugi_core::sync::{AtomicU64, Ordering, fence};
use tsumugi_core::time::Instant;

impl WorkerRequests {
    /// The flag that requests the name of each running ULT; beside
    /// [`TRACE`](Self::TRACE).
    pub(super) const WATCH: u32 = 1;

    /// Sets a flag; false if it was set already.
    pub(super) fn set(&self, flag: u32) -> bool {
        // AcqRel: the rings are set up before the flag is set, and read after it is
        // cleared.
        self.0.fetch_or(flag, Ordering::AcqRel) & flag == 0
    }

    /// Clears a flag.
    pub(super) fn clear(&self, flag: u32) {
        // AcqRel: as in `set`.
        self.0.fetch_and(!flag, Ordering::AcqRel);
    }
}

impl Notes {
    /// The count of the changes of the running ULT, and the running ULT.
    pub(super) fn running(&self) -> (u64, *mut Task) {
        // Acquire: pairs with `set_running`.
        let task = self.running.load(Ordering::Acquire);
        (self.changes.load(Ordering::Relaxed), task)
    }

    /// Gives the worker a ring. The previous ring stays allocated by the code that
    /// made it.
    pub(super) fn set_events(&self, events: *const Events) {
        // Release: the worker must see the ring's content.
        self.events.store(events.cast_mut(), Ordering::Release);
    }
}

impl Events {
    /// A ring of `count` events, at least one.
    pub(super) fn new(count: usize) -> Self {
        let slots = (0..count.max(1)).map(|_| core::array::from_fn(|_| AtomicU64::new(0)));
        Self { head: AtomicU64::new(0), slots: slots.collect() }
    }

    /// The events in the ring, the oldest first, and how many older ones were
    /// overwritten.
    pub(super) fn read(&self) -> (Vec<UltEvent>, u64) {
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
        let events = words.iter().skip((whole - first) as usize).map(|words| UltEvent {
            at: Instant::from_ns(words[0]),
            slot: (words[1] >> 32) as u32,
            generation: words[1] as u32,
            // SAFETY: the entry was not overwritten meanwhile, so the two words are
            // of one `str`.
            what: unsafe { text(words[2] as usize, (words[3] >> 8) as usize) },
            kind: KINDS[(words[3] & 0xff) as usize],
        });
        (events.collect(), whole)
    }
}

/// The text that an event's two words stand for.
///
/// # Safety
///
/// Address and length are those of one `&'static str`.
unsafe fn text(start: usize, bytes: usize) -> &'static str {
    let start = ptr::with_exposed_provenance(start);
    // SAFETY: the caller promises that the two are of one `&'static str`.
    unsafe { core::str::from_utf8_unchecked(core::slice::from_raw_parts(start, bytes)) }
}

const KINDS: [EventKind; 8] = [
    EventKind::Spawn,
    EventKind::Run,
    EventKind::Yield,
    EventKind::Sleep,
    EventKind::End,
    EventKind::Wake,
    EventKind::Steal,
    EventKind::Come,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_keeps_the_newest_events() {
        let events = Events::new(4);
        let event = |n: u64| UltEvent {
            at: Instant::from_ns(n),
            kind: EventKind::Sleep,
            slot: n as u32,
            generation: 2,
            what: "mutex",
        };
        (0..3).for_each(|n| events.push(event(n)));
        let (read, lost) = events.read();
        assert_eq!((read.len(), lost), (3, 0));
        assert_eq!((read[2].slot, read[2].generation, read[2].what), (2, 2, "mutex"));
        assert_eq!(read[0].kind, EventKind::Sleep);
        (3..9).for_each(|n| events.push(event(n)));
        // One entry may be written at any moment, so that only the ring's length less one is
        // certain.
        let (read, lost) = events.read();
        assert_eq!((read.len(), lost), (3, 6));
        assert!(read.iter().map(|event| event.slot).eq(6..9));
    }
}

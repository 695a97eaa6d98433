//! The event words of a rank's workers, and who of them sleeps.
//!
//! Whoever has made work for a rank, in any process of the node, rings: the
//! lowest set bit of `asleep` names a sleeping worker, whoever clears the bit
//! wakes that worker and nobody else does. A worker that is about to sleep
//! sets its bit before it looks for work the last time, so that one of the
//! two sees the other.
//!
//! Work that must not wait until a worker that computes comes back is rung for
//! by [`ring_helped`](Bells::ring_helped). It needs nobody while a worker
//! *attends*, that is, looks for work all the time; else it wakes a worker
//! that sleeps; else the helper, a thread behind the workers with a word of
//! its own, which no other ring wakes. A worker that ceases to attend looks
//! once more after it has said so.

use super::{EventWord, Futex, Ticket};
use crate::sync::{AtomicU32, AtomicU64, CachePadded, Ordering, edge, fence, mutant};
use core::fmt;

/// The event words of up to [`WORKERS_MAX`](Self::WORKERS_MAX) workers. Lives
/// in memory that peers see; all zeroes is nobody asleep.
#[repr(C)]
pub struct Bells {
    asleep: CachePadded<[AtomicU64; WORDS]>,
    events: [CachePadded<EventWord>; WORDS * PER_WORD],
    helper: CachePadded<EventWord>,
    attending: CachePadded<AtomicU32>,
}

impl Bells {
    /// Workers that fit.
    pub const WORKERS_MAX: usize = WORDS * PER_WORD;

    /// Nobody asleep.
    pub fn new() -> Self {
        Self {
            asleep: CachePadded::new(core::array::from_fn(|_| AtomicU64::new(0))),
            events: core::array::from_fn(|_| CachePadded::new(EventWord::new())),
            helper: CachePadded::new(EventWord::new()),
            attending: CachePadded::new(AtomicU32::new(0)),
        }
    }

    /// Worker `worker` is about to sleep. It must look for work once more and
    /// then [`sleep`](Self::sleep) or [`stay`](Self::stay).
    pub fn prepare(&self, worker: usize) -> Ticket {
        let ticket = self.event(worker).prepare();
        // SeqCst: before the last look for work; pairs with `ring`.
        self.asleep[worker / PER_WORD].fetch_or(bit(worker), Ordering::SeqCst);
        edge("bells_prepare_unordered");
        ticket
    }

    /// The worker found work after all.
    pub fn stay(&self, worker: usize) {
        self.asleep[worker / PER_WORD].fetch_and(!bit(worker), Ordering::SeqCst);
        self.event(worker).cancel();
    }

    /// Sleeps until somebody rings this worker, or the limit passes.
    pub fn sleep(
        &self,
        worker: usize,
        ticket: Ticket,
        futex: &dyn Futex,
        limit: Option<core::time::Duration>,
    ) {
        futex.wait(self.event(worker).word(), ticket.expected(), limit);
        self.stay(worker);
    }

    /// Wakes one sleeping worker, if any; call it after the work is published.
    /// One fence and a few loads when nobody sleeps.
    pub fn ring(&self, futex: &dyn Futex) -> bool {
        if !mutant("bells_no_fence") {
            // SeqCst: between the caller's publication, of whatever order, and
            // the loads below; pairs with `prepare`.
            fence(Ordering::SeqCst);
        }
        for word in 0..WORDS {
            let mut asleep = self.asleep[word].load(Ordering::SeqCst);
            while asleep != 0 {
                let worker = word * PER_WORD + asleep.trailing_zeros() as usize;
                if self.ring_one(worker, futex) {
                    return true;
                }
                asleep &= asleep - 1;
            }
        }
        false
    }

    /// The same without a fence: for a caller whose publication those who sleep
    /// here are sure to see, since each passes a barrier on all processors
    /// between [`prepare`](Self::prepare) and its last look. Loads of one line
    /// when nobody sleeps.
    #[inline]
    pub fn ring_fenced(&self, futex: &dyn Futex) {
        // Relaxed: the sleeper's barrier orders these after the publication.
        if self.asleep.iter().any(|word| word.load(Ordering::Relaxed) != 0) {
            self.ring(futex);
        }
    }

    /// Wakes this worker if it sleeps and nobody else woke it.
    pub fn ring_one(&self, worker: usize, futex: &dyn Futex) -> bool {
        let was = self.asleep[worker / PER_WORD].fetch_and(!bit(worker), Ordering::SeqCst);
        if was & bit(worker) == 0 {
            return false;
        }
        if self.event(worker).notify() {
            futex.wake(self.event(worker).word(), 1);
        }
        true
    }

    /// Nothing if a worker attends; else wakes one that sleeps; if there is
    /// none either, the helper: all workers may be busy for long. What the
    /// helper is to find is said by `before`. After the work is published by a
    /// sequentially consistent operation.
    #[inline]
    pub fn ring_helped(&self, futex: &dyn Futex, before: impl FnOnce()) {
        // SeqCst: after the publication; pairs with `leave`.
        if self.attending.load(Ordering::SeqCst) == 0 && !self.ring(futex) {
            before();
            self.ring_helper(futex);
        }
    }

    /// A worker begins to look for work all the time.
    pub fn attend(&self) {
        self.attending.fetch_add(1, Ordering::SeqCst);
    }

    /// And ceases to: it must look once more after this.
    pub fn leave(&self) {
        // SeqCst: before the look that follows; pairs with `ring_helped`.
        self.attending.fetch_sub(1, Ordering::SeqCst);
    }

    /// Wakes the helper, if it sleeps.
    pub fn ring_helper(&self, futex: &dyn Futex) {
        if self.helper.notify() {
            futex.wake(self.helper.word(), 1);
        }
    }

    /// The word on which the helper sleeps.
    pub fn helper(&self) -> &EventWord {
        &self.helper
    }

    /// Wakes every sleeping worker.
    pub fn ring_all(&self, futex: &dyn Futex) {
        while self.ring(futex) {}
    }

    /// How many workers sleep, or are about to.
    pub fn asleep(&self) -> usize {
        self.asleep.iter().map(|word| word.load(Ordering::SeqCst).count_ones() as usize).sum()
    }

    fn event(&self, worker: usize) -> &EventWord {
        &self.events[worker]
    }
}

impl Default for Bells {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Bells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bells({} asleep)", self.asleep())
    }
}

const PER_WORD: usize = match (cfg!(tsumugi_loom), cfg!(tsumugi_shuttle)) {
    (_, true) => 4,
    (true, false) => 2,
    (false, false) => 64,
};
const WORDS: usize = if cfg!(tsumugi_loom) { 1 } else { 4 };

fn bit(worker: usize) -> u64 {
    1 << (worker % PER_WORD)
}

#[cfg(all(test, not(tsumugi_loom)))]
mod tests {
    use super::*;

    struct Count(AtomicU32);

    impl Futex for Count {
        fn wait(&self, _: &AtomicU32, _: u32, _: Option<core::time::Duration>) {}
        fn wake(&self, _: &AtomicU32, _: u32) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn each_ring_wakes_one_sleeper() {
        let (bells, futex) = (Bells::new(), Count(AtomicU32::new(0)));
        assert!(!bells.ring(&futex), "nobody sleeps");
        for worker in [3, 64, 127] {
            bells.prepare(worker);
        }
        assert_eq!(bells.asleep(), 3);
        assert!(bells.ring(&futex) && bells.ring(&futex));
        bells.stay(127);
        assert!(!bells.ring(&futex));
        assert_eq!(futex.0.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn the_helper_is_woken_when_no_worker_sleeps() {
        let (bells, futex) = (Bells::new(), Count(AtomicU32::new(0)));
        bells.prepare(0);
        let ticket = bells.helper().prepare();
        assert_eq!(bells.asleep(), 1, "the helper is no worker");
        bells.attend();
        bells.ring_helped(&futex, || {});
        assert_eq!(futex.0.load(Ordering::Relaxed), 0, "somebody looks already");
        bells.leave();
        bells.ring_helped(&futex, || {});
        assert!(!bells.helper().has_changed(ticket));
        bells.ring_helped(&futex, || {});
        assert!(bells.helper().has_changed(ticket));
        bells.ring_helped(&futex, || {});
        assert_eq!(futex.0.load(Ordering::Relaxed), 2);
    }
}

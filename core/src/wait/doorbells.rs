//! The doorbells of a rank's workers: the event words on which the workers sleep,
//! and the set of workers that sleep.
//!
//! A thread of any process of the node that has made work for a rank rings: the
//! lowest set bit of `asleep` names a sleeping worker, and the thread that clears
//! the bit, and no other, wakes that worker. A worker that is about to sleep sets
//! its bit before it looks for work the last time, so that the worker sees the work
//! or the ringing thread sees the bit.
//!
//! [`ring_helped`](DoorbellSet::ring_helped) is for work that must not wait until a
//! computing worker returns. It does nothing while a worker *attends*, that is,
//! looks for work all the time. Otherwise it wakes a sleeping worker. If no worker
//! sleeps, it wakes the helper: a thread besides the workers, with an event word of
//! its own, which no other ring wakes. A worker that ceases to attend must look for
//! work once more after it has called [`leave`](DoorbellSet::leave).

use super::{EventWord, Futex, Ticket};
use crate::mutate;
use crate::sync::{AtomicU32, AtomicU64, CachePadded, Ordering, compiler_fence, edge, fence};
use core::fmt;

/// The event words of up to [`WORKERS_MAX`](Self::WORKERS_MAX) workers. Lives in
/// memory that peers can access; all zeroes: no worker sleeps.
#[repr(C)]
pub struct DoorbellSet {
    asleep: CachePadded<[AtomicU64; WORDS]>,
    events: [CachePadded<EventWord>; WORDS * PER_WORD],
    helper: CachePadded<EventWord>,
    attending: CachePadded<AtomicU32>,
}

impl DoorbellSet {
    /// The greatest number of workers.
    pub const WORKERS_MAX: usize = WORDS * PER_WORD;

    /// Bells of workers that are all awake.
    pub fn new() -> Self {
        Self {
            asleep: CachePadded::new(core::array::from_fn(|_| AtomicU64::new(0))),
            events: core::array::from_fn(|_| CachePadded::new(EventWord::new())),
            helper: CachePadded::new(EventWord::new()),
            attending: CachePadded::new(AtomicU32::new(0)),
        }
    }

    /// Announces that worker `worker` is about to sleep. The worker must look for
    /// work once more and then call [`sleep`](Self::sleep) or [`stay`](Self::stay).
    pub fn prepare(&self, worker: usize) -> Ticket {
        let ticket = self.event(worker).prepare();
        // SeqCst: before the last look for work; pairs with `ring`.
        self.asleep[worker / PER_WORD].fetch_or(bit(worker), Ordering::SeqCst);
        edge("bells_prepare_unordered");
        ticket
    }

    /// Withdraws the announcement: the worker found work after all.
    pub fn stay(&self, worker: usize) {
        self.asleep[worker / PER_WORD].fetch_and(!bit(worker), Ordering::SeqCst);
        self.event(worker).cancel();
    }

    /// Sleeps until a ring wakes this worker, or the limit passes.
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

    /// Wakes one sleeping worker, if any; the caller must publish the work before.
    /// Costs one fence and a few loads when no worker sleeps.
    pub fn ring(&self, futex: &dyn Futex) -> bool {
        // SeqCst: between the caller's publication, of whatever order, and the
        // loads below; pairs with `prepare`.
        mutate!("bells_no_fence": fence(Ordering::SeqCst) => ());
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

    /// Like [`ring`](Self::ring) without a fence: for publications that a worker is
    /// sure to see before it sleeps, because each worker executes a barrier on all
    /// processors between [`prepare`](Self::prepare) and its last look for work (an
    /// asymmetric fence). Costs loads of one cache line when no worker sleeps.
    #[inline]
    pub fn ring_fenced(&self, futex: &dyn Futex) {
        // SeqCst, of the compiler alone: the loads below stay after the publication. For
        // the processor the sleeper's barrier orders them; so they are Relaxed.
        compiler_fence(Ordering::SeqCst);
        if self.asleep.iter().any(|word| word.load(Ordering::Relaxed) != 0) {
            self.ring(futex);
        }
    }

    /// Wakes this worker if it sleeps and no other thread has woken it.
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

    /// Does nothing if a worker attends; otherwise wakes a sleeping worker; if there
    /// is none, wakes the helper, because all workers may be busy for long. `before`
    /// runs before the helper is woken, and publishes what the helper must find. The
    /// caller must have published the work by a sequentially consistent operation, or
    /// executed such a fence after that.
    #[inline]
    pub fn ring_helped(&self, futex: &dyn Futex, before: impl FnOnce()) {
        // SeqCst: after the publication; pairs with `leave`.
        if self.attending.load(Ordering::SeqCst) == 0 && !self.ring(futex) {
            before();
            self.ring_helper(futex);
        }
    }

    /// A worker begins to attend: it looks for work all the time.
    pub fn attend(&self) {
        self.attending.fetch_add(1, Ordering::SeqCst);
    }

    /// A worker ceases to attend. It must look for work once more after this call.
    pub fn leave(&self) {
        // SeqCst: before the look for work that follows; pairs with `ring_helped`.
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

    /// The number of workers that sleep, or are about to.
    pub fn asleep(&self) -> usize {
        self.asleep.iter().map(|word| word.load(Ordering::SeqCst).count_ones() as usize).sum()
    }

    fn event(&self, worker: usize) -> &EventWord {
        &self.events[worker]
    }
}

impl Default for DoorbellSet {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for DoorbellSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DoorbellSet({} asleep)", self.asleep())
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

    struct CountingFutex(AtomicU32);

    impl Futex for CountingFutex {
        fn wait(&self, _: &AtomicU32, _: u32, _: Option<core::time::Duration>) {}
        fn wake(&self, _: &AtomicU32, _: u32) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn each_ring_wakes_one_sleeper() {
        let (bells, futex) = (DoorbellSet::new(), CountingFutex(AtomicU32::new(0)));
        assert!(!bells.ring(&futex), "no thread sleeps");
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
        let (bells, futex) = (DoorbellSet::new(), CountingFutex(AtomicU32::new(0)));
        bells.prepare(0);
        let ticket = bells.helper().prepare();
        assert_eq!(bells.asleep(), 1, "the helper does not count as a worker");
        bells.attend();
        bells.ring_helped(&futex, || {});
        assert_eq!(futex.0.load(Ordering::Relaxed), 0, "a worker is already awake");
        bells.leave();
        bells.ring_helped(&futex, || {});
        assert!(!bells.helper().has_changed(ticket));
        bells.ring_helped(&futex, || {});
        assert!(bells.helper().has_changed(ticket));
        bells.ring_helped(&futex, || {});
        assert_eq!(futex.0.load(Ordering::Relaxed), 2);
    }
}

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
//! computing worker returns. It does nothing while a worker is the attendant, that is,
//! looks for work all the time ([`Attendance`]). Otherwise it wakes a sleeping worker. If
//! no worker sleeps, it wakes the helper: a thread besides the workers, with an event word
//! of its own, which no other ring wakes. [`ring_unattended`](DoorbellSet::ring_unattended)
//! is for short messages: it does nothing while any thread looks for these, and never
//! wakes the helper.

use super::attendance::Attendance;
use super::{EventWord, Futex, Ticket};
use crate::mutate;
use crate::sync::{AtomicU64, CachePadded, Ordering, compiler_fence, edge, fence};
use core::fmt;

/// The event words of up to [`WORKERS_MAX`](Self::WORKERS_MAX) workers. Lives in
/// memory that peers can access; all zeroes: no worker sleeps.
#[repr(C)]
pub struct DoorbellSet {
    asleep: CachePadded<[AtomicU64; WORDS]>,
    events: [CachePadded<EventWord>; WORDS * PER_WORD],
    helper: CachePadded<EventWord>,
    attendance: CachePadded<Attendance>,
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
            attendance: CachePadded::new(Attendance::new()),
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

    /// Like [`ring`](Self::ring) for a short message: does nothing while a thread looks for
    /// messages, because that thread sees it, and looks once more before it ceases.
    #[inline]
    pub fn ring_unattended(&self, futex: &dyn Futex) {
        // SeqCst: between the caller's publication, of whatever order, and the loads
        // below; pairs with `prepare` and with the ends of the roles in `Attendance`.
        mutate!("bells_unattended_no_fence": fence(Ordering::SeqCst) => ());
        // Relaxed: the fence is before it, and `ring` looks again.
        if self.asleep.iter().any(|word| word.load(Ordering::Relaxed) != 0)
            && !self.attendance.sees_messages()
        {
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

    /// Does nothing if there is an attendant; otherwise wakes a sleeping worker; if there
    /// is none, wakes the helper, because all workers may be busy for long. `before`
    /// runs before the helper is woken, and publishes what the helper must find. The
    /// caller must have published the work by a sequentially consistent operation, or
    /// executed such a fence after that.
    #[inline]
    pub fn ring_helped(&self, futex: &dyn Futex, before: impl FnOnce()) {
        if !self.attendance.has_attendant() && !self.ring(futex) {
            before();
            self.ring_helper(futex);
        }
    }

    /// Which threads of the rank look for work all the time.
    #[inline(always)]
    pub fn attendance(&self) -> &Attendance {
        &self.attendance
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

    /// Wakes every thread that sleeps, because a process of the node was killed. That process
    /// may have cleared the bit of a worker, or changed its event word, and not have come to
    /// wake it: no ring would find this worker. So neither bits nor words are trusted. A
    /// thread that sleeps for another reason looks for work, and sleeps again.
    ///
    /// The caller must publish the death before.
    pub fn ring_after_death(&self, futex: &dyn Futex) {
        mutate!("bells_death_trusts_bits": self.wake_all_unseen(futex) => self.ring_all(futex));
    }

    fn wake_all_unseen(&self, futex: &dyn Futex) {
        for word in &*self.asleep {
            // SeqCst: before the events. A ring that finds no bit for this reason relies on them.
            word.store(0, Ordering::SeqCst);
        }
        // SeqCst: between the death, which the caller has published, and the loads below. A
        // thread that has not prepared to sleep yet sees the death in its last look.
        fence(Ordering::SeqCst);
        for event in self.events.iter().chain([&self.helper]).filter(|event| event.is_used()) {
            // The thread that was killed may have changed the word, and woken nobody.
            let was_asleep = event.notify();
            if mutate!("bells_death_trusts_words": true => was_asleep) {
                futex.wake(event.word(), 1);
            }
        }
    }

    /// A ring by a thread that is killed before it has woken the worker.
    #[cfg(any(test, tsumugi_loom))]
    pub fn ring_cut_off(&self, worker: usize) {
        self.asleep[worker / PER_WORD].fetch_and(!bit(worker), Ordering::SeqCst);
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
    use crate::sync::AtomicU32;

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
        assert!(bells.attendance().take(1));
        bells.ring_helped(&futex, || {});
        assert_eq!(futex.0.load(Ordering::Relaxed), 0, "a worker is already awake");
        assert!(bells.attendance().leave(1));
        bells.ring_helped(&futex, || {});
        assert!(!bells.helper().has_changed(ticket));
        bells.ring_helped(&futex, || {});
        assert!(bells.helper().has_changed(ticket));
        bells.ring_helped(&futex, || {});
        assert_eq!(futex.0.load(Ordering::Relaxed), 2);
    }
}

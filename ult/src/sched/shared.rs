//! What all workers of a scheduler share, and how other threads access it.
//!
//! Threads that are no workers enter and leave through a gate, so that the end of
//! the scheduler can wait for the threads inside and refuse later ones:
//!
//! ```text
//!   gate: visitors · 4 + bits       OPEN ──close──► CLOSED ──sweep──► SWEPT
//! ```
//!
//! The sweep finds the ULTs that are left. From then on each live descriptor
//! holds a count of the `Arc` around [`Shared`], which is given up with the
//! descriptor, so that join handles may outlive the scheduler. A ULT that was cut
//! off while it slept holds one more count, which is never given up, because
//! other threads may have pointers into its stack.

use super::alarm::Alarms;
use super::guests::Guests;
use super::halt::Halt;
use super::record::{Notes, Wanted};
use super::turn::Turn;
use super::worker::Worker;
use super::{Progress, current};
use crate::bias::Bias;
use crate::check::SuspensionCheck;
use crate::deque::Deque;
use crate::fences::Fences;
use crate::futex::{SystemFutex, os_yield};
use crate::host;
use crate::inject::Inject;
use crate::lock::Lock;
use crate::mail::Mail;
use crate::offer::Offer;
use crate::slab::{Slab, Slot};
use crate::stack::Stacks;
use crate::stake::Left;
use crate::task::{End, State, Task};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Deref;
use core::ptr;
use tsumugi_core::stats::{CounterValues, Counters};
use tsumugi_core::sync::{AtomicBool, AtomicUsize, CachePadded, Ordering, mutant, shown};
use tsumugi_core::time::Instant;
use tsumugi_core::wait::DoorbellSet;

pub(crate) struct Shared {
    pub(crate) seats: Box<[Seat]>,
    pub(crate) inject: CachePadded<Inject<Task>>,
    /// Urgent ULTs, for the worker that looks first.
    pub(crate) urgent: CachePadded<Inject<Task>>,
    pub(crate) idle: Idle,
    pub(crate) fences: Fences,
    pub(crate) inline_bytes: usize,
    gate: CachePadded<AtomicUsize>,
    stop: AtomicBool,
    pub(crate) guests: Guests,
    pub(crate) hungry: Hungry,
    pub(super) alarms: Alarms,
    pub(crate) wanted: CachePadded<Wanted>,
    /// Rings of events, which workers may write to at any time.
    #[cfg(all(feature = "std", not(tsumugi_loom)))]
    pub(crate) rings: Lock<Vec<Box<[super::record::Events]>>>,
    pub(crate) halt: Halt,
    pub(crate) slab: Slab,
    pub(crate) stacks: Stacks,
    pub(crate) bells: Tower,
    pub(crate) progress: Arc<dyn Progress>,
    pub(crate) spin: u32,
    pub(crate) suspension_check: SuspensionCheck,
    epoch: host::Instant,
}

/// Workers with nothing to run.
pub(crate) struct Idle {
    /// How many workers look for work, and so need not be woken. Read by a thread
    /// that would wake one.
    pub(crate) searching: CachePadded<AtomicUsize>,
    /// How many workers sleep or are about to. Read at every push, and written
    /// seldom.
    pub(crate) sleepers: CachePadded<AtomicUsize>,
}

/// The shared data of one worker: its owner pushes, thieves take.
pub(crate) struct Seat {
    pub(super) place: CachePadded<Place>,
    /// A slot through which a spinning worker is handed a ULT that ran there last.
    pub(crate) mail: Mail<Task>,
    /// A slot with the oldest ULTs of `ready`, for a worker that has nothing.
    pub(crate) offer: Offer<Task>,
    /// New and woken ULTs, the youngest first.
    pub(crate) ready: Deque<Task>,
    /// ULTs that yielded, and ULTs from outside, the oldest first.
    pub(crate) yielded: Deque<Task>,
    /// ULTs that must run on this worker, pushed by other threads.
    pub(crate) pinned: Inject<Task>,
    pub(crate) counters: Counters,
    pub(crate) notes: CachePadded<Notes>,
}

/// What the worker writes at every switch.
pub(super) struct Place {
    /// The bias of the park words, and this worker's turn. Only the bias of the
    /// first seat is used: in a scheduler of one worker, that worker is its owner.
    pub(super) parks: Bias<Turn>,
    /// The ULT that runs; null while the hub runs.
    pub(super) current: shown::AtomicPtr<Task>,
}

/// The bells (doorbells), in this process's memory or in memory that peers access.
pub(crate) enum Tower {
    Own(Box<DoorbellSet>),
    Given(&'static DoorbellSet),
}

/// New ULTs for which there was no stack.
pub(crate) struct Hungry {
    count: AtomicUsize,
    queue: Lock<VecDeque<Slot>>,
}

/// The stay of a thread that is no worker. The end of the scheduler waits for it.
pub(crate) struct Visit<'a>(&'a AtomicUsize);

// SAFETY: the fields that are not `Send` are pointers to tasks, which are
// accessed by the tasks' own rules.
unsafe impl Send for Shared {}
// SAFETY: as for `Send`; the calls of a seat that only its owner may make are
// `unsafe fn`.
unsafe impl Sync for Shared {}

impl Shared {
    pub(crate) fn new(
        workers: usize,
        stacks: Stacks,
        bells: Tower,
        progress: Arc<dyn Progress>,
        spin: u32,
        inline_bytes: usize,
    ) -> Self {
        let fences = Fences::of_system();
        Self {
            seats: (0..workers).map(|_| Seat::new(workers > 1, fences)).collect(),
            inject: CachePadded::new(Inject::new()),
            urgent: CachePadded::new(Inject::new()),
            idle: Idle {
                searching: CachePadded::new(AtomicUsize::new(0)),
                sleepers: CachePadded::new(AtomicUsize::new(0)),
            },
            fences,
            inline_bytes,
            gate: CachePadded::new(AtomicUsize::new(0)),
            stop: AtomicBool::new(false),
            guests: Guests::new(),
            hungry: Hungry { count: AtomicUsize::new(0), queue: Lock::new(VecDeque::new()) },
            alarms: Alarms::new(),
            wanted: CachePadded::new(Wanted::new(0)),
            #[cfg(all(feature = "std", not(tsumugi_loom)))]
            rings: Lock::new(Vec::new()),
            halt: Halt::new(),
            slab: Slab::new(),
            stacks,
            bells,
            progress,
            spin,
            suspension_check: SuspensionCheck::Off,
            epoch: host::Instant::now(),
        }
    }

    /// Sets which check of suspensions is done. Called before there are any.
    pub(super) fn check_suspensions(&mut self, check: SuspensionCheck) {
        self.suspension_check = check;
        if cfg!(not(debug_assertions)) && check != SuspensionCheck::Off {
            self.wanted = CachePadded::new(Wanted::new(Wanted::CHECK));
        }
    }

    /// The address that tasks store as their home.
    pub(crate) fn home(&self) -> *const () {
        (self as *const Self).cast()
    }

    pub(crate) fn now(&self) -> Instant {
        Instant::from_ns(self.epoch.elapsed().as_nanos() as u64)
    }

    /// Converts a time of the system's clock to the scheduler's clock.
    pub(crate) fn at(&self, instant: host::Instant) -> Instant {
        Instant::from_ns(instant.saturating_duration_since(self.epoch).as_nanos() as u64)
    }

    /// The bias of the park words.
    #[inline(always)]
    pub(super) fn parks(&self) -> &Bias<Turn> {
        &self.seats[0].place.parks
    }

    /// Returns what each worker has counted so far.
    pub(crate) fn counts(&self) -> impl Iterator<Item = CounterValues> {
        // SAFETY: the pointer is this thread's own worker.
        if let Some(worker) = current::worker().map(|worker| unsafe { worker.as_ref() })
            && self.has(worker)
        {
            worker.tell();
        }
        self.seats.iter().map(|seat| seat.counters.snapshot())
    }

    /// Whether this ULT runs on a worker.
    pub(super) fn runs(&self, task: &Task) -> bool {
        let current = |seat: &Seat| seat.place.current.load(Ordering::Relaxed);
        self.seats.iter().any(|seat| ptr::eq(current(seat), task))
    }

    /// Whether any queue has a ULT. Called by a worker that is about to sleep.
    pub(crate) fn has_ready(&self) -> bool {
        !self.inject.is_empty()
            || !self.urgent.is_empty()
            || self.seats.iter().any(|seat| {
                seat.offer.is_full() || !seat.ready.is_empty() || !seat.yielded.is_empty()
            })
    }

    /// Whether an urgent ULT waits, or the slow path is to be taken for another
    /// reason.
    #[inline(always)]
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.any() || cfg!(tsumugi_loom) && self.wanted.has(Wanted::URGENT)
    }

    pub(crate) fn is_stopped(&self) -> bool {
        // Acquire: pairs with `stop_workers`, because main's result is read after
        // this.
        let order = if mutant("stop_relaxed") { Ordering::Relaxed } else { Ordering::Acquire };
        self.stop.load(order)
    }

    /// Ends the workers at their next turn.
    pub(super) fn stop_workers(&self) {
        // Release: pairs with the Acquire in `is_stopped`.
        self.stop.store(true, Ordering::Release);
        self.bells.ring_all(&SystemFutex);
    }

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
    pub(crate) unsafe fn release(slot: Slot) {
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
    unsafe fn release_outside(home: *const Self, slot: Slot) {
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
        self.slab.each(|task| {
            let Some(state) = task.state() else { return };
            // SAFETY: `self` is in an `Arc`, alive.
            unsafe { Arc::increment_strong_count(Arc::as_ptr(self)) };
            if state != State::Done {
                unfinished.push(Slot::from(task));
            }
            if !matches!(state, State::Done | State::New) {
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
                Some(Left::all(slot.as_ref().head()?.set_stake(ptr::null_mut())))
            })
            .flatten()
            .collect();
        // Release: pairs with the Acquire in `release_outside`.
        self.gate.fetch_or(SWEPT, Ordering::Release);
        left.into_iter().for_each(Left::pass_on);
        for slot in unfinished {
            // SAFETY: the descriptor is alive, and no worker will run its ULT.
            let task = unsafe { slot.as_ref() };
            // SAFETY: as above.
            unsafe { task.cancel() };
            match task.end() {
                End::Alone => {}
                End::Joined(waker) => waker.wake(),
                End::Detached => {
                    task.drop_result();
                    // SAFETY: neither a handle nor the ULT is left.
                    unsafe { Self::release(slot) };
                }
            }
        }
    }

    #[inline(always)]
    pub(super) fn has(&self, worker: &Worker) -> bool {
        ptr::eq(self, worker.home())
    }
}

impl Seat {
    fn new(shared: bool, fences: Fences) -> Self {
        Self {
            place: CachePadded::new(Place {
                parks: Bias::through(Turn::new()),
                current: shown::AtomicPtr::new(ptr::null_mut()),
            }),
            mail: Mail::new(),
            offer: Offer::new(shared, fences),
            ready: Deque::new(SLOTS, shared, fences),
            yielded: Deque::new(SLOTS, shared, fences),
            pinned: Inject::new(),
            counters: Counters::new(),
            notes: CachePadded::new(Notes::new()),
        }
    }
}

impl Hungry {
    pub(crate) fn push(&self, slot: Slot) {
        self.queue.with(|queue| queue.push_back(slot));
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes the ULT that waits longest, if `can` returns true for it: it can run
    /// now.
    pub(crate) fn pop(&self, can: impl FnOnce(Slot) -> bool) -> Option<Slot> {
        let slot = self.queue.with(|queue| {
            let first = *queue.front()?;
            if can(first) { queue.pop_front() } else { None }
        })?;
        self.count.fetch_sub(1, Ordering::Relaxed);
        Some(slot)
    }

    /// Whether `can` returns true for the ULT that waits longest.
    pub(crate) fn is_first(&self, can: impl FnOnce(Slot) -> bool) -> bool {
        self.queue.with(|queue| queue.front().is_some_and(|slot| can(*slot)))
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }
}

impl Tower {
    #[cfg(not(tsumugi_loom))]
    pub(crate) fn own() -> Self {
        // In place: the bells are 32 KiB, and a scheduler may be made on a ULT.
        // SAFETY: a value of all zeroes is valid: no worker is asleep.
        Self::Own(unsafe { Box::<DoorbellSet>::new_zeroed().assume_init() })
    }

    #[cfg(tsumugi_loom)]
    pub(crate) fn own() -> Self {
        Self::Own(Box::default())
    }
}

impl Deref for Tower {
    type Target = DoorbellSet;
    #[inline(always)]
    fn deref(&self) -> &DoorbellSet {
        match self {
            Self::Own(bells) => bells,
            Self::Given(bells) => bells,
        }
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
/// Number of entries that a deque has before it grows.
pub(crate) const SLOTS: usize = if cfg!(tsumugi_loom) { 2 } else { 256 };

//! What all workers of a scheduler share, and how others reach it.
//!
//! Threads that are no workers come and go through a gate, so that the end of
//! the scheduler can wait for those inside and turn the later ones away:
//!
//! ```text
//!   gate: visitors · 4 + bits       OPEN ──close──► CLOSED ──sweep──► SWEPT
//! ```
//!
//! The sweep finds what is left. Each live descriptor then holds a count of
//! the `Arc` round [`Shared`], given up with the descriptor, so that join
//! handles may outlive the scheduler. A ULT that was cut off in its sleep
//! holds one that is never given up: others may point into its stack.

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
use tsumugi_core::stats::{Counters, Counts};
use tsumugi_core::sync::{AtomicBool, AtomicUsize, CachePadded, Ordering, mutant, shown};
use tsumugi_core::time::Instant;
use tsumugi_core::wait::Bells;

pub(crate) struct Shared {
    pub(crate) seats: Box<[Seat]>,
    pub(crate) inject: CachePadded<Inject<Task>>,
    /// Urgent ULTs, for whichever worker looks first.
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
    /// Those that look for work, and so need not be woken. Read by who would
    /// wake one.
    pub(crate) searching: CachePadded<AtomicUsize>,
    /// Those that sleep or are about to. Read at every push, and written seldom.
    pub(crate) sleepers: CachePadded<AtomicUsize>,
}

/// One worker's share: its owner pushes, thieves take.
pub(crate) struct Seat {
    pub(super) place: CachePadded<Place>,
    /// Where a spinning worker is handed a ULT that ran there last.
    pub(crate) mail: Mail<Task>,
    /// The oldest of `ready`, for whoever has nothing.
    pub(crate) offer: Offer<Task>,
    /// New and woken ULTs, the youngest first.
    pub(crate) ready: Deque<Task>,
    /// Those that let others run, and those from outside, the oldest first.
    pub(crate) yielded: Deque<Task>,
    /// ULTs that must run here, from other threads.
    pub(crate) pinned: Inject<Task>,
    pub(crate) counters: Counters,
    pub(crate) notes: CachePadded<Notes>,
}

/// What its worker writes at every switch.
pub(super) struct Place {
    /// Whose the park words are: of a scheduler of one worker, that worker's.
    pub(super) parks: Bias<Turn>,
    /// The ULT that runs; null while the worker itself does.
    pub(super) current: shown::AtomicPtr<Task>,
}

/// The bells, here or in memory that peers see.
pub(crate) enum Tower {
    Own(Box<Bells>),
    Given(&'static Bells),
}

/// New ULTs for which there was no stack.
pub(crate) struct Hungry {
    count: AtomicUsize,
    queue: Lock<VecDeque<Slot>>,
}

/// A stay of a thread that is no worker.
pub(crate) struct Visit<'a>(&'a AtomicUsize);

// SAFETY: the pieces that are not are pointers to tasks, with rules of their own.
unsafe impl Send for Shared {}
// SAFETY: the same; owner-only calls of the seats are `unsafe fn`.
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

    /// Has suspensions looked at, before there are any.
    pub(super) fn check_suspensions(&mut self, check: SuspensionCheck) {
        self.suspension_check = check;
        if cfg!(not(debug_assertions)) && check != SuspensionCheck::Off {
            self.wanted = CachePadded::new(Wanted::new(Wanted::CHECK));
        }
    }

    /// What tasks call home.
    pub(crate) fn home(&self) -> *const () {
        (self as *const Self).cast()
    }

    pub(crate) fn now(&self) -> Instant {
        Instant::from_ns(self.epoch.elapsed().as_nanos() as u64)
    }

    /// A point of the system's clock on the scheduler's.
    pub(crate) fn at(&self, instant: host::Instant) -> Instant {
        Instant::from_ns(instant.saturating_duration_since(self.epoch).as_nanos() as u64)
    }

    /// Whose the park words are.
    #[inline(always)]
    pub(super) fn parks(&self) -> &Bias<Turn> {
        &self.seats[0].place.parks
    }

    /// What each worker has done so far.
    pub(crate) fn counts(&self) -> impl Iterator<Item = Counts> {
        // SAFETY: this thread's worker.
        if let Some(worker) = current::worker().map(|worker| unsafe { worker.as_ref() })
            && self.has(worker)
        {
            worker.tell();
        }
        self.seats.iter().map(|seat| seat.counters.snapshot())
    }

    /// Whether a worker has this ULT on it.
    pub(super) fn runs(&self, task: &Task) -> bool {
        let current = |seat: &Seat| seat.place.current.load(Ordering::Relaxed);
        self.seats.iter().any(|seat| ptr::eq(current(seat), task))
    }

    /// Whether any queue holds something, for a worker about to sleep.
    pub(crate) fn has_ready(&self) -> bool {
        !self.inject.is_empty()
            || !self.urgent.is_empty()
            || self.seats.iter().any(|seat| {
                seat.offer.is_full() || !seat.ready.is_empty() || !seat.yielded.is_empty()
            })
    }

    /// Whether there is something that comes before what is queued.
    #[inline(always)]
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.any() || cfg!(tsumugi_loom) && self.wanted.has(Wanted::URGENT)
    }

    pub(crate) fn is_stopped(&self) -> bool {
        // Acquire: pairs with `stop`: main's result is to be read.
        let order = if mutant("stop_relaxed") { Ordering::Relaxed } else { Ordering::Acquire };
        self.stop.load(order)
    }

    /// Ends the workers at their next turn.
    pub(super) fn stop_workers(&self) {
        // Release: pairs with the Acquire in `is_stopped`.
        self.stop.store(true, Ordering::Release);
        self.bells.ring_all(&SystemFutex);
    }

    /// Lets a thread in that is no worker; `None` once the scheduler ended.
    pub(crate) fn visit(&self) -> Option<Visit<'_>> {
        // Acquire: pairs with `close`.
        let gate = self.gate.fetch_add(VISITOR, Ordering::Acquire);
        let visit = Visit(&self.gate);
        (gate & CLOSED == 0).then_some(visit)
    }

    /// Gives a slot back whose handle and ULT are both done with it.
    ///
    /// # Safety
    ///
    /// Nobody uses the task any more; its result is gone.
    #[inline]
    pub(crate) unsafe fn release(slot: Slot) {
        // SAFETY: not released yet, so alive.
        let home = unsafe { slot.as_ref() }.home().cast::<Self>();
        // SAFETY: a live descriptor keeps its home, see the module.
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
        // Acquire: pairs with the end of the sweep.
        while shared.gate.load(Ordering::Acquire) & SWEPT == 0 {
            os_yield();
        }
        // SAFETY: the caller's; the sweep gave this descriptor a count.
        unsafe {
            shared.slab.put_shared(slot);
            Arc::decrement_strong_count(home);
        }
    }

    /// Turns visitors away, waits for those inside, and cuts off what is left.
    ///
    /// # Safety
    ///
    /// All workers have ended; `self` is in the `Arc` given; once.
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
                // Never given up: see the module.
                // SAFETY: as above.
                unsafe { Arc::increment_strong_count(Arc::as_ptr(self)) };
            }
        });
        if !abandoned {
            // SAFETY: the workers are gone, and no ULT is half-way.
            unsafe { self.stacks.release() };
        }
        // All leave before any passes on: else to one another.
        let left: Vec<_> = unfinished
            .iter()
            // SAFETY: no worker will run it; if it is on a stack, that stays.
            .filter_map(|slot| unsafe {
                Some(Left::all(slot.as_ref().head()?.set_stake(ptr::null_mut())))
            })
            .flatten()
            .collect();
        // Release: pairs with the Acquire in `release`.
        self.gate.fetch_or(SWEPT, Ordering::Release);
        left.into_iter().for_each(Left::pass_on);
        for slot in unfinished {
            // SAFETY: alive, and no worker will run it.
            let task = unsafe { slot.as_ref() };
            // SAFETY: as above.
            unsafe { task.cancel() };
            match task.end() {
                End::Alone => {}
                End::Joined(waker) => waker.wake(),
                End::Detached => {
                    task.drop_result();
                    // SAFETY: neither handle nor ULT is left.
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

    /// Takes the one that waits longest, if `can` says that it can run now.
    pub(crate) fn pop(&self, can: impl FnOnce(Slot) -> bool) -> Option<Slot> {
        let slot = self.queue.with(|queue| {
            let first = *queue.front()?;
            if can(first) { queue.pop_front() } else { None }
        })?;
        self.count.fetch_sub(1, Ordering::Relaxed);
        Some(slot)
    }

    /// What `can` says about the one that waits longest.
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
        // In place: they are 32 KiB, and a scheduler may be made on a ULT.
        // SAFETY: all zeroes is nobody asleep.
        Self::Own(unsafe { Box::<Bells>::new_zeroed().assume_init() })
    }

    #[cfg(tsumugi_loom)]
    pub(crate) fn own() -> Self {
        Self::Own(Box::default())
    }
}

impl Deref for Tower {
    type Target = Bells;
    #[inline(always)]
    fn deref(&self) -> &Bells {
        match self {
            Self::Own(bells) => bells,
            Self::Given(bells) => bells,
        }
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `close`. The last touch.
        self.0.fetch_sub(VISITOR, Ordering::Release);
    }
}

const CLOSED: usize = 1;
const SWEPT: usize = 2;
const VISITOR: usize = 4;
/// Room in a deque before it grows.
pub(crate) const SLOTS: usize = if cfg!(tsumugi_loom) { 2 } else { 256 };

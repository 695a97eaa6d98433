//! A flag that a signal handler may raise.
//!
//! ```text
//!   EMPTY ──wait──► WAITED ──raise──► WAITED + RAISED ──a wake──► RAISED
//!     │                                                            │ ▲
//!     └──────────────────────────raise─────────────────────────────┼─┘
//!     ▲◄────────────────────────take, end of wait──────────────────┘
//! ```
//!
//! The caller of `raise` that adds RAISED to WAITED owns the sleeper, and takes
//! WAITED away after it has taken the sleeper out.
//!
//! A handler interrupts a thread anywhere: in the allocator, while it holds a
//! lock, on a worker in the middle of an operation on its own queues. So `raise`
//! takes no lock, allocates nothing, and does not depend on which thread runs it.
//! Of a scheduler it accesses only what any thread from outside may access. It
//! consists of a few atomic instructions and at most one system call.
//!
//! Progress: `raise` and `take` are lock-free.

use crate::futex::os_yield;
use crate::host;
use crate::park::{Here, ult};
use crate::sched::shared::SchedulerShared;
use crate::slab::TaskSlot;
use core::fmt;
use tsumugi_core::mutate;
use tsumugi_core::sync::{AtomicBool, AtomicU32, Ordering, UnsafeCell};
use tsumugi_core::wait::{Reason, Wait, Waker};

/// One bit that any thread or signal handler sets, and for which one ULT or OS
/// thread at a time waits. A flag that is raised twice before it is taken is
/// raised once.
///
/// ```
/// use tsumugi_ult::sync::Flag;
///
/// static RELOAD: Flag = Flag::new();
/// // In a handler: RELOAD.raise();
/// # RELOAD.raise();
/// RELOAD.wait();
/// assert!(!RELOAD.take());
/// ```
pub struct Flag {
    state: AtomicU32,
    /// True while a thread is in `wait`: no other one writes the sleeper.
    is_waited_for: AtomicBool,
    /// The sleeper, while a thread waits. It belongs to the caller of `raise`
    /// that ends the wait.
    sleeper: UnsafeCell<Option<FlagWaiter>>,
}

/// The waiter of a flag.
enum FlagWaiter {
    Ult(TaskSlot),
    Other(Waker),
}

// SAFETY: the thread that is in `wait` writes the sleeper before it sets WAITED.
// From then on only the thread that adds RAISED accesses it; see the module.
unsafe impl Send for Flag {}
// SAFETY: as for `Send`.
unsafe impl Sync for Flag {}

impl Flag {
    /// Makes a flag that is not raised.
    #[cfg(not(tsumugi_loom))]
    pub const fn new() -> Self {
        Self {
            state: AtomicU32::new(EMPTY),
            is_waited_for: AtomicBool::new(false),
            sleeper: UnsafeCell::new(None),
        }
    }

    /// Makes a flag that is not raised.
    #[cfg(tsumugi_loom)]
    pub fn new() -> Self {
        Self {
            state: AtomicU32::new(EMPTY),
            is_waited_for: AtomicBool::new(false),
            sleeper: UnsafeCell::new(None),
        }
    }

    /// Raises the flag, and wakes the waiter, if there is one. Async-signal-safe,
    /// unless the waiter is a task of a foreign scheduler with an unpark that is
    /// not. Lock-free.
    pub fn raise(&self) {
        let order = mutate!("flag_raise_unreleased": Ordering::AcqRel => Ordering::Acquire);
        let order = mutate!("flag_raise_unacquired": order => Ordering::Release);
        // AcqRel: acquires the sleeper from the thread that has published it, and
        // releases what was done before the raise to the waiter.
        if self.state.fetch_or(RAISED, order) != WAITED {
            return;
        }
        // SAFETY: the sleeper was published, and since the exchange only this
        // thread accesses it.
        let sleeper = self.sleeper.with_mut(|sleeper| unsafe { (*sleeper).take() });
        // Release: the sleeper's place is free for the next waiter; pairs with
        // `leave`. For the waiter that is woken, the wake itself has the ordering.
        let order = mutate!("flag_freed_relaxed": Ordering::Release => Ordering::Relaxed);
        self.state.fetch_and(!WAITED, order);
        host::keep_errno(|| match sleeper {
            // SAFETY: the slot stands for the ULT's waker, which is used up here.
            Some(FlagWaiter::Ult(slot)) => unsafe { SchedulerShared::wake_from_outside(slot) },
            Some(FlagWaiter::Other(waker)) => waker.wake(),
            None => {}
        });
    }

    /// Takes the flag: lowers it, and returns whether it was raised since it was
    /// last taken. Lock-free.
    pub fn take(&self) -> bool {
        // Acquire: pairs with `raise`.
        let order = mutate!("flag_take_relaxed": Ordering::Acquire => Ordering::Relaxed);
        self.state.compare_exchange(RAISED, EMPTY, order, Ordering::Relaxed).is_ok()
    }

    /// Sleeps until the flag is raised, and takes it.
    ///
    /// # Panics
    ///
    /// If another thread waits already.
    pub fn wait(&self) {
        // Acquire: pairs with the Release of the waiter before.
        let order = mutate!("flag_next_relaxed": Ordering::Acquire => Ordering::Relaxed);
        let is_taken = self.is_waited_for.swap(true, order);
        assert!(!is_taken, "another thread waits for this flag: a flag has one waiter at a time");
        while !self.take() {
            let slot = ult();
            let mut publish = |waker| self.publish(slot, waker);
            // SAFETY: the thread that takes WAITED away uses the waker, or drops it.
            unsafe {
                Here.sleep_or_leave(Reason::new("flag"), &mut publish, &mut || self.leave());
            }
        }
        // Release: the sleeper's place is free for the next waiter; pairs with
        // its Acquire.
        let order = mutate!("flag_over_relaxed": Ordering::Release => Ordering::Relaxed);
        self.is_waited_for.store(false, order);
    }

    /// Called for a waiter that was cut off: another one may wait from here on.
    fn leave(&self) {
        let order = mutate!("flag_leave_relaxed": Ordering::Acquire => Ordering::Relaxed);
        // Acquire: pairs with `raise`, which has taken the sleeper out.
        while mutate!("flag_leave_blind": self.state.load(order) & WAITED != 0 => false) {
            let left =
                self.state.compare_exchange(WAITED, EMPTY, Ordering::Relaxed, Ordering::Relaxed);
            if left.is_err() {
                // A thread has added RAISED, and is about to take WAITED away.
                os_yield();
            }
        }
        // Release: as in `wait`.
        self.is_waited_for.store(false, Ordering::Release);
    }

    /// Publishes the sleeper for the thread that raises the flag; false if it was
    /// raised already.
    fn publish(&self, slot: Option<TaskSlot>, waker: Waker) -> bool {
        let sleeper = match slot {
            Some(slot) => FlagWaiter::Ult(slot),
            None => FlagWaiter::Other(waker),
        };
        // SAFETY: only one thread is in `wait`, so no other one accesses the
        // sleeper until it is published.
        self.sleeper.with_mut(|place| unsafe { *place = Some(sleeper) });
        // Release: publishes the sleeper; pairs with `raise`.
        let order = mutate!("flag_publish_relaxed": Ordering::Release => Ordering::Relaxed);
        mutate!("flag_no_second_look":
            self.state.compare_exchange(EMPTY, WAITED, order, Ordering::Relaxed).is_ok()
            => {
                self.state.store(WAITED, Ordering::Release);
                true
            }
        )
    }
}

impl Default for Flag {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Flag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.state.load(Ordering::Relaxed) {
            EMPTY => "Flag(not raised)",
            WAITED => "Flag(waited for)",
            _ => "Flag(raised)",
        })
    }
}

const EMPTY: u32 = 0;
const WAITED: u32 = 1;
const RAISED: u32 = 2;

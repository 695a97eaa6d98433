//! A flag that a signal handler may raise.
//!
//! ```text
//!   EMPTY ──wait──► WAITED ──raise──► WAITED + RAISED ──a wake──► RAISED
//!     │                                                            │ ▲
//!     └──────────────────────────raise─────────────────────────────┼─┘
//!     ▲◄────────────────────────take, end of wait──────────────────┘
//! ```
//!
//! Who adds RAISED to WAITED has the sleeper, and takes WAITED away once it has
//! taken the sleeper out.
//!
//! A handler interrupts a thread anywhere: in the allocator, with a lock in its
//! hands, on a worker between two steps of its own queues. So `raise` takes no
//! lock, allocates nothing, never asks on which thread it runs, and touches of
//! a scheduler only what any thread from outside may: it is a few atomic
//! instructions and, at most, one system call.
//!
//! Progress: `raise` and `take` are lock-free.

use crate::futex::os_yield;
use crate::host;
use crate::park::{Here, ult};
use crate::sched::shared::Shared;
use crate::slab::Slot;
use core::fmt;
use tsumugi_core::sync::{AtomicBool, AtomicU32, Ordering, UnsafeCell, mutant};
use tsumugi_core::wait::{Reason, Wait, Waker};

/// One bit that a signal handler, or anybody else, sets, and that one ULT or OS
/// thread at a time waits for. Raised twice before it is taken is raised once.
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
    /// Somebody is in `wait`: nobody else writes the sleeper.
    is_waited_for: AtomicBool,
    /// While somebody waits: of whoever ends that.
    sleeper: UnsafeCell<Option<Sleeper>>,
}

/// Who waits.
enum Sleeper {
    Ult(Slot),
    Other(Waker),
}

// SAFETY: the sleeper is written by the one who is in `wait`, before it says
// WAITED, and is then that of the one who adds RAISED; see the module.
unsafe impl Send for Flag {}
// SAFETY: the same.
unsafe impl Sync for Flag {}

impl Flag {
    /// Not raised.
    #[cfg(not(tsumugi_loom))]
    pub const fn new() -> Self {
        Self {
            state: AtomicU32::new(EMPTY),
            is_waited_for: AtomicBool::new(false),
            sleeper: UnsafeCell::new(None),
        }
    }

    /// Not raised.
    #[cfg(tsumugi_loom)]
    pub fn new() -> Self {
        Self {
            state: AtomicU32::new(EMPTY),
            is_waited_for: AtomicBool::new(false),
            sleeper: UnsafeCell::new(None),
        }
    }

    /// Raises it, and wakes whoever waits. Async-signal-safe, unless the waiter
    /// is a task of a foreign scheduler whose unpark is not. Lock-free.
    pub fn raise(&self) {
        let order = if mutant("flag_raise_unacquired") {
            Ordering::Release
        } else {
            less("flag_raise_unreleased", Ordering::AcqRel)
        };
        // AcqRel: takes over the sleeper from who has published it, and what
        // was done before is seen after the wait.
        if self.state.fetch_or(RAISED, order) != WAITED {
            return;
        }
        // SAFETY: published, and ours alone since the exchange.
        let sleeper = self.sleeper.with_mut(|sleeper| unsafe { (*sleeper).take() });
        // Release: the sleeper's place is free for the next; pairs with `leave`. Who
        // is woken has the waker's word for it.
        self.state.fetch_and(!WAITED, less("flag_freed_relaxed", Ordering::Release));
        host::keep_errno(|| match sleeper {
            // SAFETY: this is its waker, used up.
            Some(Sleeper::Ult(slot)) => unsafe { Shared::wake_from_outside(slot) },
            Some(Sleeper::Other(waker)) => waker.wake(),
            None => {}
        });
    }

    /// Whether it was raised since it was last taken; takes it. Lock-free.
    pub fn take(&self) -> bool {
        // Acquire: pairs with `raise`.
        let order = less("flag_take_relaxed", Ordering::Acquire);
        self.state.compare_exchange(RAISED, EMPTY, order, Ordering::Relaxed).is_ok()
    }

    /// Sleeps until it is raised, and takes it.
    ///
    /// # Panics
    ///
    /// If another waits already.
    pub fn wait(&self) {
        // Acquire: pairs with the Release of the one before.
        let order = less("flag_next_relaxed", Ordering::Acquire);
        let is_taken = self.is_waited_for.swap(true, order);
        assert!(!is_taken, "a flag is waited for by one at a time");
        while !self.take() {
            let slot = ult();
            let mut publish = |waker| self.publish(slot, waker);
            // SAFETY: who takes WAITED away uses the waker, or drops it.
            unsafe {
                Here.sleep_or_leave(Reason::new("flag"), &mut publish, &mut || self.leave());
            }
        }
        // Release: the sleeper's place is the next one's; pairs with its Acquire.
        self.is_waited_for.store(false, less("flag_over_relaxed", Ordering::Release));
    }

    /// The waiter was cut off: another may wait.
    fn leave(&self) {
        let order = less("flag_leave_relaxed", Ordering::Acquire);
        // Acquire: pairs with `raise`, which has taken the sleeper out.
        while !mutant("flag_leave_blind") && self.state.load(order) & WAITED != 0 {
            let left =
                self.state.compare_exchange(WAITED, EMPTY, Ordering::Relaxed, Ordering::Relaxed);
            if left.is_err() {
                // Whoever raises it is about to.
                os_yield();
            }
        }
        // Release: as in `wait`.
        self.is_waited_for.store(false, Ordering::Release);
    }

    /// Leaves word for whoever raises it; false if somebody has.
    fn publish(&self, slot: Option<Slot>, waker: Waker) -> bool {
        let sleeper = match slot {
            Some(slot) => Sleeper::Ult(slot),
            None => Sleeper::Other(waker),
        };
        // SAFETY: nobody else is in `wait`, so it is ours until it is published.
        self.sleeper.with_mut(|place| unsafe { *place = Some(sleeper) });
        if mutant("flag_no_second_look") {
            self.state.store(WAITED, Ordering::Release);
            return true;
        }
        // Release: publishes the sleeper; pairs with `raise`.
        let order = less("flag_publish_relaxed", Ordering::Release);
        self.state.compare_exchange(EMPTY, WAITED, order, Ordering::Relaxed).is_ok()
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

/// `order`; with the defect planted, AcqRel without its release, and Relaxed in the
/// place of any other.
fn less(defect: &'static str, order: Ordering) -> Ordering {
    match order {
        _ if !mutant(defect) => order,
        Ordering::AcqRel => Ordering::Acquire,
        _ => Ordering::Relaxed,
    }
}

const EMPTY: u32 = 0;
const WAITED: u32 = 1;
const RAISED: u32 = 2;

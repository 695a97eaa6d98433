//! A sleep that one of two sides can end: the event, or an interruption.
//!
//! ```text
//!            fall_asleep                   wake
//!   AWAKE ──────────────► ASLEEP ─────────────────► WOKEN
//!     │ ▲                    │ interrupt              ▲ ▲
//!     │ └ interrupt          ▼                        │ │
//!     │   comes first ──► TIMED_OUT, CANCELLED ───────┘ │ wake
//!     └─────────────────────────────────────────────────┘
//! ```
//!
//! The thread that changes the state away from `ASLEEP` takes the real waker and
//! uses it, so the sleeper is woken once. An interrupted sleeper then withdraws what
//! it published, under the lock of the structure to which it published. If that is
//! gone, the event has it and its wake is on the way; the sleeper then falls asleep
//! again until that wake comes (`sleep_on`). So the event and the interruption never
//! both count.
//!
//! Progress: `wake` and `fall_asleep` are wait-free, `interrupt` is lock-free.

use super::{Interrupted, Waker};
use crate::mutate;
use crate::sync::{AtomicU32, Ordering, UnsafeCell};
use core::fmt;

/// One sleep that may be interrupted, on the sleeper's stack.
pub struct Race {
    word: AtomicU32,
    waker: UnsafeCell<Option<Waker>>,
}

// SAFETY: only the sleeper writes the waker, as `fall_asleep` and `sleep_on` demand,
// before it sets ASLEEP; only the thread that takes ASLEEP away takes the waker.
unsafe impl Send for Race {}
// SAFETY: the same.
unsafe impl Sync for Race {}

impl Race {
    /// A race before its sleep.
    pub fn new() -> Self {
        Self { word: AtomicU32::new(AWAKE), waker: UnsafeCell::new(None) }
    }

    /// The waker to publish: it ends this sleep, whether or not the sleep has begun.
    ///
    /// # Safety
    ///
    /// The race stays at its place until the waker was woken or will never be.
    pub unsafe fn waker(&self) -> Waker {
        // SAFETY: the caller promises that the race outlives the waker.
        unsafe { Waker::new((self as *const Self).cast(), wake) }
    }

    /// Begins the sleep that `waker` ends. Returns false if the sleep has ended
    /// already; then `waker` is never used.
    ///
    /// The scheduler calls it in a commit, when wakes are accepted.
    ///
    /// # Safety
    ///
    /// Only the sleeper calls it, or its scheduler for it, once.
    pub unsafe fn fall_asleep(&self, waker: Waker) -> bool {
        // SAFETY: the caller's.
        unsafe { self.sleep_from(AWAKE, waker) }
    }

    /// Like [`fall_asleep`](Self::fall_asleep), for a sleeper that was interrupted
    /// and came too late to withdraw: it sleeps on until the event's wake comes, and
    /// cannot be interrupted any more.
    ///
    /// # Safety
    ///
    /// As for [`fall_asleep`](Self::fall_asleep), and only after it.
    pub unsafe fn sleep_on(&self, waker: Waker) -> bool {
        let seen = self.word.load(Ordering::Relaxed);
        // SAFETY: the caller's.
        (seen == TIMED_OUT || seen == CANCELLED) && unsafe { self.sleep_from(seen, waker) }
    }

    /// # Safety
    ///
    /// Only the sleeper calls it, or its scheduler for it, while the sleeper is
    /// awake.
    unsafe fn sleep_from(&self, seen: u32, waker: Waker) -> bool {
        // SAFETY: the state is not ASLEEP, so the cell is the sleeper's.
        self.waker.with_mut(|slot| unsafe { *slot = Some(waker) });
        let word = &self.word;
        mutate!("race_no_second_look":
            // Release: the thread that takes ASLEEP away reads the waker.
            word.compare_exchange(seen, ASLEEP, Ordering::Release, Ordering::Relaxed).is_ok()
            => {
                word.store(ASLEEP, Ordering::Release);
                true
            }
        )
    }

    /// Interrupts the sleep unless the event came first. If a waker is returned, the
    /// caller must wake it; there is none if the sleep has not begun.
    pub fn interrupt(&self, why: Interrupted) -> Option<Waker> {
        let next = match why {
            Interrupted::TimedOut => TIMED_OUT,
            Interrupted::Cancelled => CANCELLED,
        };
        let mut seen = self.word.load(Ordering::Relaxed);
        loop {
            if seen != AWAKE && seen != ASLEEP {
                return None;
            }
            // Acquire: this thread reads the waker. Release: the sleeper sees what
            // the interrupting thread did before.
            let taken = mutate!("race_interrupt_blind":
                self.word.compare_exchange(seen, next, Ordering::AcqRel, Ordering::Relaxed)
                => {
                    self.word.store(next, Ordering::Release);
                    Ok(seen)
                }
            );
            match taken {
                Ok(_) => return self.take(seen),
                Err(changed) => seen = changed,
            }
        }
    }

    /// Interrupts the sleep because its limit has passed, and wakes the sleeper.
    pub fn time_out(&self) {
        if let Some(waker) = self.interrupt(Interrupted::TimedOut) {
            waker.wake();
        }
    }

    /// Finds out how the sleep ended; the sleeper calls it once the sleep is over.
    /// If the sleep was interrupted, `withdraw` takes back what the sleeper
    /// published and returns whether that was still there. If it was not, the event
    /// has won, and `sleep` with the given commit waits for the event's wake.
    ///
    /// # Errors
    ///
    /// The [`Interrupted`] by which the sleep was interrupted, if `withdraw` has taken
    /// back what the sleeper published.
    ///
    /// # Safety
    ///
    /// Only the sleeper calls it; `sleep` runs the commit as
    /// [`Wait::sleep`](super::Wait) does, once.
    pub unsafe fn settle(
        &self,
        withdraw: &mut dyn FnMut() -> bool,
        sleep: impl FnOnce(&mut dyn FnMut(Waker) -> bool),
    ) -> Result<(), Interrupted> {
        let Some(why) = self.interrupted() else { return Ok(()) };
        if withdraw() {
            return Err(why);
        }
        if !self.is_woken() {
            // SAFETY: the caller's.
            sleep(&mut |waker| unsafe { self.sleep_on(waker) });
        }
        Ok(())
    }

    /// Why the sleep was interrupted; `None` if the event came, or if neither
    /// happened. Only the sleeper calls it.
    pub fn interrupted(&self) -> Option<Interrupted> {
        // Acquire: pairs with the Release of the side that ended the sleep.
        match self.word.load(Ordering::Acquire) {
            TIMED_OUT => Some(Interrupted::TimedOut),
            CANCELLED => Some(Interrupted::Cancelled),
            _ => None,
        }
    }

    /// Whether the event came. Only the sleeper calls it: afterwards it sees what
    /// the event's side did before its wake.
    pub fn is_woken(&self) -> bool {
        // Acquire: pairs with `wake`.
        self.word.load(Ordering::Acquire) == WOKEN
    }

    /// Takes the waker, if the caller has changed the state from `seen` and `seen`
    /// was `ASLEEP`.
    fn take(&self, seen: u32) -> Option<Waker> {
        if seen != ASLEEP {
            return None;
        }
        // SAFETY: this thread took ASLEEP away, so the waker is its own.
        self.waker.with_mut(|slot| unsafe { (*slot).take() })
    }
}

impl Default for Race {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Race {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = ["awake", "asleep", "woken", "timed out", "cancelled"];
        write!(f, "Race({})", words[self.word.load(Ordering::Relaxed) as usize])
    }
}

unsafe fn wake(race: *const ()) {
    let race = race.cast::<Race>();
    // SAFETY: the race stays at its place until this swap at least, and if the state
    // was ASLEEP, until the real waker was woken. AcqRel: as for `interrupt`.
    let waker = unsafe {
        let seen = (*race).word.swap(WOKEN, Ordering::AcqRel);
        if seen != ASLEEP {
            return;
        }
        (*race).take(seen)
    };
    waker.expect("a sleeper left a waker").wake();
}

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;
const WOKEN: u32 = 2;
const TIMED_OUT: u32 = 3;
const CANCELLED: u32 = 4;

#[cfg(all(test, not(tsumugi_loom)))]
mod tests {
    use super::*;

    unsafe fn count(calls: *const ()) {
        // SAFETY: the tests' counters outlive their wakers.
        unsafe { (*calls.cast::<AtomicU32>()).fetch_add(1, Ordering::Relaxed) };
    }

    fn counting(calls: &AtomicU32) -> Waker {
        // SAFETY: as above.
        unsafe { Waker::new((&raw const *calls).cast(), count) }
    }

    #[test]
    fn the_first_of_two_events_ends_the_sleep() {
        let calls = AtomicU32::new(0);
        let race = Race::new();
        // SAFETY: the test is the sleeper.
        assert!(unsafe { race.fall_asleep(counting(&calls)) });
        race.interrupt(Interrupted::TimedOut).unwrap().wake();
        assert!(race.interrupt(Interrupted::Cancelled).is_none(), "already interrupted");
        assert_eq!(race.interrupted(), Some(Interrupted::TimedOut));
        // The event had the waker already: the sleeper waits for its wake.
        // SAFETY: the same.
        assert!(unsafe { race.sleep_on(counting(&calls)) });
        // SAFETY: the race is still at its place.
        unsafe { race.waker() }.wake();
        assert!(race.is_woken());
        assert_eq!(calls.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn an_event_before_the_sleep_is_kept() {
        let calls = AtomicU32::new(0);
        let race = Race::new();
        assert!(race.interrupt(Interrupted::Cancelled).is_none());
        // SAFETY: the test is the sleeper.
        let asleep = unsafe { race.fall_asleep(counting(&calls)) };
        assert!(!asleep, "interrupted before it began");
        assert_eq!(race.interrupted(), Some(Interrupted::Cancelled));
        // SAFETY: the race is still at its place.
        unsafe { race.waker() }.wake();
        // SAFETY: the test is the sleeper.
        assert!(!unsafe { race.sleep_on(counting(&calls)) });
        assert!(race.interrupt(Interrupted::TimedOut).is_none(), "the event came first");
        assert_eq!(race.interrupted(), None);
        assert_eq!(calls.load(Ordering::Relaxed), 0);
    }
}

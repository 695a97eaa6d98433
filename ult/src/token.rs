//! The park word: whether its ULT or thread may go on, or sleeps.
//!
//! ```text
//!   TOKEN ◄──unpark── EMPTY ──park──► PARKED
//!     └─────park───────►▲ ◄──unpark, a wake──┘
//! ```
//!
//! A wake uses the token up at once, so whoever was woken need not look at the
//! word again.
//!
//! A park with a limit is `LIMITED` instead of `PARKED`: it leaves a waker,
//! because a sleep that may be interrupted is not ended by its slot alone. Its
//! wake leaves the token, which it takes itself.
//!
//! The calls that end in `_alone` do without atomic instructions: they are for
//! a thread that has the word to itself, see `bias`.
//!
//! Progress: `unpark` is lock-free, all others are wait-free.

use core::hint::cold_path;
use tsumugi_core::sync::{AtomicU32, Ordering, mutant};

/// One ULT's or thread's word.
pub(crate) struct ParkWord(AtomicU32);

/// Whom an unpark found; the caller must wake them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nobody: the token waits for the next park.
    Awake,
    /// One who parks.
    Parked,
    /// One who parks within a limit, and left a waker.
    Limited,
}

impl ParkWord {
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(EMPTY))
    }

    /// Forgets a token. Nobody sleeps.
    #[inline(always)]
    pub(crate) fn reset(&self) {
        self.0.store(EMPTY, Ordering::Relaxed);
    }

    /// Whether there is neither a token nor a sleeper.
    #[cfg(all(feature = "std", not(tsumugi_loom)))]
    pub(crate) fn is_idle(&self) -> bool {
        self.0.load(Ordering::Relaxed) == EMPTY
    }

    /// Whether somebody parks, and within no limit.
    pub(crate) fn has_sleeper(&self) -> bool {
        // Acquire: pairs with the Release in `begin_alone`.
        self.0.load(Ordering::Acquire) == PARKED
    }

    /// Takes a token, if there is one. By whoever parks.
    #[inline(always)]
    pub(crate) fn take(&self) -> bool {
        self.0.load(Ordering::Relaxed) == TOKEN && self.take_after_all()
    }

    /// As [`take`](Self::take), and what came before the unpark is seen even
    /// if there is none any more.
    pub(crate) fn take_after_all(&self) -> bool {
        // Acquire: pairs with `unpark`.
        self.0.swap(EMPTY, Ordering::Acquire) == TOKEN
    }

    /// Begins to sleep. False: there was a token, and now is none. By whoever
    /// parks; after true nothing of the sleeper's may be touched.
    #[inline(always)]
    pub(crate) fn begin(&self) -> bool {
        if mutant("park_no_second_look") {
            self.0.store(PARKED, Ordering::Release);
            return true;
        }
        // Release: the waker, if one was left, is for `unpark`.
        let asleep =
            self.0.compare_exchange(EMPTY, PARKED, Ordering::Release, Ordering::Relaxed).is_ok();
        if !asleep {
            self.take_after_all();
        }
        asleep
    }

    /// As [`begin`](Self::begin), while nobody else changes the word.
    #[inline(always)]
    pub(crate) fn begin_alone(&self) -> bool {
        if self.0.load(Ordering::Relaxed) != EMPTY {
            cold_path();
            self.0.store(EMPTY, Ordering::Relaxed);
            return false;
        }
        // Release: what was noted before is for `has_sleeper`.
        self.0.store(PARKED, Ordering::Release);
        true
    }

    /// Begins to sleep within a limit; the waker was left. False: there is a
    /// token.
    pub(crate) fn begin_limited(&self) -> bool {
        // Release: the waker is for `unpark`.
        self.0.compare_exchange(EMPTY, LIMITED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Takes a sleep within a limit back. False: somebody has ended it.
    pub(crate) fn end_limited(&self) -> bool {
        // Acquire: a token that came after all ends the park, not the limit.
        self.0.compare_exchange(LIMITED, EMPTY, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Leaves a token, or ends a park.
    #[inline]
    pub(crate) fn unpark(&self) -> Found {
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            // AcqRel: what was written before the unpark is seen after the
            // park; and the waker is for us. Also where the token was there
            // already.
            let next = after_unpark(seen);
            match self.0.compare_exchange(seen, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return found(seen),
                Err(changed) => seen = changed,
            }
        }
    }

    /// As [`unpark`](Self::unpark), while nobody else changes the word.
    #[inline(always)]
    pub(crate) fn unpark_alone(&self) -> Found {
        let seen = self.0.load(Ordering::Relaxed);
        self.0.store(after_unpark(seen), Ordering::Relaxed);
        found(seen)
    }
}

#[inline(always)]
fn after_unpark(seen: u32) -> u32 {
    if seen == PARKED { EMPTY } else { TOKEN }
}

#[inline(always)]
fn found(seen: u32) -> Found {
    match seen {
        PARKED => Found::Parked,
        LIMITED => Found::Limited,
        _ => Found::Awake,
    }
}

const EMPTY: u32 = 0;
const TOKEN: u32 = 1;
const PARKED: u32 = 2;
const LIMITED: u32 = 3;

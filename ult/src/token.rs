//! The park word: the token of a ULT or thread, and whether it sleeps.
//!
//! ```text
//!   TOKEN ◄──unpark── EMPTY ──park──► PARKED
//!     └─────park───────►▲ ◄──unpark, a wake──┘
//! ```
//!
//! A wake uses the token up at once, so the woken ULT need not look at the word
//! again.
//!
//! A park with a limit is `LIMITED` instead of `PARKED`. It leaves a waker, because
//! the ULT's slot alone is not enough to end a sleep that may be interrupted. Its
//! wake leaves the token, which the woken ULT takes itself.
//!
//! The calls with names in `_alone` use no atomic instructions: they are for a thread
//! that has the word to itself, see `bias`.
//!
//! Progress: `unpark` is lock-free, all other calls are wait-free.

use core::hint::cold_path;
use tsumugi_core::mutate;
use tsumugi_core::sync::{AtomicU32, Ordering};

/// The park word of one ULT or thread.
pub(crate) struct ParkWord(AtomicU32);

/// The sleeper that an unpark found; the caller must wake it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FoundSleeper {
    /// No sleeper: the token stays for the next park.
    Awake,
    /// A sleeper in a park without a limit.
    Parked,
    /// A sleeper in a park with a limit, which left a waker.
    Limited,
}

impl ParkWord {
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(EMPTY))
    }

    /// Removes a token. There is no sleeper.
    #[inline(always)]
    pub(crate) fn reset(&self) {
        self.0.store(EMPTY, Ordering::Relaxed);
    }

    /// Whether there is neither a token nor a sleeper.
    #[cfg(all(feature = "std", not(tsumugi_loom)))]
    pub(crate) fn is_idle(&self) -> bool {
        self.0.load(Ordering::Relaxed) == EMPTY
    }

    /// Whether there is a sleeper in a park without a limit.
    pub(crate) fn has_sleeper(&self) -> bool {
        // Acquire: pairs with the Release in `begin_alone`.
        self.0.load(Ordering::Acquire) == PARKED
    }

    /// Takes a token, if there is one. Called by the parking ULT or thread.
    #[inline(always)]
    pub(crate) fn take(&self) -> bool {
        self.0.load(Ordering::Relaxed) == TOKEN && self.take_after_all()
    }

    /// As [`take`](Self::take), and the caller sees what came before the unpark, even
    /// if the token is already gone.
    pub(crate) fn take_after_all(&self) -> bool {
        // Acquire: pairs with the Release in `unpark`.
        self.0.swap(EMPTY, Ordering::Acquire) == TOKEN
    }

    /// Begins to sleep. False: there was a token, which is now taken. Called by the
    /// parking ULT or thread; after true the caller must not touch the sleeper's
    /// memory.
    #[inline(always)]
    pub(crate) fn begin(&self) -> bool {
        // Release: `unpark` must see the waker, if one was left.
        let asleep = mutate!("park_no_second_look":
            self.0.compare_exchange(EMPTY, PARKED, Ordering::Release, Ordering::Relaxed).is_ok()
            => {
                self.0.store(PARKED, Ordering::Release);
                true
            }
        );
        if !asleep {
            self.take_after_all();
        }
        asleep
    }

    /// As [`begin`](Self::begin), while no other thread changes the word.
    #[inline(always)]
    pub(crate) fn begin_alone(&self) -> bool {
        if self.0.load(Ordering::Relaxed) != EMPTY {
            cold_path();
            self.0.store(EMPTY, Ordering::Relaxed);
            return false;
        }
        // Release: `has_sleeper` must see what was noted before.
        self.0.store(PARKED, Ordering::Release);
        true
    }

    /// Begins to sleep within a limit, after the waker was left. False: there is a
    /// token.
    pub(crate) fn begin_limited(&self) -> bool {
        // AcqRel: the Release makes `unpark` see the waker.
        self.0.compare_exchange(EMPTY, LIMITED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Ends a sleep within a limit. False: an unpark has ended it.
    pub(crate) fn end_limited(&self) -> bool {
        // Acquire: on failure the park ends with a token, and sees what came before
        // the unpark.
        self.0.compare_exchange(LIMITED, EMPTY, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Leaves a token, or ends a park.
    #[inline]
    pub(crate) fn unpark(&self) -> FoundSleeper {
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            // AcqRel: the park sees what was written before the unpark, also if there
            // was a token already; and this sees the waker.
            let next = after_unpark(seen);
            match self.0.compare_exchange(seen, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return found(seen),
                Err(changed) => seen = changed,
            }
        }
    }

    /// As [`unpark`](Self::unpark), while no other thread changes the word.
    #[inline(always)]
    pub(crate) fn unpark_alone(&self) -> FoundSleeper {
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
fn found(seen: u32) -> FoundSleeper {
    match seen {
        PARKED => FoundSleeper::Parked,
        LIMITED => FoundSleeper::Limited,
        _ => FoundSleeper::Awake,
    }
}

const EMPTY: u32 = 0;
const TOKEN: u32 = 1;
const PARKED: u32 = 2;
const LIMITED: u32 = 3;

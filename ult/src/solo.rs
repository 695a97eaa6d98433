//! What one thread does without atomic instructions, as long as it is alone.
//!
//! ```text
//!   that thread                        any other
//!   inside := 1                        state := ENDING
//!   light fence                        heavy fence
//!   is state ALONE?                    wait until inside is 0
//!   yes: plain loads and stores        state := SHARED
//!   inside := 0                        atomic instructions
//! ```
//!
//! One of the two sees the other ([`Fences`]): the thread uses atomic
//! instructions too, or the other waits for the few plain ones. That costs the
//! other a barrier on all processors, once: whoever was disturbed once is never
//! alone again.
//!
//! The park words of a scheduler of one worker are such a thing: that worker's
//! ULTs unpark each other, and others seldom or never do.
//!
//! Progress: `enter` and `leave` are wait-free. `end` blocks while the thread
//! is inside, the first time; afterwards it is wait-free.

use crate::fences::Fences;
use crate::futex::os_yield;
use tsumugi_core::sync::{AtomicBool, AtomicU32, CachePadded, Ordering, mutant};

/// One thread's privilege.
#[derive(Debug)]
pub struct Solo {
    /// Read by all, written twice.
    state: CachePadded<AtomicU32>,
    /// Written by the thread.
    inside: CachePadded<AtomicBool>,
}

impl Solo {
    /// The privilege, or from the beginning none; there is none where the
    /// fence would cost as much as an atomic instruction.
    pub fn new(alone: bool, fences: Fences) -> Self {
        let state = if alone && fences == Fences::LIGHTEST { ALONE } else { SHARED };
        Self {
            state: CachePadded::new(AtomicU32::new(state)),
            inside: CachePadded::new(AtomicBool::new(false)),
        }
    }

    /// Whether plain instructions will do until [`leave`](Self::leave). By the
    /// thread.
    #[inline(always)]
    pub fn enter(&self) -> bool {
        if self.state.load(Ordering::Relaxed) != ALONE {
            return false;
        }
        self.inside.store(true, Ordering::Relaxed);
        if !mutant("solo_no_light") {
            // Pairs with the heavy half in `end`.
            Fences::LIGHTEST.light();
        }
        let alone = self.state.load(Ordering::Relaxed) == ALONE;
        if !alone {
            self.leave();
        }
        alone
    }

    /// After `enter` said yes.
    #[inline(always)]
    pub fn leave(&self) {
        // Release: pairs with the Acquire in `end`.
        self.inside.store(false, Ordering::Release);
    }

    /// From here on everybody uses atomic instructions. By any other thread,
    /// before its own.
    #[inline]
    pub fn end(&self) {
        // Acquire: pairs with the Release below: plain stores are seen.
        if self.state.load(Ordering::Acquire) != SHARED {
            self.disturb();
        }
    }

    #[cold]
    fn disturb(&self) {
        // Two may be here: each waits for itself.
        self.state.store(ENDING, Ordering::Relaxed);
        if !mutant("solo_no_heavy") {
            // Pairs with the light half in `enter`.
            Fences::LIGHTEST.heavy();
        }
        // Acquire: pairs with `leave`.
        while self.inside.load(Ordering::Acquire) && !mutant("solo_no_wait") {
            os_yield();
        }
        // Release: pairs with the Acquire in `end`.
        self.state.store(SHARED, Ordering::Release);
    }
}

const ALONE: u32 = 0;
const ENDING: u32 = 1;
const SHARED: u32 = 2;

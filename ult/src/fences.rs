//! A fence in two halves: one that costs its caller nothing, one that costs
//! the other side a system call.
//!
//! ```text
//!   often:   write a; light();  read b        one of the two sees
//!   seldom:  write b; heavy();  read a        what the other wrote
//! ```
//!
//! Whoever pushes or pops does so every few nanoseconds; whoever steals or
//! goes to sleep does so seldom. So the former keep the compiler alone from
//! reordering, and the latter have every processor that runs this process
//! pass a barrier: Linux's `membarrier`, private and expedited. Where that is
//! missing, and in the model, both halves are sequentially consistent fences.

use tsumugi_core::sync::{Ordering, compiler_fence, fence};

/// How two sides that write and then read each other's words are kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fences {
    /// Both sides have a fence.
    Symmetric,
    /// The rare side has a system call, the other one nothing.
    Asymmetric,
}

impl Fences {
    /// The best that this system has. Tells it that this process will ask.
    pub fn of_system() -> Self {
        // A barrier on other processors is nothing that a thread sanitizer sees.
        if cfg!(not(tsumugi_tsan)) && membarrier(REGISTER_PRIVATE_EXPEDITED) {
            Self::Asymmetric
        } else {
            Self::Symmetric
        }
    }

    /// Where the light half costs nothing; in the model, and where the thread
    /// sanitizer looks, where it does so nowhere, what there is.
    pub const LIGHTEST: Self =
        if cfg!(any(tsumugi_loom, tsumugi_tsan)) { Self::Symmetric } else { Self::Asymmetric };

    /// The half of the frequent side.
    #[inline(always)]
    pub fn light(self) {
        match self {
            // SeqCst: the other half is the same.
            Self::Symmetric => fence(Ordering::SeqCst),
            // The processor's part is done by the other half.
            Self::Asymmetric => compiler_fence(Ordering::SeqCst),
        }
    }

    /// The half of the rare side.
    #[inline]
    pub fn heavy(self) {
        // SeqCst: also for the caller's own processor, which `membarrier`
        // leaves out when it finds no other that runs this process.
        fence(Ordering::SeqCst);
        if self == Self::Asymmetric {
            let done = membarrier(PRIVATE_EXPEDITED);
            debug_assert!(done, "a registered process may ask for barriers");
        }
    }
}

#[cfg(not(tsumugi_loom))]
use crate::host::membarrier;

#[cfg(tsumugi_loom)]
fn membarrier(_command: i32) -> bool {
    false
}

// From <linux/membarrier.h>.
const PRIVATE_EXPEDITED: i32 = 1 << 3;
const REGISTER_PRIVATE_EXPEDITED: i32 = 1 << 4;

//! An asymmetric fence: the light half costs its caller nothing, the heavy half costs
//! the other side a system call.
//!
//! ```text
//!   often:   write a; light();  read b        one of the two sees
//!   seldom:  write b; heavy();  read a        what the other wrote
//! ```
//!
//! A worker pushes or pops every few nanoseconds, and steals or goes to sleep seldom.
//! So the frequent side only keeps the compiler from reordering, and the rare side
//! makes every processor that runs this process pass a barrier: Linux's `membarrier`,
//! private and expedited. Where that is missing, and in the model, both halves are
//! sequentially consistent fences.

use tsumugi_core::sync::{Ordering, compiler_fence, fence};

/// The fence between two sides that each write a word and then read the other side's
/// word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fences {
    /// Both sides have a fence.
    Symmetric,
    /// The rare side has a system call, the frequent side nothing.
    Asymmetric,
}

impl Fences {
    /// The best fence that this system has. Registers this process with the system
    /// for barriers.
    pub fn of_system() -> Self {
        // A thread sanitizer does not see a barrier on other processors.
        if cfg!(not(tsumugi_tsan)) && membarrier(REGISTER_PRIVATE_EXPEDITED) {
            Self::Asymmetric
        } else {
            Self::Symmetric
        }
    }

    /// The fence whose light half costs nothing. In the model, and under the thread
    /// sanitizer, no light half is free, and this is the symmetric fence.
    pub const LIGHTEST: Self =
        if cfg!(any(tsumugi_loom, tsumugi_tsan)) { Self::Symmetric } else { Self::Asymmetric };

    /// The half of the frequent side.
    #[inline(always)]
    pub fn light(self) {
        match self {
            // SeqCst: the other half is the same.
            Self::Symmetric => fence(Ordering::SeqCst),
            // The heavy half acts for the processor of this half as well.
            Self::Asymmetric => compiler_fence(Ordering::SeqCst),
        }
    }

    /// The half of the rare side.
    #[inline]
    pub fn heavy(self) {
        // SeqCst: this orders the caller's own processor too, which `membarrier`
        // leaves out when no other processor runs this process.
        fence(Ordering::SeqCst);
        if self == Self::Asymmetric {
            let done = membarrier(PRIVATE_EXPEDITED);
            debug_assert!(done, "membarrier failed in a process that has registered");
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

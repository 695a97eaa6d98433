//! A fence in two halves, between the processes of a node.
//!
//! ```text
//!   often:   write a; (nothing) read b        one of the two sees
//!   seldom:  write b; heavy();  read a        what the other wrote
//! ```
//!
//! Whoever sends does so every few nanoseconds; whoever goes to sleep does so
//! seldom. So the sender has no fence, and the sleeper has every processor that
//! runs a rank of the node pass one: Linux's `membarrier`, global and
//! expedited. It reaches the processes that have registered, so both sides
//! must have; where one has not, the sender takes a fence of its own.

use crate::sys;
use tsumugi_core::sync::{Ordering, fence};

/// Registers this process; false where the system has no such barrier.
pub fn register() -> bool {
    sys::membarrier(REGISTER_GLOBAL_EXPEDITED)
}

/// The half of the rare side: a registered process's, else it does nothing
/// for others. Some microseconds where another processor runs a rank.
pub fn heavy() {
    // SeqCst: for the caller's own processor, which `membarrier` may leave out.
    fence(Ordering::SeqCst);
    sys::membarrier(GLOBAL_EXPEDITED);
}

// From <linux/membarrier.h>.
const GLOBAL_EXPEDITED: i32 = 1 << 1;
const REGISTER_GLOBAL_EXPEDITED: i32 = 1 << 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registered_process_may_ask_for_barriers() {
        if register() {
            assert!(sys::membarrier(GLOBAL_EXPEDITED));
        }
        heavy();
    }
}

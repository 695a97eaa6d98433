//! An asymmetric fence between the processes of a node.
//!
//! ```text
//!   often:   write a; (nothing) read b        one of the two sees
//!   seldom:  write b; heavy();  read a        what the other wrote
//! ```
//!
//! A sender passes the fence every few nanoseconds; a thread goes to sleep seldom.
//! Therefore the sender executes no fence instruction, and the thread that goes to
//! sleep makes every processor that runs a rank of the node execute one: Linux's
//! `membarrier`, global and expedited. That barrier reaches the processes that have
//! registered, so both sides must register; where one side has not, the sender
//! executes a fence of its own.

use crate::sys;
use tsumugi_core::sync::{Ordering, fence};

/// Registers this process; returns false where the system has no such barrier.
pub fn register() -> bool {
    sys::membarrier(REGISTER_GLOBAL_EXPEDITED)
}

/// The rare side of the fence. It has an effect on other processes only if this
/// process is registered. It takes some microseconds where another processor runs a
/// rank.
pub fn heavy() {
    // SeqCst: a fence for the caller's own processor, which `membarrier` may leave
    // out.
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
    fn a_registered_process_may_request_barriers() {
        if register() {
            assert!(sys::membarrier(GLOBAL_EXPEDITED));
        }
        heavy();
    }
}

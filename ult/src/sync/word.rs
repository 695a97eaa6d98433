//! Waiting on words: a table of waiters by address, so that an object of a C program
//! needs no more than a word.
//!
//! ```text
//!   wait(&word, seen)                          wake(&word, n)
//!     address ─► bucket: word still `seen`?      address ─► bucket: the first n of
//!                queue up, sleep                            this address: wake
//! ```
//!
//! A thread changes the word and then wakes; a waiter compares under the bucket's lock
//! and queues up there. So one of the two sees the other, and no wake-up is lost. The
//! word is not read after the wait: it may be gone then. Waiters of one address are
//! woken first come, first served.
//!
//! Progress: `wake` and `wait` hold the lock of one bucket for as long as a list of
//! waiters is read; a waiter blocks.
//!
//! # References
//!
//! - Franke, Russell, Kirkwood: Fuss, Futexes and Furwocks. Ottawa Linux Symposium 2002.
//! - Wheeler, Murphy, Thain: Qthreads: An API for Programming with Millions of
//!   Lightweight Threads. IPDPS 2008: full/empty bits in a hash table.

use super::queue::{self, WaitNode, WaitQueue, WaitSite, Wake};
use crate::limit::Limit;
use crate::lock::Lock;
use tsumugi_core::mutate;
use tsumugi_core::sync::{AtomicU32, Ordering};
use tsumugi_core::wait::{Interrupted, Reason};

/// Sleeps while `*word == seen`, until [`wake`] is called for its address. Returns at once
/// if the word has another value. A caller looks at the word again after the wait.
///
/// # Errors
///
/// [`Interrupted`] at the limit; no wake-up was consumed then.
///
/// # Safety
///
/// The word is valid when the call begins. It may be gone after a [`wake`].
#[cfg(not(tsumugi_loom))]
pub unsafe fn wait(word: *const AtomicU32, seen: u32, limit: Limit) -> Result<(), Interrupted> {
    // SAFETY: the caller's.
    unsafe { TABLE.wait(word, seen, limit) }
}

/// Wakes up to `count` waiters of the word, which may be gone. Returns how many.
#[cfg(not(tsumugi_loom))]
pub fn wake(word: *const AtomicU32, count: usize) -> usize {
    TABLE.wake(word, count)
}

/// Waiters by address.
#[derive(Debug)]
pub struct WordTable([Bucket; BUCKETS]);

/// The waiters of all words whose addresses have one hash.
#[repr(align(64))]
struct Bucket(Lock<WaitQueue>);

#[cfg(not(tsumugi_loom))]
static TABLE: WordTable = WordTable([const { Bucket(Lock::new(WaitQueue::new())) }; BUCKETS]);

impl WordTable {
    /// A table without waiters.
    #[cfg(tsumugi_loom)]
    #[allow(clippy::new_without_default, reason = "for the model")]
    pub fn new() -> Self {
        Self(core::array::from_fn(|_| Bucket(Lock::new(WaitQueue::new()))))
    }

    /// Sleeps as [`wait`] does.
    ///
    /// # Errors
    ///
    /// As for [`wait`].
    ///
    /// # Safety
    ///
    /// As for [`wait`].
    pub unsafe fn wait(
        &self,
        word: *const AtomicU32,
        seen: u32,
        limit: Limit,
    ) -> Result<(), Interrupted> {
        let bucket = self.bucket(word);
        queue::wait(
            bucket,
            &bucket.0,
            Reason { what: "word", at: word.addr() as u64, wanted: u64::from(seen) },
            limit,
            |node| node.with_amount(word.addr()),
            |queue| queue,
            |_| {
                // SAFETY: the word is valid until the caller is queued.
                let word = unsafe { &*word };
                // Relaxed: the lock orders this load and the changes of the threads that
                // wake.
                mutate!("word_not_compared": word.load(Ordering::Relaxed) == seen => true)
            },
        )
    }

    /// Wakes as [`wake`] does.
    pub fn wake(&self, word: *const AtomicU32, count: usize) -> usize {
        self.bucket(word).wake(word.addr(), count)
    }

    fn bucket(&self, word: *const AtomicU32) -> &Bucket {
        // Fibonacci hashing: the high bits of the product depend on all bits.
        let hash = (word.addr() as u64 >> 2).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        &self.0[(hash >> 32) as usize % BUCKETS]
    }
}

impl Bucket {
    fn wake(&self, address: usize, count: usize) -> usize {
        let mut woken = 0;
        queue::wake_each(&self.0, |queue| {
            let wake: Option<Wake> = if woken < count { queue.pop_amount(address) } else { None };
            woken += usize::from(wake.is_some());
            wake
        });
        woken
    }
}

impl WaitSite for Bucket {
    unsafe fn take_out(&self, node: *mut WaitNode) -> bool {
        // SAFETY: the caller's.
        unsafe { queue::take_out(&self.0, node, |queue| queue, |_| {}) }
    }

    unsafe fn pass_on(&self, node: *mut WaitNode, waited: bool) {
        if !waited {
            // SAFETY: by the caller's contract the node is there.
            self.wake(unsafe { (*node).amount }, 1);
        }
    }
}

impl core::fmt::Debug for Bucket {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Bucket")
    }
}

const BUCKETS: usize = if cfg!(tsumugi_loom) { 2 } else { 256 };

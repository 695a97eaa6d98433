//! The system's wait on a word.

use crate::sync::AtomicU32;
use core::time::Duration;

/// The system's wait on a word, which works between processes.
pub trait Futex: Sync {
    /// Sleeps while `*word == expected`; may return early.
    fn wait(&self, word: &AtomicU32, expected: u32, limit: Option<Duration>);

    /// Wakes up to `count` threads that sleep on `word`.
    fn wake(&self, word: &AtomicU32, count: u32);
}

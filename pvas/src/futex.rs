//! A futex on a word that other processes see.
//!
//! This is the shared form of the futex: the kernel finds sleepers by file and
//! offset, so that two mappings of one partition reach the same sleepers.

use crate::sys;
use std::time::Duration;
use tsumugi_core::sync::AtomicU32;
use tsumugi_core::wait::Futex;

/// The system's futex between processes.
#[derive(Clone, Copy, Debug, Default)]
pub struct SharedFutex;

impl Futex for SharedFutex {
    fn wait(&self, word: &AtomicU32, expected: u32, limit: Option<Duration>) {
        sys::futex_wait(word, expected, limit);
    }

    fn wake(&self, word: &AtomicU32, count: u32) {
        sys::futex_wake(word, count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tsumugi_core::sync::Ordering;

    #[test]
    fn a_changed_word_and_a_limit_both_end_the_wait() {
        let word = AtomicU32::new(1);
        SharedFutex.wait(&word, 0, None);
        SharedFutex.wait(&word, 1, Some(Duration::from_millis(1)));
    }

    #[test]
    fn a_sleeper_is_woken() {
        let word = Arc::new(AtomicU32::new(0));
        let sleeper = std::thread::spawn({
            let word = word.clone();
            move || {
                while word.load(Ordering::Acquire) == 0 {
                    SharedFutex.wait(&word, 0, None);
                }
            }
        });
        word.store(1, Ordering::Release);
        SharedFutex.wake(&word, 1);
        sleeper.join().unwrap();
    }
}

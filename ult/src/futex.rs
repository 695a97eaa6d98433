//! Waiting on a word with the system's futex, in the form that works between
//! processes.

use core::time::Duration;
use tsumugi_core::sync::AtomicU32;
use tsumugi_core::wait::Futex;

/// Linux's futex, not private to the process, because event words lie in memory that
/// peers see. Without std, the host's `idle` and `wake`.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemFutex;

#[cfg(not(tsumugi_loom))]
impl Futex for SystemFutex {
    fn wait(&self, word: &AtomicU32, expected: u32, limit: Option<Duration>) {
        crate::host::wait(word, expected, limit);
    }

    fn wake(&self, word: &AtomicU32, count: u32) {
        crate::host::wake(word, count);
    }
}

/// In the model a sleeper lets other threads run until the word changes.
#[cfg(tsumugi_loom)]
impl Futex for SystemFutex {
    fn wait(&self, word: &AtomicU32, expected: u32, limit: Option<Duration>) {
        if limit.is_some() {
            // The model has no clock: any limit may have passed.
            return tsumugi_core::sync::model::thread::yield_now();
        }
        while word.load(tsumugi_core::sync::Ordering::SeqCst) == expected {
            tsumugi_core::sync::model::thread::yield_now();
        }
    }

    fn wake(&self, _word: &AtomicU32, _count: u32) {}
}

/// Lets the system run another OS thread.
pub(crate) fn os_yield() {
    #[cfg(not(tsumugi_loom))]
    crate::host::yield_thread();
    #[cfg(tsumugi_loom)]
    tsumugi_core::sync::model::thread::yield_now();
}

//! A scheduler of OS threads, for tests.

extern crate std;

use super::{Reason, Wait, Waker};
use crate::sync::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::{self, Thread};

/// Puts the calling thread of a test to sleep.
pub(crate) struct Threads;

struct ThreadSleeper {
    woken: AtomicBool,
    thread: Thread,
}

// SAFETY: the waker can wake the sleeper already while `commit` runs, and it keeps
// the sleeper alive by a count of its own; `sleep` returns only after the wake.
unsafe impl Wait for Threads {
    unsafe fn sleep(&self, _: Reason, commit: &mut dyn FnMut(Waker) -> bool) {
        let sleeper =
            Arc::new(ThreadSleeper { woken: AtomicBool::new(false), thread: thread::current() });
        let data = Arc::into_raw(sleeper.clone()).cast();
        // SAFETY: the waker owns one count of the sleeper.
        let waker = unsafe { Waker::new(data, wake) };
        if commit(waker) {
            while !sleeper.woken.load(Ordering::Acquire) {
                thread::park();
            }
        } else {
            // SAFETY: the commit returned false, so the waker's count is still this
            // thread's.
            drop(unsafe { Arc::from_raw(data.cast::<ThreadSleeper>()) });
        }
    }

    fn yield_now(&self) {
        thread::yield_now();
    }
}

unsafe fn wake(data: *const ()) {
    // SAFETY: the count that `sleep` gave to the waker.
    let sleeper = unsafe { Arc::from_raw(data.cast::<ThreadSleeper>()) };
    sleeper.woken.store(true, Ordering::Release);
    sleeper.thread.unpark();
}

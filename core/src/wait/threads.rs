//! A scheduler of one thread each, for tests.

extern crate std;

use super::{Reason, Wait, Waker};
use crate::sync::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::{self, Thread};

/// Puts the thread of a test to sleep.
pub(crate) struct Threads;

struct Sleeper {
    woken: AtomicBool,
    thread: Thread,
}

// SAFETY: `commit` runs while the waker already finds the sleeper, which the
// waker keeps alive by itself; `sleep` returns after the wake.
unsafe impl Wait for Threads {
    unsafe fn sleep(&self, _: Reason, commit: &mut dyn FnMut(Waker) -> bool) {
        let sleeper =
            Arc::new(Sleeper { woken: AtomicBool::new(false), thread: thread::current() });
        let data = Arc::into_raw(sleeper.clone()).cast();
        // SAFETY: the waker owns one count of the sleeper.
        let waker = unsafe { Waker::new(data, wake) };
        if commit(waker) {
            while !sleeper.woken.load(Ordering::Acquire) {
                thread::park();
            }
        } else {
            // SAFETY: refused, so the waker's count is left to us.
            drop(unsafe { Arc::from_raw(data.cast::<Sleeper>()) });
        }
    }

    fn yield_now(&self) {
        thread::yield_now();
    }
}

unsafe fn wake(data: *const ()) {
    // SAFETY: the count that `sleep` gave to the waker.
    let sleeper = unsafe { Arc::from_raw(data.cast::<Sleeper>()) };
    sleeper.woken.store(true, Ordering::Release);
    sleeper.thread.unpark();
}

//! A scheduler for the threads of any model checker: one sleeper per thread.

use std::sync::Arc;
use std::time::Duration;
use tsumugi_core::sync::model::sync::{Condvar, Mutex};
use tsumugi_core::sync::model::thread;
use tsumugi_core::wait::{Interrupted, Reason, Wait, WaitFor, Waker};

/// A scheduler whose threads sleep and wake as those of the model do.
pub struct Threads;

struct Sleeper {
    woken: Mutex<bool>,
    bell: Condvar,
}

// SAFETY: the waker keeps the sleeper alive by itself and may be woken from
// the moment that `commit` has it; `sleep` returns after the wake.
unsafe impl Wait for Threads {
    unsafe fn sleep(&self, _: Reason, commit: &mut dyn FnMut(Waker) -> bool) {
        let sleeper = Arc::new(Sleeper { woken: Mutex::new(false), bell: Condvar::new() });
        let data = Arc::into_raw(sleeper.clone()).cast();
        // SAFETY: the waker owns one count of the sleeper.
        if commit(unsafe { Waker::new(data, wake) }) {
            let mut woken = sleeper.woken.lock().unwrap();
            while !*woken {
                woken = sleeper.bell.wait(woken).unwrap();
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

// SAFETY: as above; a limit passes at once, or after other threads have run.
unsafe impl WaitFor for Threads {
    unsafe fn sleep_for(
        &self,
        _: Reason,
        limit: Duration,
        commit: &mut dyn FnMut(Waker) -> bool,
        withdraw: &mut dyn FnMut() -> bool,
    ) -> Result<(), Interrupted> {
        let sleeper = Arc::new(Sleeper { woken: Mutex::new(false), bell: Condvar::new() });
        let data = Arc::into_raw(sleeper.clone()).cast();
        // SAFETY: the waker owns one count of the sleeper.
        let is_published = commit(unsafe { Waker::new(data, wake) });
        if is_published && !limit.is_zero() {
            thread::yield_now();
        }
        if is_published && !withdraw() {
            let mut woken = sleeper.woken.lock().unwrap();
            while !*woken {
                woken = sleeper.bell.wait(woken).unwrap();
            }
            return Ok(());
        }
        // SAFETY: refused or withdrawn, so the waker's count is left to us.
        drop(unsafe { Arc::from_raw(data.cast::<Sleeper>()) });
        if is_published { Err(Interrupted::TimedOut) } else { Ok(()) }
    }
}

unsafe fn wake(data: *const ()) {
    // SAFETY: the count that `sleep` gave to the waker.
    let sleeper = unsafe { Arc::from_raw(data.cast::<Sleeper>()) };
    *sleeper.woken.lock().unwrap() = true;
    sleeper.bell.notify_one();
}

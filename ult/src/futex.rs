//! The system's wait on a word, in the form that works between processes.

use core::time::Duration;
use tsumugi_core::sync::AtomicU32;
use tsumugi_core::wait::Futex;

/// Linux's futex, not private to the process: event words lie in memory that
/// peers see.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemFutex;

#[cfg(not(tsumugi_loom))]
impl Futex for SystemFutex {
    fn wait(&self, word: &AtomicU32, expected: u32, limit: Option<Duration>) {
        let limit = limit.map(|limit| libc::timespec {
            tv_sec: limit.as_secs().min(i64::MAX as u64) as libc::time_t,
            tv_nsec: limit.subsec_nanos() as _,
        });
        let limit = limit.as_ref().map_or(core::ptr::null(), |limit| limit as *const _);
        // SAFETY: the word and the limit outlive the call. Any error is an
        // early return, which the caller expects.
        unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAIT, expected, limit) };
    }

    fn wake(&self, word: &AtomicU32, count: u32) {
        let count = count.min(i32::MAX as u32);
        // SAFETY: a wake reads nothing; a word that is gone wakes nobody.
        unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE, count) };
    }
}

/// In the model a sleeper lets others run until the word changes.
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
    std::thread::yield_now();
    #[cfg(tsumugi_loom)]
    tsumugi_core::sync::model::thread::yield_now();
}

//! Sleeping on a word of memory, and memory barriers in other processes.

use std::time::Duration;
use tsumugi_core::sync::AtomicU32;

/// Sleeps while the word is `expected`; may return early.
pub fn futex_wait(word: &AtomicU32, expected: u32, limit: Option<Duration>) {
    let time = limit.map(|limit| libc::timespec {
        tv_sec: limit.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(limit.subsec_nanos() as i32),
    });
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the word and the time outlive the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, expected, time) };
}

/// Wakes up to `count` sleepers.
pub fn futex_wake(word: &AtomicU32, count: u32) {
    let count = count.min(i32::MAX as u32);
    // SAFETY: the word outlives the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, count) };
}

/// Runs a membarrier command on all processors that run a registered process; the
/// commands are those of `<linux/membarrier.h>`. Returns false if the system
/// refuses.
pub fn membarrier(command: i32) -> bool {
    // SAFETY: the call takes numbers and changes no memory.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

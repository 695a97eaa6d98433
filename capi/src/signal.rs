//! Signals: words of global memory for which threads of their rank wait.

use super::code::{code_of, of_access};
use super::job::job;
use super::object::{refuse, room_at, tell};
use super::region::byte;
use super::{TSUMUGI_ERROR_TIMED_OUT, TSUMUGI_ERROR_VALUE, tsumugi_addr, tsumugi_job};
use std::ffi::{c_int, c_void};
use std::time::Duration;
use tsumugi::global::GlobalPtr;
use tsumugi::{Signal, Until};

/// The signal sets the word to its value.
pub const TSUMUGI_SIGNAL_SET: c_int = 0;
/// The signal adds its value to the word, wrapping.
pub const TSUMUGI_SIGNAL_ADD: c_int = 1;

/// The wait ends when the word equals the value.
pub const TSUMUGI_UNTIL_EQUAL: c_int = 0;
/// The wait ends when the word no longer equals the value.
pub const TSUMUGI_UNTIL_NOT_EQUAL: c_int = 1;
/// The wait ends when the word, as a count that wraps, has reached the value.
pub const TSUMUGI_UNTIL_AT_LEAST: c_int = 2;
/// The wait ends when one of the bits of the value is set in the word.
pub const TSUMUGI_UNTIL_ANY_BIT: c_int = 3;

/// Writes `bytes` bytes at `to`, then changes the 8-byte word at `word`, of the same
/// or another rank, by `signal` (`TSUMUGI_SIGNAL_*`) with `value`, and wakes the
/// threads that wait for it: a thread that sees the signal sees the bytes. `from` may
/// overlap them as for `tsumugi_get`. Blocks;
/// wait-free between ranks of a node.
///
/// Errors: VALUE (of `signal`), NULL; NOWHERE, STALE, RANGE, READ_ONLY and LOST of
/// the bytes (then the word is unchanged) and of the word, and UNALIGNED of the word
/// (then the bytes have landed).
///
/// # Safety
///
/// `job` is a live job; `from` is valid for a read of `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_put_signal(
    job: *const tsumugi_job,
    to: tsumugi_addr,
    from: *const c_void,
    bytes: usize,
    word: tsumugi_addr,
    signal: c_int,
    value: u64,
) -> c_int {
    let put = || {
        // SAFETY: the caller's.
        let job = unsafe { self::job(job) }?;
        let from = room_at(from.cast_mut(), bytes, "from")?;
        let signal = signal_of(signal, value)?;
        // If no byte is written, any address will do.
        if bytes > 0 {
            // SAFETY: the caller's.
            unsafe { job.global.store(byte(to), from, bytes) }.map_err(of_access)?;
        }
        job.global.signal(word_at(word), signal).map(drop).map_err(of_access)
    };
    code_of(put())
}

/// Changes the 8-byte word at `word` by `signal` (`TSUMUGI_SIGNAL_*`) with `value`, and
/// wakes the threads that wait for it. Writes the old value to `old`, unless `old` is
/// NULL. Blocks; wait-free between ranks of a node.
///
/// Errors: NOWHERE, STALE, RANGE, UNALIGNED, READ_ONLY, LOST, VALUE (of `signal`),
/// NULL.
///
/// # Safety
///
/// `job` is a live job; `old` is NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_signal(
    job: *const tsumugi_job,
    word: tsumugi_addr,
    signal: c_int,
    value: u64,
    old: *mut u64,
) -> c_int {
    let change = || {
        // SAFETY: the caller's.
        let job = unsafe { self::job(job) }?;
        let signal = signal_of(signal, value)?;
        let was = job.global.signal(word_at(word), signal).map_err(of_access)?;
        // SAFETY: the caller's.
        unsafe { tell(old, was) };
        Ok(())
    };
    code_of(change())
}

/// Waits until the 8-byte word at `word`, which is this rank's own memory, satisfies
/// the condition `until` (`TSUMUGI_UNTIL_*`) with `value`, by a signal of any rank.
/// Writes the word that did to `found`, unless `found` is NULL. The caller sleeps
/// meanwhile. Changes by plain puts and atomics are seen, but do not wake a waiter.
/// The memory must stay registered during the call. Blocks.
///
/// Errors: LOST (a rank has died while the word did not satisfy the condition),
/// ELSEWHERE (the word is another rank's), NOWHERE, STALE, RANGE, UNALIGNED, VALUE
/// (of `until`), NULL.
///
/// # Safety
///
/// `job` is a live job; `found` is NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_wait_until(
    job: *const tsumugi_job,
    word: tsumugi_addr,
    until: c_int,
    value: u64,
    found: *mut u64,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { tsumugi_wait_until_within(job, word, until, value, u64::MAX, found) }
}

/// Waits as `tsumugi_wait_until` does, for `limit_ns` nanoseconds at most
/// (`TSUMUGI_FOREVER`: no limit).
///
/// Errors: TIMED_OUT, and those of `tsumugi_wait_until`.
///
/// # Safety
///
/// As for `tsumugi_wait_until`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_wait_until_within(
    job: *const tsumugi_job,
    word: tsumugi_addr,
    until: c_int,
    value: u64,
    limit_ns: u64,
    found: *mut u64,
) -> c_int {
    let wait = || {
        // SAFETY: the caller's.
        let job = unsafe { self::job(job) }?;
        let (at, until) = (word_at(word), until_of(until, value)?);
        let met = match limit_ns {
            u64::MAX => job.global.wait_until(at, until).map(Some),
            limit_ns => job.global.wait_until_timeout(at, until, Duration::from_nanos(limit_ns)),
        };
        let late = || {
            let reason =
                format_args!("the word at {word:#x} has not met {until:?} in {limit_ns} ns");
            refuse(TSUMUGI_ERROR_TIMED_OUT, reason)
        };
        let met = met.map_err(of_access)?.ok_or_else(late)?;
        // SAFETY: the caller's.
        unsafe { tell(found, met) };
        Ok(())
    };
    code_of(wait())
}

fn word_at(word: tsumugi_addr) -> GlobalPtr<u64> {
    byte(word).cast()
}

fn signal_of(signal: c_int, value: u64) -> Result<Signal, c_int> {
    match signal {
        TSUMUGI_SIGNAL_SET => Ok(Signal::Set(value)),
        TSUMUGI_SIGNAL_ADD => Ok(Signal::Add(value)),
        _ => Err(refuse(TSUMUGI_ERROR_VALUE, format_args!("{signal} is no signal"))),
    }
}

fn until_of(until: c_int, value: u64) -> Result<Until, c_int> {
    match until {
        TSUMUGI_UNTIL_EQUAL => Ok(Until::Equal(value)),
        TSUMUGI_UNTIL_NOT_EQUAL => Ok(Until::NotEqual(value)),
        TSUMUGI_UNTIL_AT_LEAST => Ok(Until::AtLeast(value)),
        TSUMUGI_UNTIL_ANY_BIT => Ok(Until::AnyBit(value)),
        _ => Err(refuse(TSUMUGI_ERROR_VALUE, format_args!("{until} is no condition of a wait"))),
    }
}

//! Full and empty words: each word of a program is full at first, and threads wait until
//! it is full, or empty.
//!
//! A table by address has the words that are empty, and the threads that wait. The
//! operations are those of Qthreads; see Wheeler, Murphy, Thain: Qthreads: An API for
//! Programming with Millions of Lightweight Threads, IPDPS 2008.

use super::code::{code_of, of_interrupted};
use super::parameter::{limit, place};
use std::ffi::c_int;
use tsumugi_ult::Limit;
use tsumugi_ult::sync::{Condvar, Mutex};

/// The words whose addresses have one hash.
struct WordBucket {
    empty: Mutex<Vec<usize>>,
    changed: Condvar,
}

/// Fills a word: the threads that wait for that continue. Never waits.
///
/// Errors: NULL.
///
/// # Safety
///
/// `word` is not NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_word_fill(word: *mut u64) -> c_int {
    // SAFETY: a word that is not written may have any address.
    unsafe { change(word, Await::Nothing, Become::Full, Limit::NONE, |_| ()) }
}

/// Empties a word: the threads that wait for that continue.
///
/// Errors: NULL.
///
/// # Safety
///
/// `word` is not NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_word_empty(word: *mut u64) -> c_int {
    // SAFETY: as above.
    unsafe { change(word, Await::Nothing, Become::Empty, Limit::NONE, |_| ()) }
}

/// Whether a word is full.
#[unsafe(no_mangle)]
pub extern "C" fn tsumugi_word_is_full(word: *const u64) -> bool {
    !words(word).empty.lock().contains(&word.addr())
}

/// Writes a word and fills it, whatever it was.
///
/// Errors: NULL.
///
/// # Safety
///
/// `word` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_word_write(word: *mut u64, value: u64) -> c_int {
    // SAFETY: the caller's.
    unsafe { write(word, value, Await::Nothing, Limit::NONE) }
}

/// Waits until a word is empty, writes it, and fills it. Blocks.
///
/// Errors: NULL.
///
/// # Safety
///
/// `word` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_word_write_empty(word: *mut u64, value: u64) -> c_int {
    // SAFETY: the caller's.
    unsafe { write(word, value, Await::Empty, Limit::NONE) }
}

/// Does what `tsumugi_word_write_empty` does, within a time limit (`TSUMUGI_FOREVER`: none);
/// if `is_cancellable` is true, a cancellation of the caller also ends the wait. Blocks.
///
/// Errors: TIMED_OUT and CANCELLED (the word is as it was), NULL.
///
/// # Safety
///
/// As for `tsumugi_word_write_empty`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_word_write_empty_within(
    word: *mut u64,
    value: u64,
    limit_ns: u64,
    is_cancellable: bool,
) -> c_int {
    let limit = limit(limit_ns, is_cancellable);
    // SAFETY: the caller's.
    unsafe { write(word, value, Await::Empty, limit) }
}

/// Waits until a word is full, writes it, and leaves it full. Blocks.
///
/// Errors: NULL.
///
/// # Safety
///
/// `word` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_word_write_full(word: *mut u64, value: u64) -> c_int {
    // SAFETY: the caller's.
    unsafe { write(word, value, Await::Full, Limit::NONE) }
}

/// Does what `tsumugi_word_write_full` does, within a time limit. Blocks.
///
/// Errors: TIMED_OUT and CANCELLED (the word is as it was), NULL.
///
/// # Safety
///
/// As for `tsumugi_word_write_full`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_word_write_full_within(
    word: *mut u64,
    value: u64,
    limit_ns: u64,
    is_cancellable: bool,
) -> c_int {
    let limit = limit(limit_ns, is_cancellable);
    // SAFETY: the caller's.
    unsafe { write(word, value, Await::Full, limit) }
}

/// Waits until a word is full, reads it, and leaves it full. Blocks.
///
/// Errors: NULL.
///
/// # Safety
///
/// `word` is valid for a read, `value` for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_word_read(word: *const u64, value: *mut u64) -> c_int {
    // SAFETY: the caller's.
    unsafe { read(word, value, Become::Full, Limit::NONE) }
}

/// Does what `tsumugi_word_read` does, within a time limit. Blocks.
///
/// Errors: TIMED_OUT and CANCELLED (the word is as it was), NULL.
///
/// # Safety
///
/// As for `tsumugi_word_read`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_word_read_within(
    word: *const u64,
    value: *mut u64,
    limit_ns: u64,
    is_cancellable: bool,
) -> c_int {
    let limit = limit(limit_ns, is_cancellable);
    // SAFETY: the caller's.
    unsafe { read(word, value, Become::Full, limit) }
}

/// Waits until a word is full, reads it, and empties it. Blocks.
///
/// Errors: NULL.
///
/// # Safety
///
/// `word` is valid for a read, `value` for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_word_take(word: *mut u64, value: *mut u64) -> c_int {
    // SAFETY: the caller's.
    unsafe { read(word, value, Become::Empty, Limit::NONE) }
}

/// Does what `tsumugi_word_take` does, within a time limit. Blocks.
///
/// Errors: TIMED_OUT and CANCELLED (the word is as it was), NULL.
///
/// # Safety
///
/// As for `tsumugi_word_take`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_word_take_within(
    word: *mut u64,
    value: *mut u64,
    limit_ns: u64,
    is_cancellable: bool,
) -> c_int {
    let limit = limit(limit_ns, is_cancellable);
    // SAFETY: the caller's.
    unsafe { read(word, value, Become::Empty, limit) }
}

/// What a call waits for.
#[derive(Clone, Copy, PartialEq)]
enum Await {
    Nothing,
    Full,
    Empty,
}

/// What the word is after the call.
#[derive(Clone, Copy, PartialEq)]
enum Become {
    Full,
    Empty,
}

/// # Safety
///
/// `word` is null or valid for a write.
unsafe fn write(word: *mut u64, value: u64, before: Await, limit: Limit) -> c_int {
    // SAFETY: the caller's.
    unsafe { change(word, before, Become::Full, limit, |word| word.write(value)) }
}

/// # Safety
///
/// `word` is valid for a read, `value` for a write.
unsafe fn read(word: *const u64, value: *mut u64, after: Become, limit: Limit) -> c_int {
    // SAFETY: the caller's.
    match unsafe { place(value) } {
        // SAFETY: the caller's.
        Ok(value) => unsafe {
            change(word.cast_mut(), Await::Full, after, limit, |word| value.write(word.read()))
        },
        Err(code) => code,
    }
}

/// Waits within a limit, does `access`, and fills or empties the word.
///
/// # Safety
///
/// `access` may be called with the word.
unsafe fn change(
    word: *mut u64,
    before: Await,
    after: Become,
    limit: Limit,
    access: impl FnOnce(*mut u64),
) -> c_int {
    // SAFETY: the pointer is only compared.
    code_of(unsafe { place(word) }.and_then(|word| {
        let (words, address) = (words(word), word.addr());
        let mut empty = words.empty.lock();
        let at = loop {
            let at = empty.iter().position(|other| *other == address);
            if before == Await::Nothing || at.is_some() == (before == Await::Empty) {
                break at;
            }
            words.changed.wait_within(&mut empty, limit).map_err(of_interrupted)?;
        };
        access(word);
        match (at, after) {
            (None, Become::Empty) => empty.push(address),
            (Some(at), Become::Full) => _ = empty.swap_remove(at),
            _ => return Ok(()),
        }
        words.changed.notify_all();
        Ok(())
    }))
}

fn words(word: *const u64) -> &'static WordBucket {
    static TABLE: [WordBucket; BUCKETS] =
        [const { WordBucket { empty: Mutex::new(Vec::new()), changed: Condvar::new() } }; BUCKETS];
    // Fibonacci hashing: the high bits of the product depend on all bits.
    let hash = (word.addr() as u64 >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    &TABLE[(hash >> 32) as usize % BUCKETS]
}

const BUCKETS: usize = 256;

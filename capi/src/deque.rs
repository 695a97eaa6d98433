//! Deques of work: each rank has one, from which all ranks steal.

use super::code::{code_of, of_addr, of_failure};
use super::job::job;
use super::object::{end, given, live, make, object, refuse};
use super::{TSUMUGI_ERROR_VALUE, tsumugi_job};
use std::ffi::{c_int, c_void};
use tsumugi::steal::RawDeque;
use tsumugi::{Error, Rank};

/// The deques of all ranks, with items of one size. One thread of a rank at a time pushes
/// and pops; any thread and any ULT steals.
#[derive(Debug)]
pub struct tsumugi_deque(RawDeque);

/// Makes an empty deque on every rank, with room for at least `capacity` items of
/// `item_bytes` bytes. All ranks must call it, with the same numbers, in the same order.
/// Blocks.
///
/// Errors: VALUE (`capacity` is 0 or above 2^23), MEMORY, CROWDED, LENGTH (another rank
/// gives other numbers), LOST, JOB, NULL.
///
/// # Safety
///
/// `job` is a live job; `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_deque_create(
    job: *const tsumugi_job,
    capacity: usize,
    item_bytes: usize,
    out: *mut *mut tsumugi_deque,
) -> c_int {
    let create = || {
        // SAFETY: the caller's.
        let (job, out) = unsafe { (self::job(job)?, given(out, "out")?) };
        let deque = RawDeque::new(&job.runtime, capacity, item_bytes);
        let deque = deque.map_err(|error| match error {
            // The capacity is what else can be wrong.
            Error::Program(reason) => refuse(TSUMUGI_ERROR_VALUE, reason),
            error => of_failure(error),
        })?;
        // SAFETY: the caller's.
        unsafe { make(out, tsumugi_deque(deque)) };
        Ok(())
    };
    code_of(create())
}

/// Ends the handle of the deques. The memory is freed at the next barrier, so all ranks
/// must have ended their thefts before it.
///
/// Errors: ENDED, NULL.
///
/// # Safety
///
/// `deque` is a deque; no thread of this process uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_deque_destroy(deque: *mut tsumugi_deque) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { end(deque) }.map(drop))
}

/// Adds a copy of an item to this rank's deque, and writes true to `is_added`; false: there
/// was no room. Lock-free.
///
/// Errors: ENDED, NULL.
///
/// # Safety
///
/// `deque` is a deque; no other thread of this rank pushes or pops at the same time; `item`
/// is valid for a read of the bytes of an item, `is_added` for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_deque_push(
    deque: *const tsumugi_deque,
    item: *const c_void,
    is_added: *mut bool,
) -> c_int {
    let push = || {
        // SAFETY: the caller's.
        let (of, is_added) = unsafe { (live(deque)?, given(is_added, "is_added")?) };
        let item = given(item.cast_mut(), "item")?.cast_const();
        // SAFETY: the caller's.
        unsafe { is_added.write(of.0.push(item.cast(), of.0.item_bytes())) };
        Ok(())
    };
    code_of(push())
}

/// Takes the newest item of this rank's deque to `into`, and writes true to `is_taken`;
/// false: there was no item. Lock-free.
///
/// Errors: ENDED, NULL.
///
/// # Safety
///
/// `deque` is a deque; no other thread of this rank pushes or pops at the same time; `into`
/// is valid for a write of the bytes of an item, `is_taken` for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_deque_pop(
    deque: *const tsumugi_deque,
    into: *mut c_void,
    is_taken: *mut bool,
) -> c_int {
    let pop = || {
        // SAFETY: the caller's.
        let (of, is_taken) = unsafe { (live(deque)?, given(is_taken, "is_taken")?) };
        let into = given(into, "into")?.cast();
        // SAFETY: the caller's.
        unsafe { is_taken.write(of.0.pop_if(into, of.0.item_bytes(), || true)) };
        Ok(())
    };
    code_of(pop())
}

/// Takes the oldest item of the deque of a rank, also of this one, to `into`, and writes
/// true to `is_taken`; false: there was no item, or other thieves were faster several
/// times; `into` then has arbitrary bytes. Blocks if the rank is on another node; otherwise
/// lock-free.
///
/// Errors: RANK, LOST, ENDED, NULL.
///
/// # Safety
///
/// `deque` is a deque; `into` is valid for a write of the bytes of an item, `is_taken` for a
/// write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_deque_steal(
    deque: *const tsumugi_deque,
    rank: u32,
    into: *mut c_void,
    is_taken: *mut bool,
) -> c_int {
    let steal = || {
        // SAFETY: the caller's.
        let (of, is_taken) = unsafe { (live(deque)?, given(is_taken, "is_taken")?) };
        let into = given(into, "into")?.cast();
        // SAFETY: the caller's.
        unsafe { is_taken.write(of.0.steal(Rank(rank), into).map_err(of_addr)?) };
        Ok(())
    };
    code_of(steal())
}

/// Writes the number of items of this rank's deque to `count`; when it is there, thieves may
/// have taken some. Wait-free.
///
/// Errors: ENDED, NULL.
///
/// # Safety
///
/// `deque` is a deque; `count` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_deque_count(
    deque: *const tsumugi_deque,
    count: *mut usize,
) -> c_int {
    let look = || {
        // SAFETY: the caller's.
        let (of, count) = unsafe { (live(deque)?, given(count, "count")?) };
        // SAFETY: the caller's.
        unsafe { count.write(of.0.len()) };
        Ok(())
    };
    code_of(look())
}

object!(tsumugi_deque, "deque");

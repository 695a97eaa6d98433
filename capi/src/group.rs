//! Groups of ranks, on which collectives are called.

use super::code::{code_of, of_failure};
use super::job::job;
use super::object::{end, given, live, make, object, refuse};
use super::{TSUMUGI_ERROR_RANK, TSUMUGI_ERROR_VALUE, tsumugi_job};
use std::ffi::c_int;
use std::ptr;
use tsumugi::Group;

/// In place of a color: this member gets no group.
pub const TSUMUGI_NO_COLOR: i64 = -1;

/// Some ranks of a job, in an order: the members, which are named by their place, from
/// 0 on. All members call the same collectives in the same order, each from one thread at
/// a time. Any thread and any ULT may use it.
#[derive(Debug)]
pub struct tsumugi_group(pub(super) Group);

/// The group of all ranks, in their order. Wait-free.
///
/// Errors: NULL.
///
/// # Safety
///
/// `job` is a live job; `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_group_world(
    job: *const tsumugi_job,
    out: *mut *mut tsumugi_group,
) -> c_int {
    let world = || {
        // SAFETY: the caller's.
        let (job, out) = unsafe { (self::job(job)?, given(out, "out")?) };
        // SAFETY: the caller's.
        unsafe { make(out, tsumugi_group(job.runtime.world())) };
        Ok(())
    };
    code_of(world())
}

/// Makes groups of the members that give the same `color`, a number of 32 bits, in the
/// order of their keys, and of their places in `group` for equal keys. Writes NULL for a
/// member that gives `TSUMUGI_NO_COLOR`. All members must call it. Blocks.
///
/// Errors: VALUE (of `color`: the other members then wait for this one), CROWDED (the job
/// has 65,534 groups and communicators), LOST, ENDED, NULL.
///
/// # Safety
///
/// `group` is a group; `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_group_split(
    group: *const tsumugi_group,
    color: i64,
    key: i64,
    out: *mut *mut tsumugi_group,
) -> c_int {
    let split = || {
        // SAFETY: the caller's.
        let (group, out) = unsafe { (live(group)?, given(out, "out")?) };
        let color = match (color, u32::try_from(color)) {
            (TSUMUGI_NO_COLOR, _) => None,
            (_, Ok(color)) => Some(color),
            _ => {
                let reason = format_args!("{color} is no color of 32 bits");
                return Err(refuse(TSUMUGI_ERROR_VALUE, reason));
            }
        };
        match group.0.split(color, key).map_err(of_failure)? {
            // SAFETY: the caller's.
            Some(part) => unsafe { make(out, tsumugi_group(part)) },
            // SAFETY: the caller's.
            None => unsafe { out.write(ptr::null_mut()) },
        }
        Ok(())
    };
    code_of(split())
}

/// Makes a group of the same members; its collectives do not mix with those of `group`.
/// All members must call it. Blocks.
///
/// Errors: those of `tsumugi_group_split` but VALUE.
///
/// # Safety
///
/// As for `tsumugi_group_split`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_group_duplicate(
    group: *const tsumugi_group,
    out: *mut *mut tsumugi_group,
) -> c_int {
    let duplicate = || {
        // SAFETY: the caller's.
        let (group, out) = unsafe { (live(group)?, given(out, "out")?) };
        let new = group.0.duplicate().map_err(of_failure)?;
        // SAFETY: the caller's.
        unsafe { make(out, tsumugi_group(new)) };
        Ok(())
    };
    code_of(duplicate())
}

/// Ends the handle of a group; collectives that were begun on it go on. Never waits.
///
/// Errors: ENDED, NULL.
///
/// # Safety
///
/// `group` is a group; no thread uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_group_close(group: *mut tsumugi_group) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { end(group) }.map(drop))
}

/// The place of this rank in the group; `UINT32_MAX` if `group` is NULL or has ended.
/// Wait-free.
///
/// # Safety
///
/// `group` is NULL or a group.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_group_rank(group: *const tsumugi_group) -> u32 {
    // SAFETY: the caller's.
    unsafe { live(group) }.map_or(u32::MAX, |group| group.0.rank())
}

/// The number of members; 0 if `group` is NULL or has ended. Wait-free.
///
/// # Safety
///
/// `group` is NULL or a group.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_group_size(group: *const tsumugi_group) -> u32 {
    // SAFETY: the caller's.
    unsafe { live(group) }.map_or(0, |group| group.0.size())
}

/// Writes the rank of a member in the job to `rank`. Wait-free.
///
/// Errors: RANK (the group has no such member), ENDED, NULL.
///
/// # Safety
///
/// `group` is a group; `rank` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_group_translate(
    group: *const tsumugi_group,
    member: u32,
    rank: *mut u32,
) -> c_int {
    let translate = || {
        // SAFETY: the caller's.
        let (group, rank) = unsafe { (live(group)?, given(rank, "rank")?) };
        let of = group.0.translate(member).ok_or_else(|| {
            let size = group.0.size();
            refuse(TSUMUGI_ERROR_RANK, format_args!("member {member} of {size}"))
        })?;
        // SAFETY: the caller's.
        unsafe { rank.write(of.0) };
        Ok(())
    };
    code_of(translate())
}

object!(tsumugi_group, "group");

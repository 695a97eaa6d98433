//! Collectives that combine the elements of all members of a group.

use super::code::{code_of, of_failure};
use super::collective::{Call, carry_out, counts_at, input_at};
use super::object::{bytes_of, given, live, room_at};
use super::reduction::Fold;
use super::{tsumugi_group, tsumugi_reduction, tsumugi_request};
use std::ffi::{c_int, c_void};

/// Combines `count` elements of each member, one by one, as `by` says; the member `root`
/// gets the result in `into`, which other members do not use. `from` is NULL where the
/// elements lie in `into`. If `request` is NULL, waits for the end; else begins the
/// collective and writes a request, which `tsumugi_request_wait` and its like end: until
/// then the program leaves the memory alone. All members must call it. Blocks, unless it
/// begins.
///
/// Errors: RANK (of `root`), VALUE, FLAGS and SIZE (of `by`), LENGTH (another member gives
/// another `count`: found where the elements meet, and all members have taken part), LOST,
/// ENDED, NULL. A member whose own arguments are wrong takes no part.
///
/// # Safety
///
/// `group` is a group; `from` is valid for a read of the elements, and `into` for a write
/// of them where it is used, until the collective has ended; they are the same or do not
/// overlap; `by` is valid for a read of as many bytes as its `size` states; `request` is
/// NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_group_reduce(
    group: *const tsumugi_group,
    from: *const c_void,
    into: *mut c_void,
    count: usize,
    by: *const tsumugi_reduction,
    root: u32,
    request: *mut *mut tsumugi_request,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        combine(group, by, request, |of, fold| {
            let elements = fold.elements(count);
            let bytes = bytes_of(count, elements.bytes)?;
            let call = of.0.raw_reduce(elements, root).map_err(of_failure)?;
            let output = match of.0.rank() == root || from.is_null() {
                true => room_at(into, bytes, "into")?,
                false => into.cast(),
            };
            Ok((call, if from.is_null() { output } else { from.cast() }, output))
        })
    }
}

/// Combines `count` elements of each member, one by one, as `by` says; all members get
/// the result in `into`. `from`, `request` and the rest are as for `tsumugi_group_reduce`.
///
/// # Safety
///
/// As for `tsumugi_group_reduce`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_group_allreduce(
    group: *const tsumugi_group,
    from: *const c_void,
    into: *mut c_void,
    count: usize,
    by: *const tsumugi_reduction,
    request: *mut *mut tsumugi_request,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        combine(group, by, request, |of, fold| {
            let (input, output) = same_count(from, into, count, fold)?;
            Ok((of.0.raw_allreduce(fold.elements(count)).map_err(of_failure)?, input, output))
        })
    }
}

/// Combines `count` elements of the lower members and of this one, one by one, in the
/// order of the members, to `into`. `from`, `request` and the rest are as for
/// `tsumugi_group_reduce`.
///
/// # Safety
///
/// As for `tsumugi_group_reduce`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_group_scan(
    group: *const tsumugi_group,
    from: *const c_void,
    into: *mut c_void,
    count: usize,
    by: *const tsumugi_reduction,
    request: *mut *mut tsumugi_request,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        combine(group, by, request, |of, fold| {
            let (input, output) = same_count(from, into, count, fold)?;
            Ok((of.0.raw_scan(fold.elements(count), false).map_err(of_failure)?, input, output))
        })
    }
}

/// Combines `count` elements of the lower members, one by one, in the order of the
/// members, to `into`, which stays as it is at the first member. `from`, `request` and the
/// rest are as for `tsumugi_group_reduce`.
///
/// # Safety
///
/// As for `tsumugi_group_reduce`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_group_exscan(
    group: *const tsumugi_group,
    from: *const c_void,
    into: *mut c_void,
    count: usize,
    by: *const tsumugi_reduction,
    request: *mut *mut tsumugi_request,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        combine(group, by, request, |of, fold| {
            let (input, output) = same_count(from, into, count, fold)?;
            Ok((of.0.raw_scan(fold.elements(count), true).map_err(of_failure)?, input, output))
        })
    }
}

/// Combines the elements of all members, one by one, and writes this member's block of the
/// result to `into`. `from` has a block of `count` elements for each member. `request` and
/// the rest are as for `tsumugi_group_reduce`.
///
/// # Safety
///
/// As for `tsumugi_group_reduce`, with as many blocks in `from` as members; `from` and
/// `into` do not overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_group_reduce_scatter(
    group: *const tsumugi_group,
    from: *const c_void,
    into: *mut c_void,
    count: usize,
    by: *const tsumugi_reduction,
    request: *mut *mut tsumugi_request,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        combine(group, by, request, |of, fold| {
            let bytes = bytes_of(count, fold.elements(1).bytes)?;
            let input = input_at(from, bytes_of(bytes, of.0.size() as usize)?, "from")?;
            let output = room_at(into, bytes, "into")?;
            Ok((of.0.raw_reduce_scatter(fold.elements(count)).map_err(of_failure)?, input, output))
        })
    }
}

/// Does the same as `tsumugi_group_reduce_scatter` with blocks of different lengths:
/// `counts` has the number of elements of each member's block, the same at all members.
///
/// # Safety
///
/// As for `tsumugi_group_reduce_scatter`; `counts` is valid for a read of as many numbers
/// as the group has members.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_group_reduce_scatter_v(
    group: *const tsumugi_group,
    from: *const c_void,
    into: *mut c_void,
    counts: *const usize,
    by: *const tsumugi_reduction,
    request: *mut *mut tsumugi_request,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        combine(group, by, request, |of, fold| {
            let (counts, all) = counts_at(counts, of, "counts")?;
            let each = fold.elements(1).bytes;
            let input = input_at(from, bytes_of(all, each)?, "from")?;
            let output = room_at(into, counts[of.0.rank() as usize] * each, "into")?;
            let call = of.0.raw_reduce_scatter_v(fold.elements(0), counts).map_err(of_failure)?;
            Ok((call, input, output))
        })
    }
}

/// Combines one number of each member by `what` (`TSUMUGI_SUM` and the others); writes the
/// result to `result`. All members must call it. Blocks.
///
/// Errors: VALUE (of `what`), LOST, ENDED, NULL.
///
/// # Safety
///
/// `group` is a group; `result` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_group_reduce_u64(
    group: *const tsumugi_group,
    what: u32,
    value: u64,
    result: *mut u64,
) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { combine_one(group, what, super::TSUMUGI_U64, value, result) })
}

/// Does the same as `tsumugi_group_reduce_u64` on numbers with a sign.
///
/// # Safety
///
/// As for `tsumugi_group_reduce_u64`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_group_reduce_i64(
    group: *const tsumugi_group,
    what: u32,
    value: i64,
    result: *mut i64,
) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { combine_one(group, what, super::TSUMUGI_I64, value, result) })
}

/// Does the same as `tsumugi_group_reduce_u64` on floats.
///
/// # Safety
///
/// As for `tsumugi_group_reduce_u64`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_group_reduce_f64(
    group: *const tsumugi_group,
    what: u32,
    value: f64,
    result: *mut f64,
) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { combine_one(group, what, super::TSUMUGI_F64, value, result) })
}

/// Carries out the collective that `plan` makes, which combines by `by`.
///
/// # Safety
///
/// `group` is null or a group; `by` is null or valid for a read of as many bytes as its
/// `size` states; the rest is that of [`carry_out`].
unsafe fn combine(
    group: *const tsumugi_group,
    by: *const tsumugi_reduction,
    request: *mut *mut tsumugi_request,
    plan: impl for<'a> FnOnce(&'a tsumugi_group, &Fold) -> Result<Call<'a>, c_int>,
) -> c_int {
    let run = || {
        // SAFETY: the caller's.
        let (of, fold) = unsafe { (live(group)?, Fold::of(by)?) };
        let call = plan(of, &fold)?;
        // SAFETY: the caller's.
        unsafe { carry_out(call, Some(fold), request) }
    };
    code_of(run())
}

/// The input and output of a collective of which each member gives and gets as many
/// elements.
fn same_count(
    from: *const c_void,
    into: *mut c_void,
    count: usize,
    fold: &Fold,
) -> Result<(*const u8, *mut u8), c_int> {
    let output = room_at(into, bytes_of(count, fold.elements(1).bytes)?, "into")?;
    Ok((if from.is_null() { output } else { from.cast() }, output))
}

/// Combines one value of the type `element`.
///
/// # Safety
///
/// `group` is null or a group; `result` is null or valid for a write.
unsafe fn combine_one<T>(
    group: *const tsumugi_group,
    what: u32,
    element: u32,
    mut value: T,
    result: *mut T,
) -> Result<(), c_int> {
    // SAFETY: the caller's.
    let of = unsafe { live(group) }?;
    given(result, "result")?;
    let fold = Fold::known(what, element)?;
    let call = of.0.raw_allreduce(fold.elements(1)).map_err(of_failure)?;
    let at = (&raw mut value).cast();
    // SAFETY: the value is local, and the collective has ended when this returns.
    unsafe {
        fold.run(call, at, at).map_err(of_failure)?;
        result.write(value);
    }
    Ok(())
}

//! Collectives that move the bytes of all members of a group.

use super::code::{code_of, of_failure};
use super::object::{bytes_of, given, list_at, live, make, refuse, room_at};
use super::reduction::Fold;
use super::{TSUMUGI_ERROR_LENGTH, tsumugi_group, tsumugi_request};
use std::ffi::{c_int, c_void};
use std::ptr;
use tsumugi::group::{RawBlocks, RawCollective};

/// Waits until every member has called it. If `request` is not NULL, does not wait, but
/// writes a request, which ends when every member has called it. All members must call it.
/// Blocks, unless it begins.
///
/// Errors: LOST, ENDED, NULL.
///
/// # Safety
///
/// `group` is a group; `request` is NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_group_barrier(
    group: *const tsumugi_group,
    request: *mut *mut tsumugi_request,
) -> c_int {
    // SAFETY: the caller's; a barrier has no bytes.
    unsafe {
        collective(group, request, |of| {
            Ok((of.0.raw_barrier().map_err(of_failure)?, ptr::null(), ptr::null_mut()))
        })
    }
}

/// Brings the `bytes` bytes at `data` of the member `root` to all members. If `request` is
/// NULL, waits for the end; else begins the collective and writes a request, which
/// `tsumugi_request_wait` and its like end: until then the program leaves the memory
/// alone. All members must call it. Blocks, unless it begins.
///
/// Errors: RANK (of `root`), LENGTH (another member gives other `bytes`: found where the
/// bytes meet, and all members have taken part), LOST, ENDED, NULL. A member whose own
/// arguments are wrong takes no part. `bytes` on two sides of a length at which the
/// algorithm changes, such as 256 on a node, can make members wait for ever: so in all
/// collectives with lengths.
///
/// # Safety
///
/// `group` is a group; `data` is valid for reads and writes of `bytes` bytes until the
/// collective has ended; `request` is NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_group_broadcast(
    group: *const tsumugi_group,
    data: *mut c_void,
    bytes: usize,
    root: u32,
    request: *mut *mut tsumugi_request,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        collective(group, request, |of| {
            let data = room_at(data, bytes, "data")?;
            let call = of.0.raw_broadcast(bytes, root).map_err(of_failure)?;
            Ok((call, data.cast_const(), data))
        })
    }
}

/// Brings `bytes` bytes of each member to `into` at the member `root`, in the order of the
/// members; other members do not use `into`. `request` and the rest are as for
/// `tsumugi_group_broadcast`.
///
/// # Safety
///
/// `group` is a group; until the collective has ended `from` is valid for a read of `bytes`
/// bytes, and at the root `into` for a write of as many for each member; they do not
/// overlap; `request` is NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_group_gather(
    group: *const tsumugi_group,
    from: *const c_void,
    bytes: usize,
    into: *mut c_void,
    root: u32,
    request: *mut *mut tsumugi_request,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        collective(group, request, |of| {
            let input = input_at(from, bytes, "from")?;
            let output = of.at_root(root, || room_at(into, of.all_of(bytes)?, "into"))?;
            let call = of.0.raw_gather(bytes, root).map_err(of_failure)?;
            Ok((call, input, output.unwrap_or(ptr::null_mut())))
        })
    }
}

/// Does the same as `tsumugi_group_gather` with lengths that differ: at the root, `lens`
/// has the bytes of each member, and `places` their offsets in `into`, or is NULL if they
/// follow each other. Other members do not use these.
///
/// # Safety
///
/// As for `tsumugi_group_gather`; at the root `lens` is valid for a read of as many numbers
/// as the group has members, and `places` is NULL or valid for that, too; the places of
/// `into` do not overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_group_gather_v(
    group: *const tsumugi_group,
    from: *const c_void,
    bytes: usize,
    into: *mut c_void,
    lens: *const usize,
    places: *const usize,
    root: u32,
    request: *mut *mut tsumugi_request,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        collective(group, request, |of| {
            let input = input_at(from, bytes, "from")?;
            let blocks = of.at_root(root, || blocks_at(lens, places, of))?;
            let (blocks, all) = blocks.unwrap_or(NO_BLOCKS);
            let output = room_at(into, all, "into")?;
            let call = of.0.raw_gather_v(bytes, blocks, root).map_err(of_failure)?;
            Ok((call, input, output))
        })
    }
}

/// Brings `bytes` bytes of `from` at the member `root` to `into` of each member: the block
/// of its place; other members do not use `from`. `request` and the rest are as for
/// `tsumugi_group_broadcast`.
///
/// # Safety
///
/// `group` is a group; until the collective has ended `into` is valid for a write of
/// `bytes` bytes, and at the root `from` for a read of as many for each member; they do not
/// overlap; `request` is NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_group_scatter(
    group: *const tsumugi_group,
    from: *const c_void,
    into: *mut c_void,
    bytes: usize,
    root: u32,
    request: *mut *mut tsumugi_request,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        collective(group, request, |of| {
            let output = room_at(into, bytes, "into")?;
            let input = of.at_root(root, || input_at(from, of.all_of(bytes)?, "from"))?;
            let call = of.0.raw_scatter(bytes, root).map_err(of_failure)?;
            Ok((call, input.unwrap_or(ptr::null()), output))
        })
    }
}

/// Does the same as `tsumugi_group_scatter` with lengths that differ: at the root, `lens`
/// has the bytes of each member, and `places` their offsets in `from`, or is NULL if they
/// follow each other. Other members do not use these.
///
/// # Safety
///
/// As for `tsumugi_group_scatter`; at the root `lens` is valid for a read of as many
/// numbers as the group has members, and `places` is NULL or valid for that, too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_group_scatter_v(
    group: *const tsumugi_group,
    from: *const c_void,
    lens: *const usize,
    places: *const usize,
    into: *mut c_void,
    bytes: usize,
    root: u32,
    request: *mut *mut tsumugi_request,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        collective(group, request, |of| {
            let output = room_at(into, bytes, "into")?;
            let blocks = of.at_root(root, || blocks_at(lens, places, of))?;
            let (blocks, all) = blocks.unwrap_or(NO_BLOCKS);
            let input = input_at(from, all, "from")?;
            let call = of.0.raw_scatter_v(bytes, blocks, root).map_err(of_failure)?;
            Ok((call, input, output))
        })
    }
}

/// Brings `bytes` bytes of each member to `into` at all members, in the order of the
/// members. `request` and the rest are as for `tsumugi_group_broadcast`.
///
/// # Safety
///
/// `group` is a group; until the collective has ended `from` is valid for a read of `bytes`
/// bytes, and `into` for a write of as many for each member; they do not overlap; `request`
/// is NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_group_allgather(
    group: *const tsumugi_group,
    from: *const c_void,
    bytes: usize,
    into: *mut c_void,
    request: *mut *mut tsumugi_request,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        collective(group, request, |of| {
            let input = input_at(from, bytes, "from")?;
            let output = room_at(into, of.all_of(bytes)?, "into")?;
            Ok((of.0.raw_allgather(bytes).map_err(of_failure)?, input, output))
        })
    }
}

/// Does the same as `tsumugi_group_allgather` with lengths that differ: `lens` has the bytes
/// of each member, the same at all members. The blocks follow each other in `into`.
///
/// # Safety
///
/// As for `tsumugi_group_allgather`; `lens` is valid for a read of as many numbers as the
/// group has members.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_group_allgather_v(
    group: *const tsumugi_group,
    from: *const c_void,
    bytes: usize,
    into: *mut c_void,
    lens: *const usize,
    request: *mut *mut tsumugi_request,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        collective(group, request, |of| {
            let input = input_at(from, bytes, "from")?;
            let (lens, all) = counts_at(lens, of, "the lengths")?;
            let output = room_at(into, all, "into")?;
            let call = of.0.raw_allgather_v(bytes, lens).map_err(of_failure)?;
            Ok((call, input, output))
        })
    }
}

/// Brings a block of `bytes` bytes of each member to each: the block of `from` of a
/// member's place goes to that member, and the block of `into` of a member's place comes
/// from it. `request` and the rest are as for `tsumugi_group_broadcast`.
///
/// # Safety
///
/// `group` is a group; until the collective has ended `from` is valid for a read, and
/// `into` for a write, of `bytes` bytes for each member; they do not overlap; `request` is
/// NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_group_alltoall(
    group: *const tsumugi_group,
    from: *const c_void,
    into: *mut c_void,
    bytes: usize,
    request: *mut *mut tsumugi_request,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        collective(group, request, |of| {
            let all = of.all_of(bytes)?;
            let (input, output) = (input_at(from, all, "from")?, room_at(into, all, "into")?);
            Ok((of.0.raw_alltoall(bytes).map_err(of_failure)?, input, output))
        })
    }
}

/// Does the same as `tsumugi_group_alltoall` with lengths that differ: `from_lens` has the
/// bytes of the blocks of `from`, and `from_places` their offsets, or is NULL if they follow
/// each other; `into_lens` and `into_places` are those of `into`.
///
/// # Safety
///
/// As for `tsumugi_group_alltoall`; the lengths are valid for a read of as many numbers as
/// the group has members, and the places are NULL or valid for that, too; the places of
/// `into` do not overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_group_alltoall_v(
    group: *const tsumugi_group,
    from: *const c_void,
    from_lens: *const usize,
    from_places: *const usize,
    into: *mut c_void,
    into_lens: *const usize,
    into_places: *const usize,
    request: *mut *mut tsumugi_request,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        collective(group, request, |of| {
            let (sent, from_bytes) = blocks_at(from_lens, from_places, of)?;
            let (received, into_bytes) = blocks_at(into_lens, into_places, of)?;
            let input = input_at(from, from_bytes, "from")?;
            let output = room_at(into, into_bytes, "into")?;
            let call = of.0.raw_alltoall_v(sent, received).map_err(of_failure)?;
            Ok((call, input, output))
        })
    }
}

/// A collective with the places of its input and output.
pub(super) type Call<'a> = (RawCollective<'a>, *const u8, *mut u8);

/// Carries out the collective that `plan` makes, which combines nothing.
///
/// # Safety
///
/// `group` is null or a group; the rest is that of [`carry_out`].
unsafe fn collective(
    group: *const tsumugi_group,
    request: *mut *mut tsumugi_request,
    plan: impl for<'a> FnOnce(&'a tsumugi_group) -> Result<Call<'a>, c_int>,
) -> c_int {
    let run = || {
        // SAFETY: the caller's.
        let call = plan(unsafe { live(group) }?)?;
        // SAFETY: the caller's.
        unsafe { carry_out(call, None, request) }
    };
    code_of(run())
}

/// Carries out a collective, or begins it and writes the request.
///
/// # Safety
///
/// That of [`RawCollective::run`], or of [`RawCollective::begin`]; `request` is null or
/// valid for a write.
pub(super) unsafe fn carry_out(
    (call, input, output): Call<'_>,
    fold: Option<Fold>,
    request: *mut *mut tsumugi_request,
) -> Result<(), c_int> {
    // SAFETY: the caller's.
    unsafe {
        let begun = match (fold, request.is_null()) {
            (None, true) => return call.run(input, output, None).map_err(of_failure),
            (Some(fold), true) => return fold.run(call, input, output).map_err(of_failure),
            (None, false) => call.begin(input, output, None, || ()),
            (Some(fold), false) => fold.begin(call, input, output),
        };
        make(request, begun.map_err(of_failure)?.into());
    }
    Ok(())
}

/// The bytes at `from`, which may be null if there are none.
pub(super) fn input_at(from: *const c_void, bytes: usize, name: &str) -> Result<*const u8, c_int> {
    Ok(room_at(from.cast_mut(), bytes, name)?.cast_const())
}

/// A number for each member, and their sum.
///
/// # Safety
///
/// `counts` is null or valid for a read of as many numbers, as long as the slice lives.
pub(super) unsafe fn counts_at<'a>(
    counts: *const usize,
    of: &tsumugi_group,
    name: &str,
) -> Result<(&'a [usize], usize), c_int> {
    given(counts.cast_mut(), name)?;
    // SAFETY: the caller's.
    let counts = unsafe { list_at(counts, of.0.size() as usize, name) }?;
    let all = counts.iter().try_fold(0usize, |all, count| all.checked_add(*count));
    let all = all.filter(|all| isize::try_from(*all).is_ok()).ok_or_else(|| {
        refuse(TSUMUGI_ERROR_LENGTH, format_args!("the sum of {name} exceeds an address space"))
    })?;
    Ok((counts, all))
}

/// The blocks of all members, and whether there are bytes: their sum.
///
/// # Safety
///
/// `lens` and `places` are null or valid for a read of a number for each member, as long as
/// the blocks live.
unsafe fn blocks_at<'a>(
    lens: *const usize,
    places: *const usize,
    of: &tsumugi_group,
) -> Result<(RawBlocks<'a>, usize), c_int> {
    // SAFETY: the caller's.
    let (bytes, all) = unsafe { counts_at(lens, of, "the lengths")? };
    let places = match places.is_null() {
        true => None,
        // SAFETY: the caller's.
        false => Some(unsafe { list_at(places, bytes.len(), "the places") }?),
    };
    Ok((RawBlocks { bytes, places }, all))
}

impl tsumugi_group {
    /// The bytes of as many of each member.
    fn all_of(&self, bytes: usize) -> Result<usize, c_int> {
        bytes_of(bytes, self.0.size() as usize)
    }

    /// What the root alone looks at.
    fn at_root<T>(
        &self,
        root: u32,
        look: impl FnOnce() -> Result<T, c_int>,
    ) -> Result<Option<T>, c_int> {
        if self.0.rank() == root { look().map(Some) } else { Ok(None) }
    }
}

const NO_BLOCKS: (RawBlocks<'static>, usize) = (RawBlocks { bytes: &[], places: None }, 0);

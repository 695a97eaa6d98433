//! Workspaces: see [`Workspace`].

use super::acp_ga_t;
use super::life::{note, with};
use std::ffi::c_int;
use std::sync::PoisonError;
use tsumugi::Rank;
use tsumugi::global::{GlobalAddr, Workspace};

/// A workspace.
#[derive(Debug)]
pub struct acp_wsditem(Workspace);

/// A workspace; `ACP_WSD_NULL` is no workspace.
pub type acp_wsd_t = *mut acp_wsditem;

/// Makes a workspace of `size` bytes, zero at first, on the ranks that
/// `acp_setparams_ws` has set. All ranks must call it. Returns `ACP_WSD_NULL` on
/// failure.
#[unsafe(no_mangle)]
pub extern "C" fn acp_create_ws(size: usize) -> acp_wsd_t {
    with(NONE, |life| {
        let (first, part) = *life.workspaces.lock().unwrap_or_else(PoisonError::into_inner);
        let ranks = u64::from(life.runtime.size());
        // Places are ACP's rank numbers, which `acp_reset` may have changed.
        let first_rank = life.rank_of((first % ranks) as c_int)?;
        let made = life.global.workspace(size as u64, Rank(first_rank.0), part)?;
        let next = first + (size as u64).div_ceil(part);
        life.workspaces.lock().unwrap_or_else(PoisonError::into_inner).0 = next % ranks;
        Ok(Box::into_raw(Box::new(acp_wsditem(made))))
    })
}

/// Sets the rank where the next workspace begins, and how many bytes of it each
/// rank has; must be the same on all ranks. By default 0 and 1 MiB. Each workspace
/// begins behind the one made before it. Returns 0, or 1 on failure.
#[unsafe(no_mangle)]
pub extern "C" fn acp_setparams_ws(proc_start: usize, size_default: usize) -> c_int {
    with(1, |life| {
        if size_default == 0 {
            return Err("a part of a workspace needs at least 1 byte".into());
        }
        life.rank_of(proc_start as c_int)?;
        let mut next = life.workspaces.lock().unwrap_or_else(PoisonError::into_inner);
        *next = (proc_start as u64, size_default as u64);
        Ok(0)
    })
}

/// Ends a workspace. No rank may use it any more. All ranks must call it.
///
/// # Safety
///
/// `WSD` is `ACP_WSD_NULL` or a workspace.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "ACP's name")]
pub unsafe extern "C" fn acp_destroy_ws(WSD: acp_wsd_t) {
    if WSD != NONE && !WSD.is_null() {
        // SAFETY: the caller's: made by `acp_create_ws`.
        drop(unsafe { Box::from_raw(WSD) });
    }
}

/// Copies `size` bytes of a workspace, from `offset` on, to `ga`. Returns 0, or 1
/// on failure.
///
/// # Safety
///
/// `WSD` is a workspace.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "ACP's name")]
pub unsafe extern "C" fn acp_read_ws(
    WSD: acp_wsd_t,
    ga: acp_ga_t,
    size: usize,
    offset: usize,
) -> c_int {
    if WSD == NONE || WSD.is_null() {
        return note(1, "the workspace is NULL");
    }
    // SAFETY: the caller's.
    let workspace = unsafe { &(*WSD).0 };
    let read = workspace.read(GlobalAddr::from_bits(ga), size as u64, offset as u64);
    read.map_or_else(|error| note(1, error), |()| 0)
}

/// Copies `size` bytes from `ga` to a workspace, from `offset` on. Returns 0, or 1
/// on failure.
///
/// # Safety
///
/// `WSD` is a workspace.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "ACP's name")]
pub unsafe extern "C" fn acp_write_ws(
    WSD: acp_wsd_t,
    ga: acp_ga_t,
    size: usize,
    offset: usize,
) -> c_int {
    if WSD == NONE || WSD.is_null() {
        return note(1, "the workspace is NULL");
    }
    // SAFETY: the caller's.
    let workspace = unsafe { &(*WSD).0 };
    let written = workspace.write(GlobalAddr::from_bits(ga), size as u64, offset as u64);
    written.map_or_else(|error| note(1, error), |()| 0)
}

/// ACP's `ACP_WSD_NULL`.
const NONE: acp_wsd_t = usize::MAX as acp_wsd_t;

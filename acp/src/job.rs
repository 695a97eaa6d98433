//! Being a rank: from `acp_init` to `acp_finalize`.

use super::ACP_HANDLE_ALL;
use super::background_rank::{BackgroundCalls, BackgroundRank};
use super::life::{LAST, Life, NOT_A_RANK, forget, note, set_life, with};
use super::mirror::end_mirror;
use super::options::{Hook, Options};
use std::ffi::{CStr, c_char, c_int};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tsumugi::Runtime;

/// Prepares this process as a rank of its job; returns when all ranks have called
/// it. Arguments that begin with `--acp-` are removed from `argv`: `--acp-size-smem
/// N` (bytes of starter memory, 10,240 by default), `--acp-size-smem-dl N` (bytes
/// of each rank's heap for `acp_malloc`, at least 64 MiB),
/// `--acp-malloc-hook-small`, `-large`, `-huge`, `-low` and `-high N`
/// (`include/acp_malloc.c` describes them). All other options of ACP are accepted
/// and have no effect. Returns 0, or -1 on failure.
///
/// # Safety
///
/// `argc` and `argv` are those of main, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_init(argc: *mut c_int, argv: *mut *mut *mut c_char) -> c_int {
    // SAFETY: the caller's.
    let options = unsafe { Options::take(argc, argv) };
    let mut job = job();
    if job.is_some() {
        return note(-1, "acp_init was called already");
    }
    let open = move |runtime: &Runtime| {
        let life = Life::begin(runtime, options, runtime.rank().0)?;
        set_life(Some(life));
        Ok(())
    };
    match BackgroundRank::start(CALLS, open) {
        Ok((started, ())) => {
            *job = Some(started);
            begin_hook();
            0
        }
        Err(error) => note(-1, error),
    }
}

/// Ends the rank that `acp_init` began; returns when all ranks have called it.
/// Memory that was not freed is freed. Registered memory becomes the program's
/// private memory again; all other threads of the process are stopped while that
/// happens. Returns 0, or -1 on failure.
#[unsafe(no_mangle)]
pub extern "C" fn acp_finalize() -> c_int {
    let ended = {
        let mut job = job();
        let Some(started) = job.take() else { return note(-1, NOT_A_RANK) };
        if let Err(reason) = started.may_end() {
            *job = Some(started);
            return note(-1, reason);
        }
        started
    };
    Hook::end();
    let life = set_life(None);
    forget();
    if let Some(life) = life {
        life.handles.complete(&life, ACP_HANDLE_ALL);
        // The loss of a rank is reported by the join below.
        let _ = life.runtime.barrier();
    }
    // SAFETY: after the barrier no rank reaches the memory any more, and this
    // rank's own threads do not use it.
    if let Err(error) = unsafe { end_mirror() } {
        return note(-1, error);
    }
    ended.end().map_or_else(|error| note(-1, error), |()| 0)
}

/// Begins anew with `rank` as this process's number: memory, channels and handles
/// are gone, starter memory is zero. All ranks must call it, each with a different
/// number. Returns 0, or -1 on failure.
#[unsafe(no_mangle)]
pub extern "C" fn acp_reset(rank: c_int) -> c_int {
    let reset = with(-1, |life| {
        let (runtime, options) = (life.runtime.clone(), life.options.clone());
        life.handles.complete(life, ACP_HANDLE_ALL);
        Hook::end();
        runtime.barrier()?;
        let next = Life::begin(&runtime, options, rank as u32)?;
        let before = set_life(Some(next));
        runtime.barrier()?;
        drop(before);
        Ok(0)
    });
    if reset == 0 {
        begin_hook();
    }
    reset
}

/// Prints `str` and the reason of the last call that failed, and aborts the
/// process; the job ends.
///
/// # Safety
///
/// `str` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_abort(str: *const c_char) {
    let said = match str.is_null() {
        true => c"",
        // SAFETY: the caller's.
        false => unsafe { CStr::from_ptr(str) },
    };
    let reason = LAST.with_borrow(|last| last.to_string_lossy().into_owned());
    // One write, so that the line does not mix with the output of other ranks.
    let line = format!("acp: rank {}: {} {reason}\n", acp_rank(), said.to_string_lossy());
    eprint!("{line}");
    std::process::abort();
}

/// Ends the process with an exit code that reports a failure; the job ends. It is
/// not a part of ACP's interface, but programs written for ACP call it.
#[unsafe(no_mangle)]
pub extern "C" fn iacp_abort_cl() {
    std::process::exit(-1);
}

/// Waits until all ranks have called it. Returns 0, or -1 on failure.
#[unsafe(no_mangle)]
pub extern "C" fn acp_sync() -> c_int {
    with(-1, |life| {
        life.runtime.barrier()?;
        Ok(0)
    })
}

/// The rank of this process, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn acp_rank() -> c_int {
    with(-1, |life| Ok(life.number() as c_int))
}

/// The number of ranks, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn acp_procs() -> c_int {
    with(-1, |life| Ok(life.runtime.size() as c_int))
}

/// Why the last call of this thread that failed did so. The string is valid until
/// the next call of this thread that fails. It is not a part of ACP's interface.
#[unsafe(no_mangle)]
pub extern "C" fn tsumugi_acp_error() -> *const c_char {
    LAST.with_borrow(|last| last.as_ptr())
}

/// Lets the malloc hook take blocks from the heap from now on.
fn begin_hook() {
    with((), |life| {
        life.options.hook.begin(life);
        Ok(())
    });
}

fn job() -> MutexGuard<'static, Option<BackgroundRank>> {
    JOB.lock().unwrap_or_else(PoisonError::into_inner)
}

const CALLS: BackgroundCalls =
    BackgroundCalls { begins: "acp_init", ends: "acp_finalize", thread: "acp" };

// A static, because ACP's functions have no handle of their job.
static JOB: Mutex<Option<BackgroundRank>> = Mutex::new(None);

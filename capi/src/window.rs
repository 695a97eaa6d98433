//! Windows: one array of bytes on every rank, with fences and flushes.

use super::code::{code_of, of_addr, of_failure};
use super::job::job;
use super::object::{end, given, live, make, object, refuse, room_at, tell};
use super::{
    TSUMUGI_ATOMIC_ADD, TSUMUGI_ATOMIC_AND, TSUMUGI_ATOMIC_OR, TSUMUGI_ATOMIC_SWAP,
    TSUMUGI_ATOMIC_XOR, TSUMUGI_ERROR_VALUE, tsumugi_job,
};
use std::ffi::{c_int, c_void};
use std::sync::Arc;
use tsumugi::window::{Design, WindowOptions};
use tsumugi::{AddrError, Rank, Remote, Runtime, Window, Word};

/// The locks of a window are those of `TSUMUGI_WINDOW_EACH` up to 16 ranks, and those of
/// `TSUMUGI_WINDOW_TREE` beyond.
pub const TSUMUGI_WINDOW_DEFAULT: c_int = 0;
/// A lock for each target; a hold of all targets takes all of them.
pub const TSUMUGI_WINDOW_EACH: c_int = 1;
/// A lock for each target, and a tree over the nodes for holds of all targets.
pub const TSUMUGI_WINDOW_TREE: c_int = 2;
/// One lock for the window; for comparison.
pub const TSUMUGI_WINDOW_GLOBAL: c_int = 3;
/// A word for holds of all targets, and one for each target; for comparison.
pub const TSUMUGI_WINDOW_TWO_LEVEL: c_int = 4;

/// An array of bytes on every rank, all of the same length, and its locks. Any thread
/// and any ULT may use it.
#[derive(Debug)]
pub struct tsumugi_window {
    runtime: Runtime,
    pub(super) window: Arc<Window<u8>>,
}

/// Makes a window of `bytes` zero bytes on every rank, aligned to 64, with locks of the
/// given design (`TSUMUGI_WINDOW_*`; that of rank 0 counts). All ranks must call it,
/// with the same `bytes`, in the same order. Blocks.
///
/// Errors: MEMORY, CROWDED, LENGTH (another rank gives other `bytes`), VALUE (of
/// `design`), LOST, JOB, NULL.
///
/// # Safety
///
/// `job` is a live job; `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_window_create(
    job: *const tsumugi_job,
    bytes: usize,
    design: c_int,
    out: *mut *mut tsumugi_window,
) -> c_int {
    let create = || {
        // SAFETY: the caller's.
        let (job, out) = unsafe { (self::job(job)?, given(out, "out")?) };
        let runtime = &job.runtime;
        let options = WindowOptions::new();
        let options = match design {
            TSUMUGI_WINDOW_DEFAULT => options,
            TSUMUGI_WINDOW_EACH => options.design(Design::Each),
            TSUMUGI_WINDOW_TREE => options.design(Design::Tree),
            TSUMUGI_WINDOW_GLOBAL => options.design(Design::Global),
            TSUMUGI_WINDOW_TWO_LEVEL => options.design(Design::TwoLevel),
            _ => {
                let reason = format_args!("{design} is no design of a window");
                return Err(refuse(TSUMUGI_ERROR_VALUE, reason));
            }
        };
        let window = options.create(runtime, bytes).map_err(of_failure)?;
        let (runtime, window) = (runtime.clone(), Arc::new(window));
        // SAFETY: the caller's.
        unsafe { make(out, tsumugi_window { runtime, window }) };
        Ok(())
    };
    code_of(create())
}

/// Ends the handle of a window; holds and epochs that were made of it must have ended.
/// The memory is freed at the next barrier, so all ranks must have ended their accesses
/// before it.
///
/// Errors: ENDED, NULL.
///
/// # Safety
///
/// `window` is a window; no thread of this process uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_window_destroy(window: *mut tsumugi_window) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { end(window) }.map(drop))
}

/// Writes the address of this rank's own bytes to `own`. Other ranks may change them at
/// any time; which accesses are ordered is agreed by fences, epochs and holds. Wait-free.
///
/// Errors: ENDED, NULL.
///
/// # Safety
///
/// `window` is a window; `own` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_window_memory(
    window: *const tsumugi_window,
    own: *mut *mut c_void,
) -> c_int {
    let memory = || {
        // SAFETY: the caller's.
        let (of, own) = unsafe { (live(window)?, given(own, "own")?) };
        let at = match of.window.len() {
            0 => std::ptr::null_mut(),
            _ => {
                let at = of.runtime.pointer(of.window.at(of.runtime.rank(), 0));
                at.map_err(of_addr)?.as_ptr()
            }
        };
        // SAFETY: the caller's.
        unsafe { own.write(at.cast()) };
        Ok(())
    };
    code_of(memory())
}

/// Writes `bytes` bytes at `offset` of `target`'s array. They have landed after the next
/// flush, fence, or end of the epoch or hold; on this node, when this returns. `from` may
/// change when this returns, and may overlap this rank's own array, as for `memmove`.
/// Blocks only for room.
///
/// Errors: RANK, RANGE, LOST, ENDED, NULL; the error of a put to another node may be
/// returned later, by the next flush.
///
/// # Safety
///
/// `window` is a window; `from` is valid for a read of `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_window_put(
    window: *const tsumugi_window,
    target: u32,
    offset: usize,
    from: *const c_void,
    bytes: usize,
) -> c_int {
    let put = || {
        // SAFETY: the caller's.
        let of = unsafe { live(window) }?;
        let from = room_at(from.cast_mut(), bytes, "from")?;
        // SAFETY: the caller's.
        unsafe { of.window.store(Rank(target), offset, from, bytes) }.map_err(of_addr)
    };
    code_of(put())
}

/// Reads `bytes` bytes at `offset` of `target`'s array; they are in `into` when this
/// returns. `into` may overlap this rank's own array, as for `memmove`; after RANK and
/// RANGE nothing was written. Blocks; wait-free between ranks of a node.
///
/// Errors: RANK, RANGE, LOST, ENDED, NULL.
///
/// # Safety
///
/// `window` is a window; `into` is valid for a write of `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_window_get(
    window: *const tsumugi_window,
    target: u32,
    offset: usize,
    into: *mut c_void,
    bytes: usize,
) -> c_int {
    let get = || {
        // SAFETY: the caller's.
        let of = unsafe { live(window) }?;
        let into = room_at(into, bytes, "into")?;
        // SAFETY: the caller's.
        unsafe { of.window.load(Rank(target), offset, into, bytes) }.map_err(of_addr)
    };
    code_of(get())
}

/// Changes the 4 bytes at `offset` of `target`'s array with `operand`, by the atomic
/// operation `what` (`TSUMUGI_ATOMIC_*`), and writes the old value to `old`, unless `old`
/// is NULL. The change is complete when this returns. Blocks; wait-free between ranks of
/// a node.
///
/// Errors: RANK, RANGE, UNALIGNED, VALUE (of `what`), LOST, ENDED, NULL.
///
/// # Safety
///
/// `window` is a window; `old` is NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_window_atomic4(
    window: *const tsumugi_window,
    what: c_int,
    target: u32,
    offset: usize,
    operand: u32,
    old: *mut u32,
) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { change(window, (what, target, offset), operand, old) })
}

/// Does the same as `tsumugi_window_atomic4` on 8 bytes.
///
/// # Safety
///
/// As for `tsumugi_window_atomic4`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_window_atomic8(
    window: *const tsumugi_window,
    what: c_int,
    target: u32,
    offset: usize,
    operand: u64,
    old: *mut u64,
) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { change(window, (what, target, offset), operand, old) })
}

/// Stores `desired` in the 4 bytes at `offset` of `target`'s array if they hold
/// `expected`. Writes the old value to `old`, unless `old` is NULL. Blocks; wait-free
/// between ranks of a node.
///
/// Errors: RANK, RANGE, UNALIGNED, LOST, ENDED, NULL.
///
/// # Safety
///
/// `window` is a window; `old` is NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_window_compare_swap4(
    window: *const tsumugi_window,
    target: u32,
    offset: usize,
    expected: u32,
    desired: u32,
    old: *mut u32,
) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { swap(window, (target, offset), (expected, desired), old) })
}

/// Does the same as `tsumugi_window_compare_swap4` on 8 bytes.
///
/// # Safety
///
/// As for `tsumugi_window_compare_swap4`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_window_compare_swap8(
    window: *const tsumugi_window,
    target: u32,
    offset: usize,
    expected: u64,
    desired: u64,
    old: *mut u64,
) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { swap(window, (target, offset), (expected, desired), old) })
}

/// Waits until all puts of any rank before its fence have landed at all targets. All
/// ranks must call it. Blocks.
///
/// Errors: those of the first put that failed; LOST, JOB, ENDED, NULL.
///
/// # Safety
///
/// `window` is a window.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_window_fence(window: *const tsumugi_window) -> c_int {
    // SAFETY: the caller's.
    let of = unsafe { live(window) };
    code_of(of.and_then(|of| of.window.fence().map_err(of_failure)))
}

/// Waits until all puts of this rank to `target` have landed. Blocks.
///
/// Errors: RANK; those of the first put that has failed since the last flush; ENDED,
/// NULL.
///
/// # Safety
///
/// `window` is a window.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_window_flush(window: *const tsumugi_window, target: u32) -> c_int {
    let flush = || {
        // SAFETY: the caller's.
        let of = unsafe { live(window) }?;
        of.window.flush(of.target(target)?).map_err(of_addr)
    };
    code_of(flush())
}

/// Waits until all puts of this rank to all targets have landed. Blocks.
///
/// Errors: those of the first put that has failed since the last flush; ENDED, NULL.
///
/// # Safety
///
/// `window` is a window.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_window_flush_all(window: *const tsumugi_window) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { live(window) }.and_then(|of| of.window.flush_all().map_err(of_addr)))
}

/// Changes a word of the window.
///
/// # Safety
///
/// `window` is null or a window; `old` is null or valid for a write.
unsafe fn change<T: Word>(
    window: *const tsumugi_window,
    (what, target, offset): (c_int, u32, usize),
    operand: T,
    old: *mut T,
) -> Result<(), c_int> {
    // SAFETY: the caller's.
    let of = unsafe { live(window) }?;
    let (runtime, at) = (&of.runtime, of.word(target, offset));
    let was = match what {
        TSUMUGI_ATOMIC_ADD => runtime.fetch_add(at, operand),
        TSUMUGI_ATOMIC_AND => runtime.fetch_and(at, operand),
        TSUMUGI_ATOMIC_OR => runtime.fetch_or(at, operand),
        TSUMUGI_ATOMIC_XOR => runtime.fetch_xor(at, operand),
        TSUMUGI_ATOMIC_SWAP => runtime.swap(at, operand),
        _ => {
            let reason = format_args!("{what} is no atomic operation");
            return Err(refuse(TSUMUGI_ERROR_VALUE, reason));
        }
    };
    // SAFETY: the caller's.
    unsafe { tell(old, was.map_err(of_addr)?) };
    Ok(())
}

/// Swaps a word of the window.
///
/// # Safety
///
/// As for [`change`].
unsafe fn swap<T: Word>(
    window: *const tsumugi_window,
    (target, offset): (u32, usize),
    (expected, desired): (T, T),
    old: *mut T,
) -> Result<(), c_int> {
    // SAFETY: the caller's.
    let of = unsafe { live(window) }?;
    let was = of.runtime.compare_swap(of.word(target, offset), expected, desired);
    // SAFETY: the caller's.
    unsafe { tell(old, was.map_err(of_addr)?) };
    Ok(())
}

impl tsumugi_window {
    /// Checks a target before a put to it, of which errors may come late.
    fn target(&self, target: u32) -> Result<Rank, c_int> {
        let (rank, size) = (Rank(target), self.runtime.size());
        if target < size { Ok(rank) } else { Err(of_addr(AddrError::NoSuchRank { rank, size })) }
    }

    fn word<T: Word>(&self, target: u32, offset: usize) -> Remote<T> {
        Remote::new(self.window.at(Rank(target), offset).addr())
    }
}

object!(tsumugi_window, "window");

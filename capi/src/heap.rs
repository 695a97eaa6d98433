//! The global heap: memory of any rank that any rank allocates and frees.

use super::code::{code_of, of_access, of_failure};
use super::job::job;
use super::object::{end, given, live, make, object, refuse};
use super::{
    TSUMUGI_ADDR_NULL, TSUMUGI_ERROR_FAILED, TSUMUGI_ERROR_LENGTH, TSUMUGI_ERROR_MEMORY,
    TSUMUGI_ERROR_RANK, TSUMUGI_ERROR_VALUE, remember, tsumugi_addr, tsumugi_job,
};
use std::ffi::c_int;
use tsumugi::global::container::Store;
use tsumugi::global::{GlobalAddr, GlobalPtr, HeapError, Pool};
use tsumugi::{AddrError, Rank};

/// A heap on every rank, from which any rank allocates. Any thread and any ULT may use
/// it. A rank's part lives as long as the rank has the handle.
#[derive(Debug)]
pub struct tsumugi_heap(Pool);

/// Makes a heap of `bytes` bytes on every rank. All ranks must call it, with the same
/// `bytes`. The heap has blocks of up to 4 KiB; from 2 MiB on also of up to 256 KiB, from
/// 192 MiB on of up to 16 MiB, and from 16 GiB on of up to 1 GiB. The 1, 2, 3 or 4 kinds
/// have an equal share of the memory each, of which a block longer than that of the kind
/// before takes from its own. For longer pieces of memory there is `tsumugi_expose`.
/// Blocks.
///
/// Errors: MEMORY, CROWDED, LOST, JOB, NULL.
///
/// # Safety
///
/// `job` is a live job; `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_heap_create(
    job: *const tsumugi_job,
    bytes: u64,
    out: *mut *mut tsumugi_heap,
) -> c_int {
    let create = || {
        // SAFETY: the caller's.
        let (job, out) = unsafe { (self::job(job)?, given(out, "out")?) };
        let pool = job.global.pool(bytes).map_err(of_failure)?;
        // SAFETY: the caller's.
        unsafe { make(out, tsumugi_heap(pool)) };
        Ok(())
    };
    code_of(create())
}

/// Ends the handle of a heap, and with it this rank's part: other ranks that use its
/// blocks get STALE. Blocks: ranks that have used the part are asked to forget it.
///
/// Errors: ENDED, NULL.
///
/// # Safety
///
/// `heap` is a heap; no thread of this process uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_heap_destroy(heap: *mut tsumugi_heap) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { end(heap) }.map(drop))
}

/// Allocates `bytes` bytes of the memory of `rank`, and writes their address to `out`:
/// a word that may be stored and sent. The program of `rank` takes no part. The bytes
/// have any values. Blocks; lock-free between ranks of a node.
///
/// Errors: MEMORY (no free run of the rank's part is long enough), LENGTH (the heap has
/// no blocks of this size; the reason has the largest), RANK, STALE, LOST, ENDED, NULL.
///
/// # Safety
///
/// `heap` is a heap; `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_heap_malloc(
    heap: *const tsumugi_heap,
    rank: u32,
    bytes: u64,
    out: *mut tsumugi_addr,
) -> c_int {
    let allocate = || {
        // SAFETY: the caller's.
        let (heap, out) = unsafe { (live(heap)?, given(out, "out")?) };
        let block = heap.0.allocate(Rank(rank), bytes).map_err(of_heap)?;
        // SAFETY: the caller's.
        unsafe { out.write(block.to_bits()) };
        Ok(())
    };
    code_of(allocate())
}

/// Allocates `count` values of `bytes` bytes each, as `tsumugi_heap_malloc` does, and
/// writes zeroes to them.
///
/// Errors: those of `tsumugi_heap_malloc`; LENGTH also if the product is no number of
/// bytes.
///
/// # Safety
///
/// As for `tsumugi_heap_malloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_heap_calloc(
    heap: *const tsumugi_heap,
    rank: u32,
    count: u64,
    bytes: u64,
    out: *mut tsumugi_addr,
) -> c_int {
    let allocate = || {
        // SAFETY: the caller's.
        let (heap, out) = unsafe { (live(heap)?, given(out, "out")?) };
        let all = count.checked_mul(bytes).ok_or_else(|| {
            let reason = format_args!("{count} times {bytes} bytes are no number of bytes");
            refuse(TSUMUGI_ERROR_LENGTH, reason)
        })?;
        let block = heap.0.allocate(Rank(rank), all).map_err(of_heap)?;
        if let Err(error) = heap.clear(block, all) {
            // The first error counts.
            let _ = heap.0.free(block);
            return Err(of_access(error));
        }
        // SAFETY: the caller's.
        unsafe { out.write(block.to_bits()) };
        Ok(())
    };
    code_of(allocate())
}

/// Frees a block that any rank has allocated, at any rank. `TSUMUGI_ADDR_NULL` is
/// allowed. Blocks; lock-free between ranks of a node.
///
/// Errors: VALUE (no block begins at this address), NOWHERE, STALE, RANGE, LOST, ENDED,
/// NULL.
///
/// # Safety
///
/// `heap` is a heap; no rank uses the block any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_heap_free(
    heap: *const tsumugi_heap,
    block: tsumugi_addr,
) -> c_int {
    let free = || {
        // SAFETY: the caller's.
        let heap = unsafe { live(heap) }?;
        match block {
            TSUMUGI_ADDR_NULL => Ok(()),
            block => heap.0.free(GlobalAddr::from_bits(block)).map_err(of_heap),
        }
    };
    code_of(free())
}

impl tsumugi_heap {
    fn clear(&self, block: GlobalAddr, bytes: u64) -> Result<(), AddrError<GlobalAddr>> {
        let zeroes = [0u8; PART];
        let split = self.0.split();
        for at in (0..bytes).step_by(PART) {
            let beyond = AddrError::OutOfRange { addr: block, bytes, region_bytes: None };
            let to = split.add(block, at as i64).map_err(|_| beyond)?;
            let part = &zeroes[..PART.min((bytes - at) as usize)];
            self.0.global().put_slice(GlobalPtr::new(to), part)?;
        }
        Ok(())
    }
}

object!(tsumugi_heap, "heap");

fn of_heap(error: HeapError) -> c_int {
    let code = match error {
        HeapError::NoMemory { .. } => TSUMUGI_ERROR_MEMORY,
        HeapError::TooLarge { .. } => TSUMUGI_ERROR_LENGTH,
        HeapError::NoBlock { .. } => TSUMUGI_ERROR_VALUE,
        HeapError::Access(AddrError::NoSuchRank { .. }) => TSUMUGI_ERROR_RANK,
        HeapError::Access(error) => return of_access(error),
        _ => TSUMUGI_ERROR_FAILED,
    };
    remember(code, error)
}

/// How many zeroes are written at a time.
const PART: usize = 4096;

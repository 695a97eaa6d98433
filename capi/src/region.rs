//! Memory with a global address, and queries about an address.

use super::code::{code_of, of_access, of_failure};
use super::object::{end, live, make, object};
use super::parameter::{borrow, place};
use super::{
    TSUMUGI_ERROR_FLAGS, TSUMUGI_ERROR_NOWHERE, TSUMUGI_ERROR_NULL, TSUMUGI_ERROR_RANGE,
    TSUMUGI_ERROR_REACH, remember, tsumugi_job,
};
use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use tsumugi::global::{GlobalAddr, GlobalBlock, GlobalPtr, GlobalRegion};
use tsumugi::{Agent, MemoryOptions, Rank};
use tsumugi_acp::process::mirrored;

/// The address of a byte of any rank's memory, or `TSUMUGI_ADDR_NULL`. It is a
/// plain word: it may be stored and sent. Addresses are ordered by rank, then
/// region, then byte.
pub type tsumugi_addr = u64;

/// The address of no byte.
pub const TSUMUGI_ADDR_NULL: u64 = 0;

/// Processors carry out the atomic operations on a region.
pub const TSUMUGI_AGENT_CPU: c_int = 0;
/// The network device carries out the atomic operations on a region where it can,
/// also for ranks of the same node; elsewhere processors do.
pub const TSUMUGI_AGENT_DEVICE: c_int = 1;

/// Memory of this rank that has a global address.
#[derive(Debug)]
pub struct tsumugi_region {
    memory: Memory,
    first: tsumugi_addr,
    at: NonNull<u8>,
}

#[derive(Debug)]
enum Memory {
    Exposed(GlobalBlock<u64>),
    Registered(GlobalRegion<u8>),
}

/// Allocates `bytes` bytes of zeroes that any rank can reach by their global
/// address; `agent` (`TSUMUGI_AGENT_*`) carries out their atomic operations.
///
/// Errors: MEMORY, CROWDED, FLAGS, NULL.
///
/// # Safety
///
/// `job` is a live job; `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_expose(
    job: *const tsumugi_job,
    bytes: usize,
    agent: c_int,
    out: *mut *mut tsumugi_region,
) -> c_int {
    let expose = || {
        // SAFETY: the caller's.
        let (job, out) = unsafe { (borrow(job)?, place(out)?) };
        let agent = match agent {
            TSUMUGI_AGENT_CPU => Agent::Cpu,
            TSUMUGI_AGENT_DEVICE => Agent::Device,
            _ => return Err(TSUMUGI_ERROR_FLAGS),
        };
        let array =
            MemoryOptions::new().agent(agent).expose_global::<u64>(&job.global, bytes.div_ceil(8));
        let array = array.map_err(of_failure)?;
        let (first, at) = (array.at(0).addr().to_bits(), array.memory().0);
        let made = tsumugi_region { memory: Memory::Exposed(array), first, at };
        // SAFETY: the caller's.
        unsafe { make(out, made) };
        Ok(())
    };
    code_of(expose())
}

/// Gives the `bytes` bytes at `at` a global address. Parts of exposed memory stay
/// as they are. Pages of the heap, of data and of stacks become shared memory in
/// place, which needs a job made by `tsumugi_start`; while that happens, all other
/// threads of the process are stopped, by a real-time signal.
///
/// Errors: REACH (also of memory of the program that is not mapped readable and
/// writable, and of blocks of `tsumugi_malloc`), MEMORY, CROWDED, NULL.
///
/// # Safety
///
/// `job` is a live job. The memory stays readable and writable until
/// `tsumugi_unregister` has returned. `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_register(
    job: *const tsumugi_job,
    at: *mut c_void,
    bytes: usize,
    out: *mut *mut tsumugi_region,
) -> c_int {
    let register = || {
        // SAFETY: the caller's.
        let (job, out) = unsafe { (borrow(job)?, place(out)?) };
        let at = NonNull::new(at.cast::<u8>()).ok_or(TSUMUGI_ERROR_NULL)?;
        let base = if job.runtime.handle().exposed().contains(at) {
            at
        } else if job.is_apart() {
            // SAFETY: the caller's.
            let base = unsafe { mirrored(&job.runtime, at, bytes) };
            base.map_err(|error| remember(TSUMUGI_ERROR_REACH, error))?
        } else {
            let reason = "tsumugi_start has not made this rank, so memory of the program cannot be \
                          registered: tsumugi_expose gives memory";
            return Err(remember(TSUMUGI_ERROR_REACH, reason));
        };
        // SAFETY: the memory is exposed memory, or a window of it that is never
        // given back; for the rest the caller's contract.
        let region = unsafe { job.global.register_at(base, bytes) };
        let region = region.map_err(of_failure)?;
        let first = region.first().addr().to_bits();
        job.known().push((at.as_ptr() as usize, bytes, first));
        let made = tsumugi_region { memory: Memory::Registered(region), first, at };
        // SAFETY: the caller's.
        unsafe { make(out, made) };
        Ok(())
    };
    code_of(register())
}

/// Takes the address away and frees the region. Exposed memory is freed; registered
/// memory is the program's alone when this returns, because no rank reads or writes
/// it any more. Later accesses by the address return STALE. Blocks: ranks that have
/// used the address are asked to forget it.
///
/// Errors: NULL.
///
/// # Safety
///
/// `job` is a live job, and `region` a live region of it; no thread of this process
/// uses the region any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_unregister(
    job: *const tsumugi_job,
    region: *mut tsumugi_region,
) -> c_int {
    let unregister = || {
        // SAFETY: the caller's.
        let job = unsafe { borrow(job) }?;
        // SAFETY: the caller's.
        let region = unsafe { end(region) }?;
        job.known().retain(|(.., first)| *first != region.first);
        match region.memory {
            Memory::Exposed(array) => drop(array.unregister()),
            Memory::Registered(region) => region.unregister(),
        }
        Ok(())
    };
    code_of(unregister())
}

/// The global address of the first byte of a region; `TSUMUGI_ADDR_NULL` if
/// `region` is NULL. Wait-free.
///
/// # Safety
///
/// `region` is NULL or a live region.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_region_addr(region: *const tsumugi_region) -> tsumugi_addr {
    // SAFETY: the caller's.
    unsafe { live(region) }.map_or(TSUMUGI_ADDR_NULL, |region| region.first)
}

/// The local address of a region in this process; NULL if `region` is NULL.
/// Wait-free.
///
/// # Safety
///
/// `region` is NULL or a live region.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_region_memory(region: *const tsumugi_region) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { live(region) }.map_or(std::ptr::null_mut(), |region| region.at.as_ptr().cast())
}

/// The address of the starter memory of `rank`: memory that each rank has from the
/// start, zero at first.
///
/// Errors: NOWHERE, NULL.
///
/// # Safety
///
/// `job` is a live job; `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_starter(
    job: *const tsumugi_job,
    rank: u32,
    out: *mut tsumugi_addr,
) -> c_int {
    let starter = || {
        // SAFETY: the caller's.
        let (job, out) = unsafe { (borrow(job)?, place(out)?) };
        let first = job.global.starter(Rank(rank)).map_err(of_access)?;
        // SAFETY: the caller's.
        unsafe { out.write(first.addr().to_bits()) };
        Ok(())
    };
    code_of(starter())
}

/// The address `bytes` bytes after `addr`, or before it if `bytes` is negative. The
/// access, not this call, checks that the address is in the region. Wait-free.
///
/// Errors: RANGE (the sum lies outside of the address range of every region), NULL.
///
/// # Safety
///
/// `job` is a live job; `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_addr_add(
    job: *const tsumugi_job,
    addr: tsumugi_addr,
    bytes: i64,
    out: *mut tsumugi_addr,
) -> c_int {
    let add = || {
        // SAFETY: the caller's.
        let (job, out) = unsafe { (borrow(job)?, place(out)?) };
        let sum = job.global.split().add(GlobalAddr::from_bits(addr), bytes);
        let sum = sum.map_err(|error| remember(TSUMUGI_ERROR_RANGE, error))?;
        // SAFETY: the caller's.
        unsafe { out.write(sum.to_bits()) };
        Ok(())
    };
    code_of(add())
}

/// The rank that owns the memory at an address. Wait-free.
///
/// Errors: NOWHERE, NULL.
///
/// # Safety
///
/// `job` is a live job; `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_addr_rank(
    job: *const tsumugi_job,
    addr: tsumugi_addr,
    out: *mut u32,
) -> c_int {
    let find = || {
        // SAFETY: the caller's.
        let (job, out) = unsafe { (borrow(job)?, place(out)?) };
        let rank = job.global.rank_of(byte(addr)).ok_or(TSUMUGI_ERROR_NOWHERE)?;
        // SAFETY: the caller's.
        unsafe { out.write(rank.0) };
        Ok(())
    };
    code_of(find())
}

/// The global address of memory of this rank.
///
/// Errors: REACH (the memory has no global address), NULL.
///
/// # Safety
///
/// `job` is a live job; `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_addr_of(
    job: *const tsumugi_job,
    at: *const c_void,
    out: *mut tsumugi_addr,
) -> c_int {
    let find = || {
        // SAFETY: the caller's.
        let (job, out) = unsafe { (borrow(job)?, place(out)?) };
        let addr = job.addr_of(at).ok_or(TSUMUGI_ERROR_REACH)?;
        // SAFETY: the caller's.
        unsafe { out.write(addr) };
        Ok(())
    };
    code_of(find())
}

/// Where `bytes` bytes at a global address lie in this process. The memory must be
/// of this rank or of another rank of this node.
///
/// Errors: those of `tsumugi_get`; UNSUPPORTED for a rank of another node.
///
/// # Safety
///
/// `job` is a live job; `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_addr_local(
    job: *const tsumugi_job,
    addr: tsumugi_addr,
    bytes: usize,
    out: *mut *mut c_void,
) -> c_int {
    let find = || {
        // SAFETY: the caller's.
        let (job, out) = unsafe { (borrow(job)?, place(out)?) };
        let local = job.global.local(byte(addr), bytes).map_err(of_access)?.as_ptr() as usize;
        let own = job.known().iter().find_map(|(at, bytes, first)| {
            let offset = addr.checked_sub(*first)? as usize;
            (offset < *bytes).then_some(at + offset)
        });
        // SAFETY: the caller's.
        unsafe { out.write(own.unwrap_or(local) as *mut c_void) };
        Ok(())
    };
    code_of(find())
}

impl tsumugi_job {
    pub(super) fn addr_of(&self, at: *const c_void) -> Option<tsumugi_addr> {
        let own = self.known().iter().find_map(|(start, bytes, first)| {
            let offset = (at as usize).checked_sub(*start)?;
            (offset < *bytes).then_some(first + offset as u64)
        });
        own.or_else(|| Some(self.global.addr_of(at.cast::<u8>())?.addr().to_bits()))
    }
}

pub(super) fn byte(addr: tsumugi_addr) -> GlobalPtr<u8> {
    GlobalPtr::new(GlobalAddr::from_bits(addr))
}

object!(tsumugi_region, "region");

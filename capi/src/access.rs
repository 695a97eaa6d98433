//! Gets, puts and atomics on any rank's memory.

use super::code::{code_of, of_access};
use super::parameter::borrow;
use super::region::byte;
use super::{TSUMUGI_ERROR_FLAGS, TSUMUGI_ERROR_NULL, TSUMUGI_OK, tsumugi_addr, tsumugi_job};
use std::ffi::{c_int, c_void};
use std::hint::black_box;
use tsumugi::global::{Change, DoneWord, GlobalAddr, UNKNOWN};
use tsumugi::{AddrError, Plain, Word};
use tsumugi_core::mem::Width;
use tsumugi_core::op::{Kind, Op};

/// The operand is added, wrapping.
pub const TSUMUGI_ATOMIC_ADD: c_int = 0;
/// The bits of the operand are kept.
pub const TSUMUGI_ATOMIC_AND: c_int = 1;
/// The bits of the operand are set.
pub const TSUMUGI_ATOMIC_OR: c_int = 2;
/// The bits of the operand are flipped.
pub const TSUMUGI_ATOMIC_XOR: c_int = 3;
/// The operand is stored.
pub const TSUMUGI_ATOMIC_SWAP: c_int = 4;

/// Reads `bytes` bytes at `from`. A read of 1, 2, 4 or 8 bytes at an aligned
/// address is one access, so it cannot tear. `into` may overlap the bytes at `from`, as
/// for `memmove`, unless a device carries out the accesses of that memory
/// (`TSUMUGI_AGENT_DEVICE`). After NOWHERE, STALE and RANGE nothing was written. Blocks;
/// wait-free between ranks of a node once this rank has read the region table of the
/// target rank.
///
/// Errors: NOWHERE, STALE, RANGE, LOST, NULL.
///
/// # Safety
///
/// `job` is a live job; `into` is valid for a write of `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_get(
    job: *const tsumugi_job,
    into: *mut c_void,
    from: tsumugi_addr,
    bytes: usize,
) -> c_int {
    if bytes == 8
        && !into.is_null()
        // SAFETY: the caller's.
        && let Some(job) = unsafe { job.as_ref() }
        && let Some(done) = job.word(from, Op::get_word(UNKNOWN, Width::W8))
    {
        // SAFETY: the caller's.
        unsafe { into.cast::<u64>().write_unaligned(done.old) };
        return job.done(done);
    }
    // SAFETY: the caller's.
    unsafe { get(job, into, from, bytes) }
}

/// Writes `bytes` bytes at `to`; 1, 2, 4 or 8 aligned bytes as one access, as
/// `tsumugi_get` reads them. When it returns, the bytes are in the target's memory.
/// `from` may overlap them as for `tsumugi_get`. Blocks.
///
/// Errors: NOWHERE, STALE, RANGE, READ_ONLY, LOST, NULL.
///
/// # Safety
///
/// `job` is a live job; `from` is valid for a read of `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_put(
    job: *const tsumugi_job,
    to: tsumugi_addr,
    from: *const c_void,
    bytes: usize,
) -> c_int {
    if bytes == 8
        && !from.is_null()
        // SAFETY: the caller's.
        && let Some(job) = unsafe { job.as_ref() }
    {
        // SAFETY: the caller's.
        let value = unsafe { from.cast::<u64>().read_unaligned() };
        if let Some(done) = job.word(to, Op::put_word(UNKNOWN, Width::W8, value)) {
            return job.done(done);
        }
    }
    // SAFETY: the caller's.
    unsafe { put(job, to, from, bytes) }
}

/// Copies `bytes` bytes from `src` to `dst`; each may be in any rank's memory.
/// Blocks.
///
/// Errors: those of `tsumugi_put`.
///
/// # Safety
///
/// `job` is a live job.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_copy(
    job: *const tsumugi_job,
    dst: tsumugi_addr,
    src: tsumugi_addr,
    bytes: usize,
) -> c_int {
    // SAFETY: the caller's.
    let Some(job) = (unsafe { job.as_ref() }) else { return TSUMUGI_ERROR_NULL };
    match job.global.copy(byte(dst), byte(src), bytes) {
        Ok(()) => TSUMUGI_OK,
        Err(error) => of_access(error),
    }
}

/// Changes the 4 bytes at `at` with `operand`, by the atomic operation `what`
/// (`TSUMUGI_ATOMIC_*`). Writes the old value to `old`, unless `old` is NULL.
/// Blocks.
///
/// Errors: NOWHERE, STALE, RANGE, UNALIGNED, READ_ONLY, LOST, FLAGS, NULL.
///
/// # Safety
///
/// `job` is a live job; `old` is NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_atomic4(
    job: *const tsumugi_job,
    what: c_int,
    at: tsumugi_addr,
    operand: u32,
    old: *mut u32,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { change(job, what, at, operand, old) }
}

/// Does the same as `tsumugi_atomic4` on 8 bytes.
///
/// # Safety
///
/// `job` is a live job; `old` is NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_atomic8(
    job: *const tsumugi_job,
    what: c_int,
    at: tsumugi_addr,
    operand: u64,
    old: *mut u64,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { change(job, what, at, operand, old) }
}

/// Stores `desired` in the 4 bytes at `at` if they hold `expected`. Writes the old
/// value to `old`, unless `old` is NULL. Blocks.
///
/// Errors: those of `tsumugi_atomic4`.
///
/// # Safety
///
/// `job` is a live job; `old` is NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_compare_swap4(
    job: *const tsumugi_job,
    at: tsumugi_addr,
    expected: u32,
    desired: u32,
    old: *mut u32,
) -> c_int {
    let change = Change::compare_swap(GlobalAddr::from_bits(at), expected, desired);
    // SAFETY: the caller's.
    unsafe { carry(job, change, old) }
}

/// Does the same as `tsumugi_compare_swap4` on 8 bytes.
///
/// # Safety
///
/// `job` is a live job; `old` is NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_compare_swap8(
    job: *const tsumugi_job,
    at: tsumugi_addr,
    expected: u64,
    desired: u64,
    old: *mut u64,
) -> c_int {
    let change = Change::compare_swap(GlobalAddr::from_bits(at), expected, desired);
    // SAFETY: the caller's.
    unsafe { carry(job, change, old) }
}

/// Carries out an atomic operation, and writes the old value to `old`.
///
/// # Safety
///
/// `job` is a live job or NULL; `old` is NULL or valid for a write.
#[inline(always)]
unsafe fn change<T: Word>(
    job: *const tsumugi_job,
    what: c_int,
    at: tsumugi_addr,
    operand: T,
    old: *mut T,
) -> c_int {
    // The addition has a path of its own: with the kind known, it is one instruction.
    if what == TSUMUGI_ATOMIC_ADD
        // SAFETY: the caller's.
        && let Some(job) = unsafe { job.as_ref() }
        && let Some(done) = job.word(at, Op::atomic(Kind::FetchAdd, UNKNOWN, operand))
    {
        // SAFETY: the caller's.
        return unsafe { job.changed(done, old) };
    }
    // SAFETY: the caller's.
    unsafe { change_by(job, what, at, operand, old) }
}

/// Carries out an atomic operation of any kind; the convention is as of `get`.
///
/// # Safety
///
/// `job` is a live job or NULL; `old` is NULL or valid for a write.
#[inline(never)]
unsafe extern "C" fn change_by<T: Word>(
    job: *const tsumugi_job,
    what: c_int,
    at: tsumugi_addr,
    operand: T,
    old: *mut T,
) -> c_int {
    let Some(kind) = kind_of(what) else { return TSUMUGI_ERROR_FLAGS };
    // SAFETY: the caller's.
    if let Some(job) = unsafe { job.as_ref() }
        && let Some(done) = job.word(at, Op::atomic(kind, UNKNOWN, operand))
    {
        // SAFETY: the caller's.
        return unsafe { job.changed(done, old) };
    }
    let change = Change::atomic(kind, GlobalAddr::from_bits(at), operand);
    // SAFETY: the caller's.
    unsafe { carry(job, change, old) }
}

/// Reads what is not a word at hand. With the C calling convention, in which no panic
/// leaves the function, the call is the last instruction of its caller.
///
/// # Safety
///
/// Those of `tsumugi_get`.
#[cold]
#[inline(never)]
unsafe extern "C" fn get(
    job: *const tsumugi_job,
    into: *mut c_void,
    from: tsumugi_addr,
    bytes: usize,
) -> c_int {
    // SAFETY: the caller's.
    let Some(job) = (unsafe { job.as_ref() }) else { return TSUMUGI_ERROR_NULL };
    if into.is_null() && bytes > 0 {
        return TSUMUGI_ERROR_NULL;
    }
    // SAFETY: the caller's.
    code_of(unsafe {
        match bytes {
            0 => Ok(()),
            2 => job.get_word::<u16>(into, from),
            4 => job.get_word::<u32>(into, from),
            8 => job.get_word::<u64>(into, from),
            _ => job.get_bytes(into, from, bytes),
        }
    })
}

/// Writes what is not a word at hand; the convention is as of `get`.
///
/// # Safety
///
/// Those of `tsumugi_put`.
#[cold]
#[inline(never)]
unsafe extern "C" fn put(
    job: *const tsumugi_job,
    to: tsumugi_addr,
    from: *const c_void,
    bytes: usize,
) -> c_int {
    // SAFETY: the caller's.
    let Some(job) = (unsafe { job.as_ref() }) else { return TSUMUGI_ERROR_NULL };
    if from.is_null() && bytes > 0 {
        return TSUMUGI_ERROR_NULL;
    }
    // SAFETY: the caller's.
    code_of(unsafe {
        match bytes {
            0 => Ok(()),
            2 => job.put_word::<u16>(to, from),
            4 => job.put_word::<u32>(to, from),
            8 => job.put_word::<u64>(to, from),
            _ => job.put_bytes(to, from, bytes),
        }
    })
}

/// Carries out a change that is not at hand, and writes the old value to `old`.
///
/// # Safety
///
/// `job` is a live job or NULL; `old` is NULL or valid for a write.
#[cold]
#[inline(never)]
unsafe fn carry<T: Word>(job: *const tsumugi_job, change: Change, old: *mut T) -> c_int {
    let carry = || {
        // SAFETY: the caller's.
        let job = unsafe { borrow(job) }?;
        let was = job.global.change(change).map_err(of_access)?;
        if !old.is_null() {
            // SAFETY: the caller's.
            unsafe { old.write(T::from_bits(was)) };
        }
        Ok(())
    };
    code_of(carry())
}

/// The change of the word at `at` that the constant `what` stands for.
pub(super) fn atomic<T: Word>(what: c_int, at: tsumugi_addr, operand: T) -> Result<Change, c_int> {
    let kind = kind_of(what).ok_or(TSUMUGI_ERROR_FLAGS)?;
    Ok(Change::atomic(kind, GlobalAddr::from_bits(at), operand))
}

#[inline(always)]
fn kind_of(what: c_int) -> Option<Kind> {
    match what {
        TSUMUGI_ATOMIC_ADD => Some(Kind::FetchAdd),
        TSUMUGI_ATOMIC_AND => Some(Kind::FetchAnd),
        TSUMUGI_ATOMIC_OR => Some(Kind::FetchOr),
        TSUMUGI_ATOMIC_XOR => Some(Kind::FetchXor),
        TSUMUGI_ATOMIC_SWAP => Some(Kind::Swap),
        _ => None,
    }
}

impl tsumugi_job {
    /// Carries out an operation on a word that is at hand.
    #[inline(always)]
    fn word(&self, at: tsumugi_addr, op: Op) -> Option<DoneWord> {
        self.global.try_word(GlobalAddr::from_bits(at), &op)
    }

    /// The code of an operation that was done.
    #[inline(always)]
    fn done(&self, done: DoneWord) -> c_int {
        if done.must_tick { self.tick() } else { TSUMUGI_OK }
    }

    /// Writes the old value of a word that was changed to `old`; returns the code.
    ///
    /// # Safety
    ///
    /// `old` is NULL or valid for a write.
    #[inline(always)]
    unsafe fn changed<T: Word>(&self, done: DoneWord, old: *mut T) -> c_int {
        if !old.is_null() {
            // SAFETY: the caller's.
            unsafe { old.write(T::from_bits(done.old)) };
        }
        self.done(done)
    }

    /// Lets the machine poll; the convention is as of `get`.
    #[cold]
    #[inline(never)]
    extern "C" fn tick(&self) -> c_int {
        self.global.tick();
        // Hidden, so that the call is the last instruction of its callers.
        black_box(TSUMUGI_OK)
    }

    /// Reads a `T` as one access where `from` is aligned, else byte by byte.
    ///
    /// # Safety
    ///
    /// `into` is valid for a write of a `T`, aligned or not.
    unsafe fn get_word<T: Plain>(
        &self,
        into: *mut c_void,
        from: tsumugi_addr,
    ) -> Result<(), c_int> {
        match self.global.get(byte(from).cast::<T>()) {
            // SAFETY: the caller's.
            Ok(value) => unsafe { into.cast::<T>().write_unaligned(value) },
            // SAFETY: the caller's.
            Err(AddrError::Unaligned { .. }) => unsafe {
                return self.get_bytes(into, from, size_of::<T>());
            },
            Err(error) => return Err(of_access(error)),
        }
        Ok(())
    }

    /// Reads `bytes` bytes, in pieces of any size.
    ///
    /// # Safety
    ///
    /// `into` is valid for a write of `bytes` bytes.
    unsafe fn get_bytes(
        &self,
        into: *mut c_void,
        from: tsumugi_addr,
        bytes: usize,
    ) -> Result<(), c_int> {
        // SAFETY: the caller's.
        unsafe { self.global.load(byte(from), into.cast(), bytes) }.map_err(of_access)
    }

    /// Writes a `T` as one access where `to` is aligned, else byte by byte.
    ///
    /// # Safety
    ///
    /// `from` is valid for a read of a `T`, aligned or not.
    unsafe fn put_word<T: Plain>(
        &self,
        to: tsumugi_addr,
        from: *const c_void,
    ) -> Result<(), c_int> {
        // SAFETY: the caller's.
        let value = unsafe { from.cast::<T>().read_unaligned() };
        match self.global.put(byte(to).cast(), value) {
            // SAFETY: the caller's.
            Err(AddrError::Unaligned { .. }) => unsafe { self.put_bytes(to, from, size_of::<T>()) },
            result => result.map_err(of_access),
        }
    }

    /// Writes `bytes` bytes, in pieces of any size.
    ///
    /// # Safety
    ///
    /// `from` is valid for a read of `bytes` bytes.
    unsafe fn put_bytes(
        &self,
        to: tsumugi_addr,
        from: *const c_void,
        bytes: usize,
    ) -> Result<(), c_int> {
        // SAFETY: the caller's.
        unsafe { self.global.store(byte(to), from.cast(), bytes) }.map_err(of_access)
    }
}

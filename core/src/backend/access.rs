//! One operation on memory that this processor can load and store.
//!
//! A same-node operation consists of the checks of
//! [`LoadStore::resolve`](super::LoadStore::resolve), then a load, a store, an
//! atomic instruction or a copy, and, if the operation notifies, a check for waiting
//! threads.
//!
//! A blocking operation is complete when [`execute`] returns, at the remote side
//! too. Loads acquire and stores release, so that operations of one thread take
//! effect in its order. Atomics are sequentially consistent: signals need this
//! order, and on the supported processors it costs nothing more.
//!
//! Progress: wait-free, except for the copy of a long put or get, which takes a time
//! in proportion to its length.

use super::{LoadStore, copy_bytes};
use crate::mem::{AddrError, Need, RemoteAddr, Width};
use crate::op::{Kind, Op};
use crate::sync::mapped::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};
use core::ptr::NonNull;

/// Carries `op` out now. Returns the old value for a word operation, and 0 for a put
/// or get.
///
/// # Errors
///
/// Remote memory is unchanged then.
///
/// - The errors of [`LoadStore::resolve`] for the remote end, with [`Need::Write`] for
///   operations that write.
/// - [`AddrError::Unaligned`]: the remote end of a word operation is not aligned to the
///   word's size.
/// - The errors of [`LoadStore::local`] for the local end of a put or get.
#[inline(always)]
pub fn execute<L: LoadStore + ?Sized>(memory: &L, op: &Op) -> Result<u64, AddrError> {
    let need = if op.writes() { Need::Write } else { Need::Read };
    let at = memory.resolve(op.remote, op.bytes(), need)?;
    let old = match op.width() {
        Some(width) => {
            if at.as_ptr() as usize & (width as usize - 1) != 0 {
                return Err(unaligned(op.remote, width));
            }
            // SAFETY: `resolve` checked a range of `width` bytes, and the alignment
            // was checked.
            unsafe { word(op, width, at) }
        }
        None => {
            let local = memory.local(op.local(), op.bytes())?;
            let (from, to) = match op.kind {
                Kind::Get => (at, local),
                _ => (local, at),
            };
            // SAFETY: both ends were resolved for `op.bytes()` bytes. Another rank
            // may change them meanwhile: then each byte has the old or the new
            // value, and the caller treats them as bytes only.
            unsafe { copy_bytes(from.as_ptr(), to.as_ptr(), op.bytes() as usize) };
            0
        }
    };
    if op.notify {
        memory.notify(op.remote, at);
    }
    Ok(old)
}

/// Copies `from`, which need not be registered, to `to` now.
///
/// # Errors
///
/// The errors of [`LoadStore::resolve`] for a write to `to`; remote memory is unchanged
/// then.
#[inline]
pub fn store_bytes<L: LoadStore + ?Sized>(
    memory: &L,
    to: RemoteAddr,
    from: &[u8],
) -> Result<(), AddrError> {
    let at = memory.resolve(to, from.len() as u64, Need::Write)?;
    // SAFETY: `from.len()` bytes were resolved. Other ranks may read them meanwhile,
    // as in `execute`.
    unsafe { copy_bytes(from.as_ptr(), at.as_ptr(), from.len()) };
    Ok(())
}

/// Copies `bytes` bytes at `from` to `to`, which need not be registered, now.
///
/// # Errors
///
/// The errors of [`LoadStore::resolve`] for a read of `from`; nothing was written then.
///
/// # Safety
///
/// `to` is valid for writes of `bytes` bytes.
#[inline]
pub unsafe fn load_bytes<L: LoadStore + ?Sized>(
    memory: &L,
    from: RemoteAddr,
    to: *mut u8,
    bytes: usize,
) -> Result<(), AddrError> {
    let at = memory.resolve(from, bytes as u64, Need::Read)?;
    // SAFETY: `bytes` bytes were resolved, and the caller promises that `to` is
    // valid for as many.
    unsafe { copy_bytes(at.as_ptr(), to, bytes) };
    Ok(())
}

/// # Safety
///
/// `at` points to `width` mapped bytes and is aligned to `width`.
#[inline(always)]
unsafe fn word(op: &Op, width: Width, at: NonNull<u8>) -> u64 {
    macro_rules! on {
        ($atomic:ty, $int:ty) => {{
            // SAFETY: the caller promises `width` mapped and aligned bytes; region
            // memory is only ever accessed as plain bytes and atomics.
            let word = unsafe { <$atomic>::from_ptr(at.as_ptr().cast::<$int>()) };
            let operand = op.operand() as $int;
            let old = match op.kind {
                // Acquire and Release: see the module's documentation.
                Kind::GetWord => word.load(Ordering::Acquire),
                Kind::PutWord if op.notify => word.swap(operand, Ordering::SeqCst),
                Kind::PutWord => {
                    word.store(operand, Ordering::Release);
                    0
                }
                Kind::FetchAdd => word.fetch_add(operand, Ordering::SeqCst),
                Kind::Swap => word.swap(operand, Ordering::SeqCst),
                Kind::FetchAnd => word.fetch_and(operand, Ordering::SeqCst),
                Kind::FetchOr => word.fetch_or(operand, Ordering::SeqCst),
                Kind::FetchXor => word.fetch_xor(operand, Ordering::SeqCst),
                Kind::CompareSwap => {
                    let compare = op.compare() as $int;
                    match word.compare_exchange(
                        compare,
                        operand,
                        Ordering::SeqCst,
                        Ordering::SeqCst,
                    ) {
                        Ok(old) | Err(old) => old,
                    }
                }
                Kind::Put | Kind::Get => unreachable!("a transfer has no width"),
            };
            u64::from(old)
        }};
    }
    match width {
        Width::W1 => on!(AtomicU8, u8),
        Width::W2 => on!(AtomicU16, u16),
        Width::W4 => on!(AtomicU32, u32),
        Width::W8 => on!(AtomicU64, u64),
    }
}

#[cold]
#[inline(never)]
fn unaligned(addr: RemoteAddr, width: Width) -> AddrError {
    AddrError::Unaligned { addr, align: width as u64 }
}

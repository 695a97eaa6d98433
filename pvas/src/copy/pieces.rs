//! Copies by the processor's instruction for strings.
//!
//! Where a copy's lines lie with another core, the C library's loop waits for
//! each line that it is to write; `rep movsb` writes whole lines. Its start
//! costs some tens of cycles, and the more bytes it is given the longer that
//! takes, up to some hundred: of pieces of [`PIECE`] bytes most of it overlaps.
//! On two cores of a Zen 4 server that share no cache a push of 1 KiB took 340 ns
//! so, 450 by one `rep movsb` and 410 to 470 by the C library.

/// Copies `bytes` bytes.
///
/// # Safety
///
/// That of [`copy`](super::copy).
#[inline]
pub unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    let mut at = 0;
    while at < bytes {
        let len = PIECE.min(bytes - at);
        // SAFETY: below `bytes`; the rest is the caller's.
        unsafe { piece(from.add(at), to.add(at), len) };
        at += len;
    }
}

/// # Safety
///
/// The same.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
unsafe fn piece(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: reads and writes what the caller says, upwards: the direction flag
    // is clear, as everywhere.
    unsafe {
        core::arch::asm!(
            "rep movsb",
            inout("rcx") bytes => _,
            inout("rsi") from => _,
            inout("rdi") to => _,
            options(nostack, preserves_flags),
        );
    }
}

/// # Safety
///
/// The same.
#[cfg(any(not(target_arch = "x86_64"), miri))]
#[inline]
unsafe fn piece(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller's.
    unsafe { from.copy_to_nonoverlapping(to, bytes) };
}

/// Bytes of one instruction.
const PIECE: usize = 256;

//! Copies by the processor's instruction for strings.
//!
//! Where the lines of the destination are in another core's cache, the C library's
//! loop waits for each line that it writes; `rep movsb` writes whole lines. The
//! start of the instruction costs some tens of cycles, and up to some hundred for
//! more bytes; with pieces of [`PIECE`] bytes most of these starts overlap. On two
//! cores of a Zen 4 server that share no cache a push of 1 KiB took 340 ns in
//! pieces, 450 ns by one `rep movsb` and 410 to 470 ns by the C library.

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
        // SAFETY: the piece ends at most at `bytes`; the caller's contract covers
        // the rest.
        unsafe { piece(from.add(at), to.add(at), len) };
        at += len;
    }
}

/// # Safety
///
/// That of [`copy`].
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
unsafe fn piece(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the instruction reads and writes the caller's ranges, upwards: the
    // direction flag is clear, as the calling convention requires.
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
/// That of [`copy`].
#[cfg(any(not(target_arch = "x86_64"), miri))]
#[inline]
unsafe fn piece(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller's.
    unsafe { from.copy_to_nonoverlapping(to, bytes) };
}

/// Bytes of one instruction.
const PIECE: usize = 256;

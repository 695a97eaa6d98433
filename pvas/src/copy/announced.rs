//! Announces to the sanitizers the copies by instructions that they do not see.

use super::mode::CopyMode;
use std::ffi::c_void;
use std::ptr::NonNull;

/// Announces a copy; does nothing for a plain copy, which the sanitizers see.
pub(super) fn copy(mode: CopyMode, from: NonNull<u8>, to: NonNull<u8>, bytes: usize) {
    if mode == CopyMode::Plain || bytes == 0 {
        return;
    }
    // SAFETY: the sanitizer is linked into every program that is built for it, and
    // reads only its own records of these bytes, not the bytes.
    unsafe {
        read(from.as_ptr().cast(), bytes);
        write(to.as_ptr().cast(), bytes);
    }
}

// From <sanitizer/tsan_interface.h> and compiler-rt's asan_interface_internal.h.
unsafe extern "C" {
    #[cfg_attr(tsumugi_tsan, link_name = "__tsan_read_range")]
    #[cfg_attr(tsumugi_asan, link_name = "__asan_loadN")]
    fn read(from: *const c_void, bytes: usize);
    #[cfg_attr(tsumugi_tsan, link_name = "__tsan_write_range")]
    #[cfg_attr(tsumugi_asan, link_name = "__asan_storeN")]
    fn write(to: *const c_void, bytes: usize);
}

//! The functions of libc that this program uses: memory, output, and abort.

use core::alloc::{GlobalAlloc, Layout};
use core::ffi::{c_int, c_void};
use core::fmt::{self, Write};
use core::panic::PanicInfo;
use core::ptr;

unsafe extern "C" {
    fn posix_memalign(out: *mut *mut c_void, align: usize, bytes: usize) -> c_int;
    fn free(at: *mut c_void);
    fn write(file: c_int, bytes: *const c_void, count: usize) -> isize;
    fn abort() -> !;
}

struct Libc;

// SAFETY: libc's allocator keeps the contract of an allocator.
unsafe impl GlobalAlloc for Libc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let mut at = ptr::null_mut();
        // SAFETY: the alignment is a power of two, and a multiple of a pointer's size.
        match unsafe { posix_memalign(&mut at, layout.align().max(8), layout.size().max(1)) } {
            0 => at.cast(),
            _ => ptr::null_mut(),
        }
    }

    unsafe fn dealloc(&self, at: *mut u8, _: Layout) {
        // SAFETY: the block is from `alloc`.
        unsafe { free(at.cast()) }
    }
}

#[global_allocator]
static ALLOCATOR: Libc = Libc;

/// Writes to standard output.
pub fn say(text: &str) {
    // SAFETY: the range is that of `text`.
    unsafe { write(1, text.as_ptr().cast(), text.len()) };
}

struct Stderr;

impl Write for Stderr {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // SAFETY: the range is that of `text`.
        unsafe { write(2, text.as_ptr().cast(), text.len()) };
        Ok(())
    }
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    let _ = writeln!(Stderr, "{info}");
    // SAFETY: the call ends the process.
    unsafe { abort() }
}

/// No function unwinds, but the compiled libraries refer to this symbol and the next one.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

#[unsafe(no_mangle)]
extern "C" fn _Unwind_Resume() -> ! {
    // SAFETY: the call ends the process.
    unsafe { abort() }
}

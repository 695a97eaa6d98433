//! ACP's malloc hook. A preloaded library (`include/acp_malloc.c`) takes the
//! program's own allocations from the heap of the rank. This module looks for that
//! library and passes it the address of the heap.

use super::life::{Life, with};
use super::options::Hook;
use std::ffi::{c_int, c_void};
use std::mem::transmute;
use std::ptr::null_mut;
use tsumugi::global::GlobalAddr;
use tsumugi::global::container::Store;

/// The same struct as in `include/acp_malloc.c`.
#[repr(C)]
struct Terms {
    small: c_int,
    large: c_int,
    huge: c_int,
    low: u64,
    high: u64,
    base: usize,
    bytes: usize,
    take: extern "C" fn(usize) -> *mut c_void,
    give: extern "C" fn(*mut c_void),
}

impl Hook {
    /// Passes the heap and the options to the library, if it is loaded; from now on
    /// it may take blocks from the heap.
    pub(super) fn begin(self, life: &Life) {
        let Self { small, large, huge, low, high } = self;
        let (base, bytes) = life.pool.own().memory();
        if !(small || large || huge) {
            return;
        }
        let Some(begin) = look_up(c"tsumugi_acp_malloc_begin") else { return };
        let terms = Terms {
            small: small.into(),
            large: large.into(),
            huge: huge.into(),
            low,
            high,
            base: base.as_ptr() as usize,
            bytes: bytes as usize,
            take,
            give,
        };
        // SAFETY: only that library has a symbol of this name, with this type.
        let begin: extern "C" fn(*const Terms) = unsafe { transmute(begin) };
        begin(&raw const terms);
    }

    /// Ends the use of the heap, before the heap is freed.
    pub(super) fn end() {
        if let Some(end) = look_up(c"tsumugi_acp_malloc_end") {
            // SAFETY: as in `begin`.
            let end: extern "C" fn() = unsafe { transmute(end) };
            end();
        }
    }
}

fn look_up(name: &std::ffi::CStr) -> Option<*mut c_void> {
    // SAFETY: the name is a C string; any loaded object may have the symbol.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// Allocates from this rank's heap; NULL on failure.
extern "C" fn take(bytes: usize) -> *mut c_void {
    with(null_mut(), |life| {
        let addr = life.pool.allocate(life.runtime.rank(), bytes as u64)?;
        Ok(life.address(addr)? as *mut c_void)
    })
}

/// Frees memory that `take` allocated.
extern "C" fn give(at: *mut c_void) {
    with((), |life| {
        let (base, _) = life.pool.own().memory();
        let offset = (at as usize).wrapping_sub(base.as_ptr() as usize);
        let first = life.pool.own().at(0).addr().to_bits();
        Ok(life.pool.free(GlobalAddr::from_bits(first + offset as u64))?)
    });
}

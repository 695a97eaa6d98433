//! Contexts as the thread sanitizer sees them: each life of a context is a fiber, as
//! an OS thread is, and runs where it is switched to.
//!
//! A switch orders what ran before it on the OS thread before what follows, which is
//! the real order.

use core::cell::Cell;
use core::ffi::{c_uint, c_void};
use core::ptr;

/// A fiber, or none.
pub(super) struct Fiber(Cell<*mut c_void>);

impl Fiber {
    pub(super) const fn none() -> Self {
        Self(Cell::new(ptr::null_mut()))
    }

    /// Makes a new fiber, which has run nothing yet.
    pub(super) fn begin(&self) {
        // SAFETY: every program that is built for the sanitizer is linked with it.
        self.0.set(unsafe { __tsan_create_fiber(0) });
    }

    /// Ends the fiber, which is not the running one.
    pub(super) fn end(&self) {
        // SAFETY: `begin` made the fiber, and no context switches to it again.
        unsafe { __tsan_destroy_fiber(self.0.replace(ptr::null_mut())) };
    }

    /// Stores the running fiber.
    #[inline(always)]
    pub(super) fn note(&self) {
        // SAFETY: as in `begin`.
        self.0.set(unsafe { __tsan_get_current_fiber() });
    }

    /// Marks the fiber as running from here on. Inlined, and the switch follows at
    /// once: a function that the sanitizer saw entered on one fiber must not return
    /// on another.
    #[inline(always)]
    pub(super) fn go(&self) {
        // SAFETY: the fiber has begun, and has not ended.
        unsafe { __tsan_switch_to_fiber(self.0.get(), ORDERED) };
    }
}

const ORDERED: c_uint = 0;

// From <sanitizer/tsan_interface.h>.
unsafe extern "C" {
    fn __tsan_create_fiber(flags: c_uint) -> *mut c_void;
    fn __tsan_destroy_fiber(fiber: *mut c_void);
    fn __tsan_get_current_fiber() -> *mut c_void;
    fn __tsan_switch_to_fiber(fiber: *mut c_void, flags: c_uint);
}

//! Attributes of a thread.

use crate::process;
use crate::thread::{myth_thread_attr_t, myth_thread_t};
use std::ffi::{c_int, c_void};
use std::ptr;

/// Fills in the default attributes.
///
/// # Safety
///
/// `attr` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_thread_attr_init(attr: *mut myth_thread_attr_t) -> c_int {
    let of_process = process::attr();
    let made = myth_thread_attr_t {
        stackaddr: ptr::null_mut(),
        stacksize: of_process.stacksize,
        guardsize: of_process.guardsize,
        detachstate: 0,
        child_first: of_process.child_first,
        custom_data_size: 0,
        custom_data: ptr::null_mut(),
    };
    // SAFETY: the caller's.
    unsafe { attr.write(made) };
    0
}

/// Does nothing: attributes own nothing.
#[unsafe(no_mangle)]
pub extern "C" fn myth_thread_attr_destroy(_attr: *mut myth_thread_attr_t) -> c_int {
    0
}

/// Fills in the default attributes.
///
/// # Safety
///
/// `attr` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_getattr_default_np(attr: *mut myth_thread_attr_t) -> c_int {
    // SAFETY: the caller's.
    unsafe { myth_thread_attr_init(attr) }
}

/// Fills in attributes that a thread could have been made with. A thread does not keep
/// its own: these are the defaults.
///
/// # Safety
///
/// `attr` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_getattr_np(
    _thread: myth_thread_t,
    attr: *mut myth_thread_attr_t,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { myth_thread_attr_init(attr) }
}

/// The functions that get and set one attribute.
macro_rules! attribute {
    ($get:ident, $set:ident, $member:ident, $type:ty) => {
        #[doc = concat!("Reads the attribute `", stringify!($member), "`.")]
        ///
        /// # Safety
        ///
        /// `attr` is valid for a read, `value` for a write.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $get(attr: *const myth_thread_attr_t, value: *mut $type) -> c_int {
            // SAFETY: the caller's.
            unsafe { value.write((*attr).$member) };
            0
        }

        #[doc = concat!("Sets the attribute `", stringify!($member), "`.")]
        ///
        /// # Safety
        ///
        /// `attr` is valid for a write.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $set(attr: *mut myth_thread_attr_t, value: $type) -> c_int {
            // SAFETY: the caller's.
            unsafe { (*attr).$member = value };
            0
        }
    };
}

attribute!(myth_thread_attr_getdetachstate, myth_thread_attr_setdetachstate, detachstate, c_int);
attribute!(myth_thread_attr_getguardsize, myth_thread_attr_setguardsize, guardsize, usize);
attribute!(myth_thread_attr_getstacksize, myth_thread_attr_setstacksize, stacksize, usize);

/// Reads the address and the size of the stack.
///
/// # Safety
///
/// `attr` is valid for a read, the others for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_thread_attr_getstack(
    attr: *const myth_thread_attr_t,
    stackaddr: *mut *mut c_void,
    stacksize: *mut usize,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        stackaddr.write((*attr).stackaddr);
        stacksize.write((*attr).stacksize);
    }
    0
}

/// Sets the address and the size of the stack. The library gives the thread a stack of
/// its own of that size, and does not use the one at the address.
///
/// # Safety
///
/// `attr` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_thread_attr_setstack(
    attr: *mut myth_thread_attr_t,
    stackaddr: *mut c_void,
    stacksize: usize,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        (*attr).stackaddr = stackaddr;
        (*attr).stacksize = stacksize;
    }
    0
}

const _: () = assert!(size_of::<myth_thread_attr_t>() == 48);

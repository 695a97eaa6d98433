//! Many threads at once: made, and joined.

use crate::thread::{myth_create_ex, myth_func_t, myth_join, myth_thread_attr_t, myth_thread_t};
use std::ffi::{c_int, c_long, c_void};
use std::ptr;

/// Runs `func` in `nthreads` threads, each with the next of the arguments, and waits for
/// all of them. Arrays are given by their first element and the distance of two elements
/// in bytes; `ids`, `attrs` and `results` may be NULL.
///
/// # Safety
///
/// The arrays have `nthreads` elements; `func` may be called with each argument on any
/// OS thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_create_join_many_ex(
    ids: *mut myth_thread_t,
    attrs: *const myth_thread_attr_t,
    func: myth_func_t,
    args: *mut c_void,
    results: *mut c_void,
    id_stride: usize,
    attr_stride: usize,
    arg_stride: usize,
    result_stride: usize,
    nthreads: c_long,
) -> c_int {
    // SAFETY: the caller's: a distance of 0 means the same function each time.
    unsafe {
        myth_create_join_various_ex(
            ids,
            attrs,
            &raw const func,
            args,
            results,
            id_stride,
            attr_stride,
            0,
            arg_stride,
            result_stride,
            nthreads,
        )
    }
}

/// Runs as many functions as threads, else as `myth_create_join_many_ex`.
///
/// # Safety
///
/// As for [`myth_create_join_many_ex`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_create_join_various_ex(
    ids: *mut myth_thread_t,
    attrs: *const myth_thread_attr_t,
    funcs: *const myth_func_t,
    args: *mut c_void,
    results: *mut c_void,
    id_stride: usize,
    attr_stride: usize,
    func_stride: usize,
    arg_stride: usize,
    result_stride: usize,
    nthreads: c_long,
) -> c_int {
    let count = usize::try_from(nthreads).unwrap_or(0);
    let mut threads = vec![ptr::null_mut(); count];
    for (index, thread) in threads.iter_mut().enumerate() {
        // SAFETY: the caller's: each array has an element at this distance.
        let made = unsafe {
            let attr = at(attrs.cast_mut(), attr_stride, index);
            let func = *at(funcs.cast_mut(), func_stride, index);
            let id = at(ids, id_stride, index);
            let made = myth_create_ex(thread, attr, func, at(args, arg_stride, index));
            if !id.is_null() {
                id.write(*thread);
            }
            made
        };
        if made != 0 {
            return made;
        }
    }
    for (index, thread) in threads.into_iter().enumerate() {
        // SAFETY: the thread was made above; the caller's array.
        unsafe { myth_join(thread, at(results.cast(), result_stride, index)) };
    }
    0
}

/// The element of an array, or null if there is no array.
fn at<T>(first: *mut T, stride: usize, index: usize) -> *mut T {
    if first.is_null() { first } else { first.wrapping_byte_add(stride * index) }
}

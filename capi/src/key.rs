//! ULT-local values, by keys that are made at run time.
//!
//! The values of a ULT lie in one list. Each entry holds a reference count of its
//! key, so the address of a key names that key as long as any ULT has a value under
//! it.

use super::code::code_of;
use super::parameter::{Word, borrow, place};
use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::Arc;
use tsumugi_ult::ult_local;

/// A key: under it each ULT, and each OS thread that runs no ULT, has a value of
/// its own, NULL at first.
#[derive(Debug)]
pub struct tsumugi_key(Arc<Key>);

#[derive(Debug)]
struct Key {
    destructor: Option<unsafe extern "C" fn(*mut c_void)>,
}

struct Entry {
    key: Arc<Key>,
    value: Word,
}

ult_local! {
    static VALUES: RefCell<Vec<Entry>> = const { RefCell::new(Vec::new()) };
}

/// Makes a key. When a ULT ends that has a value other than NULL under the key,
/// `destructor` is called with that value on that ULT, unless `destructor` is NULL.
///
/// Errors: NULL.
///
/// # Safety
///
/// `out` is valid for a write; the destructor may be called with each value that is
/// set under the key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_key_create(
    destructor: Option<unsafe extern "C" fn(*mut c_void)>,
    out: *mut *mut tsumugi_key,
) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { place(out) }.map(|out| {
        let made = Box::new(tsumugi_key(Arc::new(Key { destructor })));
        // SAFETY: the caller's.
        unsafe { out.write(Box::into_raw(made)) };
    }))
}

/// Frees a key. Values that ULTs have under it are still destroyed when these ULTs
/// end. NULL is allowed.
///
/// # Safety
///
/// `key` is NULL or a live key; no thread uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_key_destroy(key: *mut tsumugi_key) {
    if !key.is_null() {
        // SAFETY: the caller's: made by `tsumugi_key_create`.
        drop(unsafe { Box::from_raw(key) });
    }
}

/// Sets the caller's value under the key. The value that it replaces is not
/// destroyed.
///
/// Errors: NULL.
///
/// # Safety
///
/// `key` is a live key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_key_set(key: *const tsumugi_key, value: *mut c_void) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { borrow(key) }.map(|key| {
        VALUES.with(|values| {
            let mut values = values.borrow_mut();
            let value = Word(value);
            match values.iter_mut().find(|entry| Arc::ptr_eq(&entry.key, &key.0)) {
                Some(entry) => entry.value = value,
                None => values.push(Entry { key: key.0.clone(), value }),
            }
        });
    }))
}

/// The caller's value under the key; NULL if the caller has none.
///
/// # Safety
///
/// `key` is a live key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_key_get(key: *const tsumugi_key) -> *mut c_void {
    // SAFETY: the caller's.
    let Ok(key) = (unsafe { borrow(key) }) else { return ptr::null_mut() };
    VALUES.with(|values| {
        let values = values.borrow();
        let found = values.iter().find(|entry| Arc::ptr_eq(&entry.key, &key.0));
        found.map_or(ptr::null_mut(), |entry| entry.value.0)
    })
}

impl Drop for Entry {
    fn drop(&mut self) {
        if let (Some(destructor), false) = (self.key.destructor, self.value.0.is_null()) {
            // SAFETY: the contract of `tsumugi_key_create`.
            unsafe { destructor(self.value.0) };
        }
    }
}

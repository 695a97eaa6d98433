//! The values that a ULT, or an OS thread, has for itself; see `key`.
//!
//! They are made on first use and stay where they are until the end, when
//! they are dropped, the youngest first.

use crate::host::catch;
use alloc::boxed::Box;
use alloc::vec::Vec;
#[cfg(feature = "std")]
use core::cell::Cell;
use core::ptr;
use tsumugi_core::sync::UnsafeCell;

/// The values of one ULT or thread.
pub(crate) struct Locals(Vec<Entry>);

struct Entry {
    key: *const (),
    value: *mut (),
    drop: unsafe fn(*mut ()),
}

impl Locals {
    /// The value of `key` in `home`, made by `init` if it is not there.
    ///
    /// # Safety
    ///
    /// `home` is the caller's own, nobody else's, and null or made here. All
    /// values of one key have one type.
    pub(crate) unsafe fn find<T>(
        home: *mut *mut Self,
        key: *const (),
        init: impl FnOnce() -> T,
    ) -> *const T {
        // SAFETY: the caller's.
        let found = || unsafe { (*home).as_ref() }.and_then(|locals| locals.get(key));
        if let Some(value) = found() {
            return value.cast();
        }
        let made = Box::new(init());
        // `init` may have used this very key.
        if let Some(value) = found() {
            return value.cast();
        }
        let value = Box::into_raw(made);
        // SAFETY: the caller's.
        let locals = unsafe {
            if (*home).is_null() {
                *home = Box::into_raw(Box::new(Self(Vec::new())));
            }
            &mut **home
        };
        locals.0.push(Entry { key, value: value.cast(), drop: drop_box::<T> });
        value
    }

    fn get(&self, key: *const ()) -> Option<*mut ()> {
        self.0.iter().find(|entry| ptr::eq(entry.key, key)).map(|entry| entry.value)
    }

    /// Drops the values of a ULT that ends.
    ///
    /// # Safety
    ///
    /// By that ULT, on its own stack.
    pub(crate) unsafe fn end(home: &UnsafeCell<*mut Self>) {
        let home = home.with_mut(|home| home);
        // SAFETY: the caller's.
        unsafe { drop_all(home) }
    }
}

/// Drops values, and those that their destructors made, within reason.
unsafe fn drop_all(home: *mut *mut Locals) {
    for _ in 0..ROUNDS {
        // SAFETY: `home` is the caller's own; a destructor that uses a key
        // finds it empty and fills it again.
        let locals = unsafe { home.replace(ptr::null_mut()) };
        if locals.is_null() {
            return;
        }
        // SAFETY: from `Box::into_raw` in `find`.
        let locals = unsafe { Box::from_raw(locals) };
        for entry in locals.0.into_iter().rev() {
            // SAFETY: made as what `drop` was made for, dropped once. A panic
            // there concerns nobody any more; the hook has spoken.
            let _ = catch(|| unsafe { (entry.drop)(entry.value) });
        }
    }
}

unsafe fn drop_box<T>(value: *mut ()) {
    // SAFETY: the caller's: from `Box::<T>::into_raw`.
    drop(unsafe { Box::from_raw(value.cast::<T>()) });
}

/// The values of a thread that is no ULT.
pub(crate) fn home_of_thread() -> *mut *mut Locals {
    #[cfg(feature = "std")]
    return THREAD.with(|thread| thread.0.as_ptr());
    #[cfg(not(feature = "std"))]
    panic!("without std only ULTs have values of their own");
}

/// What an OS thread has.
#[cfg(feature = "std")]
struct Thread(Cell<*mut Locals>);

#[cfg(feature = "std")]
impl Drop for Thread {
    fn drop(&mut self) {
        // SAFETY: the thread's own.
        unsafe { drop_all(self.0.as_ptr()) }
    }
}

#[cfg(feature = "std")]
std::thread_local! {
    static THREAD: Thread = const { Thread(Cell::new(ptr::null_mut())) };
}

const ROUNDS: usize = 8;

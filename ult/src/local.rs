//! The local values of a ULT, or of an OS thread; see `key`.
//!
//! They are made on first use and stay in place until the end of the ULT or thread,
//! when they are dropped, the youngest first.

use crate::host::contain;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::TypeId;
#[cfg(feature = "std")]
use core::cell::Cell;
use core::ptr;
use tsumugi_core::sync::UnsafeCell;

/// The values of one ULT or thread. The first of them needs no array.
pub(crate) struct Locals {
    first: Option<LocalEntry>,
    more: Vec<LocalEntry>,
}

struct LocalEntry {
    key: LocalPlace,
    value: *mut (),
    drop: unsafe fn(*mut ()),
}

/// The place of a key, and the type of its values, because constants of different
/// types may share a place.
type LocalPlace = (*const (), TypeId);

impl Locals {
    /// The value of the key at `place` in `home`, made by `init` if there is none.
    ///
    /// # Safety
    ///
    /// `home` belongs to the caller alone, and is null or made here.
    pub(crate) unsafe fn find<T: 'static>(
        home: *mut *mut Self,
        place: *const (),
        init: impl FnOnce() -> T,
    ) -> *const T {
        let key = (place, TypeId::of::<T>());
        // SAFETY: `home` belongs to the caller alone.
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
        // SAFETY: as above, and `init`, which may use `home`, has returned.
        let locals = unsafe {
            if (*home).is_null() {
                *home = Box::into_raw(Box::new(Self { first: None, more: Vec::new() }));
            }
            &mut **home
        };
        let entry = LocalEntry { key, value: value.cast(), drop: drop_box::<T> };
        match &mut locals.first {
            first @ None => *first = Some(entry),
            Some(_) => locals.more.push(entry),
        }
        value
    }

    /// The value of the key at `place` in `home`, if there is one.
    ///
    /// # Safety
    ///
    /// As for [`find`](Self::find); the value is not used after its drop.
    pub(crate) unsafe fn seen<'a, T: 'static>(
        home: *mut *mut Self,
        place: *const (),
    ) -> Option<&'a T> {
        // SAFETY: `home` belongs to the caller alone; values of a key have its type.
        unsafe {
            let value = (*home).as_ref()?.get((place, TypeId::of::<T>()))?;
            Some(&*value.cast::<T>())
        }
    }

    /// A value of the key's type.
    fn get(&self, key: LocalPlace) -> Option<*mut ()> {
        let mut entries = self.first.iter().chain(&self.more);
        entries.find(|entry| entry.key == key).map(|entry| entry.value)
    }

    /// Drops all values, for a test that has made them.
    ///
    /// # Safety
    ///
    /// As for [`find`](Self::find); no code uses the values.
    #[cfg(all(test, feature = "std", not(tsumugi_loom)))]
    pub(crate) unsafe fn drop_all(home: *mut *mut Self) {
        // SAFETY: `home` belongs to the caller, and no code uses the values.
        unsafe { drop_all(home) }
    }

    /// Drops the values of a ULT that ends.
    ///
    /// # Safety
    ///
    /// Called by that ULT, on its own stack.
    pub(crate) unsafe fn end(home: &UnsafeCell<*mut Self>) {
        let home = home.with_mut(|home| home);
        // SAFETY: the values belong to the ULT that calls.
        unsafe { drop_all(home) }
    }
}

/// Drops values, and then the values that their destructors made, for some rounds.
unsafe fn drop_all(home: *mut *mut Locals) {
    for _ in 0..ROUNDS {
        // SAFETY: `home` belongs to the caller. A destructor that uses a key finds
        // `home` empty and fills it again.
        let locals = unsafe { home.replace(ptr::null_mut()) };
        if locals.is_null() {
            return;
        }
        // SAFETY: the pointer comes from `Box::into_raw` in `find`.
        let locals = unsafe { Box::from_raw(locals) };
        let Locals { first, more } = *locals;
        for entry in first.into_iter().chain(more).rev() {
            // SAFETY: the value has the type that `drop` was made for, and is dropped
            // once. A panic of a destructor ends here, so that the other values are
            // dropped too.
            contain(|| unsafe { (entry.drop)(entry.value) });
        }
    }
}

unsafe fn drop_box<T>(value: *mut ()) {
    // SAFETY: the caller's pointer comes from `Box::<T>::into_raw`.
    drop(unsafe { Box::from_raw(value.cast::<T>()) });
}

/// The home of the values of a thread that is no ULT.
pub(crate) fn home_of_thread() -> *mut *mut Locals {
    #[cfg(feature = "std")]
    return THREAD.with(|thread| thread.0.as_ptr());
    #[cfg(not(feature = "std"))]
    panic!("without std only ULTs have local values: the caller is not a ULT");
}

/// The values of an OS thread, dropped at its end.
#[cfg(feature = "std")]
struct Thread(Cell<*mut Locals>);

#[cfg(feature = "std")]
impl Drop for Thread {
    fn drop(&mut self) {
        // SAFETY: the values belong to the ending thread.
        unsafe { drop_all(self.0.as_ptr()) }
    }
}

#[cfg(feature = "std")]
std::thread_local! {
    static THREAD: Thread = const { Thread(Cell::new(ptr::null_mut())) };
}

const ROUNDS: usize = 8;

#[cfg(all(test, not(tsumugi_loom)))]
mod tests {
    use super::*;

    #[test]
    fn keys_of_two_types_at_one_address_are_different() {
        let mut home: *mut Locals = ptr::null_mut();
        let place = (&raw const home).cast();
        // SAFETY: `home` belongs to the test, and the values are alive.
        unsafe {
            let word = Locals::find(&mut home, place, || 7u64);
            let text = Locals::find(&mut home, place, || String::from("a text"));
            assert_eq!((*word, (*text).as_str()), (7, "a text"));
            assert_eq!(Locals::find(&mut home, place, || 8u64), word);
            drop_all(&mut home);
        }
    }
}

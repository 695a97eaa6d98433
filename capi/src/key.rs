//! ULT-local values, by keys that are made at run time.
//!
//! ```text
//!  key ─► number ─► places[number] ─► values[place]: is its name the key's?
//! ```
//!
//! The values of a ULT lie in the order in which they were set first, in which they are
//! destroyed, too. A table by the key's number finds a value, in a time that does not depend
//! on how many keys there are. Numbers of keys that were destroyed are used again, names
//! never: a value of a destroyed key is found by no other key, and stays until the ULT ends.

use super::code::code_of;
use super::parameter::{Word, borrow, place};
use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::{Mutex, PoisonError};
use tsumugi_core::sync::{AtomicU64, Ordering};
use tsumugi_ult::ult_local;

/// A key: under it each ULT, and each OS thread that runs no ULT, has a value of
/// its own, NULL at first.
#[derive(Debug)]
pub struct tsumugi_key {
    number: usize,
    name: u64,
    destructor: KeyDestructor,
}

type KeyDestructor = Option<unsafe extern "C" fn(*mut c_void)>;

/// The values of one ULT.
struct KeyedValues {
    values: Vec<KeyedValue>,
    /// For the keys of the first numbers: the place of the value, plus one; or 0.
    first: [u32; FIRST],
    /// The same for the other keys.
    more: Vec<u32>,
}

struct KeyedValue {
    key: u64,
    value: Word,
    destructor: KeyDestructor,
}

ult_local! {
    static VALUES: RefCell<KeyedValues> = const { RefCell::new(KeyedValues::new()) };
}

/// Which numbers keys have.
static NUMBERS: Mutex<Vec<bool>> = Mutex::new(Vec::new());
/// The name of the next key.
static NAMES: AtomicU64 = AtomicU64::new(0);

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
        let number = with_numbers(|taken| {
            let number = taken.iter().position(|taken| !taken).unwrap_or(taken.len());
            taken.resize(taken.len().max(number + 1), false);
            taken[number] = true;
            number
        });
        let name = NAMES.fetch_add(1, Ordering::Relaxed);
        let made = Box::new(tsumugi_key { number, name, destructor });
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
        let key = unsafe { Box::from_raw(key) };
        with_numbers(|taken| taken[key.number] = false);
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
        VALUES.with(|values| values.borrow_mut().set(key, Word(value)));
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
    VALUES.with(|values| values.borrow().get(key))
}

impl KeyedValues {
    const fn new() -> Self {
        Self { values: Vec::new(), first: [0; FIRST], more: Vec::new() }
    }

    /// The place of the key's value, if there is one.
    #[inline]
    fn place(&self, key: &tsumugi_key) -> Option<usize> {
        let place = match key.number.checked_sub(FIRST) {
            None => self.first[key.number],
            Some(number) => *self.more.get(number)?,
        };
        let place = (place as usize).checked_sub(1)?;
        (self.values[place].key == key.name).then_some(place)
    }

    #[inline]
    fn get(&self, key: &tsumugi_key) -> *mut c_void {
        self.place(key).map_or(ptr::null_mut(), |place| self.values[place].value.0)
    }

    fn set(&mut self, key: &tsumugi_key, value: Word) {
        if let Some(place) = self.place(key) {
            self.values[place].value = value;
            return;
        }
        self.values.push(KeyedValue { key: key.name, value, destructor: key.destructor });
        let place = u32::try_from(self.values.len()).expect("a ULT has fewer values than 2^32");
        match key.number.checked_sub(FIRST) {
            None => self.first[key.number] = place,
            Some(number) => {
                self.more.resize(self.more.len().max(number + 1), 0);
                self.more[number] = place;
            }
        }
    }
}

impl Drop for KeyedValue {
    fn drop(&mut self) {
        if let (Some(destructor), false) = (self.destructor, self.value.0.is_null()) {
            // SAFETY: the contract of `tsumugi_key_create`.
            unsafe { destructor(self.value.0) };
        }
    }
}

fn with_numbers<R>(f: impl FnOnce(&mut Vec<bool>) -> R) -> R {
    f(&mut NUMBERS.lock().unwrap_or_else(PoisonError::into_inner))
}

/// As many as fit beside the rest into the room of a ULT's first local value.
const FIRST: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn made() -> *mut tsumugi_key {
        let mut key = ptr::null_mut();
        // SAFETY: the place is valid for a write.
        assert_eq!(unsafe { tsumugi_key_create(None, &raw mut key) }, 0);
        key
    }

    #[test]
    fn a_key_finds_its_own_values_alone() {
        let keys: Vec<_> = (0..3 * FIRST).map(|_| made()).collect();
        let value = |number: usize| ptr::without_provenance_mut::<c_void>(number + 1);
        // SAFETY: the keys are live until they are destroyed, and used by this thread alone.
        unsafe {
            for (number, key) in keys.iter().enumerate().rev() {
                assert!(tsumugi_key_get(*key).is_null());
                assert_eq!(tsumugi_key_set(*key, value(number)), 0);
            }
            let all_are_there = |keys: &[*mut tsumugi_key]| {
                keys.iter().enumerate().all(|(number, key)| tsumugi_key_get(*key) == value(number))
            };
            assert!(all_are_there(&keys));
            // The next key has the number of one that was destroyed, but not its value.
            for victim in [keys.len() - 1, 0] {
                let number = (*keys[victim]).number;
                tsumugi_key_destroy(keys[victim]);
                let other = made();
                assert_eq!((*other).number, number);
                assert!(tsumugi_key_get(other).is_null());
                tsumugi_key_set(other, value(7));
                assert_eq!(tsumugi_key_get(other), value(7));
                tsumugi_key_destroy(other);
            }
            let left = &keys[1..keys.len() - 1];
            assert!(
                left.iter().zip(1..).all(|(key, number)| tsumugi_key_get(*key) == value(number))
            );
            left.iter().for_each(|key| tsumugi_key_destroy(*key));
        }
    }
}

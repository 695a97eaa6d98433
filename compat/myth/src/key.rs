//! Thread-specific data: keys are small numbers, and the values of a thread lie in an
//! array, by number.

use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tsumugi_core::sync::{AtomicBool, Ordering};
use tsumugi_ult::ult_local;

/// The number of a key.
pub type myth_key_t = c_int;

type Destructor = Option<unsafe extern "C-unwind" fn(*mut c_void)>;

/// The values of one thread: those of the first keys in place, the others in an array.
struct Values {
    first: [Option<*mut c_void>; FIRST],
    more: Vec<Option<*mut c_void>>,
}

ult_local! {
    static VALUES: RefCell<Values> =
        RefCell::new(Values { first: [None; FIRST], more: Vec::new() });
}

/// The destructors of all keys; `None` is the place of a key that was deleted.
static KEYS: Mutex<Vec<Option<Destructor>>> = Mutex::new(Vec::new());

/// Whether any key has had a destructor: else the end of a thread looks at no key.
static HAS_DESTRUCTORS: AtomicBool = AtomicBool::new(false);

/// Makes a key. At the end of a thread that has set a value under the key, the
/// destructor is called with that value, also if it is NULL, unless the destructor is
/// NULL. Returns `EINVAL` if there are too many keys.
///
/// # Safety
///
/// `key` is valid for a write; the destructor may be called with each value that is
/// set under the key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_key_create(key: *mut myth_key_t, destructor: Destructor) -> c_int {
    let mut keys = keys();
    let place = keys.iter().position(Option::is_none).unwrap_or(keys.len());
    if place == KEYS_MAX {
        return libc::EINVAL;
    }
    if place == keys.len() {
        keys.push(None);
    }
    keys[place] = Some(destructor);
    if destructor.is_some() {
        // Release: pairs with the Acquire at the end of a thread.
        HAS_DESTRUCTORS.store(true, Ordering::Release);
    }
    // SAFETY: the caller's.
    unsafe { key.write(place as myth_key_t) };
    0
}

/// Deletes a key: its destructor is not called again. Values that threads have under
/// the key stay, and the next key of the same number finds them. Returns `EINVAL` if
/// there is no such key.
#[unsafe(no_mangle)]
pub extern "C" fn myth_key_delete(key: myth_key_t) -> c_int {
    match keys().get_mut(key as usize) {
        Some(place @ Some(_)) => {
            *place = None;
            0
        }
        _ => libc::EINVAL,
    }
}

/// Sets the caller's value under a key. Returns `EINVAL` if no key has this number.
#[unsafe(no_mangle)]
pub extern "C" fn myth_setspecific(key: myth_key_t, value: *const c_void) -> c_int {
    let Some(place) = usize::try_from(key).ok().filter(|place| *place < KEYS_MAX) else {
        return libc::EINVAL;
    };
    VALUES.with(|values| {
        let values = &mut *values.borrow_mut();
        let slot = if place < FIRST {
            &mut values.first[place]
        } else {
            if values.more.len() <= place - FIRST {
                values.more.resize(place - FIRST + 1, None);
            }
            &mut values.more[place - FIRST]
        };
        *slot = Some(value.cast_mut());
    });
    0
}

/// The caller's value under a key; NULL if it has set none.
#[unsafe(no_mangle)]
pub extern "C" fn myth_getspecific(key: myth_key_t) -> *mut c_void {
    let Ok(place) = usize::try_from(key) else { return ptr::null_mut() };
    VALUES.with(|values| {
        let values = values.borrow();
        let slot = match place.checked_sub(FIRST) {
            None => values.first[place],
            Some(place) => values.more.get(place).copied().flatten(),
        };
        slot.unwrap_or(ptr::null_mut())
    })
}

impl Drop for Values {
    fn drop(&mut self) {
        // Acquire: pairs with the Release of `myth_key_create`, which came before the
        // value was set.
        if !HAS_DESTRUCTORS.load(Ordering::Acquire) {
            return;
        }
        for (place, value) in self.first.iter().chain(&self.more).enumerate() {
            let Some(value) = *value else { continue };
            let destructor = keys().get(place).copied().flatten().flatten();
            if let Some(destructor) = destructor {
                // SAFETY: the contract of `myth_key_create`.
                unsafe { destructor(value) };
            }
        }
    }
}

fn keys() -> MutexGuard<'static, Vec<Option<Destructor>>> {
    KEYS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keys with values in place: a thread that uses no others allocates one block.
const FIRST: usize = 8;
const KEYS_MAX: usize = 1024;

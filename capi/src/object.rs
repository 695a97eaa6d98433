//! Objects behind handles, and arguments that must not be null.
//!
//! ```text
//!  make ──► live ──► end ──► ended ──(after 64 more ends of this type)──► live, another object
//! ```
//!
//! ```text
//!  place   [ state: what the object is, and whether it lives | object ]
//!                                                              ▲ handle
//! ```
//!
//! The place of an object outlives the object, so a handle that has ended is refused
//! by its name and is not followed into freed memory. A program that keeps such a
//! handle until its place has a new object reaches that object instead. The state lies at
//! the same distance before an object of any type, so a handle of another type is refused,
//! too.
//!
//! Progress: `live` is wait-free. `make` and `end` take a lock for a few
//! instructions; `make` allocates until 64 objects of its type have ended.

use super::remember;
use super::{TSUMUGI_ERROR_ENDED, TSUMUGI_ERROR_LENGTH, TSUMUGI_ERROR_NULL, TSUMUGI_ERROR_VALUE};
use std::collections::VecDeque;
use std::ffi::{c_int, c_void};
use std::fmt::Display;
use std::mem::MaybeUninit;
use std::slice;
use std::sync::{Mutex, PoisonError};
use tsumugi_core::sync::{AtomicU32, Ordering};

/// A type that C programs know by pointers to it.
pub(super) trait Object: Sized + 'static {
    /// What the object is, for messages.
    const NAME: &'static str;

    /// The places of ended objects of this type.
    fn places() -> &'static Places<Self>;
}

/// Makes a type an [`Object`] of a name.
macro_rules! object {
    ($type:ident, $name:literal) => {
        impl $crate::object::Object for $type {
            const NAME: &'static str = $name;

            fn places() -> &'static $crate::object::Places<Self> {
                static PLACES: $crate::object::Places<$type> = $crate::object::Places::new();
                &PLACES
            }
        }
    };
}
pub(super) use object;

/// The memory of an object. A handle is the address of the object.
#[repr(C)]
struct Place<T> {
    head: Head,
    object: MaybeUninit<T>,
}

/// What lies before the object of each place.
#[repr(C, align(16))]
struct Head {
    /// [`Place::LIVE`] or [`Place::ENDED`].
    state: AtomicU32,
}

impl<T: Object> Place<T> {
    /// There is an object. Another number for each type.
    const LIVE: u32 = {
        assert!(align_of::<T>() <= align_of::<Head>(), "the head lies right before the object");
        // FNV-1a; the lowest bit says whether the object lives.
        let (name, mut hash, mut at) = (T::NAME.as_bytes(), 0x811c_9dc5u32, 0);
        while at < name.len() {
            hash = (hash ^ name[at] as u32).wrapping_mul(0x0100_0193);
            at += 1;
        }
        hash | 1
    };
    /// There was an object of this type.
    const ENDED: u32 = Self::LIVE ^ 1;

    /// The place of a handle.
    #[inline]
    const fn of(handle: *const T) -> *mut Self {
        handle.cast::<Head>().wrapping_sub(1).cast_mut().cast()
    }

    /// The state before a handle of any type.
    ///
    /// # Safety
    ///
    /// `handle` was made by [`make`], for an object of any type.
    #[inline]
    const unsafe fn state<'a>(handle: *const T) -> &'a AtomicU32 {
        // SAFETY: the caller's; places are never freed.
        unsafe { &(*handle.cast::<Head>().wrapping_sub(1)).state }
    }
}

/// Places of ended objects, the oldest first.
pub(super) struct Places<T>(Mutex<VecDeque<Ended<T>>>);

struct Ended<T>(*mut Place<T>);

// SAFETY: the object of the place is gone, so only its memory moves.
unsafe impl<T> Send for Ended<T> {}

impl<T> Places<T> {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(VecDeque::new()))
    }
}

/// Makes an object, and writes its handle to `out`.
///
/// # Safety
///
/// `out` is valid for a write.
pub(super) unsafe fn make<T: Object>(out: *mut *mut T, object: T) {
    let mut ended = T::places().0.lock().unwrap_or_else(PoisonError::into_inner);
    let place = match ended.len() > KEPT {
        true => ended.pop_front().map(|place| place.0),
        false => None,
    };
    drop(ended);
    let new = || {
        let head = Head { state: AtomicU32::new(Place::<T>::ENDED) };
        Box::into_raw(Box::new(Place { head, object: MaybeUninit::uninit() }))
    };
    let place = place.unwrap_or_else(new);
    // SAFETY: the place was made here and is never freed, and the queue has given it
    // to this call alone. `out` is the caller's.
    unsafe {
        (&raw mut (*place).object).write(MaybeUninit::new(object));
        // Release: pairs with the load in `live`, which then sees the object.
        (*place).head.state.store(Place::<T>::LIVE, Ordering::Release);
        out.write((&raw mut (*place).object).cast());
    }
}

/// Makes an object, if its place is not null.
///
/// # Safety
///
/// `out` is null or valid for a write.
pub(super) unsafe fn create<T: Object>(
    out: *mut *mut T,
    object: impl FnOnce() -> T,
) -> Result<(), c_int> {
    let out = given(out, "out")?;
    // SAFETY: the caller's.
    unsafe { make(out, object()) };
    Ok(())
}

/// Borrows an object; null, a handle that has ended and one of another type are errors.
///
/// # Safety
///
/// `handle` is null, or was made by [`make`] for an object of any type; the object does not
/// end meanwhile.
#[inline]
pub(super) unsafe fn live<'a, T: Object>(handle: *const T) -> Result<&'a T, c_int> {
    if handle.is_null() {
        return Err(null(T::NAME));
    }
    // SAFETY: the caller's. Acquire: pairs with the store in `make`.
    let state = unsafe { Place::state(handle) }.load(Ordering::Acquire);
    if state != Place::<T>::LIVE {
        return Err(no_object::<T>(handle, state));
    }
    // SAFETY: the place has an object of the type, by its state.
    Ok(unsafe { &*handle })
}

/// Ends an object and returns it; null, a handle that has ended and one of another type are
/// errors.
///
/// # Safety
///
/// As for [`live`], and no other thread uses the object.
pub(super) unsafe fn end<T: Object>(handle: *mut T) -> Result<T, c_int> {
    if handle.is_null() {
        return Err(null(T::NAME));
    }
    let (place, live, ended) = (Place::of(handle), Place::<T>::LIVE, Place::<T>::ENDED);
    // SAFETY: the caller's.
    let state = unsafe { Place::state(handle) };
    // Acquire: pairs with the store in `make`.
    if let Err(other) = state.compare_exchange(live, ended, Ordering::Acquire, Ordering::Relaxed) {
        return Err(no_object::<T>(handle, other));
    }
    // SAFETY: the place had an object, and this call alone has changed its state.
    let object = unsafe { (*place).object.assume_init_read() };
    T::places().0.lock().unwrap_or_else(PoisonError::into_inner).push_back(Ended(place));
    Ok(object)
}

/// Checks a pointer, named `name` in the header; null is an error.
#[inline]
pub(super) fn given<T>(pointer: *mut T, name: &str) -> Result<*mut T, c_int> {
    if pointer.is_null() { Err(null(name)) } else { Ok(pointer) }
}

/// The bytes at `from`, which may be null if there are none. More bytes than an address
/// space has are an error.
///
/// # Safety
///
/// `from` is null or valid for a read of `bytes` bytes, as long as the slice lives.
#[inline]
pub(super) unsafe fn bytes_at<'a>(
    from: *const c_void,
    bytes: usize,
    name: &str,
) -> Result<&'a [u8], c_int> {
    match (from.is_null(), bytes) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(null(name)),
        // SAFETY: the caller's.
        _ => Ok(unsafe { slice::from_raw_parts(from.cast(), bytes_of(1, bytes)?) }),
    }
}

/// The words or handles at `from`, which may be null if there are none. More of them than
/// an address space has are an error.
///
/// # Safety
///
/// `from` is null or valid for a read of `count` values, as long as the slice lives.
pub(super) unsafe fn list_at<'a, T>(
    from: *const T,
    count: usize,
    name: &str,
) -> Result<&'a [T], c_int> {
    match (from.is_null(), count) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(null(name)),
        _ => {
            bytes_of(count, size_of::<T>())?;
            // SAFETY: the caller's.
            Ok(unsafe { slice::from_raw_parts(from, count) })
        }
    }
}

/// Room for `bytes` bytes at `into`, which may be null if there are none.
#[inline]
pub(super) fn room_at(into: *mut c_void, bytes: usize, name: &str) -> Result<*mut u8, c_int> {
    match (into.is_null(), bytes) {
        (true, 0) => Ok(std::ptr::dangling_mut()),
        (true, _) => Err(null(name)),
        _ => Ok(into.cast()),
    }
}

/// The bytes of `count` pieces of `each` bytes.
pub(super) fn bytes_of(count: usize, each: usize) -> Result<usize, c_int> {
    let bytes = count.checked_mul(each).filter(|bytes| isize::try_from(*bytes).is_ok());
    bytes.ok_or_else(|| {
        let reason = format_args!("{count} times {each} bytes exceed an address space");
        refuse(TSUMUGI_ERROR_LENGTH, reason)
    })
}

/// Writes a result, unless its place is null.
///
/// # Safety
///
/// `out` is null or valid for a write.
#[inline]
pub(super) unsafe fn tell<T>(out: *mut T, value: T) {
    if !out.is_null() {
        // SAFETY: the caller's.
        unsafe { out.write(value) };
    }
}

#[cold]
pub(super) fn null(name: &str) -> c_int {
    remember(TSUMUGI_ERROR_NULL, format_args!("{name} is NULL"))
}

/// Refuses a value; the reason names it.
#[cold]
pub(super) fn refuse(code: c_int, reason: impl Display) -> c_int {
    remember(code, reason)
}

/// Refuses a handle before which `state` lies.
#[cold]
fn no_object<T: Object>(handle: *const T, state: u32) -> c_int {
    if state == Place::<T>::ENDED {
        return remember(
            TSUMUGI_ERROR_ENDED,
            format_args!("the {} at {handle:p} has ended", T::NAME),
        );
    }
    remember(TSUMUGI_ERROR_VALUE, format_args!("the handle {handle:p} is of no {}", T::NAME))
}

/// The number of ended objects of a type whose places stay empty.
const KEPT: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tsumugi_reason;
    use std::ffi::CStr;
    use std::ptr;
    use std::sync::Arc;

    struct Thing(Arc<u32>);

    object!(Thing, "thing");

    struct Stuff([u64; 9]);

    object!(Stuff, "stuff");

    #[test]
    fn a_handle_of_another_type_is_refused() {
        let (mut thing, mut stuff) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: all handles were made here.
        unsafe {
            make(&raw mut thing, Thing(Arc::new(7)));
            make(&raw mut stuff, Stuff([3; 9]));
            assert_eq!(live(thing.cast::<Stuff>()).err(), Some(TSUMUGI_ERROR_VALUE));
            assert_eq!(end(stuff.cast::<Thing>()).err(), Some(TSUMUGI_ERROR_VALUE));
            let reason = CStr::from_ptr(tsumugi_reason()).to_str().unwrap();
            assert_eq!(reason, format!("the handle {stuff:p} is of no thing"));
            assert_eq!(live(stuff).unwrap().0, [3; 9]);
            assert!(end(thing).is_ok() && end(stuff).is_ok());
            assert_eq!(live(thing.cast::<Stuff>()).err(), Some(TSUMUGI_ERROR_VALUE));
        }
    }

    #[test]
    fn an_ended_handle_is_refused_by_name() {
        let counted = Arc::new(7);
        let mut handle = ptr::null_mut();
        // SAFETY: null is allowed, and all handles were made here.
        unsafe {
            assert_eq!(live::<Thing>(handle).err(), Some(TSUMUGI_ERROR_NULL));
            assert_eq!(end::<Thing>(handle).err(), Some(TSUMUGI_ERROR_NULL));
            make(&raw mut handle, Thing(counted.clone()));
            assert_eq!(*live(handle).unwrap().0, 7);
            drop(end(handle));
            assert_eq!(Arc::strong_count(&counted), 1);
            assert_eq!(end(handle).err(), Some(TSUMUGI_ERROR_ENDED));
            assert_eq!(live(handle).err(), Some(TSUMUGI_ERROR_ENDED));
            let reason = CStr::from_ptr(tsumugi_reason()).to_str().unwrap();
            assert_eq!(reason, format!("the thing at {handle:p} has ended"));
            // The place is used again after many others have ended.
            let mut reused = false;
            for _ in 0..2 * KEPT + 2 {
                let mut other = ptr::null_mut();
                make(&raw mut other, Thing(counted.clone()));
                reused |= other == handle;
                drop(end(other));
            }
            assert!(reused);
        }
    }
}

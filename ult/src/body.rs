//! The closure that a ULT runs, of any type, kept in a room of one size.
//!
//! ```text
//!   fill: closure ──► [ room ] ──run──► closure, then result ──► [ room ] ──► joiner
//! ```
//!
//! A value that fits lies in the room itself; a larger one lies in a box that the
//! room points to. The room does not keep the value's type. [`ClosureVtable`] restores it: one
//! table of functions per closure type in the program.

use crate::host::{catch, contain};
use crate::join_error::JoinError;
use alloc::boxed::Box;
use core::marker::PhantomData;
use core::mem::{MaybeUninit, align_of, size_of};
use tsumugi_core::sync::UnsafeCell;

/// The result of a ULT: its value, or why there is none.
pub(crate) type UltOutcome<T> = Result<T, JoinError>;

/// The operations on a room that holds a closure of one type.
pub(crate) struct ClosureVtable {
    /// Runs the closure and leaves its outcome in its place.
    ///
    /// # Safety
    ///
    /// The room holds the closure.
    pub(crate) run: unsafe fn(&ClosureStorage),
    /// Runs the closure and writes its outcome to the given place.
    ///
    /// # Safety
    ///
    /// The room holds the closure; the place has the outcome's type.
    pub(crate) call: unsafe fn(&ClosureStorage, *mut ()),
    /// Drops the outcome.
    ///
    /// # Safety
    ///
    /// The room holds the outcome.
    pub(crate) drop_result: unsafe fn(&ClosureStorage),
    /// Leaves [`Cancelled`] as the outcome. The argument: whether the closure was
    /// started.
    ///
    /// # Safety
    ///
    /// The room holds the closure, or, if the closure was started, nothing or an
    /// outcome that is leaked.
    pub(crate) cancel: unsafe fn(&ClosureStorage, bool),
}

/// Memory for a closure, then for its outcome.
pub(crate) struct ClosureStorage(UnsafeCell<MaybeUninit<StorageBytes>>);

#[repr(C, align(8))]
struct StorageBytes([u8; ROOM_BYTES]);

impl ClosureVtable {
    /// The table of functions for `F`.
    pub(crate) const fn of<T, F: FnOnce() -> T>() -> &'static Self {
        &Of::<T, F>::BODY
    }
}

impl ClosureStorage {
    pub(crate) fn new() -> Self {
        Self(UnsafeCell::new(MaybeUninit::uninit()))
    }

    /// Writes a value into the room.
    ///
    /// # Safety
    ///
    /// The room is empty, and no other thread uses it.
    #[inline(always)]
    pub(crate) unsafe fn put<V>(&self, value: V) {
        self.0.with_mut(|room| {
            // SAFETY: the caller promises that the room is empty; `fits` has checked the
            // size and the alignment.
            unsafe {
                if fits::<V>() {
                    room.cast::<V>().write(value);
                } else {
                    room.cast::<*mut V>().write(Box::into_raw(Box::new(value)));
                }
            }
        });
    }

    /// Reads the value out of the room.
    ///
    /// # Safety
    ///
    /// The room holds a `V`, and no other thread uses it.
    #[inline(always)]
    pub(crate) unsafe fn take<V>(&self) -> V {
        self.0.with_mut(|room| {
            // SAFETY: by the caller's contract, `put` of the same type came before.
            unsafe {
                if fits::<V>() {
                    room.cast::<V>().read()
                } else {
                    *Box::from_raw(room.cast::<*mut V>().read())
                }
            }
        })
    }
}

struct Of<T, F>(PhantomData<fn(F) -> T>);

impl<T, F: FnOnce() -> T> Of<T, F> {
    const BODY: ClosureVtable = ClosureVtable {
        run: Self::run,
        call: Self::call,
        drop_result: Self::drop_result,
        cancel: Self::cancel,
    };

    unsafe fn run(room: &ClosureStorage) {
        // SAFETY: the caller promises that the room holds the closure, which is an `F`.
        let f = unsafe { room.take::<F>() };
        let outcome: UltOutcome<T> = catch(f).map_err(JoinError::of_panic);
        // SAFETY: the closure was taken out, so the room is empty.
        unsafe { room.put(outcome) }
    }

    unsafe fn call(room: &ClosureStorage, place: *mut ()) {
        // SAFETY: the caller promises that the room holds the closure, which is an `F`.
        let f = unsafe { room.take::<F>() };
        let outcome: UltOutcome<T> = catch(f).map_err(JoinError::of_panic);
        // SAFETY: the caller promises that the place has the outcome's type.
        unsafe { place.cast::<UltOutcome<T>>().write(outcome) }
    }

    unsafe fn drop_result(room: &ClosureStorage) {
        // SAFETY: the caller promises that the room holds the outcome.
        let outcome = unsafe { room.take::<UltOutcome<T>>() };
        // A panic of the result's destructor ends here: the ULT has ended.
        contain(|| drop(outcome));
    }

    unsafe fn cancel(room: &ClosureStorage, started: bool) {
        if !started {
            // SAFETY: a closure that never ran is still in the room.
            let f = unsafe { room.take::<F>() };
            contain(|| drop(f));
        }
        let outcome: UltOutcome<T> = Err(JoinError::cut_off());
        // SAFETY: the closure was taken out. An outcome that a ULT has left there, and
        // which was cut off after that, is leaked as its stack is.
        unsafe { room.put(outcome) }
    }
}

const fn fits<V>() -> bool {
    size_of::<V>() <= ROOM_BYTES && align_of::<V>() <= align_of::<StorageBytes>()
}

pub(crate) const ROOM_BYTES: usize = 40;

#[cfg(all(test, not(tsumugi_loom)))]
mod tests {
    use super::*;

    #[test]
    fn values_of_any_size_and_alignment_can_be_put_and_taken() {
        #[repr(align(64))]
        struct Aligned(u8);
        let room = ClosureStorage::new();
        // SAFETY: each value is taken as the type that was put.
        unsafe {
            room.put(5u64);
            assert_eq!(room.take::<u64>(), 5);
            room.put([9u8; 1000]);
            assert_eq!(room.take::<[u8; 1000]>(), [9; 1000]);
            room.put(Aligned(3));
            assert_eq!(room.take::<Aligned>().0, 3);
        }
    }

    #[test]
    fn a_cancelled_closure_is_dropped_and_its_outcome_is_cancelled() {
        let witness = alloc::sync::Arc::new(());
        let held = witness.clone();
        let body = {
            fn of<T, F: FnOnce() -> T>(_: &F) -> &'static ClosureVtable {
                ClosureVtable::of::<T, F>()
            }
            let closure = move || alloc::sync::Arc::strong_count(&held);
            let body = of(&closure);
            let room = ClosureStorage::new();
            // SAFETY: the room holds the closure, then its outcome.
            unsafe {
                room.put(closure);
                (body.cancel)(&room, false);
                assert!(room.take::<UltOutcome<usize>>().unwrap_err().is_cancelled());
            }
            body
        };
        assert_eq!(alloc::sync::Arc::strong_count(&witness), 1);
        let _ = body;
    }
}

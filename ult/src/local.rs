//! The local values of a ULT, or of an OS thread; see `key`.
//!
//! They are made on first use and stay in place until the end of the ULT or thread,
//! when they are dropped, the youngest first.
//!
//! ```text
//!  home ─► block: [ first entry | more entries | room ]
//!                        └───────── value ────────┘   other values: a box each
//! ```
//!
//! The first value lies in the block itself, if the room is large enough. A descriptor keeps
//! the block of a ULT that has ended, as a *spare* block, for its next ULT: so a ULT with
//! one small value allocates nothing.

use crate::host::contain;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::TypeId;
#[cfg(feature = "std")]
use core::cell::Cell;
use core::mem::{self, MaybeUninit};
use core::ptr;
use tsumugi_core::sync::UnsafeCell;

/// The values of one ULT or thread. The first of them needs no array.
pub(crate) struct Locals {
    first: Option<LocalEntry>,
    more: Vec<LocalEntry>,
    /// The first value, if it fits.
    room: LocalRoom,
}

type LocalRoom = MaybeUninit<[u64; ROOM_WORDS]>;

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
    #[inline]
    pub(crate) unsafe fn find<T: 'static>(
        home: *mut *mut Self,
        place: *const (),
        init: impl FnOnce() -> T,
    ) -> *const T {
        let key = (place, TypeId::of::<T>());
        // SAFETY: `home` belongs to the caller alone.
        let found = || unsafe { get(*home, key) };
        if let Some(value) = found() {
            return value.cast();
        }
        let made = init();
        // `init` may have used this very key.
        if let Some(value) = found() {
            return value.cast();
        }
        // SAFETY: as above, and `init`, which may use `home`, has returned.
        let block = unsafe {
            if (*home).is_null() {
                let room = LocalRoom::uninit();
                *home = Box::into_raw(Box::new(Self { first: None, more: Vec::new(), room }));
            }
            *home = (*home).map_addr(|addr| addr & !SPARE);
            *home
        };
        // SAFETY: the caller's. The room is used through this pointer alone, which other
        // accesses to the block do not end.
        unsafe {
            let fits = size_of::<T>() <= size_of::<LocalRoom>()
                && align_of::<T>() <= align_of::<LocalRoom>();
            if fits && (*block).first.is_none() {
                let value = (&raw mut (*block).room).cast::<T>();
                value.write(made);
                let entry = LocalEntry { key, value: value.cast(), drop: drop_in_room::<T> };
                (&raw mut (*block).first).write(Some(entry));
                return value;
            }
            let value = Box::into_raw(Box::new(made));
            let entry = LocalEntry { key, value: value.cast(), drop: drop_box::<T> };
            match (*block).first.is_none() {
                true => (&raw mut (*block).first).write(Some(entry)),
                false => {
                    let more = &mut (*block).more;
                    more.push(entry);
                }
            }
            value
        }
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
            let value = get(*home, (place, TypeId::of::<T>()))?;
            Some(&*value.cast::<T>())
        }
    }

    /// Drops all values, for a test that has made them.
    ///
    /// # Safety
    ///
    /// As for [`find`](Self::find); no code uses the values.
    #[cfg(all(test, feature = "std", not(tsumugi_loom)))]
    pub(crate) unsafe fn drop_all(home: *mut *mut Self) {
        // SAFETY: `home` belongs to the caller, and no code uses the values.
        unsafe {
            drop_all(home);
            free_spare(home);
        }
    }

    /// Drops the values of a ULT that ends. A spare block stays.
    ///
    /// # Safety
    ///
    /// Called by that ULT, on its own stack.
    pub(crate) unsafe fn end(home: &UnsafeCell<*mut Self>) {
        let home = home.with_mut(|home| home);
        // SAFETY: the values belong to the ULT that calls.
        unsafe { drop_all(home) }
    }

    /// Frees the spare block of a descriptor. Values of a ULT that was cut off stay.
    ///
    /// # Safety
    ///
    /// The descriptor has no ULT that runs.
    pub(crate) unsafe fn free(home: &UnsafeCell<*mut Self>) {
        let home = home.with_mut(|home| home);
        // SAFETY: the caller's.
        unsafe { free_spare(home) }
    }

    /// Whether a home has values.
    #[inline(always)]
    pub(crate) fn has_values(block: *const Self) -> bool {
        !block.is_null() && block.addr() & SPARE == 0
    }
}

/// The value of a key in a block, if there is one.
///
/// # Safety
///
/// The block is null, spare, or the caller's alone.
#[inline(always)]
unsafe fn get(block: *const Locals, key: LocalPlace) -> Option<*mut ()> {
    if !Locals::has_values(block) {
        return None;
    }
    // SAFETY: the caller's. The references are to the entries, not to the room.
    let (first, more) = unsafe { (&(*block).first, &(*block).more) };
    let mut entries = first.iter().chain(more);
    entries.find(|entry| entry.key == key).map(|entry| entry.value)
}

/// Drops values, and then the values that their destructors made, for some rounds. One
/// block stays, as a spare block.
unsafe fn drop_all(home: *mut *mut Locals) {
    for _ in 0..ROUNDS {
        // SAFETY: `home` belongs to the caller. A destructor that uses a key finds
        // `home` empty and fills it again.
        let locals = unsafe { *home };
        if !Locals::has_values(locals) {
            return;
        }
        // SAFETY: as above.
        unsafe { *home = ptr::null_mut() };
        // SAFETY: the block is this function's alone. The references are to the entries, not
        // to the room.
        let (first, more) = unsafe { (&mut (*locals).first, &mut (*locals).more) };
        let (first, more) = (first.take(), mem::take(more));
        for entry in first.into_iter().chain(more).rev() {
            // SAFETY: the value has the type that `drop` was made for, and is dropped
            // once. A panic of a destructor ends here, so that the other values are
            // dropped too.
            contain(|| unsafe { (entry.drop)(entry.value) });
        }
        // SAFETY: `home` belongs to the caller. The pointer comes from `Box::into_raw` in
        // `find`, and the block has no values any more.
        unsafe {
            match (*home).is_null() {
                true => *home = locals.map_addr(|addr| addr | SPARE),
                false => drop(Box::from_raw(locals)),
            }
        }
    }
}

/// Frees a spare block, if `home` has one.
///
/// # Safety
///
/// `home` belongs to the caller alone.
unsafe fn free_spare(home: *mut *mut Locals) {
    // SAFETY: the caller's; a spare block comes from `Box::into_raw` in `find`.
    unsafe {
        let block = *home;
        if block.addr() & SPARE != 0 {
            *home = ptr::null_mut();
            drop(Box::from_raw(block.map_addr(|addr| addr & !SPARE)));
        }
    }
}

unsafe fn drop_in_room<T>(value: *mut ()) {
    // SAFETY: the caller's pointer is that of a `T` in the room of a block.
    unsafe { value.cast::<T>().drop_in_place() }
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
        unsafe {
            drop_all(self.0.as_ptr());
            free_spare(self.0.as_ptr());
        }
    }
}

#[cfg(feature = "std")]
std::thread_local! {
    static THREAD: Thread = const { Thread(Cell::new(ptr::null_mut())) };
}

/// Enough for the keys of a C program (`compat/myth/src/key.rs`).
const ROOM_WORDS: usize = 16;
const ROUNDS: usize = 8;
/// Set in the address of a spare block.
const SPARE: usize = 1;

#[cfg(all(test, not(tsumugi_loom)))]
mod tests {
    use super::*;
    use alloc::rc::Rc;
    use core::cell::Cell;

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
            free_spare(&mut home);
        }
    }

    #[test]
    fn a_block_is_used_again_and_a_large_value_has_a_box() {
        let cell = UnsafeCell::new(ptr::null_mut::<Locals>());
        let home = cell.with_mut(|home| home);
        let (small, large) = ((&raw const home).cast(), (&raw const cell).cast());
        let dropped = Rc::new(Cell::new(0));
        let mut blocks = Vec::new();
        for round in 1..=3 {
            // SAFETY: `home` belongs to the test, and the values are alive.
            unsafe {
                let value = Locals::find(home, small, || Noted(dropped.clone(), 7));
                let words = Locals::find(home, large, || [3u8; 500]);
                assert_eq!(((*value).1, (*words)[499]), (7, 3));
                blocks.push(*home);
                assert!(Locals::has_values(*home));
                Locals::end(&cell);
                assert!(!Locals::has_values(*home));
                assert!(Locals::seen::<Noted>(home, small).is_none());
            }
            assert_eq!(dropped.get(), round, "each value is dropped once");
        }
        assert!(blocks.windows(2).all(|two| two[0] == two[1]), "{blocks:?}");
        // SAFETY: as above.
        unsafe { Locals::free(&cell) };
    }

    struct Noted(Rc<Cell<u32>>, u64);

    impl Drop for Noted {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }
}

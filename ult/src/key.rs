//! Values that each ULT has for itself.
//!
//! ```text
//!   ult_local! { static N: Cell<u32> = Cell::new(0) }
//!
//!   task ──► [ key N ─► value ][ key M ─► value ]      made on first use
//! ```
//!
//! A value stays with its ULT wherever that goes, and is dropped at the ULT's
//! end, on its own stack, the youngest first. On a thread that is no ULT, and
//! inside `on_os_stack`, it is the OS thread's; without std there are none
//! there. A ULT that the end of its scheduler cuts off never drops its values.

use crate::local::{Locals, home_of_thread};
use crate::park::ult;
use core::fmt;
use core::ptr;

/// Declares ULT-local values, each by a [`LocalKey`].
///
/// ```
/// use std::cell::Cell;
/// use tsumugi_ult::ult_local;
///
/// ult_local! {
///     static VISITS: Cell<u32> = Cell::new(0);
/// }
///
/// VISITS.with(|visits| visits.set(visits.get() + 1));
/// assert_eq!(VISITS.with(Cell::get), 1);
/// ```
#[macro_export]
macro_rules! ult_local {
    ($($(#[$attribute:meta])* $vis:vis static $name:ident: $type:ty = $init:expr);+ $(;)?) => {
        $($(#[$attribute])* $vis static $name: $crate::LocalKey<$type> =
            $crate::LocalKey::new(|| $init);)+
    };
}

/// A value that each ULT has for itself; declared by
/// [`ult_local!`](crate::ult_local). A key is its type and the place where it
/// lies: a `const` has no place of its own, so each use of it may be another key,
/// and two of one type may be one.
pub struct LocalKey<T: 'static> {
    init: fn() -> T,
}

impl<T: 'static> LocalKey<T> {
    /// A key whose values `init` makes.
    pub const fn new(init: fn() -> T) -> Self {
        Self { init }
    }

    /// The caller's value, made now if this is its first use. `f` may suspend:
    /// the value stays where it is.
    pub fn with<R>(&'static self, f: impl FnOnce(&T) -> R) -> R {
        let home = match ult() {
            // SAFETY: the running ULT.
            Some(slot) => unsafe { slot.as_ref() }.locals.with_mut(|home| home),
            None => home_of_thread(),
        };
        let place = ptr::from_ref(self).cast();
        // SAFETY: the caller's own values.
        let value = unsafe { Locals::find(home, place, self.init) };
        // SAFETY: dropped at the end of the ULT, or thread, that we are.
        f(unsafe { &*value })
    }
}

impl<T: 'static> fmt::Debug for LocalKey<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LocalKey")
    }
}

#[cfg(all(test, feature = "std", not(tsumugi_loom)))]
mod tests {
    use super::*;
    use core::cell::Cell;

    #[repr(transparent)]
    struct Other(Cell<u64>);

    /// What a compiler may do with two constants.
    #[test]
    fn two_keys_at_one_place_have_values_of_their_own() {
        static NUMBERS: LocalKey<Cell<u64>> = LocalKey::new(|| Cell::new(1));
        // SAFETY: a key of either type is one function pointer, and the types of
        // what it answers are alike to a caller: the one is transparent.
        let others: &'static LocalKey<Other> =
            unsafe { &*ptr::from_ref(&NUMBERS).cast::<LocalKey<Other>>() };
        NUMBERS.with(|number| number.set(5));
        assert_eq!(others.with(|other| other.0.replace(7)), 1, "a number, read as another type");
        assert_eq!((NUMBERS.with(Cell::get), others.with(|other| other.0.get())), (5, 7));
    }
}

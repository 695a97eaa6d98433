//! ULT-local values: each ULT has its own.
//!
//! ```text
//!   ult_local! { static N: Cell<u32> = Cell::new(0) }
//!
//!   task ──► [ key N ─► value ][ key M ─► value ]      made on first use
//! ```
//!
//! A value stays with its ULT on whichever worker that runs. It is dropped at the
//! ULT's end, on the ULT's own stack, the youngest value first. On a thread that is
//! no ULT, in a task of a foreign scheduler, and inside `on_os_stack` and `callback`,
//! the values are the OS thread's; without std such threads have none. A ULT that the
//! end of its scheduler cuts off never drops its values.

use crate::local::{Locals, home_of_thread};
use crate::park::ult;
use core::fmt;
use core::ptr;

/// Declares ULT-local values, each with a [`LocalKey`].
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

/// The key of a ULT-local value; declared by [`ult_local!`](crate::ult_local). Its
/// type and its place in memory identify a key. A `const` has no place of its own, so
/// each use of it may be another key, and two constants of one type may be one key.
pub struct LocalKey<T: 'static> {
    init: fn() -> T,
}

impl<T: 'static> LocalKey<T> {
    /// A key; `init` makes the first value of each ULT.
    pub const fn new(init: fn() -> T) -> Self {
        Self { init }
    }

    /// The caller's value, made now if this is its first use. On a ULT `f` may
    /// suspend: the value stays where it is. A task of a foreign scheduler has the
    /// value of its OS thread, so there `f` must not wait, as with a `thread_local!`.
    pub fn with<R>(&'static self, f: impl FnOnce(&T) -> R) -> R {
        let home = match ult() {
            // SAFETY: the running ULT is alive.
            Some(slot) => unsafe { slot.as_ref() }.locals.with_mut(|home| home),
            None => home_of_thread(),
        };
        let place = ptr::from_ref(self).cast();
        // SAFETY: `home` has the caller's own values.
        let value = unsafe { Locals::find(home, place, self.init) };
        // SAFETY: the value is dropped at the end of the ULT, or thread, that runs
        // here.
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

    /// A compiler may place two constants at one address.
    #[test]
    fn two_keys_at_one_address_have_values_of_their_own() {
        static NUMBERS: LocalKey<Cell<u64>> = LocalKey::new(|| Cell::new(1));
        // SAFETY: a key of either type is one function pointer. The two functions'
        // results have the same layout, because `Other` is transparent.
        let others: &'static LocalKey<Other> =
            unsafe { &*ptr::from_ref(&NUMBERS).cast::<LocalKey<Other>>() };
        NUMBERS.with(|number| number.set(5));
        assert_eq!(others.with(|other| other.0.replace(7)), 1, "a number, read as another type");
        assert_eq!((NUMBERS.with(Cell::get), others.with(|other| other.0.get())), (5, 7));
    }
}

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
/// [`ult_local!`](crate::ult_local).
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
        let key = ptr::from_ref(self).cast();
        // SAFETY: the caller's own values; `self` is static and of one type.
        let value = unsafe { Locals::find(home, key, self.init) };
        // SAFETY: dropped at the end of the ULT, or thread, that we are.
        f(unsafe { &*value })
    }
}

impl<T: 'static> fmt::Debug for LocalKey<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LocalKey")
    }
}

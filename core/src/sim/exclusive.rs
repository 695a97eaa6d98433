//! A cell that one caller at a time can enter, and that cannot be re-entered: a
//! simulation has one thread, and code that it calls must not call back into the
//! middle of it.

use crate::sync::{AtomicBool, Ordering, UnsafeCell};

pub(super) struct ExclusiveCell<T> {
    busy: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: `busy` lets one caller in at a time.
unsafe impl<T: Send> Sync for ExclusiveCell<T> {}

impl<T> ExclusiveCell<T> {
    pub(super) fn new(value: T) -> Self {
        Self { busy: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// # Panics
    ///
    /// If another caller is inside.
    pub(super) fn with<R>(&self, body: impl FnOnce(&mut T) -> R) -> R {
        struct Leave<'a>(&'a AtomicBool);
        impl Drop for Leave<'_> {
            fn drop(&mut self) {
                // Release: pairs with the Acquire below.
                self.0.store(false, Ordering::Release);
            }
        }
        // Acquire: pairs with the Release of the caller that was inside before.
        let was = self.busy.swap(true, Ordering::Acquire);
        assert!(!was, "a simulation is for one thread at a time, and is not re-entered");
        let _leave = Leave(&self.busy);
        // SAFETY: `busy` was false, so no other caller is inside.
        self.value.with_mut(|value| body(unsafe { &mut *value }))
    }
}

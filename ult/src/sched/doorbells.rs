//! The doorbells by which sleeping workers are woken.

use alloc::boxed::Box;
use core::ops::Deref;
use tsumugi_core::wait::DoorbellSet;

/// The bells (doorbells), in this process's memory or in memory that peers access.
pub(crate) enum Doorbells {
    Own(Box<DoorbellSet>),
    Given(&'static DoorbellSet),
}

impl Doorbells {
    #[cfg(not(tsumugi_loom))]
    pub(crate) fn own() -> Self {
        // In place: the bells are 32 KiB, and a scheduler may be made on a ULT.
        // SAFETY: a value of all zeroes is valid: no worker is asleep.
        Self::Own(unsafe { Box::<DoorbellSet>::new_zeroed().assume_init() })
    }

    #[cfg(tsumugi_loom)]
    pub(crate) fn own() -> Self {
        Self::Own(Box::default())
    }
}

impl Deref for Doorbells {
    type Target = DoorbellSet;
    #[inline(always)]
    fn deref(&self) -> &DoorbellSet {
        match self {
            Self::Own(bells) => bells,
            Self::Given(bells) => bells,
        }
    }
}

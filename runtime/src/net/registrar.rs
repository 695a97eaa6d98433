//! Registration of this rank's memory, in its table of regions and with the device.

use super::device::NetDevice;
use std::ptr::NonNull;
use tsumugi_core::mem::{Access, Region, RegionKey};
use tsumugi_pvas::Direct;

/// The table of regions and the device of a rank.
#[derive(Clone, Copy)]
pub(super) struct Registrar<'s> {
    pub(super) direct: &'s Direct,
    pub(super) device: &'s NetDevice,
}

impl Registrar<'_> {
    /// Registers memory in the table. `None`: the table is full.
    ///
    /// # Safety
    ///
    /// The bytes stay mapped, and may be accessed so, until [`hide`](Self::hide).
    pub(super) unsafe fn register(
        self,
        base: NonNull<u8>,
        bytes: usize,
        access: Access,
    ) -> Option<Region> {
        // SAFETY: the caller's promise.
        unsafe { self.direct.register(base, bytes as u64, access) }.ok()
    }

    /// Registers a region of the table with the device, or else takes it from the table.
    /// Returns whether the device has registered it.
    ///
    /// # Safety
    ///
    /// As for [`register`](Self::register).
    pub(super) unsafe fn show(self, region: &Region) -> bool {
        // SAFETY: the caller's promise.
        let is_shown = unsafe { self.device.register(region) }.is_ok();
        if !is_shown {
            self.direct.unregister(region.key);
        }
        is_shown
    }

    /// Ends a registration with the device and in the table.
    pub(super) fn hide(self, key: RegionKey) {
        self.device.unregister(key);
        self.direct.unregister(key);
    }
}

//! Whether a device has the dynamically connected transport, and the driver's library
//! that is needed for it.

use super::super::sys::*;
use super::sys::*;
use core::fmt;
use std::sync::OnceLock;

/// The state of the transport at a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DctSupport {
    /// There is no library of a driver that has it.
    NoLibrary,
    /// The device is not one of this driver.
    OtherDriver,
    /// The device belongs to the driver, and the transport was not requested.
    Possible,
    /// The transport was requested, and not all trials of it succeeded.
    Refused,
    /// Peers that have the transport, too, are reached by it.
    Used,
}

impl DctSupport {
    /// Finds out whether a device may have the transport.
    ///
    /// # Safety
    ///
    /// `device` must be in libibverbs' list, which must still be allocated; or
    /// null, and then it belongs to no driver.
    pub(in crate::verbs) unsafe fn of(device: *mut Opaque, driver: Option<&Driver>) -> Self {
        let Some(driver) = driver else { return Self::NoLibrary };
        // SAFETY: the caller guarantees the device; the call only compares its
        // driver.
        match !device.is_null() && unsafe { (driver.mlx5dv_is_supported)(device) } {
            true => Self::Possible,
            false => Self::OtherDriver,
        }
    }
}

/// The driver of this machine's devices, if it is installed.
pub(in crate::verbs) fn driver() -> Option<&'static Driver> {
    static DRIVER: OnceLock<Option<Driver>> = OnceLock::new();
    DRIVER.get_or_init(|| Driver::load().ok()).as_ref()
}

impl fmt::Display for DctSupport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoLibrary => "not available (libmlx5 is not installed)",
            Self::OtherDriver => "not available (libmlx5 is not the driver of this device)",
            Self::Possible => "not requested (the device's driver, libmlx5, may have it)",
            Self::Refused => "not used (its trial failed)",
            Self::Used => "used for peers that have it",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ptr::null_mut;

    #[test]
    fn a_device_of_another_driver_has_no_dynamic_transport() {
        // SAFETY: null is allowed.
        let sent = unsafe { DctSupport::of(null_mut(), driver()) };
        assert_ne!(sent, DctSupport::Possible, "{sent}");
    }
}

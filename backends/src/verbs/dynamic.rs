//! Whether a device may have the dynamically connected transport: one pair
//! that reaches any number of peers. Only NVIDIA's have, by calls of their
//! driver's own library, which is asked; nobody has to have it.
//!
//! What reaches peers is [`link`](super::link)'s pairs all the same. One such
//! pair instead needs what only that driver has: requests by `ibv_qp_ex` with
//! `mlx5dv_wr_set_dc_addr` before each, a target (DCT) and its access key in each
//! rank's card, and another answer to errors, since one peer's breaks the pair
//! of all. Neither Soft-RoCE nor any other device at hand has it, and a
//! simulated one would only repeat what was assumed here of its order and its
//! errors: so it is not used before it was tried on one.

use super::sys::Opaque;
use core::ffi::CStr;
use core::fmt;

/// What the driver's library says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dynamic {
    /// There is none.
    NoLibrary,
    /// The device is not this driver's.
    OtherDriver,
    /// It is. Whether it has the transport shows when it is tried.
    Possible,
}

impl Dynamic {
    /// Asks about a device.
    ///
    /// # Safety
    ///
    /// One of libibverbs' list, which is still there, or null, which is no
    /// driver's.
    pub(super) unsafe fn of(device: *mut Opaque) -> Self {
        let Some(is_supported) = is_supported() else { return Self::NoLibrary };
        if device.is_null() {
            return Self::OtherDriver;
        }
        // SAFETY: the caller's; the call only compares the device's driver.
        if unsafe { is_supported(device) } { Self::Possible } else { Self::OtherDriver }
    }
}

impl fmt::Display for Dynamic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoLibrary => "not here (no libmlx5)",
            Self::OtherDriver => "not of this device's driver (libmlx5)",
            Self::Possible => "the device's driver may have it (libmlx5); it is not used",
        })
    }
}

type IsSupported = unsafe extern "C" fn(*mut Opaque) -> bool;

fn is_supported() -> Option<IsSupported> {
    // SAFETY: C strings; loading the library runs its own constructors, as
    // libibverbs does, and it is never unloaded.
    let found = unsafe {
        let handle = libc::dlopen(SONAME.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        if handle.is_null() {
            return None;
        }
        libc::dlsym(handle, NAME.as_ptr())
    };
    // SAFETY: libmlx5's function of this name has this type.
    (!found.is_null())
        .then(|| unsafe { core::mem::transmute::<*mut libc::c_void, IsSupported>(found) })
}

const SONAME: &CStr = c"libmlx5.so.1";
const NAME: &CStr = c"mlx5dv_is_supported";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_drivers_device_has_none() {
        // SAFETY: null.
        let said = unsafe { Dynamic::of(core::ptr::null_mut()) };
        assert_ne!(said, Dynamic::Possible, "{said}");
    }
}

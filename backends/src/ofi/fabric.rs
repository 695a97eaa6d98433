//! The opened network, which all endpoints share.

use super::choice::Choice;
use super::config::OpenError;
use super::sys::*;
use std::sync::Arc;

/// An opened network.
pub(super) struct Fabric {
    pub raw: *mut fid_fabric,
}

impl Fabric {
    pub(super) fn open(choice: &Choice) -> Result<Arc<Self>, OpenError> {
        let raw = choice
            .library
            .fabric(&choice.info)
            .map_err(|code| OpenError::Call { name: "fi_fabric", code })?;
        Ok(Arc::new(Self { raw }))
    }
}

impl Drop for Fabric {
    fn drop(&mut self) {
        // SAFETY: this value owns the fabric, and every endpoint on it holds it by an
        // `Arc`.
        unsafe { close(&raw mut (*self.raw).fid) };
    }
}

// SAFETY: endpoints call only `domain` (at open) and `trywait` on it, and under
// FI_THREAD_DOMAIN different domains may do that in parallel.
unsafe impl Send for Fabric {}
// SAFETY: as above.
unsafe impl Sync for Fabric {}

/// # Safety
///
/// `object` must be open, and must not be used afterwards.
pub(super) unsafe fn close(object: *mut fid) {
    // SAFETY: the first slots of a table always exist.
    unsafe {
        if let Some(close) = (*(*object).ops).close {
            close(object);
        }
    }
}

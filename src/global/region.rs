//! Memory of the program's own that gets a global address.

use super::{Global, GlobalAddr};
use crate::{Error, Runtime};
use std::fmt;
use std::ptr::NonNull;
use tsumugi_core::mem::{Access, RegionKey};

/// Memory with a global address. When it is dropped the address is stale, as
/// that of a [`GlobalBlock`](super::GlobalBlock).
pub(crate) struct GlobalRegion {
    global: Global,
    first: GlobalAddr,
    registration: Option<Registration>,
}

struct Registration {
    runtime: Runtime,
    key: RegionKey,
}

impl Global {
    /// Gives the `bytes` bytes at `base` a global address.
    ///
    /// # Safety
    ///
    /// They lie in this rank's exposed memory, and are bytes of nothing else
    /// for the rest of the job: operations may be late.
    pub(crate) unsafe fn register(
        &self,
        base: NonNull<u8>,
        bytes: u64,
    ) -> Result<GlobalRegion, Error> {
        let runtime = self.runtime.clone();
        // SAFETY: the caller's.
        let region = unsafe { runtime.direct.register(base, bytes, Access::ReadWrite)? };
        let registration = Registration { runtime: runtime.clone(), key: region.key };
        if let Some(far) = &runtime.far {
            far.register(&region)?;
        }
        let first = self.driver.name(&region)?;
        Ok(GlobalRegion { global: self.clone(), first, registration: Some(registration) })
    }
}

impl GlobalRegion {
    /// The address of its first byte.
    pub(crate) fn first(&self) -> GlobalAddr {
        self.first
    }
}

impl Drop for GlobalRegion {
    fn drop(&mut self) {
        if let Some(registration) = self.registration.take() {
            self.global.driver.retire(self.first, Box::new(registration));
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if let Some(far) = &self.runtime.far {
            far.unregister(self.key);
        }
        self.runtime.direct.unregister(self.key);
    }
}

impl fmt::Debug for GlobalRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GlobalRegion({})", self.first)
    }
}

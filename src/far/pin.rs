//! Memory of this rank's heap that nobody has registered, shown to the device
//! when an operation first needs it: a bounded number of windows.
//!
//! ```text
//!  heap  ├────────┼────────┼────────┼────────┤   strides
//!        ├── window 0 ─────┤ ├── window 2 ────┤   each two strides long
//!
//!  take ─► known? one user more ──────────────────────────────► key
//!       └► else: the least used that nobody uses ends ─► shown ─┘
//! ```
//!
//! The heap stays mapped as long as the process, and freed blocks of it keep
//! their pages (they are a file's), so what a window shows is never another
//! memory than the one that is there. That cannot be said of memory from
//! elsewhere: whoever unmaps it tells nobody, glibc's own `munmap` cannot be
//! intercepted, and a device that has pinned the old pages would go on with
//! them, without an error. So other memory still goes by the bounce chunks.
//!
//! A window whose operation has lost its peer is never ended: the device may
//! have it still.

use super::Shared;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tsumugi_core::mem::{Access, LocalAddr, RegionKey};
use tsumugi_pvas::Member;

/// See the module.
#[derive(Debug)]
pub(super) struct Pins {
    start: usize,
    bytes: usize,
    known: Mutex<Known>,
}

/// A window in use, until this is dropped.
#[derive(Debug)]
pub(super) struct Pin<'p> {
    pins: &'p Pins,
    window: usize,
    local: LocalAddr,
    bytes: usize,
}

/// The windows that are shown.
#[derive(Debug, Default)]
struct Known {
    windows: Vec<Window>,
    clock: u64,
    /// The device takes no more than there are.
    is_refused: bool,
}

#[derive(Clone, Copy, Debug)]
struct Window {
    index: usize,
    key: RegionKey,
    users: u32,
    used: u64,
}

/// All windows are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Full;

impl Pins {
    /// Over the rank's heap, of which nothing is shown.
    pub(super) fn new(member: &Member) -> Self {
        let heap = member.heap();
        let known = Mutex::new(Known::default());
        Self { start: heap.start().as_ptr() as usize, bytes: heap.bytes(), known }
    }

    /// The device's name for these bytes, or for the first of them. `None`:
    /// they are not of the heap, or cannot be shown now.
    pub(super) fn take(&self, shared: &Shared, at: *const u8, bytes: usize) -> Option<Pin<'_>> {
        let offset = (at as usize).checked_sub(self.start).filter(|at| *at < self.bytes)?;
        let index = offset / STRIDE;
        let start = index * STRIDE;
        let length = (2 * STRIDE).min(self.bytes - start);
        let within = offset - start;
        let mut known = self.lock();
        let key = match known.find(index) {
            Some(key) => key,
            None => self.show(&mut known, shared, index, length)?,
        };
        drop(known);
        let local = LocalAddr { key, offset: within as u64 };
        Some(Pin { pins: self, window: index, local, bytes: bytes.min(length - within) })
    }

    #[cold]
    fn show(
        &self,
        known: &mut Known,
        shared: &Shared,
        index: usize,
        bytes: usize,
    ) -> Option<RegionKey> {
        if let Some(key) = known.make_room().ok()? {
            hide(shared, key);
        }
        let base = NonNull::new(std::ptr::with_exposed_provenance_mut(self.start + index * STRIDE));
        // SAFETY: of the heap, which stays mapped as long as the process; only
        // operations of those who may use its bytes lead there.
        let region = unsafe { shared.direct.register(base?, bytes as u64, Access::Local) }.ok()?;
        // SAFETY: the same.
        if unsafe { shared.device.register(&region) }.is_err() {
            shared.direct.unregister(region.key);
            // As many bytes as may be locked: what there is has to do.
            known.is_refused = true;
            return None;
        }
        known.add(index, region.key);
        Some(region.key)
    }

    /// How many windows are shown.
    #[cfg(test)]
    pub(super) fn shown(&self) -> usize {
        self.lock().windows.len()
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// The key of a window that is shown, which has one user more.
    fn find(&mut self, index: usize) -> Option<RegionKey> {
        self.clock += 1;
        let window = self.windows.iter_mut().find(|window| window.index == index)?;
        window.users += 1;
        window.used = self.clock;
        Some(window.key)
    }

    /// Makes room for one: the window that is to be hidden, if one must.
    fn make_room(&mut self) -> Result<Option<RegionKey>, Full> {
        if self.windows.len() < WINDOWS_MAX && !self.is_refused {
            return Ok(None);
        }
        let idle = self.windows.iter().enumerate().filter(|(_, window)| window.users == 0);
        let (at, _) = idle.min_by_key(|(_, window)| window.used).ok_or(Full)?;
        Ok(Some(self.windows.swap_remove(at).key))
    }

    /// One is shown now, and has a user.
    fn add(&mut self, index: usize, key: RegionKey) {
        self.windows.push(Window { index, key, users: 1, used: self.clock });
    }

    fn give_back(&mut self, index: usize) {
        if let Some(window) = self.windows.iter_mut().find(|window| window.index == index) {
            window.users -= 1;
        }
    }
}

impl Pin<'_> {
    /// What operations call it.
    pub(super) fn local(&self) -> LocalAddr {
        self.local
    }

    /// How many of the bytes it has.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The device may use it still.
    pub(super) fn park(self) {
        let _ = ManuallyDrop::new(self);
    }
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        self.pins.lock().give_back(self.window);
    }
}

/// The device first: the key must not be somebody else's meanwhile.
fn hide(shared: &Shared, key: RegionKey) {
    shared.device.unregister(key);
    shared.direct.unregister(key);
}

const STRIDE: usize = 2 << 20;
/// Of 4 MiB each.
const WINDOWS_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn key(index: usize) -> RegionKey {
        RegionKey::new(index, 1)
    }

    /// Takes a window, and gives it back at once.
    fn touch(known: &mut Known, index: usize) -> Option<RegionKey> {
        let mut hidden = None;
        if known.find(index).is_none() {
            hidden = known.make_room().unwrap();
            known.add(index, key(index));
        }
        known.give_back(index);
        hidden
    }

    #[test]
    fn the_least_used_makes_room() {
        let mut known = Known::default();
        for index in 0..WINDOWS_MAX {
            assert_eq!(touch(&mut known, index), None);
        }
        assert_eq!(touch(&mut known, 0), None);
        assert_eq!(touch(&mut known, 100), Some(key(1)));
        assert_eq!(touch(&mut known, 101), Some(key(2)));
        assert_eq!(known.windows.len(), WINDOWS_MAX);
    }

    #[test]
    fn what_is_in_use_stays() {
        let mut known = Known::default();
        for index in 0..WINDOWS_MAX {
            touch(&mut known, index);
            assert_eq!(known.find(index), Some(key(index)));
        }
        assert_eq!(known.make_room(), Err(Full));
        known.give_back(7);
        assert_eq!(known.make_room(), Ok(Some(key(7))));
    }

    #[test]
    fn where_the_system_locks_no_more_the_shown_ones_change_places() {
        let mut known = Known::default();
        assert_eq!(touch(&mut known, 3), None);
        known.is_refused = true;
        assert_eq!(touch(&mut known, 4), Some(key(3)));
        assert_eq!(known.windows.len(), 1);
    }
}

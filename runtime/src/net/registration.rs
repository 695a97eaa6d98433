//! The registration cache: memory is registered with the device when an operation
//! first needs it, as a bounded number of windows of a bounded number of bytes. To
//! show a window to the device is to register it, to hide it is to end that.
//!
//! ```text
//!  area  ├────────┼────────┼────────┼────────┤   strides
//!        ├── window 0 ─────┤ ├── window 2 ────┤   each two strides long
//!
//!  take ─► shown? one user more ──────────────────────────────► key
//!       └► else: the least recently used idle window ends ─► shown ─┘
//! ```
//!
//! There are two kinds of areas. The rank's heap stays mapped as long as the
//! process, and freed blocks of it keep their pages (they belong to a file), so a
//! window always shows the memory that is mapped there. Memory from elsewhere is an
//! area while an `Adopted` of the facade owns it, which ends the windows before
//! it releases the memory; an `Adopted` that is forgotten keeps both.
//!
//! Any other memory goes through bounce chunks. A cache of registrations by address
//! alone would be unsound: `munmap` notifies no other part of the process, glibc's
//! own `munmap` cannot be intercepted, and a device that has pinned the old pages
//! would go on with them, without an error, when other memory is mapped at the same
//! address. A guard that only borrows the memory is no solution, because it may be
//! forgotten.
//!
//! If an operation on a window has lost its peer, the window is never ended, because
//! the device may still use it.

use super::registrar::Registrar;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tsumugi_core::mem::{Access, LocalAddr, RegionKey};
use tsumugi_pvas::Member;

/// The cache. See the module.
#[derive(Debug)]
pub(super) struct RegistrationCache {
    heap: AdoptedArea,
    known: Mutex<KnownAreas>,
}

/// A range of memory that stays mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct AdoptedArea {
    start: usize,
    bytes: usize,
}

/// A window in use, until this is dropped.
#[derive(Debug)]
pub(super) struct Pin<'p> {
    pins: &'p RegistrationCache,
    /// The start of the window.
    window: usize,
    local: LocalAddr,
    bytes: usize,
}

/// The windows that are registered.
#[derive(Debug, Default)]
struct KnownAreas {
    windows: Vec<PinnedWindow>,
    /// Adopted memory, by its start.
    adopted: Vec<AdoptedArea>,
    clock: u64,
    /// Bytes of all windows.
    bytes: usize,
    /// How many windows were ever registered.
    shown: u64,
    /// The device has refused to register more than there are.
    is_refused: bool,
}

#[derive(Clone, Copy, Debug)]
struct PinnedWindow {
    area: AdoptedArea,
    key: RegionKey,
    users: u32,
    used: u64,
}

/// The error when every window that could be ended is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct InUse;

impl RegistrationCache {
    /// Makes a cache for the rank's heap, with no window yet.
    pub(super) fn new(member: &Member) -> Self {
        let heap = member.heap();
        let heap = AdoptedArea { start: heap.start().as_ptr() as usize, bytes: heap.bytes() };
        Self { heap, known: Mutex::new(KnownAreas::default()) }
    }

    /// Returns the device's name for these bytes, or for the first of them. `None`:
    /// they are in no area, or cannot be registered now.
    pub(super) fn take(
        &self,
        registrar: Registrar<'_>,
        at: *const u8,
        bytes: usize,
    ) -> Option<Pin<'_>> {
        let at = at as usize;
        let mut known = self.lock();
        let area = if self.heap.has(at) { self.heap } else { known.area_of(at)? };
        let window = area.window(at);
        let key = match known.find(window) {
            Some(key) => key,
            None => Self::show(&mut known, registrar, window)?,
        };
        drop(known);
        let within = at - window.start;
        let local = LocalAddr { key, offset: within as u64 };
        let bytes = bytes.min(window.bytes - within);
        Some(Pin { pins: self, window: window.start, local, bytes })
    }

    #[cold]
    fn show(
        known: &mut KnownAreas,
        registrar: Registrar<'_>,
        window: AdoptedArea,
    ) -> Option<RegionKey> {
        let base = std::ptr::with_exposed_provenance_mut(window.start);
        let (base, bytes) = (NonNull::new(base)?, window.bytes);
        for _ in 0..TRIES {
            while let Some(key) = known.make_room(bytes).ok()? {
                registrar.hide(key);
            }
            // SAFETY: the window is in the heap, which stays mapped as long as the
            // process, or in adopted memory, which stays mapped until `disown`. Only
            // operations of callers that may access its bytes use its key.
            let region = unsafe { registrar.register(base, bytes, Access::Local) }?;
            // SAFETY: the same.
            if unsafe { registrar.show(&region) } {
                known.add(window, region.key);
                return Some(region.key);
            }
            // The usual cause is the limit of locked memory: ending one window makes
            // room.
            known.is_refused = true;
        }
        None
    }

    /// Allows windows of memory from elsewhere from now on.
    ///
    /// # Safety
    ///
    /// The bytes are those of whole values that are not adopted otherwise, and they
    /// stay mapped to the same memory until [`disown`](Self::disown) has returned
    /// true.
    pub(super) unsafe fn adopt(&self, start: usize, bytes: usize) {
        // The heap is an area already.
        if bytes > 0 && !self.heap.has(start) {
            self.lock().adopt(AdoptedArea { start, bytes });
        }
    }

    /// Ends the windows of adopted memory. Returns false, and changes nothing, if
    /// the device may still use one of them.
    pub(super) fn disown(&self, registrar: Registrar<'_>, start: usize) -> bool {
        let mut known = self.lock();
        let Ok(keys) = known.disown(start) else { return false };
        keys.into_iter().for_each(|key| registrar.hide(key));
        true
    }

    /// How many windows are registered now.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn shown_now(&self) -> usize {
        self.lock().windows.len()
    }

    /// How many windows were ever registered.
    pub(super) fn shown(&self) -> u64 {
        self.lock().shown
    }

    fn lock(&self) -> MutexGuard<'_, KnownAreas> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AdoptedArea {
    fn has(self, at: usize) -> bool {
        at.checked_sub(self.start).is_some_and(|offset| offset < self.bytes)
    }

    /// The first window that contains this address.
    fn window(self, at: usize) -> Self {
        let offset = (at - self.start) / STRIDE * STRIDE;
        Self { start: self.start + offset, bytes: (2 * STRIDE).min(self.bytes - offset) }
    }
}

impl KnownAreas {
    /// The adopted memory that contains this address.
    fn area_of(&self, at: usize) -> Option<AdoptedArea> {
        let before = self.adopted.partition_point(|area| area.start <= at);
        self.adopted[..before].last().copied().filter(|area| area.has(at))
    }

    fn adopt(&mut self, area: AdoptedArea) {
        let place = self.place_of(area.start);
        debug_assert!(place.is_err(), "no other memory is adopted at this address");
        self.adopted.insert(place.unwrap_or_else(|place| place), area);
    }

    /// The place of adopted memory in the list, or the place where it is to be added.
    fn place_of(&self, start: usize) -> Result<usize, usize> {
        self.adopted.binary_search_by_key(&start, |area| area.start)
    }

    /// Returns the key of a window that is registered, and counts one user more.
    fn find(&mut self, area: AdoptedArea) -> Option<RegionKey> {
        self.clock += 1;
        let window = self.windows.iter_mut().find(|window| window.area == area)?;
        window.users += 1;
        window.used = self.clock;
        Some(window.key)
    }

    /// Makes room for a window. Returns the key of a window that the caller must
    /// hide before it calls this again, or `None` if there is room.
    fn make_room(&mut self, bytes: usize) -> Result<Option<RegionKey>, InUse> {
        let fits = self.windows.len() < WINDOWS_MAX && self.bytes + bytes <= BYTES_MAX;
        if fits && !self.is_refused {
            return Ok(None);
        }
        self.is_refused = false;
        let idle = self.windows.iter().enumerate().filter(|(_, window)| window.users == 0);
        let (at, _) = idle.min_by_key(|(_, window)| window.used).ok_or(InUse)?;
        Ok(Some(self.forget(at)))
    }

    fn forget(&mut self, at: usize) -> RegionKey {
        let window = self.windows.swap_remove(at);
        self.bytes -= window.area.bytes;
        window.key
    }

    /// Adds a window that is now registered and has one user.
    fn add(&mut self, area: AdoptedArea, key: RegionKey) {
        self.windows.push(PinnedWindow { area, key, users: 1, used: self.clock });
        self.bytes += area.bytes;
        self.shown += 1;
    }

    fn give_back(&mut self, start: usize) {
        if let Some(window) = self.windows.iter_mut().find(|window| window.area.start == start) {
            window.users -= 1;
        }
    }

    /// Forgets adopted memory, and returns the keys of its windows, which the caller
    /// hides.
    fn disown(&mut self, start: usize) -> Result<Vec<RegionKey>, InUse> {
        let Ok(place) = self.place_of(start) else { return Ok(Vec::new()) };
        let area = self.adopted[place];
        let of = |window: &PinnedWindow| area.has(window.area.start);
        if self.windows.iter().any(|window| of(window) && window.users > 0) {
            return Err(InUse);
        }
        self.adopted.remove(place);
        let mut keys = Vec::new();
        while let Some(at) = self.windows.iter().position(of) {
            keys.push(self.forget(at));
        }
        Ok(keys)
    }
}

impl Pin<'_> {
    /// The local address of the first byte.
    pub(super) fn local(&self) -> LocalAddr {
        self.local
    }

    /// How many of the bytes the window contains.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Keeps the window in use for ever, because the device may still use it.
    pub(super) fn park(self) {
        let _ = ManuallyDrop::new(self);
    }
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        self.pins.lock().give_back(self.window);
    }
}

/// Ends a registration, with the device first: the key must not be in use for
/// another region while the device still has it.
const STRIDE: usize = 2 << 20;
/// As many bytes as 32 windows of the full 4 MiB, or as more that are shorter.
const BYTES_MAX: usize = 64 * STRIDE;
const WINDOWS_MAX: usize = 128;
/// Attempts to register a window; the first may find the limit of locked memory
/// reached.
const TRIES: usize = 2;

#[cfg(test)]
mod tests;

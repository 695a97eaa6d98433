//! Memory that nobody has registered, shown to the device when an operation
//! first needs it: a bounded number of windows of a bounded number of bytes.
//!
//! ```text
//!  area  ├────────┼────────┼────────┼────────┤   strides
//!        ├── window 0 ─────┤ ├── window 2 ────┤   each two strides long
//!
//!  take ─► known? one user more ──────────────────────────────► key
//!       └► else: the least used that nobody uses end ──► shown ─┘
//! ```
//!
//! There are two kinds of areas. The rank's heap stays mapped as long as the
//! process, and freed blocks of it keep their pages (they are a file's), so what
//! a window shows is never another memory than the one that is there. Memory
//! from elsewhere is an area while an [`Adopted`](crate::Adopted) owns it, which
//! ends its windows before it lets the memory go; one that is forgotten keeps
//! both.
//!
//! Any other pointer goes by the bounce chunks. A cache of registrations by
//! address alone would be unsound: whoever unmaps memory tells nobody, glibc's
//! own `munmap` cannot be intercepted, and a device that has pinned the old pages
//! would go on with them, without an error, when other memory comes to the same
//! place. A guard that only borrows is no way out: it may be forgotten.
//!
//! A window whose operation has lost its peer is never ended: the device may
//! have it still.

use super::Shared;
use std::collections::BTreeMap;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tsumugi_core::mem::{Access, LocalAddr, RegionKey};
use tsumugi_pvas::Member;

/// See the module.
#[derive(Debug)]
pub(super) struct Pins {
    heap: Area,
    known: Mutex<Known>,
}

/// Memory that stays where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Area {
    start: usize,
    bytes: usize,
}

/// A window in use, until this is dropped.
#[derive(Debug)]
pub(super) struct Pin<'p> {
    pins: &'p Pins,
    /// Where the window starts.
    window: usize,
    local: LocalAddr,
    bytes: usize,
}

/// The windows that are shown.
#[derive(Debug, Default)]
struct Known {
    windows: Vec<Window>,
    /// Memory from elsewhere: its bytes, by its start.
    adopted: BTreeMap<usize, usize>,
    clock: u64,
    /// Of all windows.
    bytes: usize,
    /// Windows that were ever shown.
    shown: u64,
    /// The device has taken no more than there are.
    is_refused: bool,
}

#[derive(Clone, Copy, Debug)]
struct Window {
    area: Area,
    key: RegionKey,
    users: u32,
    used: u64,
}

/// What would have to go is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct InUse;

impl Pins {
    /// Over the rank's heap, of which nothing is shown.
    pub(super) fn new(member: &Member) -> Self {
        let heap = member.heap();
        let heap = Area { start: heap.start().as_ptr() as usize, bytes: heap.bytes() };
        Self { heap, known: Mutex::new(Known::default()) }
    }

    /// The device's name for these bytes, or for the first of them. `None`:
    /// they are of no area, or cannot be shown now.
    pub(super) fn take(&self, shared: &Shared, at: *const u8, bytes: usize) -> Option<Pin<'_>> {
        let at = at as usize;
        let mut known = self.lock();
        let area = if self.heap.has(at) { self.heap } else { known.area_of(at)? };
        let window = area.window(at);
        let key = match known.find(window) {
            Some(key) => key,
            None => Self::show(&mut known, shared, window)?,
        };
        drop(known);
        let within = at - window.start;
        let local = LocalAddr { key, offset: within as u64 };
        let bytes = bytes.min(window.bytes - within);
        Some(Pin { pins: self, window: window.start, local, bytes })
    }

    #[cold]
    fn show(known: &mut Known, shared: &Shared, window: Area) -> Option<RegionKey> {
        let base = std::ptr::with_exposed_provenance_mut(window.start);
        let (base, bytes) = (NonNull::new(base)?, window.bytes);
        for _ in 0..TRIES {
            while let Some(key) = known.make_room(bytes).ok()? {
                hide(shared, key);
            }
            // SAFETY: of the heap, which stays mapped as long as the process, or
            // of adopted memory, which does until `disown`; only operations of
            // those who may use its bytes lead there.
            let region =
                unsafe { shared.direct.register(base, bytes as u64, Access::Local) }.ok()?;
            // SAFETY: the same.
            if unsafe { shared.device.register(&region) }.is_ok() {
                known.add(window, region.key);
                return Some(region.key);
            }
            shared.direct.unregister(region.key);
            // Mostly, as many bytes are locked as may be: one makes room.
            known.is_refused = true;
        }
        None
    }

    /// Memory from elsewhere may be shown from now on.
    ///
    /// # Safety
    ///
    /// These are whole values' bytes that nobody else adopts, and they stay
    /// mapped to what they are until [`disown`](Self::disown) has said yes.
    pub(super) unsafe fn adopt(&self, start: usize, bytes: usize) {
        // Of the heap all can be shown already.
        if bytes > 0 && !self.heap.has(start) {
            let other = self.lock().adopted.insert(start, bytes);
            debug_assert_eq!(other, None, "nobody else has it");
        }
    }

    /// Ends what was shown of it. False: the device may have some of it still,
    /// and nothing has happened.
    pub(super) fn disown(&self, shared: &Shared, start: usize) -> bool {
        let mut known = self.lock();
        let Ok(keys) = known.disown(start) else { return false };
        keys.into_iter().for_each(|key| hide(shared, key));
        true
    }

    /// How many windows are shown.
    #[cfg(test)]
    pub(super) fn shown_now(&self) -> usize {
        self.lock().windows.len()
    }

    /// How many were ever shown.
    pub(super) fn shown(&self) -> u64 {
        self.lock().shown
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Area {
    fn has(self, at: usize) -> bool {
        at.checked_sub(self.start).is_some_and(|offset| offset < self.bytes)
    }

    /// The first window that has this address.
    fn window(self, at: usize) -> Self {
        let offset = (at - self.start) / STRIDE * STRIDE;
        Self { start: self.start + offset, bytes: (2 * STRIDE).min(self.bytes - offset) }
    }
}

impl Known {
    /// The adopted memory with this address.
    fn area_of(&self, at: usize) -> Option<Area> {
        let (&start, &bytes) = self.adopted.range(..=at).next_back()?;
        Some(Area { start, bytes }).filter(|area| area.has(at))
    }

    /// The key of a window that is shown, which has one user more.
    fn find(&mut self, area: Area) -> Option<RegionKey> {
        self.clock += 1;
        let window = self.windows.iter_mut().find(|window| window.area == area)?;
        window.users += 1;
        window.used = self.clock;
        Some(window.key)
    }

    /// Makes room for one: a window that is to be hidden, if one must, and then
    /// it is to be called again.
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

    /// One is shown now, and has a user.
    fn add(&mut self, area: Area, key: RegionKey) {
        self.windows.push(Window { area, key, users: 1, used: self.clock });
        self.bytes += area.bytes;
        self.shown += 1;
    }

    fn give_back(&mut self, start: usize) {
        if let Some(window) = self.windows.iter_mut().find(|window| window.area.start == start) {
            window.users -= 1;
        }
    }

    /// The keys of all windows of adopted memory, which is no area any more.
    fn disown(&mut self, start: usize) -> Result<Vec<RegionKey>, InUse> {
        let Some(&bytes) = self.adopted.get(&start) else { return Ok(Vec::new()) };
        let area = Area { start, bytes };
        let of = |window: &Window| area.has(window.area.start);
        if self.windows.iter().any(|window| of(window) && window.users > 0) {
            return Err(InUse);
        }
        self.adopted.remove(&start);
        let mut keys = Vec::new();
        while let Some(at) = self.windows.iter().position(of) {
            keys.push(self.forget(at));
        }
        Ok(keys)
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
/// As many windows of the full 4 MiB as 32, or more that are shorter.
const BYTES_MAX: usize = 64 * STRIDE;
const WINDOWS_MAX: usize = 128;
/// To show one, of which the first may find that no more may be locked.
const TRIES: usize = 2;

#[cfg(test)]
mod tests;

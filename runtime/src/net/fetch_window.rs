//! The parts of this rank's heap from which other ranks may fetch long messages:
//! windows, each of which is registered when a message first lies in it.
//!
//! ```text
//!  heap    ├────────┼────────┼────────┼────────┤   strides
//!  window  0├────────────────┤
//!  window  1         ├────────────────┤             each two strides long
//! ```
//!
//! A message that begins in stride k and is no longer than one stride lies wholly in
//! window k. Where registering pins memory, strides are short and windows few.

use super::registrar::Registrar;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};
use tsumugi_core::mem::{Access, RegionKey};
use tsumugi_core::sync::{AtomicU32, Ordering};
use tsumugi_pvas::Member;

/// The windows of the heap. See the module.
#[derive(Debug)]
pub(super) struct FetchWindows {
    start: usize,
    bytes: usize,
    stride: usize,
    max: usize,
    /// The key of each window; 0: not registered yet, [`REFUSED`]: it cannot be.
    keys: Box<[AtomicU32]>,
    shown: Mutex<usize>,
}

impl FetchWindows {
    /// Makes the table for the rank's heap. `pins`: registering pins memory.
    pub(super) fn new(member: &Member, pins: bool) -> Self {
        let heap = member.heap();
        let (start, bytes) = (heap.start().as_ptr() as usize, heap.bytes());
        let (stride, max) = if pins { (STRIDE_PINNED, PINNED_MAX) } else { (STRIDE, usize::MAX) };
        let keys = (0..bytes.div_ceil(stride)).map(|_| AtomicU32::new(0)).collect();
        Self { start, bytes, stride, max, keys, shown: Mutex::new(0) }
    }

    /// Returns a word by which other ranks find these bytes: a key and an offset.
    /// `None`: they cannot be fetched.
    pub(super) fn place(&self, registrar: Registrar<'_>, at: usize, bytes: usize) -> Option<u64> {
        let offset = at.checked_sub(self.start).filter(|offset| *offset < self.bytes)?;
        let index = offset / self.stride;
        let within = offset - index * self.stride;
        if bytes > self.stride || offset + bytes > self.bytes {
            return None;
        }
        // Relaxed: a thread that uses the key is ordered by the device's own lock.
        let key = match self.keys[index].load(Ordering::Relaxed) {
            0 => self.show(registrar, index),
            key => key,
        };
        (key != REFUSED).then_some(u64::from(key) << 32 | within as u64)
    }

    #[cold]
    fn show(&self, registrar: Registrar<'_>, index: usize) -> u32 {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.keys[index].load(Ordering::Relaxed);
        if before != 0 {
            return before;
        }
        let start = index * self.stride;
        let bytes = (2 * self.stride).min(self.bytes - start);
        let key = match *shown < self.max {
            true => self.register(registrar, self.start + start, bytes),
            false => None,
        };
        let key = key.map_or(REFUSED, RegionKey::to_bits);
        *shown += usize::from(key != REFUSED);
        self.keys[index].store(key, Ordering::Relaxed);
        key
    }

    fn register(&self, registrar: Registrar<'_>, at: usize, bytes: usize) -> Option<RegionKey> {
        let base = NonNull::new(std::ptr::with_exposed_provenance_mut(at))?;
        // SAFETY: the window is in the heap, which stays mapped as long as the
        // process; peers only read plain bytes there.
        let region = unsafe { registrar.register(base, bytes, Access::Read) }?;
        // SAFETY: the same.
        unsafe { registrar.show(&region) }.then_some(region.key)
    }
}

/// The key and the offset in such a word.
pub(super) fn parts(place: u64) -> (RegionKey, u64) {
    (RegionKey::from_bits((place >> 32) as u32), place & u64::from(u32::MAX))
}

const REFUSED: u32 = u32::MAX;
const STRIDE: usize = 1 << 30;
const STRIDE_PINNED: usize = 2 << 20;
/// As many windows of 4 MiB as 256 MiB.
const PINNED_MAX: usize = 64;
const _: () = assert!(2 * STRIDE as u64 <= 1 << 32, "an offset has 32 bits");

//! Hazard pointers of workers: the slots in which workers look at this moment. Each
//! worker has its own pair, which it alone writes, so that an access that is carried
//! out inside the call holds its table for the price of two stores. A pair has two
//! pointers, because a copy from one rank to another one holds both tables.
//!
//! ```text
//!   access    hazard = slot · light · is the word as it was? · ... · hazard = 0
//!   machine   word = draining · heavy · does a hazard pointer name the slot?
//! ```
//!
//! At least one of the two sides sees the other: the access finds that the slot has
//! changed and gives it back, or the machine finds the pointer and waits. The light
//! half is only a compiler fence if the heavy half passes a barrier on all
//! processors.
//!
//! Progress: wait-free.

use tsumugi_core::mutate;
use tsumugi_core::sync::{AtomicU32, Ordering, compiler_fence, fence};

/// The hazard pointers of one worker. All zeroes: the worker holds no table.
// A cache line each. Two lines would keep the processor's prefetcher from the neighbour's,
// and take twice the memory of every rank.
#[derive(Debug)]
#[repr(align(64))]
pub struct HazardPointers([AtomicU32; HAZARDS]);

/// The number of tables that a worker can hold at a time.
pub const HAZARDS: usize = 2;

/// The hazard pointers of all workers of a rank, and the barrier between the two sides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HazardDomain<'m> {
    hazards: &'m [HazardPointers],
    barrier: Option<fn()>,
}

impl HazardPointers {
    /// Hazard pointers that name no slot.
    pub fn new() -> Self {
        Self([0; HAZARDS].map(AtomicU32::new))
    }
}

impl Default for HazardPointers {
    fn default() -> Self {
        Self::new()
    }
}

impl<'m> HazardDomain<'m> {
    pub(crate) const fn new(hazards: &'m [HazardPointers], barrier: Option<fn()>) -> Self {
        Self { hazards, barrier }
    }

    /// Announces that this worker uses `slot`; returns the hazard pointer. The worker
    /// reads the slot's word after this.
    #[inline(always)]
    pub(crate) fn take<const HAZARD: usize>(self, worker: usize, slot: u32) -> &'m AtomicU32 {
        let hazard = &self.hazards[worker].0[HAZARD];
        // Relaxed: fenced by the next line.
        hazard.store(slot + 1, Ordering::Relaxed);
        self.light();
        hazard
    }

    /// Ends this. The worker reads the slot's word after this.
    #[inline(always)]
    pub(crate) fn leave<const HAZARD: usize>(self, worker: usize) {
        self.clear(&self.hazards[worker].0[HAZARD]);
    }

    /// Does the same to a hazard pointer that [`take`](Self::take) has returned.
    #[inline(always)]
    pub(crate) fn clear(self, hazard: &AtomicU32) {
        // Release: pairs with the Acquire in `has`. The access is ordered before
        // this store.
        hazard.store(0, Ordering::Release);
        self.light();
    }

    /// The fence between a change of words and the reads of pins and of
    /// [`has`](Self::has).
    pub(crate) fn heavy(self) {
        // SeqCst: pairs with the fence in `light`, or the barrier takes its place.
        mutate!("gas_drain_unordered": fence(Ordering::SeqCst) => ());
        if let Some(barrier) = self.barrier.filter(|_| !self.hazards.is_empty()) {
            barrier();
        }
    }

    /// Whether a worker uses `slot`.
    pub(crate) fn has(self, slot: usize) -> bool {
        // Acquire: pairs with the Release in `leave`.
        let is_it = |hazard: &AtomicU32| hazard.load(Ordering::Acquire) == slot as u32 + 1;
        let mut hazards = self.hazards.iter().flat_map(|worker| worker.0.iter());
        mutate!("gas_seat_unseen": hazards.any(is_it) => false)
    }

    #[inline(always)]
    fn light(self) {
        match self.barrier {
            // The barrier of the heavy half orders the processor's accesses.
            Some(_) => compiler_fence(Ordering::SeqCst),
            // SeqCst: pairs with the fence in `heavy`.
            None => mutate!("gas_seat_no_light": fence(Ordering::SeqCst) => ()),
        }
    }
}

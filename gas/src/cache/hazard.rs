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

use super::slot::CacheSlot;
use tsumugi_core::mutate;
use tsumugi_core::sync::{AtomicU32, Ordering, compiler_fence, fence};

/// The hazard pointers of one worker. All zeroes: the worker holds no table.
// A cache line each. Two lines would keep the processor's prefetcher from the neighbour's,
// and take twice the memory of every rank.
#[derive(Debug)]
#[repr(align(64))]
pub struct HazardPointers {
    own: [AtomicU32; HAZARDS],
    /// A slot that never changes, for memory that has no slot.
    pub(super) no_slot: CacheSlot,
}

/// The number of tables that a worker can hold at a time.
pub const HAZARDS: usize = 2;

/// The light half: what orders a change of a hazard pointer before the next read of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LightFence {
    /// A fence for the compiler. The barrier of the heavy half orders the processor's
    /// accesses.
    Compiler,
    /// A fence of the processor.
    Processor,
}

/// The hazard pointers of all workers of a rank, and the barrier between the two sides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HazardDomain<'m> {
    hazards: &'m [HazardPointers],
    barrier: Option<fn()>,
}

impl HazardPointers {
    /// Hazard pointers that name no slot.
    pub fn new() -> Self {
        Self { own: [0; HAZARDS].map(AtomicU32::new), no_slot: CacheSlot::new() }
    }

    /// Announces that this worker uses slot `number - 1`; the number 0 announces no slot.
    /// The worker reads the slot's word after this.
    #[inline(always)]
    pub(super) fn take<const HAZARD: usize>(&self, number: u32, light: LightFence) {
        // Relaxed: fenced by the next line.
        self.own[HAZARD].store(number, Ordering::Relaxed);
        light.pass();
    }

    /// Ends this. The worker reads the slot's word after this.
    #[inline(always)]
    pub(super) fn leave<const HAZARD: usize>(&self, light: LightFence) {
        // Release: pairs with the Acquire in `has`. The access is ordered before
        // this store.
        self.own[HAZARD].store(0, Ordering::Release);
        light.pass();
    }
}

impl LightFence {
    #[inline(always)]
    fn pass(self) {
        match self {
            Self::Compiler => compiler_fence(Ordering::SeqCst),
            // SeqCst: pairs with the fence in `heavy`.
            Self::Processor => mutate!("gas_seat_no_light": fence(Ordering::SeqCst) => ()),
        }
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

    /// The hazard pointers of a worker.
    #[inline(always)]
    pub(super) fn of(self, worker: usize) -> &'m HazardPointers {
        &self.hazards[worker]
    }

    /// The fence between a change of words and the reads of pins and of
    /// [`has`](Self::has).
    pub(crate) fn heavy(self) {
        // SeqCst: pairs with the fence in `LightFence::pass`, or the barrier takes its place.
        mutate!("gas_drain_unordered": fence(Ordering::SeqCst) => ());
        if let Some(barrier) = self.barrier.filter(|_| !self.hazards.is_empty()) {
            barrier();
        }
    }

    /// Whether a worker uses `slot`.
    pub(crate) fn has(self, slot: usize) -> bool {
        // Acquire: pairs with the Release in `HazardPointers::leave`.
        let is_it = |hazard: &AtomicU32| hazard.load(Ordering::Acquire) == slot as u32 + 1;
        let mut hazards = self.hazards.iter().flat_map(|worker| worker.own.iter());
        mutate!("gas_seat_unseen": hazards.any(is_it) => false)
    }

    /// The light half.
    #[inline(always)]
    pub(super) fn light(self) -> LightFence {
        match self.barrier {
            Some(_) => LightFence::Compiler,
            None => LightFence::Processor,
        }
    }
}

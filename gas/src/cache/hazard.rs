//! Hazard pointers of workers: the slots in which workers look at this moment. Each
//! worker has a seat, which it alone writes, so that an access that is carried out
//! inside the call holds its table for the price of two stores. A seat has two hands
//! (hazard pointers), because a copy from one rank to another one holds both tables.
//!
//! ```text
//!   access    hand = slot · light · is the word as it was? · ... · hand = 0
//!   machine   word = draining · heavy · does a hand name the slot?
//! ```
//!
//! At least one of the two sides sees the other: the access finds that the slot has
//! changed and gives it back, or the machine finds the seat and waits. The light
//! half is only a compiler fence if the heavy half passes a barrier on all
//! processors.
//!
//! Progress: wait-free.

use tsumugi_core::mutate;
use tsumugi_core::sync::{AtomicU32, CachePadded, Ordering, compiler_fence, fence};

/// The seat of one worker. All zeroes is an empty seat.
#[derive(Debug)]
pub struct HazardPointers(CachePadded<[AtomicU32; HAZARDS]>);

/// The number of tables that a worker can hold at a time.
pub const HAZARDS: usize = 2;

/// All seats of a rank, and the barrier between the two sides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HazardDomain<'m> {
    seats: &'m [HazardPointers],
    barrier: Option<fn()>,
}

impl HazardPointers {
    /// An empty seat.
    pub fn new() -> Self {
        Self(CachePadded::new([0; HAZARDS].map(AtomicU32::new)))
    }
}

impl Default for HazardPointers {
    fn default() -> Self {
        Self::new()
    }
}

impl<'m> HazardDomain<'m> {
    pub(crate) const fn new(seats: &'m [HazardPointers], barrier: Option<fn()>) -> Self {
        Self { seats, barrier }
    }

    /// Announces that this worker uses `slot`. The worker reads the slot's word
    /// after this.
    #[inline(always)]
    pub(crate) fn take<const HAND: usize>(self, seat: usize, slot: u32) {
        // Relaxed: fenced by the next line.
        self.seats[seat].0[HAND].store(slot + 1, Ordering::Relaxed);
        self.light();
    }

    /// Ends this. The worker reads the slot's word after this.
    #[inline(always)]
    pub(crate) fn leave<const HAND: usize>(self, seat: usize) {
        // Release: pairs with the Acquire in `has`. The access is ordered before
        // this store.
        self.seats[seat].0[HAND].store(0, Ordering::Release);
        self.light();
    }

    /// The fence between a change of words and the reads of pins and of
    /// [`has`](Self::has).
    pub(crate) fn heavy(self) {
        // SeqCst: pairs with the fence in `light`, or the barrier takes its place.
        mutate!("gas_drain_unordered": fence(Ordering::SeqCst) => ());
        if let Some(barrier) = self.barrier.filter(|_| !self.seats.is_empty()) {
            barrier();
        }
    }

    /// Whether a worker uses `slot`.
    pub(crate) fn has(self, slot: usize) -> bool {
        // Acquire: pairs with the Release in `leave`.
        let is_it = |hand: &AtomicU32| hand.load(Ordering::Acquire) == slot as u32 + 1;
        let mut hands = self.seats.iter().flat_map(|seat| seat.0.iter());
        mutate!("gas_seat_unseen": hands.any(is_it) => false)
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

//! Who looks at a slot right now: a seat for each worker, which it alone
//! writes, so that an access that is carried out inside the call holds its
//! table for the price of two stores. A seat has two hands: what copies from one
//! rank to another holds both tables.
//!
//! ```text
//!   access    hand = slot · light · is the word as it was? · ... · hand = 0
//!   machine   word = draining · heavy · does a hand name the slot?
//! ```
//!
//! One of the two sees the other: the access finds that the slot has changed
//! and lets go of it, or the machine finds the seat and waits. The light half
//! is nothing where the heavy one passes a barrier on all processors.
//!
//! Progress: wait-free.

use tsumugi_core::sync::{AtomicU32, CachePadded, Ordering, compiler_fence, fence, mutant};

/// The seat of one worker. All zeroes is an empty one.
#[derive(Debug)]
pub struct Seat(CachePadded<[AtomicU32; HANDS]>);

/// Tables that a worker holds at a time.
pub const HANDS: usize = 2;

/// All seats of a rank, and what stands between their two sides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seats<'m> {
    seats: &'m [Seat],
    barrier: Option<fn()>,
}

impl Seat {
    /// Empty.
    pub fn new() -> Self {
        Self(CachePadded::new([0; HANDS].map(AtomicU32::new)))
    }
}

impl Default for Seat {
    fn default() -> Self {
        Self::new()
    }
}

impl<'m> Seats<'m> {
    pub(crate) const fn new(seats: &'m [Seat], barrier: Option<fn()>) -> Self {
        Self { seats, barrier }
    }

    /// This worker looks at `slot`, whose word it looks at after this.
    #[inline(always)]
    pub(crate) fn take<const HAND: usize>(self, seat: usize, slot: u32) {
        // Relaxed: fenced by the next line.
        self.seats[seat].0[HAND].store(slot + 1, Ordering::Relaxed);
        self.light();
    }

    /// It has done so, and looks at the slot's word after this.
    #[inline(always)]
    pub(crate) fn leave<const HAND: usize>(self, seat: usize) {
        // Release: pairs with the Acquire in `has`. The access comes before.
        self.seats[seat].0[HAND].store(0, Ordering::Release);
        self.light();
    }

    /// Between a change of words and a look at pins and at [`has`](Self::has).
    pub(crate) fn heavy(self) {
        if !mutant("gas_drain_unordered") {
            // SeqCst: the other half is the same, or the barrier.
            fence(Ordering::SeqCst);
        }
        if let Some(barrier) = self.barrier.filter(|_| !self.seats.is_empty()) {
            barrier();
        }
    }

    /// Whether a worker looks at `slot`.
    pub(crate) fn has(self, slot: usize) -> bool {
        // Acquire: pairs with the Release in `leave`.
        let is_it = |hand: &AtomicU32| hand.load(Ordering::Acquire) == slot as u32 + 1;
        self.seats.iter().flat_map(|seat| seat.0.iter()).any(is_it) && !mutant("gas_seat_unseen")
    }

    #[inline(always)]
    fn light(self) {
        match self.barrier {
            // The processor's part is done by the other half.
            Some(_) => compiler_fence(Ordering::SeqCst),
            None if mutant("gas_seat_no_light") => {}
            // SeqCst: the other half is the same.
            None => fence(Ordering::SeqCst),
        }
    }
}

//! The public slot of a worker, where the worker puts its oldest item
//! before any thread requests it.
//!
//! ```text
//!   EMPTY ──publish: the owner──► the item · whether more hang on it
//!     ▲                                         │
//!     └───────────── take: any thread ──────────┘
//!
//!   SHUT: the slot of a worker without other workers
//! ```
//!
//! A worker without work takes the item with one swap, whatever the owner does at
//! that moment. Neither side waits for the other, and the owner's own queue has no
//! thieves. The owner finds that the item is gone when it looks whether the slot has
//! room again; until then the slot's cache line is in the owner's cache.
//!
//! # Sleepers
//!
//! A push while the slot is empty looks for sleeping workers. A push while an item
//! lies in the slot does not, because no worker falls asleep while it sees that item.
//! So a push costs the owner one load, of a line of its own. A worker that is about
//! to sleep, and is counted as a sleeper, must therefore see every push that saw an
//! item in the slot, also if the item was taken in between. [`PublicSlot::all_empty`] is its
//! check, with a barrier behind.
//!
//! ```text
//!   owner    push x; light;  sees the item: returns
//!   taker                                   takes the item
//!   sleeper  counts itself; heavy;                   sees none; heavy; sees x
//! ```
//!
//! An item is calm if a push beside it need not look for sleepers. Where the light
//! half of the fence is an instruction, no item is calm, and each push looks at both.
//!
//! Progress: all calls are wait-free.
//!
//! # References
//!
//! - Acar, Charguéraud, Rainey: Scheduling Parallel Programs by Work Stealing
//!   with Private Deques. PPoPP 2013: queues of the owner's alone.

use crate::fences::Fences;
use crate::handoff::{HandoffBatch, batch_of};
use core::ptr;
use tsumugi_core::mutate;
use tsumugi_core::sync::{AtomicPtr, CachePadded, Ordering};

/// The slot.
#[derive(Debug)]
pub struct PublicSlot<T> {
    place: CachePadded<AtomicPtr<T>>,
    /// Whether an item in the slot is calm.
    calm: bool,
}

impl<T> PublicSlot<T> {
    /// An empty slot. If it is not `shared`, no item is ever put there.
    pub fn new(shared: bool, fences: Fences) -> Self {
        let word = if shared { ptr::null_mut() } else { ptr::without_provenance_mut(CALM) };
        let place = CachePadded::new(AtomicPtr::new(word));
        Self { place, calm: fences == Fences::LIGHTEST }
    }

    /// Whether the owner need not wake a worker after a push: an item lies in the
    /// slot, or there are no other workers.
    #[inline(always)]
    pub fn is_calm(&self) -> bool {
        // Pairs with the heavy half in `all_empty`.
        mutate!("notify_no_light": Fences::LIGHTEST.light() => ());
        self.place.load(Ordering::Relaxed).addr() & CALM != 0
    }

    /// Whether an item lay in the slot; any thread. If the owner gets false, the slot
    /// has room until the owner fills it.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.seen().is_some()
    }

    /// Whether no item lay in any of these slots. If true, the caller sees from here
    /// on what the slots' owners have pushed because an item did lie there. The
    /// caller is counted as a sleeper, with a barrier in between.
    pub fn all_empty<'a>(mut all: impl Iterator<Item = &'a Self>, fences: Fences) -> bool
    where
        T: 'a,
    {
        let none = all.all(|public_slot| !public_slot.is_full());
        if none {
            // Pairs with the light half in `is_calm`.
            mutate!("offer_no_heavy": fences.heavy() => ());
        }
        none
    }

    /// Puts an item into the slot.
    ///
    /// # Safety
    ///
    /// One thread at a time is the owner; only the owner calls, and the slot is
    /// empty.
    pub unsafe fn publish(&self, batch: HandoffBatch<T>) {
        let order = mutate!("offer_relaxed": Ordering::Release => Ordering::Relaxed);
        let calm = if self.calm { CALM } else { 0 };
        // Release: pairs with the Acquire in `take`.
        self.place.store(batch.word().map_addr(|word| word | calm), order);
    }

    /// The item in the slot, which any thread may take at any time.
    #[inline(always)]
    pub fn seen(&self) -> Option<HandoffBatch<T>> {
        batch_of(self.place.load(Ordering::Relaxed))
    }

    /// Takes the item in the slot. Any thread.
    #[inline]
    pub fn take(&self) -> Option<HandoffBatch<T>> {
        // This check also keeps a shut slot shut.
        self.seen()?;
        // Acquire: pairs with the Release in `publish`.
        let came = mutate!("offer_load_then_store":
            self.place.swap(ptr::null_mut(), Ordering::Acquire)
            => {
                let came = self.place.load(Ordering::Acquire);
                self.place.store(ptr::null_mut(), Ordering::Relaxed);
                came
            }
        );
        batch_of(came)
    }
}

/// Set in the slot's word if a push need not look for sleepers.
const CALM: usize = 2;

//! A place where a worker lays out the oldest of what it has, before anybody
//! asks for it.
//!
//! ```text
//!   EMPTY ──lay out: the owner──► the item · whether more hang on it
//!     ▲                                         │
//!     └───────────── take: anybody ─────────────┘
//!
//!   SHUT: of a worker that is alone
//! ```
//!
//! Whoever has nothing takes it with one swap, wherever the owner is just now:
//! neither side waits for the other, and the owner's own queue has no thieves.
//! The owner learns of it when it looks whether there is room again, which it
//! has in its cache until then.
//!
//! # Sleepers
//!
//! A push with nothing laid out looks for workers that sleep; one beside an
//! item that lies there does not, because nobody falls asleep who sees it. That
//! is a single look for the owner, at a line of its own. So whoever is about to
//! sleep, and is counted, must see every push that saw the item, also of one
//! that was taken in between: [`Offer::none_of`] is its look, with a barrier
//! behind.
//!
//! ```text
//!   owner    push x; light;  sees the item: goes on
//!   taker                                   takes the item
//!   sleeper  counts itself; heavy;                   sees none; heavy; sees x
//! ```
//!
//! Where the light half is an instruction, no item is calm, and each push
//! looks at both.
//!
//! Progress: all calls are wait-free.
//!
//! # References
//!
//! - Acar, Charguéraud, Rainey: Scheduling Parallel Programs by Work Stealing
//!   with Private Deques. PPoPP 2013: queues of the owner's alone.

use crate::fences::Fences;
use crate::mail::{Letter, letter_of};
use core::ptr;
use tsumugi_core::sync::{AtomicPtr, CachePadded, Ordering, mutant};

/// The place.
#[derive(Debug)]
pub struct Offer<T> {
    place: CachePadded<AtomicPtr<T>>,
    /// What is laid out is calm.
    calm: bool,
}

impl<T> Offer<T> {
    /// Nothing is laid out; nor ever will be, unless it is `shared`.
    pub fn new(shared: bool, fences: Fences) -> Self {
        let word = if shared { ptr::null_mut() } else { ptr::without_provenance_mut(CALM) };
        let place = CachePadded::new(AtomicPtr::new(word));
        Self { place, calm: fences == Fences::LIGHTEST }
    }

    /// After a push of the owner's, whether nobody need be told: something lies
    /// there, or nobody ever comes.
    #[inline(always)]
    pub fn is_calm(&self) -> bool {
        if !mutant("notify_no_light") {
            // Pairs with the heavy half in `none_of`.
            Fences::LIGHTEST.light();
        }
        self.place.load(Ordering::Relaxed).addr() & CALM != 0
    }

    /// Whether something lay there; any thread. False for the owner: there is
    /// room until it fills it.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.seen().is_some()
    }

    /// Whether nothing lay at any of these places. True: whatever their owners
    /// have pushed because something did lie there is seen from here on. By
    /// one that is counted as a sleeper, with a barrier in between.
    pub fn none_of<'a>(mut all: impl Iterator<Item = &'a Self>, fences: Fences) -> bool
    where
        T: 'a,
    {
        let none = all.all(|offer| !offer.is_full());
        if none && !mutant("offer_no_heavy") {
            // Pairs with the light half in `is_calm`.
            fences.heavy();
        }
        none
    }

    /// Lays an item out.
    ///
    /// # Safety
    ///
    /// One thread at a time is the owner; only the owner calls, and the place
    /// is empty.
    pub unsafe fn lay_out(&self, letter: Letter<T>) {
        let order = if mutant("offer_relaxed") { Ordering::Relaxed } else { Ordering::Release };
        let calm = if self.calm { CALM } else { 0 };
        // Release: pairs with the Acquire in `take`.
        self.place.store(letter.word().map_addr(|word| word | calm), order);
    }

    /// What lies there, which anybody may take at any time.
    #[inline(always)]
    pub fn seen(&self) -> Option<Letter<T>> {
        letter_of(self.place.load(Ordering::Relaxed))
    }

    /// Takes what lies there. Any thread.
    #[inline]
    pub fn take(&self) -> Option<Letter<T>> {
        // One that is shut stays so.
        self.seen()?;
        if mutant("offer_load_then_store") {
            let came = self.place.load(Ordering::Acquire);
            self.place.store(ptr::null_mut(), Ordering::Relaxed);
            return letter_of(came);
        }
        // Acquire: pairs with the Release in `lay_out`.
        letter_of(self.place.swap(ptr::null_mut(), Ordering::Acquire))
    }
}

/// Set in a word beside which a push need not look further.
const CALM: usize = 2;

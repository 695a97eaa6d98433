//! A work-stealing deque in the memory of a rank. The rank itself takes the newest
//! items; other ranks steal the oldest ones without the rank's help.
//!
//! ```text
//!  items   [ · · │ oldest ...... newest │ · · ]   item n lies at n % capacity
//!                 │                      │
//!  ends    first ─┘ ◄────── count ─────► ┘        one word: first 40 bits,
//!           │                            │        count 24
//!           └ first + 1, count - 1       └ count + 1 adds, count - 1 takes
//!             by a thief's compare-swap    by the rank
//! ```
//!
//! All decisions are made by that one word, so the owner of an item is determined by
//! a compare-and-swap: the thread that succeeds has the item. A thief copies the
//! oldest item before its compare-and-swap. The copy is good if the swap succeeds,
//! because item `first` is not written again while `first` stays: the rank takes the
//! last item that is left from the oldest end, too, so that its number is never used
//! twice. Otherwise the rank could take that item and add another one in its place,
//! and the word would have its old value again (ABA).
//!
//! A theft costs a read of a word, a read of an item and a compare-and-swap; an
//! attempt at a rank without items costs the first of these.
//!
//! Progress: adding and taking are lock-free, and so is stealing as long as its
//! operations end. Only one thread of the rank at a time may add and take.
//!
//! # References
//!
//! - Chase and Lev: Dynamic Circular Work-Stealing Deque. SPAA 2005. Their deque
//!   has two words and a fence between them; this one has one word, because a remote
//!   compare-and-swap covers no more.
//! - Dinan et al.: Scalable Work Stealing. SC 2009: deques in the memory of
//!   ranks, and thieves that use one-sided operations alone.

use core::fmt;
use tsumugi_core::mem::{AddrError, RemoteAddr, Width};
use tsumugi_core::mutate;
use tsumugi_core::op::Op;
use tsumugi_core::sync::{AtomicU64, Ordering};

/// The contents of the word of a deque.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DequeEnds {
    /// The number of the oldest item.
    first: u64,
    /// The number of items.
    count: u64,
}

/// A deque, as its own rank accesses it. All zeroes is an empty deque.
#[derive(Clone, Copy)]
pub struct StealDeque<'a> {
    ends: &'a AtomicU64,
    items: &'a [AtomicU64],
    /// The number of items for which there is room.
    capacity: usize,
    /// The words of an item.
    item_words: usize,
}

/// A theft from another rank, without IO: it returns operations and takes answers.
#[derive(Clone, Copy, Debug)]
pub struct Theft {
    ends: RemoteAddr,
    capacity: usize,
    at: TheftStep,
    tries: u32,
}

/// The next step of a theft.
#[derive(Clone, Copy, Debug)]
pub enum TheftAction {
    /// Carry out this operation; its result is the answer.
    Do(Op),
    /// Copy the item in this place. The copy may be torn; then it is not used.
    Copy(usize),
    /// The theft has ended: the copy is the thief's item.
    Taken,
    /// The theft has ended: there is no item to steal now.
    Nothing,
    /// The theft has ended: the other rank does not exist any more.
    Failed(AddrError),
}

#[derive(Clone, Copy, Debug)]
enum TheftStep {
    Looking,
    Copying(DequeEnds),
    Asking(DequeEnds),
    Taken,
    Nothing,
    Failed(AddrError),
}

impl DequeEnds {
    /// The contents in such a word.
    pub const fn from_bits(bits: u64) -> Self {
        Self { first: bits >> COUNT_BITS, count: bits & COUNT_MASK }
    }

    /// The contents as a word.
    pub const fn to_bits(self) -> u64 {
        self.first << COUNT_BITS | self.count
    }

    /// The number of items.
    pub const fn count(self) -> u64 {
        self.count
    }

    /// The number of the newest item, and the contents without it.
    const fn newest(self) -> Option<(u64, Self)> {
        match self.count {
            0 => None,
            // The last item is the oldest one, too.
            1 => self.oldest(),
            count => Some((self.first + count - 1, Self { count: count - 1, ..self })),
        }
    }

    /// The number of the oldest item, and the contents without it.
    const fn oldest(self) -> Option<(u64, Self)> {
        match self.count {
            0 => None,
            // Numbers that do not fit in the field begin again at 0.
            count => {
                let first = (self.first + 1) & FIRST_MASK;
                Some((self.first, Self { first, count: count - 1 }))
            }
        }
    }
}

impl<'a> StealDeque<'a> {
    /// A deque in these words, with room for `capacity` items of `item_words` words.
    ///
    /// # Panics
    ///
    /// If `capacity` is no power of two, or more than [`CAPACITY_MAX`]. Later, if the words
    /// have no room for an item.
    #[inline]
    pub fn new(
        ends: &'a AtomicU64,
        items: &'a [AtomicU64],
        (capacity, item_words): (usize, usize),
    ) -> Self {
        check_capacity(capacity);
        Self { ends, items, capacity, item_words }
    }

    /// The number of items for which there is room.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The number of items. When it is returned, there may be fewer.
    pub fn count(&self) -> u64 {
        DequeEnds::from_bits(self.ends.load(Ordering::Relaxed)).count
    }

    /// Adds an item of these words; the rest of its words are those of the item that lay
    /// in its place before. False: there is no room.
    pub fn push(&self, item: impl IntoIterator<Item = u64>) -> bool {
        // Acquire: pairs with the swap of a thief, which has copied the item that
        // lay here before.
        let ends = DequeEnds::from_bits(self.ends.load(Ordering::Acquire));
        if ends.count >= self.capacity() as u64 {
            return false;
        }
        let publish = || {
            // Release: pairs with the load of a thief, which then sees the item.
            // Other ranks only take items, from the other end.
            let order = mutate!("steal_push_relaxed": Ordering::Release => Ordering::Relaxed);
            self.ends.fetch_add(1, order);
        };
        mutate!("steal_published_early": () => publish());
        for (word, value) in self.item(ends.first + ends.count).iter().zip(item) {
            // Relaxed: published by the count.
            word.store(value, Ordering::Relaxed);
        }
        mutate!("steal_published_early": publish() => ());
        true
    }

    /// Takes the newest item, if there is one and `is_wanted` returns true for its words.
    /// `is_wanted` copies the words: if thieves take items meanwhile, it is called again,
    /// and its last words are those of the item.
    pub fn pop_if(&self, mut is_wanted: impl FnMut(&[AtomicU64]) -> bool) -> bool {
        // Relaxed: the items are this rank's own stores.
        let mut bits = self.ends.load(Ordering::Relaxed);
        loop {
            let ends = DequeEnds::from_bits(bits);
            let Some((number, mut rest)) = ends.newest() else { return false };
            mutate!("steal_last_from_the_other_end": () => rest.first = ends.first);
            if !is_wanted(self.item(number)) {
                return false;
            }
            // Relaxed: this swap publishes no stores to other ranks, and a thief's
            // swap before it takes another item.
            let swap = (Ordering::Relaxed, Ordering::Relaxed);
            match self.ends.compare_exchange_weak(bits, rest.to_bits(), swap.0, swap.1) {
                Ok(_) => return true,
                Err(now) => bits = now,
            }
        }
    }

    fn item(&self, number: u64) -> &'a [AtomicU64] {
        let first = place(number, self.capacity()) * self.item_words;
        &self.items[first..first + self.item_words]
    }
}

impl Theft {
    /// A theft from the deque that has its word at `ends`.
    ///
    /// # Panics
    ///
    /// Those of [`StealDeque::new`].
    pub fn new(ends: RemoteAddr, capacity: usize) -> Self {
        check_capacity(capacity);
        Self { ends, capacity, at: TheftStep::Looking, tries: 0 }
    }

    /// The next step.
    pub fn act(&self) -> TheftAction {
        match self.at {
            TheftStep::Looking => TheftAction::Do(Op::get_word(self.ends, Width::W8)),
            TheftStep::Copying(ends) => TheftAction::Copy(place(ends.first, self.capacity)),
            TheftStep::Asking(ends) => {
                let (_, rest) =
                    ends.oldest().expect("the deque had an item when its ends were read");
                TheftAction::Do(Op::compare_swap(self.ends, ends.to_bits(), rest.to_bits()))
            }
            TheftStep::Taken => TheftAction::Taken,
            TheftStep::Nothing => TheftAction::Nothing,
            TheftStep::Failed(error) => TheftAction::Failed(error),
        }
    }

    /// Goes on by the answer to the last step; after a copy, any value will do.
    pub fn answer(&mut self, answer: Result<u64, AddrError>) {
        let seen = match answer {
            Ok(bits) => DequeEnds::from_bits(bits),
            Err(error) => {
                self.at = TheftStep::Failed(error);
                return;
            }
        };
        self.at = match self.at {
            TheftStep::Looking => look(seen),
            TheftStep::Copying(ends) => TheftStep::Asking(ends),
            TheftStep::Asking(ends) if seen == ends => TheftStep::Taken,
            TheftStep::Asking(ends) => {
                self.tries += 1;
                match seen.count {
                    _ if self.tries == TRIES => TheftStep::Nothing,
                    0 => TheftStep::Nothing,
                    // The rank has added or taken newer items: the copy is good.
                    _ if seen.first == ends.first => TheftStep::Asking(seen),
                    _ => mutate!("steal_copy_kept": look(seen) => TheftStep::Asking(seen)),
                }
            }
            over => over,
        };
    }
}

impl fmt::Debug for StealDeque<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StealDeque({} of {})", self.count(), self.capacity())
    }
}

fn look(seen: DequeEnds) -> TheftStep {
    if seen.count == 0 { TheftStep::Nothing } else { TheftStep::Copying(seen) }
}

fn check_capacity(capacity: usize) {
    assert!(
        capacity.is_power_of_two() && capacity <= CAPACITY_MAX,
        "a deque of {capacity} items: it needs a power of two, {CAPACITY_MAX} at most"
    );
}

const fn place(number: u64, capacity: usize) -> usize {
    number as usize & (capacity - 1)
}

/// The largest number of items for which a deque may have room.
pub const CAPACITY_MAX: usize = 1 << (COUNT_BITS - 1);
const COUNT_BITS: u32 = 24;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;
const FIRST_MASK: u64 = u64::MAX >> COUNT_BITS;
/// How often a thief tries its swap before it gives up.
const TRIES: u32 = 4;

#[cfg(all(test, not(tsumugi_loom)))]
mod tests {
    use super::*;
    use tsumugi_core::mem::{Rank, RegionKey};
    use tsumugi_core::op::Kind;

    fn words<const N: usize>() -> (AtomicU64, [AtomicU64; N]) {
        (AtomicU64::new(0), [(); N].map(|()| AtomicU64::new(0)))
    }

    fn pop(deque: &StealDeque<'_>) -> Option<u64> {
        pop_if(deque, |_| true)
    }

    fn pop_if(deque: &StealDeque<'_>, is_wanted: impl Fn(u64) -> bool) -> Option<u64> {
        let mut item = 0;
        let copy = |words: &[AtomicU64]| {
            item = words[0].load(Ordering::Relaxed);
            is_wanted(item)
        };
        deque.pop_if(copy).then_some(item)
    }

    fn theft(capacity: usize) -> Theft {
        let key = RegionKey::from_bits(1);
        Theft::new(RemoteAddr { rank: Rank(1), key, offset: 0 }, capacity)
    }

    /// Carries out one step of a theft, on these words.
    fn step<const N: usize>(theft: &mut Theft, ends: &AtomicU64, items: &[AtomicU64; N]) {
        let answer = match theft.act() {
            TheftAction::Do(op) if op.kind == Kind::GetWord => ends.load(Ordering::Relaxed),
            TheftAction::Do(op) => {
                let (old, new) = (op.compare(), op.operand());
                let swap = ends.compare_exchange(old, new, Ordering::Relaxed, Ordering::Relaxed);
                swap.unwrap_or_else(|now| now)
            }
            TheftAction::Copy(place) => items[place].load(Ordering::Relaxed),
            _ => 0,
        };
        theft.answer(Ok(answer));
    }

    #[test]
    fn the_owner_takes_the_newest_item_and_thieves_the_oldest() {
        let (ends, items) = words::<4>();
        let deque = StealDeque::new(&ends, &items, (items.len(), 1));
        assert_eq!(pop(&deque), None);
        for item in 1..=4 {
            assert!(deque.push([item]));
        }
        assert!(!deque.push([5]));
        let mut theft = theft(4);
        assert!(matches!(theft.act(), TheftAction::Do(_)));
        step(&mut theft, &ends, &items);
        assert!(matches!(theft.act(), TheftAction::Copy(0)));
        // Changes by the rank at the other end do not affect the thief.
        assert_eq!(pop(&deque), Some(4));
        for _ in 0..3 {
            step(&mut theft, &ends, &items);
        }
        assert!(matches!(theft.act(), TheftAction::Taken));
        assert_eq!(pop_if(&deque, |item| item == 2), None);
        assert_eq!((pop(&deque), pop(&deque)), (Some(3), Some(2)));
        assert_eq!(pop(&deque), None);
    }

    #[test]
    fn a_replaced_item_is_not_stolen_as_the_old_one() {
        let (ends, items) = words::<2>();
        let deque = StealDeque::new(&ends, &items, (items.len(), 1));
        deque.push([1]);
        let mut theft = theft(2);
        step(&mut theft, &ends, &items);
        step(&mut theft, &ends, &items);
        assert_eq!(pop(&deque), Some(1));
        deque.push([2]);
        step(&mut theft, &ends, &items);
        // The thief copies again.
        assert!(matches!(theft.act(), TheftAction::Copy(1)));
        step(&mut theft, &ends, &items);
        step(&mut theft, &ends, &items);
        assert!(matches!(theft.act(), TheftAction::Taken));
        assert_eq!(pop(&deque), None);
    }

    #[test]
    fn numbers_wrap_at_the_end_of_the_word() {
        let last = DequeEnds { first: FIRST_MASK, count: 2 };
        let (number, rest) = last.oldest().unwrap();
        assert_eq!((number, rest), (FIRST_MASK, DequeEnds { first: 0, count: 1 }));
        assert_eq!(DequeEnds::from_bits(last.to_bits()), last);
        assert_eq!(place(number + 1, 8), place(rest.first, 8));
    }

    #[test]
    fn the_loss_of_the_victim_ends_the_theft() {
        let mut theft = theft(2);
        let lost = AddrError::PeerLost { rank: Rank(1) };
        theft.answer(Err(lost));
        assert!(matches!(theft.act(), TheftAction::Failed(error) if error == lost));
    }

    #[test]
    #[should_panic(expected = "a deque of 3 items")]
    fn a_capacity_is_a_power_of_two() {
        theft(3);
    }
}

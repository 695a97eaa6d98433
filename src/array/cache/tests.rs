//! Random programs of one rank beside another rank that writes to the array itself,
//! all on one thread: what happens during a transfer is called from inside the
//! transfer.
//!
//! Stripes of the array belong in turns to this rank and to the other, so pages
//! have two writers. For its own elements, this rank must see its last write, and
//! after a release the other rank must see it, too. For the other rank's elements,
//! it must see no value that is older than its last acquire.

use super::*;
use std::cell::{Cell, RefCell};
use tsumugi_conformance::Seeded;
use tsumugi_core::sim::{Seeds, check};
#[cfg(debug_assertions)]
use tsumugi_core::sync::with_mutant;

/// The array, and a model of its expected content.
struct World<'c> {
    cache: &'c Cache,
    draw: RefCell<Seeded>,
    now: Cell<u64>,
    /// The array: for the other rank's elements how often each was written, for
    /// this rank's the value.
    array: RefCell<Vec<u64>>,
    /// The writes of the other rank, each with its time.
    written: RefCell<Vec<(usize, u64)>>,
    /// The last value that this rank has written to each element.
    own: RefCell<HashMap<usize, u64>>,
    acquired: Cell<u64>,
    lent: RefCell<Vec<Lent>>,
    /// Whether other actions may happen during a transfer.
    may_meddle: Cell<bool>,
}

struct Lent {
    lease: Lease,
    start: NonNull<u64>,
    /// The times since when the other rank's writes to each element must be
    /// visible.
    since: Vec<u64>,
    /// The values that were lent, for a lease that only reads.
    shown: Vec<u64>,
}

impl World<'_> {
    fn below(&self, bound: usize) -> usize {
        self.draw.borrow_mut().below(bound as u64) as usize
    }

    fn tick(&self) -> u64 {
        self.now.set(self.now.get() + 1);
        self.now.get()
    }

    /// A range of elements at one of the places where blocks or pages meet.
    fn range(&self) -> Range<usize> {
        let block = self.cache.block_len;
        let start = block * (1 + self.below(BLOCKS - 1)) - 20 + self.below(40);
        start..start + 1 + self.below(25)
    }

    fn step(&self) {
        match self.below(100) {
            0..35 => self.lend(),
            35..65 => self.take_back(),
            65..80 => self.other_writes(),
            80..90 => self.acquire(),
            _ => self.release(),
        }
    }

    fn lend(&self) {
        let mut range = self.range();
        let modes = [(true, false), (true, false), (false, true), (true, true)];
        let (reads, writes) = modes[self.below(modes.len())];
        if writes {
            let stripe = range.start / STRIPE;
            if !is_own(range.start) {
                return;
            }
            range.end = range.end.min((stripe + 1) * STRIPE);
        }
        let meets = |lent: &Lent| {
            let (one, two) = (&lent.lease.range, &range);
            one.start < two.end && two.start < one.end && (writes || lent.lease.writes)
        };
        let is_taken = self.lent.borrow().iter().any(meets);
        let since: Vec<u64> = range.clone().map(|index| self.since(index)).collect();
        self.may_meddle.set(true);
        let lent = self.cache.lend(range.clone(), (reads, writes), self);
        self.may_meddle.set(false);
        let (lease, start) = match lent {
            Ok(_) if is_taken => panic!("{range:?} is lent, and to a writer"),
            Ok((lease, start)) => (lease, start.cast::<u64>()),
            Err(ArrayError::Lent { .. }) => return assert!(is_taken, "{range:?} is free"),
            Err(ArrayError::NoCopies { .. } | ArrayError::Addr(_)) => return,
            Err(error) => panic!("{error}"),
        };
        let lent = Lent { lease, start, since, shown: vec![] };
        let found = lent.content();
        if reads {
            for (at, index) in range.clone().enumerate() {
                let own = self.own.borrow().get(&index).copied().unwrap_or(0);
                let value = found[at];
                if is_own(index) {
                    assert_eq!(value, own, "element {index} is this rank's");
                } else {
                    let seen = self.writes(index, lent.since[at])..=self.writes(index, u64::MAX);
                    assert!(seen.contains(&value), "element {index}: {value}, not {seen:?}");
                }
            }
        }
        let shown = if writes { vec![] } else { found };
        self.lent.borrow_mut().push(Lent { shown, ..lent });
    }

    /// The time since when the other rank's writes to an element must be visible;
    /// for an element that is lent, the time when that lease began.
    fn since(&self, index: usize) -> u64 {
        let lent = self.lent.borrow();
        let here = lent.iter().filter(|lent| lent.lease.range.contains(&index));
        let shown = here.map(|lent| lent.since[index - lent.lease.range.start]);
        shown.min().unwrap_or(u64::MAX).min(self.acquired.get())
    }

    /// How often the other rank had written to an element by the time `by`.
    fn writes(&self, index: usize, by: u64) -> u64 {
        let written = self.written.borrow();
        written.iter().filter(|(at, when)| *at == index && *when <= by).count() as u64
    }

    fn take_back(&self) {
        let count = self.lent.borrow().len();
        if count == 0 {
            return;
        }
        let lent = self.lent.borrow_mut().swap_remove(self.below(count));
        let range = lent.lease.range.clone();
        if lent.lease.writes {
            for (at, index) in range.enumerate() {
                let value = self.tick();
                // SAFETY: the element is lent for writing.
                unsafe { lent.start.add(at).write(value) };
                self.own.borrow_mut().insert(index, value);
            }
        } else {
            assert_eq!(lent.content(), lent.shown, "{range:?} has changed while it was lent");
        }
        self.cache.take_back(&lent.lease);
    }

    fn other_writes(&self) {
        let now = self.tick();
        for index in self.range().filter(|index| !is_own(*index)) {
            self.array.borrow_mut()[index] += 1;
            self.written.borrow_mut().push((index, now));
        }
    }

    fn acquire(&self) {
        self.cache.acquire();
        self.acquired.set(self.tick());
    }

    /// After a release, all elements that were checked in before are in the array.
    fn release(&self) {
        let is_lent = |index: &usize| {
            let lent = self.lent.borrow();
            lent.iter().any(|lent| lent.lease.writes && lent.lease.range.contains(index))
        };
        let mut due = self.own.borrow().clone();
        due.retain(|index, _| !is_lent(index));
        self.may_meddle.set(true);
        self.cache.release(self).unwrap();
        self.may_meddle.set(false);
        let array = self.array.borrow();
        for (index, value) in due {
            assert_eq!(array[index], value, "element {index}, after a release");
        }
        for &(index, _) in self.written.borrow().iter() {
            let all = self.writes(index, u64::MAX);
            assert_eq!(array[index], all, "element {index} is the other's");
        }
    }

    /// Actions that happen during a transfer.
    fn meddle(&self) {
        if self.may_meddle.replace(false) {
            match self.below(6) {
                0 => self.acquire(),
                1 | 2 => self.other_writes(),
                3 => self.take_back(),
                _ => {}
            }
            self.may_meddle.set(true);
        }
    }
}

impl Travel for World<'_> {
    fn fetch(&self, range: Range<usize>, to: NonNull<u8>) -> Result<(), ArrayError> {
        self.meddle();
        if self.below(40) == 0 {
            return Err(crate::AddrError::PeerLost { rank: crate::Rank(1) }.into());
        }
        let array = self.array.borrow()[range].to_vec();
        // SAFETY: there is room for the elements, and no other code uses it.
        unsafe { to.cast().copy_from(NonNull::from(&array[..]).cast::<u64>(), array.len()) };
        self.meddle();
        Ok(())
    }

    fn write(&self, range: Range<usize>, from: NonNull<u8>) -> Result<(), ArrayError> {
        self.meddle();
        for (at, index) in range.enumerate() {
            let lent = self.lent.borrow();
            let is_lent = |lent: &Lent| lent.lease.writes && lent.lease.range.contains(&index);
            assert!(!lent.iter().any(is_lent), "element {index} is written back half-way");
            // SAFETY: these are the copies of the elements, and no code writes to
            // them.
            self.array.borrow_mut()[index] = unsafe { from.cast::<u64>().add(at).read() };
        }
        self.meddle();
        Ok(())
    }
}

impl Lent {
    fn content(&self) -> Vec<u64> {
        let len = self.lease.range.len();
        // SAFETY: the elements are lent.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), len) }.to_vec()
    }
}

fn is_own(index: usize) -> bool {
    (index / STRIPE).is_multiple_of(2)
}

fn run(seed: u64) {
    let bytes = BLOCK_BYTES * (2 + (seed % 3) as usize);
    let cache = Cache::new(BLOCKS * BLOCK_BYTES / 8, 8, 8, bytes);
    let world = World {
        cache: &cache,
        draw: RefCell::new(Seeded(seed)),
        now: Cell::new(0),
        array: RefCell::new(vec![0; cache.len]),
        written: RefCell::default(),
        own: RefCell::default(),
        acquired: Cell::new(0),
        lent: RefCell::default(),
        may_meddle: Cell::new(false),
    };
    for _ in 0..STEPS {
        world.step();
        assert!(cache.bytes() <= bytes, "{} bytes", cache.bytes());
    }
    while !world.lent.borrow().is_empty() {
        world.take_back();
    }
    world.release();
}

#[test]
fn copies_are_as_new_as_the_last_acquire() {
    check(Seeds::new(SEEDS), run);
}

/// A range is fetched of which a part is cached already; the fetch fails, and an
/// `acquire` happens during it. Then the cached part is out of date, though no
/// lease of it ends.
#[test]
fn copies_in_a_range_that_failed_to_be_fetched_are_forgotten() {
    run(0xc_0cee_0f10_002a);
}

#[cfg(debug_assertions)]
#[test]
fn planted_defects_are_caught() {
    use std::panic::catch_unwind;
    for mutant in MUTANTS {
        let found =
            with_mutant(mutant, || (0..SEEDS).find(|seed| catch_unwind(|| run(*seed)).is_err()));
        let seed = found.unwrap_or_else(|| panic!("the mutant {mutant} was not caught"));
        println!("{mutant}: seed {seed} catches it");
    }
}

#[cfg(debug_assertions)]
const MUTANTS: [&str; 10] = [
    "cache_dirty_forgotten",
    "cache_dirty_given_up",
    "cache_failed_valid",
    "cache_late_fetch_kept",
    "cache_lent_anew",
    "cache_lent_forgotten",
    "cache_old_kept",
    "cache_pages_written_back",
    "cache_released_while_lent",
    "cache_two_writers",
];
const SEEDS: u64 = 1_000;
const STEPS: usize = 150;
const BLOCKS: usize = 5;
/// The number of consecutive elements with one writer; a page has two writers.
const STRIPE: usize = 3;

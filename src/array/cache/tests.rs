//! Random programs of one rank beside one that writes to the array itself, on
//! one thread: what happens while bytes travel, happens inside of the travel.
//!
//! Stripes of the array take turns in being this rank's and the other's, so
//! that pages have two writers. Of its own elements the rank must see what it
//! wrote last, and the other, after a release; of the other's, none that is
//! older than what was there when it acquired.

use super::*;
use std::cell::{Cell, RefCell};
use tsumugi_conformance::Seeded;
use tsumugi_core::sim::{Seeds, check};
#[cfg(debug_assertions)]
use tsumugi_core::sync::with_mutant;

/// The array, and what is known of it.
struct World<'c> {
    cache: &'c Cache,
    draw: RefCell<Seeded>,
    now: Cell<u64>,
    /// Of the other's elements how often each was written, of the rank's what.
    array: RefCell<Vec<u64>>,
    /// Writes of the other, with when.
    written: RefCell<Vec<(usize, u64)>>,
    /// What the rank wrote last.
    own: RefCell<HashMap<usize, u64>>,
    acquired: Cell<u64>,
    lent: RefCell<Vec<Lent>>,
    /// Something may happen while bytes travel.
    may_meddle: Cell<bool>,
}

struct Lent {
    lease: Lease,
    start: NonNull<u64>,
    /// Since when the other's writes to each element must be seen.
    since: Vec<u64>,
    /// What was lent, of one that only reads.
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

    /// Some elements at one of the places where blocks or pages meet.
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

    /// Since when the other's writes to an element must be seen: where it is
    /// lent, since that was so.
    fn since(&self, index: usize) -> u64 {
        let lent = self.lent.borrow();
        let here = lent.iter().filter(|lent| lent.lease.range.contains(&index));
        let shown = here.map(|lent| lent.since[index - lent.lease.range.start]);
        shown.min().unwrap_or(u64::MAX).min(self.acquired.get())
    }

    /// How often the other had written to an element by then.
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
                // SAFETY: lent to be written.
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

    /// What was checked in before is in the array then.
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

    /// What others do while bytes travel.
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
        // SAFETY: there is room for them, which nobody else uses.
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
            // SAFETY: the copies of these elements, which nobody writes to.
            self.array.borrow_mut()[index] = unsafe { from.cast::<u64>().add(at).read() };
        }
        self.meddle();
        Ok(())
    }
}

impl Lent {
    fn content(&self) -> Vec<u64> {
        let len = self.lease.range.len();
        // SAFETY: they are lent.
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
fn copies_are_as_new_as_the_program_has_said() {
    check(Seeds::new(SEEDS), run);
}

/// A range of which some was here already cannot be fetched, and an `acquire` comes
/// in between: what was here is out of date, though nobody takes it back.
#[test]
fn what_a_failed_fetch_kept_is_forgotten() {
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
/// Elements that have one writer: a page has two.
const STRIPE: usize = 3;

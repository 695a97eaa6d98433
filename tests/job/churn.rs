//! Thousands of ULTs put, get, copy and add at random all over the global memory, while
//! arrays are made and freed. The value of each word is checked.
//!
//! ```text
//!  own      a line of words for each ULT at each rank: only this ULT uses them, and it
//!           knows the value of each word
//!  sums     words to which all ULTs add: in the end they hold the sum of all additions
//!  names    the addresses of arrays that are made and freed, or null: each word of such
//!           an array holds the address of its first word, except one that counts
//! ```
//!
//! An access by an address of `names`, however old, reaches that array or fails with
//! `Stale`. A new array is zero until its first word is written: no late access to an
//! earlier array at the same place changes it.

// The crate `tsumugi`, under a name that the crate's own tests can use, too.
use super::api::global::{After, Change, Copy};
use super::api::{self, Error, Global, GlobalAddr, GlobalPtr, Runtime};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tsumugi::AddrError;
use tsumugi_conformance::Seeded;
use tsumugi_core::op::Kind;

/// The amount of work.
#[derive(Clone, Copy)]
pub struct Plan {
    pub ults: u64,
    pub steps: u64,
    pub seed: u64,
}

/// The data that all ULTs of a rank share.
struct Field {
    global: Global,
    plan: Plan,
    /// The addresses of the three kinds of words, by rank.
    own: Vec<GlobalPtr<u64>>,
    sums: Vec<GlobalPtr<u64>>,
    names: Vec<GlobalPtr<u64>>,
    /// The sum that this rank has added, and the numbers of its accesses by `names` that
    /// reached an array and that were stale.
    added: AtomicU64,
    found: AtomicU64,
    stale: AtomicU64,
}

/// One ULT.
struct Player<'f> {
    field: &'f Field,
    draw: Seeded,
    own: u64,
    rank: u64,
    /// The values of the ULT's lines, by rank.
    lines: Vec<[u64; LINE]>,
    /// Addresses of arrays that may be gone.
    seen: Vec<GlobalPtr<u64>>,
}

/// Runs the whole test. Collective.
pub fn play(rt: &Runtime, plan: Plan) -> Result<(), Error> {
    let global = rt.global()?;
    let own = global.expose::<u64>(rt.size() as usize * plan.ults as usize * LINE)?;
    let sums = global.expose::<u64>(SUMS)?;
    let names = global.expose::<u64>(NAMES)?;
    let tell = |at: GlobalPtr<u64>| -> Result<Vec<GlobalPtr<u64>>, Error> {
        let bits = rt.allgather(at.addr().to_bits())?.into_iter();
        Ok(bits.map(|bits| GlobalPtr::new(GlobalAddr::from_bits(bits))).collect())
    };
    let field = Arc::new(Field {
        global: global.clone(),
        plan,
        own: tell(own.at(0))?,
        sums: tell(sums.at(0))?,
        names: tell(names.at(0))?,
        added: AtomicU64::new(0),
        found: AtomicU64::new(0),
        stale: AtomicU64::new(0),
    });
    let ults: Vec<_> = (0..plan.ults)
        .map(|ult| {
            let (field, rank) = (field.clone(), u64::from(rt.rank().0));
            rt.spawn(move |_| Player::new(&field, rank, ult).play())
        })
        .collect();
    for ult in ults {
        ult.join()??;
    }
    rt.barrier()?;
    let mut held = [0; SUMS];
    global.get_slice(sums.at(0), &mut held)?;
    let held = rt.sum(held.iter().sum::<u64>())?;
    assert_eq!(held, rt.sum(field.added.load(Ordering::Relaxed))?, "the sum of all additions");
    let found = rt.sum(field.found.load(Ordering::Relaxed))?;
    let stale = rt.sum(field.stale.load(Ordering::Relaxed))?;
    // A few ULTs on distant ranks may be too late each time.
    let are_few = plan.ults < 1000;
    assert!(found > 0 || are_few, "no access has reached an array of `names`");
    if rt.rank() == api::Rank(0) {
        super::roles::say(&format!("arrays found {found} times, gone {stale} times"));
    }
    rt.barrier()
}

impl<'f> Player<'f> {
    fn new(field: &'f Field, rank: u64, ult: u64) -> Self {
        let draw = Seeded(field.plan.seed << 40 ^ rank << 20 ^ ult);
        let lines = vec![[0; LINE]; field.own.len()];
        Self { field, draw, own: ult, rank, lines, seen: Vec::new() }
    }

    fn play(mut self) -> Result<(), Error> {
        // The first ULTs of a rank make and free arrays.
        let is_keeper = (self.own as usize) < NAMES;
        for _ in 0..self.field.plan.steps {
            match self.draw.below(10) {
                0..=3 => self.use_own()?,
                4 => self.copy_own()?,
                5 => self.add()?,
                6 if is_keeper => self.keep()?,
                6..=8 => self.visit()?,
                _ => api::ult::yield_now(),
            }
        }
        for rank in 0..self.lines.len() {
            self.compare(rank)?;
        }
        Ok(())
    }

    fn rank(&mut self) -> usize {
        self.draw.below(self.lines.len() as u64) as usize
    }

    fn word(&self, rank: usize, word: usize) -> GlobalPtr<u64> {
        let line = self.rank * self.field.plan.ults + self.own;
        let at = line as usize * LINE + word;
        self.field.global.index(self.field.own[rank], at as i64).expect("a word of the array")
    }

    /// One access of a random kind to one of the ULT's own words.
    fn use_own(&mut self) -> Result<(), Error> {
        let (rank, word) = (self.rank(), self.draw.below(LINE as u64) as usize);
        let (at, value) = (self.word(rank, word), self.draw.below(u64::MAX));
        let global = &self.field.global;
        let held = &mut self.lines[rank][word];
        let (before, after) = match self.draw.below(8) {
            0 => (global.get(at)?, *held),
            1 => {
                global.put(at, value)?;
                (*held, value)
            }
            2 => (global.swap(at, value)?, value),
            3 => (global.compare_swap(at, *held, value)?, value),
            4 => (global.compare_swap(at, !*held, value)?, *held),
            5 => (global.fetch_xor(at, value)?, *held ^ value),
            6 => (global.fetch_and(at, value)?, *held & value),
            _ => {
                let change = Change::atomic(Kind::FetchOr, at.addr(), value);
                (global.begin(change).wait()?, *held | value)
            }
        };
        assert_eq!(before, *held, "word {word} of {} at rank {rank}", self.own);
        *held = after;
        Ok(())
    }

    /// Copies one of the ULT's own lines from any rank to any other one; sometimes an
    /// atomic follows the copy.
    fn copy_own(&mut self) -> Result<(), Error> {
        let (src, dst) = (self.rank(), self.rank());
        if src == dst {
            return self.compare(src);
        }
        let (from, to) = (self.word(src, 0), self.word(dst, 0));
        let global = &self.field.global;
        self.lines[dst] = self.lines[src];
        match self.draw.below(3) {
            0 => global.copy(to, from, LINE)?,
            1 => _ = global.begin(Copy::new(to.addr(), from.addr(), 8 * LINE as u64)).wait()?,
            _ => {
                let copied = global.begin(Copy::new(to.addr(), from.addr(), 8 * LINE as u64));
                let change = Change::atomic(Kind::FetchAdd, to.addr(), 1u64);
                let after = After::One(copied.handle());
                let added = global.begin_after(change, after).wait()?;
                assert_eq!(added, self.lines[dst][0], "the atomic began before the copy ended");
                self.lines[dst][0] = added.wrapping_add(1);
                assert!(copied.has_ended());
            }
        }
        self.compare(dst)
    }

    fn compare(&mut self, rank: usize) -> Result<(), Error> {
        let mut found = [0; LINE];
        self.field.global.get_slice(self.word(rank, 0), &mut found)?;
        assert_eq!(found, self.lines[rank], "the line of {} at rank {rank}", self.own);
        Ok(())
    }

    fn add(&mut self) -> Result<(), Error> {
        let rank = self.rank();
        let (word, by) = (self.draw.below(SUMS as u64) as i64, 1 + self.draw.below(9));
        let at = self.field.global.index(self.field.sums[rank], word)?;
        self.field.global.fetch_add(at, by)?;
        self.field.added.fetch_add(by, Ordering::Relaxed);
        Ok(())
    }

    /// Makes an array, stores its address in `names`, and frees the array.
    fn keep(&mut self) -> Result<(), Error> {
        let Field { global, names, .. } = self.field;
        let array = match global.expose::<u64>(ARRAY) {
            Ok(array) => array,
            // All numbers of regions are in use: those of freed arrays are kept for a while.
            Err(Error::Name(_)) => {
                api::ult::yield_now();
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let (first, mut found) = (array.at(0), [0; ARRAY]);
        api::ult::yield_now();
        global.get_slice(first, &mut found)?;
        assert_eq!(found, [0; ARRAY], "{:?}: a late access", first.addr());
        let mark = first.addr().to_bits();
        global.put_slice(first, &[mark; ARRAY])?;
        let name = global.index(names[self.rank as usize], self.own as i64)?;
        global.put(name, mark)?;
        for _ in 0..self.draw.below(8) {
            api::ult::yield_now();
        }
        if self.draw.below(2) == 0 {
            // Addresses that were read before are old from now on.
            global.put(name, 0)?;
        }
        global.get_slice(first, &mut found)?;
        let count = found[COUNT].wrapping_sub(mark);
        assert!(count < 1 << 32, "{count:#x} counted");
        found[COUNT] = mark;
        assert_eq!(found, [mark; ARRAY], "the words of the array");
        drop(array);
        Ok(())
    }

    /// Accesses an array of `names`, or one whose address was read earlier.
    fn visit(&mut self) -> Result<(), Error> {
        let Field { global, names, plan, .. } = self.field;
        let rank = self.rank();
        let count = plan.ults.min(NAMES as u64);
        let name = global.index(names[rank], self.draw.below(count) as i64)?;
        let mut at = GlobalPtr::<u64>::new(GlobalAddr::from_bits(global.get(name)?));
        if at.is_null() || self.draw.below(4) == 0 {
            match self.seen.is_empty() {
                true => return Ok(()),
                false => at = self.seen[self.draw.below(self.seen.len() as u64) as usize],
            }
        } else if self.seen.len() < 8 {
            self.seen.push(at);
        }
        let mark = at.addr().to_bits();
        let word = global.index(at, COUNT as i64)?;
        let result = match self.draw.below(4) {
            0 => global.get(at).map(|found| assert_eq!(found, mark, "another array")),
            1 => global.fetch_add(word, 1).map(|found| {
                assert!(found.wrapping_sub(mark) < 1 << 32, "{found:#x} at {mark:#x}");
            }),
            2 => global.put(global.index(at, 1)?, mark),
            _ => {
                let get = Change::atomic(Kind::GetWord, at.addr(), 0u64);
                let found = global.begin(get).wait();
                found.map(|found| assert_eq!(found, mark, "another array"))
            }
        };
        match result {
            Ok(()) => self.field.found.fetch_add(1, Ordering::Relaxed),
            Err(AddrError::StaleKey { .. }) => self.field.stale.fetch_add(1, Ordering::Relaxed),
            Err(error) => return Err(error.into()),
        };
        Ok(())
    }
}

/// The number of words of a line, the number of words of an array of `names`, and the
/// index of the word in it that counts.
const LINE: usize = 5;
const ARRAY: usize = 12;
const COUNT: usize = 2;
/// The number of words of `sums` at each rank.
const SUMS: usize = 31;
/// The number of arrays of `names` at each rank. A rank has more numbers for regions,
/// because the number of a freed array is kept for a while.
const NAMES: usize = 60;

//! Thousands of ULTs that put, get, copy and add at random all over the global
//! memory, while arrays come and go, and a checker that knows each word.
//!
//! ```text
//!  own      a line of each ULT at each rank: it alone uses them, and knows what
//!           each word holds
//!  sums     words that all add to: what they hold in the end is what was added
//!  names    where an array that comes and goes is, if it is there: each of its
//!           words is the address of its first, but for one that counts
//! ```
//!
//! An access to an address of `names`, however old, finds that array or is told
//! that it is stale. An array is zero when it comes and until its first word is
//! written, whoever was late with its predecessor.

// The crate, under a name that its own tests can give it, too.
use super::api::global::{AccessError, After, Change, Copy};
use super::api::{self, Error, Global, GlobalAddr, GlobalPtr, Runtime};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tsumugi_conformance::Seeded;
use tsumugi_core::op::Kind;

/// How much there is to do.
#[derive(Clone, Copy)]
pub struct Plan {
    pub ults: u64,
    pub steps: u64,
    pub seed: u64,
}

/// What all ULTs of a rank use.
struct Field {
    global: Global,
    plan: Plan,
    /// Of each rank.
    own: Vec<GlobalPtr<u64>>,
    sums: Vec<GlobalPtr<u64>>,
    names: Vec<GlobalPtr<u64>>,
    /// What this rank has added, and how its accesses to names ended.
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
    /// What its lines hold, by rank.
    lines: Vec<[u64; LINE]>,
    /// Of old arrays.
    seen: Vec<GlobalPtr<u64>>,
}

/// All of it, on all ranks together.
pub fn play(rt: &Runtime, plan: Plan) -> Result<(), Error> {
    let global = rt.global()?;
    let own = global.expose::<u64>(rt.size() as usize * plan.ults as usize * LINE)?;
    let sums = global.expose::<u64>(SUMS)?;
    let names = global.expose::<u64>(NAMES)?;
    let tell = |at: GlobalPtr<u64>| -> Result<Vec<GlobalPtr<u64>>, Error> {
        let bits = rt.gather(at.addr().to_bits())?.into_iter();
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
        ult.join().map_err(|_| Error::program("a ULT has panicked"))??;
    }
    rt.barrier()?;
    let mut held = [0; SUMS];
    global.get_slice(sums.at(0), &mut held)?;
    let held = rt.sum(held.iter().sum::<u64>())?;
    assert_eq!(held, rt.sum(field.added.load(Ordering::Relaxed))?, "what all sums hold");
    let found = rt.sum(field.found.load(Ordering::Relaxed))?;
    let stale = rt.sum(field.stale.load(Ordering::Relaxed))?;
    // Fewer, far from each other, may come too late each time.
    let are_few = plan.ults < 1000;
    assert!(found > 0 || are_few, "nobody has found an array that comes and goes");
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
        // Some keep an array that comes and goes.
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
        self.field.global.index(self.field.own[rank], at as i64).expect("inside")
    }

    /// A word of its own, in one of the ways.
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

    /// A line of its own goes from any rank to any other, and a word after it.
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
                assert_eq!(added, self.lines[dst][0], "it was begun after the copy");
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

    /// An array comes, is named, and goes.
    fn keep(&mut self) -> Result<(), Error> {
        let Field { global, names, .. } = self.field;
        let array = match global.expose::<u64>(ARRAY) {
            Ok(array) => array,
            // Those that are gone are still held.
            Err(Error::Name(_)) => {
                api::ult::yield_now();
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let (first, mut found) = (array.at(0), [0; ARRAY]);
        api::ult::yield_now();
        global.get_slice(first, &mut found)?;
        assert_eq!(found, [0; ARRAY], "{:?}: somebody was late", first.addr());
        let mark = first.addr().to_bits();
        global.put_slice(first, &[mark; ARRAY])?;
        let name = global.index(names[self.rank as usize], self.own as i64)?;
        global.put(name, mark)?;
        for _ in 0..self.draw.below(8) {
            api::ult::yield_now();
        }
        if self.draw.below(2) == 0 {
            // Whoever reads the name from now on has an old one.
            global.put(name, 0)?;
        }
        global.get_slice(first, &mut found)?;
        let count = found[COUNT].wrapping_sub(mark);
        assert!(count < 1 << 32, "{count:#x} counted");
        found[COUNT] = mark;
        assert_eq!(found, [mark; ARRAY], "the array itself");
        drop(array);
        Ok(())
    }

    /// Looks at an array that comes and goes.
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
            0 => global.get(at).map(|found| assert_eq!(found, mark, "not the array of its name")),
            1 => global.fetch_add(word, 1).map(|found| {
                assert!(found.wrapping_sub(mark) < 1 << 32, "{found:#x} at {mark:#x}");
            }),
            2 => global.put(global.index(at, 1)?, mark),
            _ => {
                let get = Change::atomic(Kind::GetWord, at.addr(), 0u64);
                let found = global.begin(get).wait();
                found.map(|found| assert_eq!(found, mark, "not the array of its name"))
            }
        };
        match result {
            Ok(()) => self.field.found.fetch_add(1, Ordering::Relaxed),
            Err(AccessError::Stale { .. }) => self.field.stale.fetch_add(1, Ordering::Relaxed),
            Err(error) => return Err(error.into()),
        };
        Ok(())
    }
}

/// Words of a line, of an array that comes and goes, and which of those counts.
const LINE: usize = 5;
const ARRAY: usize = 12;
const COUNT: usize = 2;
/// Words that all add to, at each rank.
const SUMS: usize = 31;
/// Arrays that come and go, at each rank: fewer than it has names for, since
/// those that are gone keep theirs for a while.
const NAMES: usize = 60;

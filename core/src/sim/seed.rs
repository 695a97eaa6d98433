//! Seeds: many are tried, and one that fails is run again.
//!
//! The environment is looked at in tests alone:
//!
//! | variable | |
//! |---|---|
//! | `TSUMUGI_SEED` | runs only this seed, and keeps a log of each network |
//! | `TSUMUGI_SEEDS` | runs only these, `FROM..TO` |
//! | `TSUMUGI_SEED_BASE` | where the seeds that every commit tries anew begin |
//! | `TSUMUGI_SHRUNK` | and only what was left of it when it was made smaller |
//! | `TSUMUGI_TRACE` | a replay writes its last log there, for Perfetto |
//!
//! Each commit tries seeds that no other has tried: without `TSUMUGI_SEED_BASE`
//! the first digits of the commit's hash say where they begin, and without
//! a repository they begin at 0.

use super::shrink::{self, Shrunk};
use crate::backend::{Log, Record};
use std::boxed::Box;
use std::cell::{Cell, RefCell};
use std::env;
use std::eprintln;
use std::fs;
use std::ops::Range;
use std::panic::{self, AssertUnwindSafe, catch_unwind, resume_unwind};
use std::println;
use std::process::Command;
use std::string::String;
use std::sync::{Once, OnceLock};
use std::thread;
use std::time::{Duration, Instant};
use std::vec::Vec;

/// Which seeds a test runs: so many new ones in each commit, and those by which
/// a defect was found once.
///
/// A range is these seeds and no others.
#[derive(Clone, Debug)]
pub struct Seeds {
    count: u64,
    known: &'static [u64],
    first: Option<u64>,
}

impl Seeds {
    /// This many, which begin where the commit says.
    pub const fn new(count: u64) -> Self {
        Self { count, known: &[], first: None }
    }

    /// And these, before the others.
    pub const fn and(self, known: &'static [u64]) -> Self {
        Self { known, ..self }
    }

    /// Only this many, if there are more.
    pub const fn take(self, count: u64) -> Self {
        Self { count: if count < self.count { count } else { self.count }, ..self }
    }

    fn range(&self) -> Range<u64> {
        let first = self.first.unwrap_or_else(base);
        first..first.saturating_add(self.count)
    }
}

impl From<Range<u64>> for Seeds {
    fn from(seeds: Range<u64>) -> Self {
        let count = seeds.end.saturating_sub(seeds.start);
        Self { count, known: &[], first: Some(seeds.start) }
    }
}

/// Runs `test` with each of `seeds`, and says first which those are. The first
/// that panics is printed with the command that replays it, is run with less and
/// less, of [`few`](super::few) and of faults, as long as it panics, for some
/// seconds, what is left is printed with a command of its own, and the first panic
/// goes on. Whether the test's own seeds were run, and not those of the
/// environment: what a test asserts of all its runs together holds for its own.
///
/// With `TSUMUGI_SEED` set only that seed runs, and each [`Net`](super::Net)
/// keeps a log: its end is printed if the seed fails, and all of it is written
/// to `TSUMUGI_TRACE`, if set, for Perfetto. With `TSUMUGI_SEEDS` set to
/// `FROM..TO` only those run.
///
/// # Panics
///
/// As `test` does, or if `TSUMUGI_SEED` or `TSUMUGI_SEED_BASE` is no number,
/// `TSUMUGI_SEEDS` no range, or `TSUMUGI_SHRUNK` not what was printed.
pub fn check(seeds: impl Into<Seeds>, mut test: impl FnMut(u64)) -> bool {
    if let Some(seed) = number(SEED) {
        let text = env::var(SHRUNK).unwrap_or_default();
        let shrunk = Shrunk::parse(&text);
        shrink::begin(shrunk.unwrap_or_else(|| panic!("{SHRUNK}='{text}': not what was printed")));
        let was = REPLAY.replace(true);
        let ended = catch_unwind(AssertUnwindSafe(|| test(seed)));
        REPLAY.set(was);
        shrink::begin(Shrunk::default());
        ended.unwrap_or_else(|panic| resume_unwind(panic));
        return false;
    }
    let seeds: Seeds = seeds.into();
    let (known, range, is_own) = match env::var(SEEDS) {
        Ok(text) => {
            let range = parse_range(&text).unwrap_or_else(|| panic!("{SEEDS}={text}: no range"));
            (&[][..], range, false)
        }
        Err(_) => (seeds.known, seeds.range(), true),
    };
    println!("seeds {known:x?}, {SEEDS}={:#x}..{:#x}", range.start, range.end);
    for seed in known.iter().copied().chain(range) {
        shrink::begin(Shrunk::default());
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| test(seed))) {
            eprintln!("seed {seed:#x}: replay with {SEED}={seed:#x}");
            fails_with_less(seed, &mut test);
            resume_unwind(panic);
        }
    }
    is_own
}

/// Where the seeds of this commit begin.
fn base() -> u64 {
    static BASE: OnceLock<u64> = OnceLock::new();
    *BASE.get_or_init(|| number(SEED_BASE).or_else(base_of_commit).unwrap_or(0))
}

/// From the repository that the test is run in, if it is in one.
fn base_of_commit() -> Option<u64> {
    let told = Command::new("git").args(["rev-parse", "HEAD"]).output().ok()?;
    let hash = String::from_utf8(told.stdout).ok()?;
    Some(u64::from_str_radix(hash.get(..BASE_DIGITS)?, 16).ok()? << BASE_SHIFT)
}

/// Says of a seed that has failed with how much less it fails, too.
fn fails_with_less(seed: u64, test: &mut impl FnMut(u64)) {
    let (faults, begin) = (shrink::begin(Shrunk::default()).len(), Instant::now());
    let was = SILENT.replace(true);
    HUSHED.call_once(|| {
        let hook = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !SILENT.get() {
                hook(info);
            }
        }));
    });
    let test = RefCell::new(test);
    let least = shrink::shrink(RUNS_MAX, |shrunk| {
        if begin.elapsed() > SHRINKS_FOR {
            return None;
        }
        shrink::begin(shrunk.clone());
        let ended = catch_unwind(AssertUnwindSafe(|| (test.borrow_mut())(seed)));
        let struck = shrink::begin(Shrunk::default());
        ended.is_err().then_some(struck)
    });
    SILENT.set(was);
    shrink::begin(Shrunk::default());
    if least != Shrunk::default() {
        eprintln!("{}: {SEED}={seed:#x} {SHRUNK}='{least}'", least.told(faults));
    }
}

/// Whether this thread replays a seed.
pub(super) fn is_replay() -> bool {
    REPLAY.get()
}

/// A network goes, and leaves its log behind.
pub(super) fn leave(log: &Log<Vec<Record>>) {
    if !is_replay() {
        return;
    }
    if let Some(path) = env::var_os(TRACE) {
        let mut text = String::new();
        let written = log.write_chrome(&mut text).is_ok() && fs::write(&path, text).is_ok();
        eprintln!(
            "{} the trace {}",
            if written { "wrote" } else { "could not write" },
            path.display()
        );
    }
    if thread::panicking() {
        let skipped = log.iter().len().saturating_sub(PRINTED);
        eprintln!("the network's last records:");
        for Record { at, by, tag, stage } in log.iter().skip(skipped) {
            eprintln!("{:>12} ns  {by}  {tag:?}  {stage:?}", at.as_ns());
        }
    }
}

/// The variable, if it is set.
fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(parse(&text).unwrap_or_else(|| panic!("{name}={text}: not a number")))
}

fn parse_range(text: &str) -> Option<Range<u64>> {
    let (first, end) = text.split_once("..")?;
    Some(parse(first)?..parse(end)?)
}

fn parse(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

std::thread_local! {
    static REPLAY: Cell<bool> = const { Cell::new(false) };
    /// Nobody wants to read how a run that is made smaller panics.
    static SILENT: Cell<bool> = const { Cell::new(false) };
}

static HUSHED: Once = Once::new();

/// What a replay keeps.
pub(super) const RECORDS: usize = 1 << 18;
/// What it prints of it.
const PRINTED: usize = 100;
const SEED: &str = "TSUMUGI_SEED";
const SEEDS: &str = "TSUMUGI_SEEDS";
const SEED_BASE: &str = "TSUMUGI_SEED_BASE";
/// Digits of a commit's hash, and how many seeds it has for its own: 2 to that.
const BASE_DIGITS: usize = 8;
const BASE_SHIFT: u32 = 20;
const SHRUNK: &str = "TSUMUGI_SHRUNK";
/// Runs that making one smaller takes at most, and for how long it may go on.
const RUNS_MAX: u32 = 400;
const SHRINKS_FOR: Duration = Duration::from_secs(10);
const TRACE: &str = "TSUMUGI_TRACE";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_read_as_they_are_printed() {
        assert_eq!((parse("0x1f"), parse("31"), parse("x")), (Some(31), Some(31), None));
        assert_eq!(["1..0x1f", "1..", "7"].map(parse_range), [Some(1..31), None, None]);
    }

    #[test]
    fn a_tests_own_seeds_are_known_ones_and_new_ones() {
        if [SEED, SEEDS].iter().any(|name| env::var_os(name).is_some()) {
            return;
        }
        let run = |seeds: Seeds| {
            let mut ran = Vec::new();
            assert!(check(seeds, |seed| ran.push(seed)), "they are its own");
            ran
        };
        let first = base();
        assert_eq!(run(Seeds::new(9).and(&[7]).take(2)), [7, first, first + 1]);
        assert_eq!(run(Seeds::from(3..5)), [3, 4]);
    }
}

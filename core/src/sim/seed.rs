//! Seeds: a test runs with many of them, and a seed that fails can be run again.
//!
//! Only tests read the environment:
//!
//! | variable | |
//! |---|---|
//! | `TSUMUGI_SEED` | runs only this seed, and keeps a log of each network |
//! | `TSUMUGI_SEEDS` | runs only the seeds `FROM..TO` |
//! | `TSUMUGI_SEED_BASE` | the first of the new seeds that each commit tries |
//! | `TSUMUGI_SHRUNK` | with `TSUMUGI_SEED`: runs only the part of the run that was left when it was made smaller |
//! | `TSUMUGI_TRACE` | the file to which a replay writes its last log, for Perfetto |
//!
//! Each commit tries seeds that no other commit has tried: without
//! `TSUMUGI_SEED_BASE` the first digits of the commit's hash give the first seed,
//! and without a repository it is 0.

use super::shrink::{self, Shrunk};
use crate::backend::{TraceLog, TraceRecord};
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

/// The seeds with which a test runs: a number of new ones in each commit, and the
/// seeds by which a defect was once found.
///
/// A range stands for exactly its own seeds.
#[derive(Clone, Debug)]
pub struct Seeds {
    count: u64,
    known: &'static [u64],
    first: Option<u64>,
}

impl Seeds {
    /// `count` new seeds, from the first one of the commit on.
    pub const fn new(count: u64) -> Self {
        Self { count, known: &[], first: None }
    }

    /// Adds these seeds, which run before the new ones.
    pub const fn and(self, known: &'static [u64]) -> Self {
        Self { known, ..self }
    }

    /// At most `count` new seeds.
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

/// Prints the seeds, and runs `test` with each of them. If a seed panics, it is
/// printed with the command that replays it. The run is then repeated with less and
/// less work (of [`few`](super::few)) and fewer faults, for some seconds, as long as
/// it still panics; the smallest run is printed with a command of its own, and the
/// first panic is resumed. Returns whether the test's own seeds were run, and not
/// seeds of the environment: assertions over all runs of a test hold only for its
/// own seeds.
///
/// If `TSUMUGI_SEED` is set, only that seed runs, and each [`Net`](super::Net) keeps
/// a log: the end of the log is printed if the seed fails, and the whole log is
/// written to the file `TSUMUGI_TRACE`, if set, for Perfetto. If `TSUMUGI_SEEDS` is
/// set to `FROM..TO`, only those seeds run.
///
/// # Panics
///
/// As `test` does, or if `TSUMUGI_SEED` or `TSUMUGI_SEED_BASE` is no number,
/// `TSUMUGI_SEEDS` is no range, or `TSUMUGI_SHRUNK` is not in the printed form.
pub fn check(seeds: impl Into<Seeds>, mut test: impl FnMut(u64)) -> bool {
    if let Some(seed) = number(SEED) {
        let text = env::var(SHRUNK).unwrap_or_default();
        let shrunk = Shrunk::parse(&text);
        let shrunk = shrunk.unwrap_or_else(|| panic!("{SHRUNK}='{text}' is malformed"));
        shrink::begin(shrunk);
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
            let range = parse_range(&text);
            let range = range.unwrap_or_else(|| panic!("{SEEDS}={text} is not a range FROM..TO"));
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

/// The first new seed of this commit.
fn base() -> u64 {
    static BASE: OnceLock<u64> = OnceLock::new();
    *BASE.get_or_init(|| number(SEED_BASE).or_else(base_of_commit).unwrap_or(0))
}

/// The first new seed from the hash of the commit in the current repository, if
/// there is one.
fn base_of_commit() -> Option<u64> {
    let told = Command::new("git").args(["rev-parse", "HEAD"]).output().ok()?;
    let hash = String::from_utf8(told.stdout).ok()?;
    Some(u64::from_str_radix(hash.get(..BASE_DIGITS)?, 16).ok()? << BASE_SHIFT)
}

/// Makes the run of a failing seed smaller, and prints the smallest run that fails.
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
        let what = least.told(faults);
        eprintln!("smallest run that fails: {what}: {SEED}={seed:#x} {SHRUNK}='{least}'");
    }
}

/// Whether this thread replays a seed.
pub(super) fn is_replay() -> bool {
    REPLAY.get()
}

/// Writes and prints the log of a network that is dropped, in a replay.
pub(super) fn leave(log: &TraceLog<Vec<TraceRecord>>) {
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
        for TraceRecord { at, by, tag, stage } in log.iter().skip(skipped) {
            eprintln!("{:>12} ns  {by}  {tag:?}  {stage:?}", at.as_ns());
        }
    }
}

/// The number in the variable, if it is set.
fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    let number = parse(&text);
    Some(number.unwrap_or_else(|| panic!("{name}={text} is not a number (hexadecimal after 0x)")))
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
    /// Whether panics are not printed: those of runs that are being made smaller are
    /// of no interest.
    static SILENT: Cell<bool> = const { Cell::new(false) };
}

static HUSHED: Once = Once::new();

/// The records that a replay keeps.
pub(super) const RECORDS: usize = 1 << 18;
/// The records that a replay prints.
const PRINTED: usize = 100;
const SEED: &str = "TSUMUGI_SEED";
const SEEDS: &str = "TSUMUGI_SEEDS";
const SEED_BASE: &str = "TSUMUGI_SEED_BASE";
/// The digits of a commit's hash that are used, and the logarithm of the number of
/// seeds of one commit.
const BASE_DIGITS: usize = 8;
const BASE_SHIFT: u32 = 20;
const SHRUNK: &str = "TSUMUGI_SHRUNK";
/// The greatest number of runs for making one smaller, and the longest time.
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
    fn a_test_runs_its_known_seeds_and_new_ones() {
        if [SEED, SEEDS].iter().any(|name| env::var_os(name).is_some()) {
            return;
        }
        let run = |seeds: Seeds| {
            let mut ran = Vec::new();
            assert!(check(seeds, |seed| ran.push(seed)), "all seeds are the test's own");
            ran
        };
        let first = base();
        assert_eq!(run(Seeds::new(9).and(&[7]).take(2)), [7, first, first + 1]);
        assert_eq!(run(Seeds::from(3..5)), [3, 4]);
    }
}

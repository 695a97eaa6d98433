//! Seeds: many are tried, and one that fails is run again.
//!
//! The environment is looked at in tests alone:
//!
//! | variable | |
//! |---|---|
//! | `TSUMUGI_SEED` | runs only this seed, and keeps a log of each network |
//! | `TSUMUGI_SHRUNK` | and only what was left of it when it was made smaller |
//! | `TSUMUGI_TRACE` | a replay writes its last log there, for Perfetto |

use super::shrink::{self, Shrunk};
use crate::backend::{Log, Record};
use std::boxed::Box;
use std::cell::{Cell, RefCell};
use std::env;
use std::eprintln;
use std::fs;
use std::panic::{self, AssertUnwindSafe, catch_unwind, resume_unwind};
use std::string::String;
use std::sync::Once;
use std::thread;
use std::time::{Duration, Instant};
use std::vec::Vec;

/// Runs `test` with each of `seeds`. The first that panics is printed with the
/// command that replays it, is run with less and less, of [`few`](super::few)
/// and of faults, as long as it panics, for some seconds, what is left is
/// printed with a command of its own, and the first panic goes on.
///
/// With `TSUMUGI_SEED` set only that seed runs, and each [`Net`](super::Net)
/// keeps a log: its end is printed if the seed fails, and all of it is written
/// to `TSUMUGI_TRACE`, if set, for Perfetto.
///
/// # Panics
///
/// As `test` does, or if `TSUMUGI_SEED` is no number, or `TSUMUGI_SHRUNK` not
/// what was printed.
pub fn check(seeds: impl IntoIterator<Item = u64>, mut test: impl FnMut(u64)) {
    if let Ok(text) = env::var(SEED) {
        let seed = parse(&text).unwrap_or_else(|| panic!("{SEED}={text}: not a number"));
        let text = env::var(SHRUNK).unwrap_or_default();
        let shrunk = Shrunk::parse(&text);
        shrink::begin(shrunk.unwrap_or_else(|| panic!("{SHRUNK}='{text}': not what was printed")));
        let was = REPLAY.replace(true);
        let ended = catch_unwind(AssertUnwindSafe(|| test(seed)));
        REPLAY.set(was);
        shrink::begin(Shrunk::default());
        return ended.unwrap_or_else(|panic| resume_unwind(panic));
    }
    for seed in seeds {
        shrink::begin(Shrunk::default());
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| test(seed))) {
            eprintln!("seed {seed:#x}: replay with {SEED}={seed:#x}");
            fails_with_less(seed, &mut test);
            resume_unwind(panic);
        }
    }
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
    }
}

//! Seeds: many are tried, and one that fails is run again.
//!
//! The environment is looked at in tests alone:
//!
//! | variable | |
//! |---|---|
//! | `TSUMUGI_SEED` | runs only this seed, and keeps a log of each network |
//! | `TSUMUGI_TRACE` | a replay writes its last log there, for Perfetto |

use crate::backend::{Log, Record};
use std::cell::Cell;
use std::env;
use std::eprintln;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::string::String;
use std::thread;
use std::vec::Vec;

/// Runs `test` with each of `seeds`. The first that panics is printed with the
/// command that replays it, and its panic goes on.
///
/// With `TSUMUGI_SEED` set only that seed runs, and each [`Net`](super::Net)
/// keeps a log: its end is printed if the seed fails, and all of it is written
/// to `TSUMUGI_TRACE`, if set, for Perfetto.
///
/// # Panics
///
/// As `test` does, or if `TSUMUGI_SEED` is no number.
pub fn check(seeds: impl IntoIterator<Item = u64>, mut test: impl FnMut(u64)) {
    if let Ok(text) = env::var(SEED) {
        let seed = parse(&text).unwrap_or_else(|| panic!("{SEED}={text}: not a number"));
        let was = REPLAY.replace(true);
        let ended = catch_unwind(AssertUnwindSafe(|| test(seed)));
        REPLAY.set(was);
        return ended.unwrap_or_else(|panic| resume_unwind(panic));
    }
    for seed in seeds {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| test(seed))) {
            eprintln!("seed {seed:#x}: replay with {SEED}={seed:#x}");
            resume_unwind(panic);
        }
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
}

/// What a replay keeps.
pub(super) const RECORDS: usize = 1 << 18;
/// What it prints of it.
const PRINTED: usize = 100;
const SEED: &str = "TSUMUGI_SEED";
const TRACE: &str = "TSUMUGI_TRACE";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_read_as_they_are_printed() {
        assert_eq!((parse("0x1f"), parse("31"), parse("x")), (Some(31), Some(31), None));
    }
}

//! Making a failing run smaller as long as it still fails: less work, a calmer
//! network, fewer faults.
//!
//! ```text
//!  as it failed ─► less of the work that `few` limits ─► messages in order
//!     ─► all as fast ─► only these faults, by halves, quarters, .. single ones
//! ```
//!
//! Losses, delays, torn puts, early completions and second completions are numbered
//! by their operation and their place in it. If a fault is left out, only the times
//! of the other faults change. The smallest run is described by one word in the
//! environment, so that it can be repeated.
//!
//! # References
//!
//! A. Zeller and R. Hildebrandt: Simplifying and isolating failure-inducing
//! input. IEEE Transactions on Software Engineering 28 (2002).

use super::SimConfig;
use std::cell::RefCell;
use std::fmt;
use std::format;
use std::string::String;
use std::vec::Vec;

/// The part of a run that is left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Shrunk {
    /// How often [`few`] halves its argument.
    halvings: u32,
    is_ordered: bool,
    is_even: bool,
    /// The faults that strike, in the order of their numbers; `None`: all faults.
    faults: Option<Vec<u64>>,
}

/// The limits for this thread's networks, and the faults that have struck them.
struct ShrinkRun {
    shrunk: Shrunk,
    /// Recorded only after [`begin`], because only then is it read.
    struck: Option<Vec<u64>>,
}

/// Returns `most`, or less while a failing run is made smaller. A test uses it for
/// the numbers that make a run longer, such as ranks or rounds. The result is at
/// least 1, if `most` is.
pub fn few(most: u64) -> u64 {
    RUN.with_borrow(|run| (most >> run.shrunk.halvings).max(most.min(1)))
}

/// Begins a run on this thread with these limits; returns the faults that struck the
/// networks of the last run.
pub(super) fn begin(shrunk: Shrunk) -> Vec<u64> {
    let ShrinkRun { struck, .. } = RUN.replace(ShrinkRun { shrunk, struck: Some(Vec::new()) });
    let mut struck = struck.unwrap_or_default();
    struck.sort_unstable();
    // Several networks of a run use the same numbers.
    struck.dedup();
    struck
}

/// Whether a fault that was drawn strikes.
pub(super) fn strikes(number: u64) -> bool {
    RUN.with_borrow_mut(|ShrinkRun { shrunk, struck }| {
        let strikes =
            shrunk.faults.as_ref().is_none_or(|those| those.binary_search(&number).is_ok());
        if let Some(struck) = struck.as_mut().filter(|_| strikes) {
            struck.push(number);
        }
        strikes
    })
}

/// The configuration of a network in this run.
pub(super) fn calmed(config: SimConfig) -> SimConfig {
    RUN.with_borrow(|ShrinkRun { shrunk, .. }| SimConfig {
        reorder: config.reorder && !shrunk.is_ordered,
        latency_ns_max: match shrunk.is_even {
            true => config.latency_ns_min,
            false => config.latency_ns_max,
        },
        ..config
    })
}

/// The smallest run found that still fails. `fails` returns the faults that struck
/// if a run fails, and `None` otherwise; it is called at most `most` times.
pub(super) fn shrink(most: u32, fails: impl Fn(&Shrunk) -> Option<Vec<u64>>) -> Shrunk {
    let mut search = ShrinkSearch { least: WHOLE, struck: Vec::new(), left: most, fails };
    for halvings in (0..=HALVINGS_MAX).rev() {
        if search.tries(|run| run.halvings = halvings) {
            break;
        }
    }
    search.tries(|run| run.is_ordered = true);
    search.tries(|run| run.is_even = true);
    let struck = search.struck.clone();
    if !search.tries(|run| run.faults = Some(struck)) {
        return search.least;
    }
    let mut size = search.kept();
    while size > 0 {
        let mut at = 0;
        while at < search.kept() {
            let is_out = search.tries(|run| {
                let those = run.faults.as_mut().expect("the faults were set above");
                those.drain(at..(at + size).min(those.len()));
            });
            if !is_out {
                at += size;
            }
        }
        size /= 2;
    }
    search.least
}

struct ShrinkSearch<F> {
    least: Shrunk,
    /// The faults that struck in the run `least`.
    struck: Vec<u64>,
    left: u32,
    fails: F,
}

impl<F: Fn(&Shrunk) -> Option<Vec<u64>>> ShrinkSearch<F> {
    /// Tries a smaller run; returns whether it fails, too, and is therefore the
    /// smallest now.
    fn tries(&mut self, smaller: impl FnOnce(&mut Shrunk)) -> bool {
        let mut run = self.least.clone();
        smaller(&mut run);
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        let Some(struck) = (self.fails)(&run) else { return false };
        (self.least, self.struck) = (run, struck);
        true
    }

    fn kept(&self) -> usize {
        self.least.faults.as_ref().map_or(0, Vec::len)
    }
}

impl Shrunk {
    /// The run in the form that [`Display`](fmt::Display) writes.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut run = Self::default();
        for word in text.split_whitespace() {
            match word.split_once('=') {
                Some(("few", halvings)) => run.halvings = halvings.parse().ok()?,
                Some(("faults", those)) => {
                    let those = those.split(',').filter(|number| !number.is_empty());
                    let those: Result<Vec<u64>, _> = those.map(str::parse).collect();
                    run.faults = those.ok();
                    run.faults.as_ref().filter(|those| those.is_sorted())?;
                }
                None if word == "ordered" => run.is_ordered = true,
                None if word == "even" => run.is_even = true,
                _ => return None,
            }
        }
        Some(run)
    }

    /// A description of the run for people.
    pub(super) fn told(&self, faults: usize) -> String {
        let of = |is: bool, what| if is { what } else { "" };
        let few = match self.halvings {
            0 => String::new(),
            halvings => format!(", 1/{} of the work", 1u64 << halvings),
        };
        let left = self.faults.as_ref().map_or(faults, Vec::len);
        let (ordered, even) =
            (of(self.is_ordered, ", in order"), of(self.is_even, ", all equally fast"));
        format!("{left} of {faults} faults{few}{ordered}{even}")
    }
}

impl fmt::Display for Shrunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "few={}", self.halvings)?;
        for (is, word) in [(self.is_ordered, " ordered"), (self.is_even, " even")] {
            f.write_str(if is { word } else { "" })?;
        }
        let Some(those) = &self.faults else { return Ok(()) };
        f.write_str(" faults=")?;
        for (index, number) in those.iter().enumerate() {
            write!(f, "{}{number}", if index > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}

std::thread_local! {
    static RUN: RefCell<ShrinkRun> = const { RefCell::new(ShrinkRun { shrunk: WHOLE, struck: None }) };
}

const WHOLE: Shrunk = Shrunk { halvings: 0, is_ordered: false, is_even: false, faults: None };
const HALVINGS_MAX: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shrinking_keeps_the_faults_that_matter() {
        let fails = |run: &Shrunk| {
            let struck = run.faults.clone().unwrap_or_else(|| (0..100).collect());
            let has = |number| struck.contains(&number);
            let fails = has(7) && has(61) && !run.is_even && run.halvings < 3;
            fails.then_some(struck)
        };
        let least = shrink(200, fails);
        let faults = Some([7, 61].to_vec());
        assert_eq!(least, Shrunk { halvings: 2, is_ordered: true, is_even: false, faults });
        assert_eq!(least.told(100), "2 of 100 faults, 1/4 of the work, in order");
    }

    #[test]
    fn a_shrunk_run_is_read_as_it_is_printed() {
        let runs = ["few=0", "few=2 ordered faults=7,61", "few=1 ordered even faults="];
        for text in runs {
            assert_eq!(format!("{}", Shrunk::parse(text).unwrap()), text);
        }
        assert_eq!(["few=x", "faults=2,1", "calm"].map(Shrunk::parse), [None, None, None]);
    }
}

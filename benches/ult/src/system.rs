//! Who does the work.

use crate::inbox::Inbox;

/// A system of threads, as the rows see it. Its process is its own: it is
/// started for one row on so many workers, and may use as many CPUs.
#[derive(Clone, Copy, Debug)]
pub struct System {
    /// Its name: `tsumugi`.
    pub name: &'static str,
    /// Makes itself at home on the calling thread, and serves.
    pub serve: fn(Inbox),
    /// What it took on another machine, for those that may not be here.
    pub elsewhere: &'static [Elsewhere],
}

/// A figure of another machine, which is never compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Elsewhere {
    /// The row.
    pub row: &'static str,
    /// On how many workers.
    pub workers: usize,
    /// The least of many short repetitions.
    pub min: f64,
}

impl System {
    /// What it took of `row` on another machine.
    pub fn elsewhere(&self, row: &str, workers: usize) -> Option<f64> {
        let is = |one: &&Elsewhere| one.row == row && one.workers == workers;
        self.elsewhere.iter().find(is).map(|one| one.min)
    }
}

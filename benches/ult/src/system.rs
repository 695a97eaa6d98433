//! The systems that do the work.

use crate::inbox::Inbox;

/// A system of threads that does rows. It has a process of its own, which is
/// started for one row on a number of workers and may use as many CPUs.
#[derive(Clone, Copy, Debug)]
pub struct System {
    /// The system's name, such as `tsumugi`.
    pub name: &'static str,
    /// Starts the system on the calling thread, and serves the inbox.
    pub serve: fn(Inbox),
    /// What it took on another machine, for systems that may be missing on this one.
    pub elsewhere: &'static [Elsewhere],
}

/// A figure from another machine. It is shown, and never compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Elsewhere {
    /// The row.
    pub row: &'static str,
    /// The number of workers.
    pub workers: usize,
    /// The minimum of many short repetitions.
    pub min: f64,
}

impl System {
    /// Returns what the system took for `row` on another machine.
    pub fn elsewhere(&self, row: &str, workers: usize) -> Option<f64> {
        let is = |one: &&Elsewhere| one.row == row && one.workers == workers;
        self.elsewhere.iter().find(is).map(|one| one.min)
    }
}

//! The rows: what is measured.

use std::time::Duration;

/// One row: what is done, by how many workers, and in which unit it is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The row's name, such as `yield2`.
    pub name: &'static str,
    /// What a batch reports, with the units: the row's own name, except in rows
    /// that report more than one number.
    pub parts: &'static [(&'static str, &'static str)],
    /// The numbers of workers with which the systems do the row. Systems with one
    /// and with two workers take turns with each other, too.
    pub workers: &'static [usize],
    /// How many CPUs a system with a single worker has.
    pub cpus: usize,
    /// The reference of the machine itself, a row of `bare`, which has turns, too.
    pub beside: Option<&'static str>,
    /// How long each system may run in all.
    pub budget: Duration,
    /// The time after which a system that has not answered is given up.
    pub limit: Duration,
}

impl Row {
    /// Returns the row of that name. The references of the machine itself are
    /// rows, too.
    pub fn named(name: &str) -> Option<&'static Self> {
        ROWS.iter().chain(BARE).find(|row| row.name == name)
    }

    /// Returns how many CPUs a system with so many workers has.
    pub fn cpus(&self, workers: usize) -> usize {
        self.cpus.max(workers)
    }
}

const fn row(parts: &'static [(&'static str, &'static str)], workers: &'static [usize]) -> Row {
    let (budget, limit) = (Duration::from_millis(300), Duration::from_secs(20));
    Row { name: parts[0].0, parts, workers, cpus: 1, beside: None, budget, limit }
}

const fn beside(row: Row, bare: &'static str) -> Row {
    Row { beside: Some(bare), ..row }
}

const fn long(row: Row, millis: u64) -> Row {
    Row { budget: Duration::from_millis(millis), limit: Duration::from_secs(40), ..row }
}

/// All rows, in the order in which they are shown.
pub const ROWS: &[Row] = &[
    beside(row(&[("raw_switch", "ns")], &[]), "raw_switch"),
    beside(row(&[("yield2", "ns")], &[1]), "raw_switch"),
    beside(row(&[("yield1000", "ns")], &[1]), "raw_switch"),
    row(&[("create_join", "ns")], &[1]),
    row(&[("create_join_inline", "ns")], &[1]),
    row(&[("fib", "ns")], &[1, 2]),
    row(&[("fib_no_inline", "ns")], &[1]),
    beside(row(&[("park_same", "ns")], &[1]), "raw_switch"),
    beside(row(&[("wake_spinning", "ns")], &[2]), "line_trip"),
    beside(Row { cpus: 2, ..row(&[("wake_sleeping", "ns")], &[1]) }, "futex_wake"),
    beside(row(&[("mutex", "ns")], &[1]), "cas_pair"),
    row(&[("condvar", "ns")], &[1]),
    beside(long(row(&[("uts", "ns")], &[1, 2]), 3000), "serial_uts"),
    beside(long(row(&[("nqueens", "ns")], &[1, 2]), 300), "serial_nqueens"),
    beside(
        long(
            row(
                &[("bytes_per_ult", "bytes"), ("create_asleep", "ns"), ("wake_all_join", "ns")],
                &[1],
            ),
            0,
        ),
        "page_touch",
    ),
];

/// The references of the machine itself.
const BARE: &[Row] = &[
    row(&[("line_trip", "ns")], &[2]),
    Row { cpus: 2, ..row(&[("futex_wake", "ns")], &[1]) },
    row(&[("cas_pair", "ns")], &[1]),
    row(&[("page_touch", "ns")], &[1]),
    row(&[("serial_uts", "ns")], &[1]),
    row(&[("serial_nqueens", "ns")], &[1]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bare_row_beside_a_row_exists() {
        for row in ROWS {
            assert_eq!(Row::named(row.name), Some(row));
            if let Some(bare) = row.beside {
                assert!(Row::named(bare).is_some(), "{bare}");
            }
        }
    }
}

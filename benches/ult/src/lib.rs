//! What ULTs cost: the workloads behind the numbers.
//!
//! A row is a name ([`ROWS`]). One [`Server`] per system runs short batches of
//! a row on threads of that system's own and answers nanoseconds per
//! operation, so that whoever asks can go round all systems again and again:
//! numbers of one run, taken side by side, are what may be compared.
//!
//! | file | what it is |
//! |---|---|
//! | `server` | a system that answers, on threads of its own |
//! | `fork` | fib, trees and queens for anything that can spawn and join |
//! | `uts` | the unbalanced tree search benchmark's tree |
//! | `bare` | what the machine itself takes: a switch, a line, a futex |
//! | `ults` | the rows on tsumugi's ULTs |
//! | `asleep` | what a sleeping ULT takes of memory |

pub mod server;
pub mod uts;
pub mod fork;
pub mod bare;
pub mod ults;
pub mod asleep;

pub use server::{Inbox, Server};

/// One row: what is done, by how many workers, and in which unit it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its name: `yield2`.
    pub name: &'static str,
    /// Workers of the system that does it.
    pub workers: usize,
    /// How often a batch is repeated at least.
    pub batches: usize,
}

const fn row(name: &'static str, workers: usize, batches: usize) -> Row {
    Row { name, workers, batches }
}

/// All timed rows, in the order in which they are shown.
pub const ROWS: &[Row] = &[
    row("raw_switch", 1, 101),
    row("yield2", 1, 101),
    row("yield1000", 1, 101),
    row("create_join", 1, 101),
    row("create_join_inline", 1, 101),
    row("fib", 1, 101),
    row("fib_no_inline", 1, 101),
    row("fib", 2, 301),
    row("park_same", 1, 101),
    row("wake_spinning", 2, 101),
    row("wake_sleeping", 1, 31),
    row("mutex", 1, 101),
    row("condvar", 1, 101),
    row("uts", 1, 3),
    row("uts", 2, 3),
    row("nqueens", 1, 11),
    row("nqueens", 2, 11),
];

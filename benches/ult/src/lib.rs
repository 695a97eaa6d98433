//! Workloads that measure how long the operations of ULTs take.
//!
//! A row is a workload with a name ([`ROWS`]). A [`System`] does short batches of
//! a row in a process of its own and reports nanoseconds per operation. The
//! caller lets all systems take turns, again and again, because only numbers that
//! were taken side by side in one run may be compared.
//!
//! | file | what it is |
//! |---|---|
//! | `uts` | the unbalanced tree search benchmark's tree |
//! | `fork` | fib, trees and queens for anything that can spawn and join |
//! | `row` | what is measured |
//! | `inbox` | a system's end of the protocol |
//! | `system` | a system of threads that does the work |
//! | `turns` | systems that take turns |
//! | `apart` | two CPUs: for the thread that wakes, and the one that is woken |
//! | `asleep` | what sleeping ULTs take of memory |
//! | `bare` | what the machine itself takes: a switch, a cache line, a futex |
//! | `ults` | the rows on tsumugi's ULTs |

pub mod uts;
pub mod fork;
mod row;
pub mod inbox;
mod system;
pub mod turns;
pub mod apart;
pub mod asleep;
pub mod bare;
pub mod ults;

pub use inbox::Inbox;
pub use row::{ROWS, Row};
pub use system::{Elsewhere, System};

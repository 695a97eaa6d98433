//! What ULTs cost: the workloads behind the numbers.
//!
//! A row is a name ([`ROWS`]). A [`System`] does short batches of a row in a
//! process of its own and answers nanoseconds per operation, so that whoever
//! asks can go round all systems again and again: numbers of one run, taken
//! side by side, are what may be compared.
//!
//! | file | what it is |
//! |---|---|
//! | `uts` | the unbalanced tree search benchmark's tree |
//! | `fork` | fib, trees and queens for anything that can spawn and join |
//! | `row` | what is measured |
//! | `inbox` | a system's end of the talk |
//! | `system` | who does the work |
//! | `turns` | systems that take turns |
//! | `apart` | who wakes and who is woken, on two CPUs |
//! | `asleep` | what sleeping ULTs take of memory |
//! | `bare` | what the machine itself takes: a switch, a line, a futex |
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

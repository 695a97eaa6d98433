//! The memory that the tables of one rank take, and how it grows with the job.
//!
//! All sizes come from the types themselves. A job that is large enough for several
//! nodes is assumed to have [`Ledger::NODE_RANKS`] ranks on each node. Virtual sizes, of
//! the heap and the stacks, are in [`Config`](crate::Config): a page of these takes
//! memory from its first touch on.

mod paper;
mod tables;

pub use paper::{Beside, InUse};
pub use tables::{Ledger, Table, Unit};

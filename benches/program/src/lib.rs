//! Whole programs on arrays whose pages move, and the tasks that some of them
//! are made of. Each checks its answer itself.
//!
//! The examples of these names, the tests of processes and `tsumugi bench
//! program` all run what is here.
//!
//! | file | what it is |
//! |---|---|
//! | `words` | what the command line says |
//! | `random` | numbers that are the same everywhere |
//! | [`task`] | fork and join over all ranks: where the data are, or whoever is idle |
//! | [`uts`] | unbalanced tree search |
//! | [`queens`] | so many queens on a board |
//! | [`mesh`] | heat on a mesh that is refined where it matters |
//! | [`search`] | breadth-first search of a graph |
//! | [`gups`] | random updates of a table, after HPC Challenge |
//! | [`sort`] | sample sort |

mod words;
mod random;
pub mod task;
pub mod uts;
pub mod queens;
pub mod mesh;
pub mod search;
pub mod gups;
pub mod sort;

pub use words::{Words, main};

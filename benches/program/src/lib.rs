//! Whole programs on arrays with pages that move, and the tasks that some of these
//! programs are made of. Each program checks its own answer.
//!
//! The examples of these names, the tests of processes and `tsumugi bench program`
//! all run this code.
//!
//! | file | what it is |
//! |---|---|
//! | `words` | arguments of the command line |
//! | `random` | pseudo-random numbers that are the same everywhere |
//! | [`task`] | fork and join over all ranks: at the rank of the data, or at an idle rank |
//! | [`uts`] | unbalanced tree search |
//! | [`queens`] | placing so many queens on a board |
//! | [`mesh`] | heat on a mesh that is refined where it matters |
//! | [`search`] | breadth-first search of a graph |
//! | [`gups`] | random updates of a table, after HPC Challenge |
//! | [`sort`] | sample sort |

mod words;
pub mod task;
pub mod uts;
pub mod queens;
pub mod mesh;
pub mod search;
pub mod gups;
pub mod sort;

pub use words::{Words, main};

//! Unbalanced tree search by tasks of all ranks: a subtree is a task, and who
//! has nothing to do steals one, on whatever node it lies. The tree T1, which is
//! walked if nothing else is said, has 4,130,071 nodes.
//!
//! ```sh
//! cargo run --release -- run -n 4 target/release/examples/uts [DEPTH [GRAIN]]
//! ```
//!
//! Levels below the root; how many of the last are walked by one task. What is
//! run is `benches/program/src/uts.rs`, on the tasks of `task.rs` beside it.

fn main() -> Result<(), tsumugi::Error> {
    tsumugi_bench_program::uts::command()
}

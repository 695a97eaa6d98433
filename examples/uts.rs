//! Unbalanced tree search by tasks on all ranks: a subtree is a task, and an idle
//! worker steals a task from any node. The default tree, T1, has 4,130,071 nodes.
//!
//! ```sh
//! cargo run --release -- run -n 4 target/release/examples/uts [DEPTH [GRAIN]]
//! ```
//!
//! The arguments are the number of levels below the root, and the number of last
//! levels that one task walks. The code is in `benches/program/src/uts.rs`; its
//! tasks are in `task.rs` beside it.

fn main() -> Result<(), tsumugi::Error> {
    tsumugi_bench_program::uts::command()
}

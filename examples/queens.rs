//! Counts the solutions of the n-queens problem, by tasks on all ranks, and
//! compares the number with the known one.
//!
//! ```sh
//! cargo run --release -- run -n 4 target/release/examples/queens [QUEENS [GRAIN]]
//! ```
//!
//! The arguments are the number of queens, and the number of last rows that one
//! task fills. The code is in `benches/program/src/queens.rs`; its tasks are in
//! `task.rs` beside it.

fn main() -> Result<(), tsumugi::Error> {
    tsumugi_bench_program::queens::command()
}

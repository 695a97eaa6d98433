//! In how many ways so many queens stand on a board, counted by tasks of all
//! ranks, and compared with the known number.
//!
//! ```sh
//! cargo run --release -- run -n 4 target/release/examples/queens [QUEENS [GRAIN]]
//! ```
//!
//! How many of the last rows are filled by one task. What is run is
//! `benches/program/src/queens.rs`, on the tasks of `task.rs` beside it.

fn main() -> Result<(), tsumugi::Error> {
    tsumugi_bench_program::queens::command()
}

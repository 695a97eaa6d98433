//! Random updates of one table that is an array over all ranks, after RandomAccess
//! of HPC Challenge: at the end, every update must be in the table.
//!
//! ```sh
//! cargo run --release -- run -n 2 target/release/examples/gups [LOG_WORDS [ULTS]]
//! ```
//!
//! The arguments are the base-2 logarithm of the number of words in the table, and
//! the number of threads of each rank. The code is in
//! `benches/program/src/gups.rs`.

fn main() -> Result<(), tsumugi::Error> {
    tsumugi_bench_program::gups::command()
}

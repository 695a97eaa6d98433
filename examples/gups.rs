//! Random updates of one table that is an array of all ranks, after HPC
//! Challenge's RandomAccess: every update must be there at the end.
//!
//! ```sh
//! cargo run --release -- run -n 2 target/release/examples/gups [LOG_WORDS [ULTS]]
//! ```
//!
//! The table has two to the power of `LOG_WORDS` words; threads of each rank.
//! What is run is `benches/program/src/gups.rs`.

fn main() -> Result<(), tsumugi::Error> {
    tsumugi_bench_program::gups::command()
}

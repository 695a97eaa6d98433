//! Sample sort of keys of all ranks. Each brings the pages of the range that is
//! its in the end, and merges there what the others have put.
//!
//! ```sh
//! cargo run --release -- run -n 4 target/release/examples/sort [KEYS]
//! ```
//!
//! Keys of each rank. What is run is `benches/program/src/sort.rs`.

fn main() -> Result<(), tsumugi::Error> {
    tsumugi_bench_program::sort::command()
}

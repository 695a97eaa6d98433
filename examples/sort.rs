//! Sample sort of keys on all ranks. Each rank brings to itself the pages of the
//! range that it has in the end, and merges there the keys that the others have
//! put.
//!
//! ```sh
//! cargo run --release -- run -n 4 target/release/examples/sort [KEYS]
//! ```
//!
//! The argument is the number of keys of each rank. The code is in
//! `benches/program/src/sort.rs`.

fn main() -> Result<(), tsumugi::Error> {
    tsumugi_bench_program::sort::command()
}

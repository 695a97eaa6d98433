//! Breadth-first search of a random graph whose rows are dealt in blocks, by
//! ranks that each look at vertices by a hash: before and after each has brought
//! the rows that it reads. `tsumugi bench program --only search` does the same
//! with the graph of the demo.
//!
//! ```sh
//! cargo run --release -- run -n 4 target/release/examples/search [VERTICES [DEGREE [ULTS]]]
//! ```
//!
//! Neighbours of a vertex, in the mean; threads of each rank. What is run is
//! `benches/program/src/search.rs`.

fn main() -> Result<(), tsumugi::Error> {
    tsumugi_bench_program::search::command()
}

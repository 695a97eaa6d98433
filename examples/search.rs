//! Breadth-first search of a random graph. Its rows are distributed in blocks, and
//! each rank processes the vertices that a hash assigns to it. The search runs
//! before and after each rank has brought the rows that it reads to itself.
//! `tsumugi bench program --only search` does the same with the graph of the demo.
//!
//! ```sh
//! cargo run --release -- run -n 4 target/release/examples/search [VERTICES [DEGREE [ULTS]]]
//! ```
//!
//! The arguments are the number of vertices, the average number of neighbours of a
//! vertex, and the number of threads of each rank. The code is in
//! `benches/program/src/search.rs`.

fn main() -> Result<(), tsumugi::Error> {
    tsumugi_bench_program::search::command()
}

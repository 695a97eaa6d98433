//! Heat on a mesh that is refined where a fire moves around, run in three ways:
//! nothing is rebalanced; the work is distributed anew after each refinement; and
//! the pages are moved with the work, by `own`. Prints the time of each, and how
//! many accesses were remote; all results are equal to those of one thread, to the
//! last bit.
//!
//! ```sh
//! cargo run --release -- run -n 4 target/release/examples/mesh [BLOCKS [LEVELS [STEPS]]]
//! ```
//!
//! The arguments are the number of blocks on a side, a power of two; how often a
//! block may be refined; and the number of time steps. The code is in
//! `benches/program/src/mesh.rs`.

fn main() -> Result<(), tsumugi::Error> {
    tsumugi_bench_program::mesh::command()
}

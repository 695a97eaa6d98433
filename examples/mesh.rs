//! Heat on a mesh that is refined where a fire goes round, three times: nothing
//! moves; the work is shared out anew after each refinement; and its pages with
//! it, by `own`. Says what each took, and how many accesses were remote; all
//! answers are those of one thread, to the last bit.
//!
//! ```sh
//! cargo run --release -- run -n 4 target/release/examples/mesh [BLOCKS [LEVELS [STEPS]]]
//! ```
//!
//! Blocks on a side, a power of two; how often one may be refined; steps of
//! time. What is run is `benches/program/src/mesh.rs`.

fn main() -> Result<(), tsumugi::Error> {
    tsumugi_bench_program::mesh::command()
}

//! Every rank draws a number from a counter on rank 0.
//!
//! `cargo run --release -- run -n 4 target/release/examples/hello`

use tsumugi::{Error, Rank, Runtime};

#[tsumugi::main]
fn main(rt: &Runtime) -> Result<(), Error> {
    let counter = rt.share::<u64>(1)?;
    let number = rt.fetch_add(counter.at(Rank(0), 0), 1)?;
    println!("{} of {} drew number {number}", rt.rank(), rt.size());
    rt.barrier()
}

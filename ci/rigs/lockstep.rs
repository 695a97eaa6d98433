//! Measures a barrier of all ranks, also with more ranks than cores.
//!
//! `cargo run --release -- run -n 33 target/release/examples/lockstep`

use std::time::Instant;
use tsumugi::{Error, Rank};

const ROUNDS: usize = 300;

fn main() -> Result<(), Error> {
    tsumugi::run(|rt| {
        rt.barrier()?;
        let mut micros = Vec::with_capacity(ROUNDS);
        for _ in 0..ROUNDS {
            let begin = Instant::now();
            rt.barrier()?;
            micros.push(begin.elapsed().as_nanos() as f64 / 1000.0);
        }
        micros.sort_unstable_by(f64::total_cmp);
        if rt.rank() == Rank(0) {
            let [min, median, max] = [0, ROUNDS / 2, ROUNDS - 1].map(|at| micros[at]);
            println!(
                "barrier of {}: {min:.2} us at least, {median:.2} half of them, {max:.2} at most",
                rt.size()
            );
        }
        Ok(())
    })
}

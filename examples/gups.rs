//! Random updates of one table that is spread over all ranks (HPC Challenge's
//! RandomAccess, with atomics): every update must be there at the end.
//!
//! `cargo run --release -- run -n 2 target/release/examples/gups`

use std::time::Instant;
use tsumugi::{Error, Rank};

const WORDS: usize = 1 << 18;
const ULTS: u64 = 64;
const UPDATES: u64 = 1 << 14;

fn main() -> Result<(), Error> {
    tsumugi::run(|rt| {
        let table = std::sync::Arc::new(rt.share::<u64>(WORDS)?);
        rt.barrier()?;
        let start = Instant::now();
        let ults: Vec<_> = (0..ULTS)
            .map(|ult| {
                let table = table.clone();
                rt.spawn(move |rt| {
                    let mut random = u64::from(rt.rank().0) * ULTS + ult + 1;
                    for _ in 0..UPDATES {
                        random = xorshift(random);
                        let rank = Rank((random >> 32) as u32 % rt.size());
                        rt.fetch_add(table.at(rank, random as usize % WORDS), 1)?;
                    }
                    Ok::<_, Error>(())
                })
            })
            .collect();
        for ult in ults {
            ult.join().expect("no update panics")?;
        }
        rt.barrier()?;
        let seconds = start.elapsed().as_secs_f64();

        let mut own = vec![0; WORDS];
        rt.get_slice(table.own().at(0), &mut own)?;
        let found = rt.sum(own.iter().sum::<u64>())?;
        let made = u64::from(rt.size()) * ULTS * UPDATES;
        if found != made {
            return Err(Error::program(format!("{made} updates made, {found} found")));
        }
        if rt.rank() == Rank(0) {
            println!("{made} updates, all found: {:.4} GUPS", made as f64 / seconds * 1e-9);
        }
        Ok(())
    })
}

fn xorshift(mut x: u64) -> u64 {
    x ^= x << 13;
    x ^= x >> 7;
    x ^ x << 17
}

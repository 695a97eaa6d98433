//! Tasks of another scheduler block on operations: jobs of a pool of OS threads
//! that has a single core. Each job waits for the one before it, so the jobs can
//! only complete if the pool is informed of every wait.
//!
//! `cargo run --release -- run -n 2 target/release/examples/pool`

mod pool;

use pool::Pool;
use tsumugi::{Error, Rank, Signal, Until, ult};

fn main() -> Result<(), Error> {
    let pool: &'static Pool = Box::leak(Box::new(Pool::new(1)));
    let _known = ult::register(pool)?;
    tsumugi::run(move |rt| {
        let words = rt.share::<u64>(JOBS as usize + 1)?;
        // Started in the reverse order on purpose.
        let jobs: Vec<_> = (0..JOBS)
            .rev()
            .map(|n| {
                let (rt, own) = (rt.clone(), words.own());
                let (word, next) = (own.at(n as usize), own.at(n as usize + 1));
                pool.spawn(move || {
                    let sum = rt.wait_until(word, Until::AtLeast(1))?;
                    // Signals the next job's word, with the sum so far.
                    rt.signal(next, Signal::Set(sum + n))
                })
            })
            .collect();
        // Each rank starts the chain of the next rank.
        let next = Rank((rt.rank().0 + 1) % rt.size());
        rt.signal(words.at(next, 0), Signal::Set(1))?;
        let sum = rt.wait_until(words.own().at(JOBS as usize), Until::AtLeast(1))?;
        for job in jobs {
            job.join().expect("jobs do not panic")?;
        }
        let (rank, last, lent) = (rt.rank(), JOBS - 1, pool.lent());
        println!("{rank}: 1 + 0 + 1 + ... + {last} = {sum}; the core was lent {lent} times");
        rt.barrier()
    })
}

const JOBS: u64 = 20;

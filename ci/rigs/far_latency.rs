//! Measures the latency of a put, a get and a fetch-add of 8 bytes to another node:
//! by one ULT, by 64 at once, and by an OS thread.
//!
//! The target may see parts of a put or a get of bytes, as with libfabric itself; a
//! put and a get of a word (`word-put`, `word-get`) are never torn.
//!
//! Rank 0 accesses the last rank of the job, which waits. `ci/far_latency.sh` runs
//! it between network namespaces, beside the same work in C directly on libfabric:
//! `far_latency [ROUNDS [OPERATIONS]]`.

mod latency;

use std::time::Duration;
use tsumugi::{AddrError, Error, Rank, Runtime};

fn main() -> Result<(), Error> {
    tsumugi::run(|rt| {
        let number = |at| std::env::args().nth(at).and_then(|word| word.parse().ok());
        let (rounds, operations) = (number(1).unwrap_or(5), number(2).unwrap_or(1000));
        let (words, bytes) = (rt.share::<u64>(ULTS)?, rt.share::<[u8; 8]>(ULTS)?);
        rt.barrier()?;
        if rt.rank() == Rank(0) {
            let to = Rank(rt.size() - 1);
            let (first, first_bytes) = (words.at(to, 0), bytes.at(to, 0));
            let at = move |ult| first.add(ult as u64);
            let bytes_at = move |ult| first_bytes.add(ult as u64);
            for _ in 0..rounds {
                measure(rt, "put", operations, move |rt, ult| rt.put(bytes_at(ult), [7; 8]))?;
                let get = move |rt: &Runtime, ult| rt.get(bytes_at(ult)).map(drop);
                measure(rt, "get", operations, get)?;
                measure(rt, "word-put", operations, move |rt, ult| rt.put(at(ult), 7))?;
                let get = move |rt: &Runtime, ult| rt.get(at(ult)).map(drop);
                measure(rt, "word-get", operations, get)?;
                let add = move |rt: &Runtime, ult| rt.fetch_add(at(ult), 1).map(drop);
                measure(rt, "fetch-add", operations, add)?;
            }
        }
        rt.barrier()
    })
}

/// Prints the numbers of one operation, in the format of the C program.
fn measure(
    rt: &Runtime,
    name: &str,
    operations: usize,
    once: impl Fn(&Runtime, usize) -> Result<(), AddrError> + Copy + Send + 'static,
) -> Result<(), Error> {
    tell(name, latency::one_after_another(rt, operations, once)?);
    let thread = {
        let rt = rt.clone();
        std::thread::spawn(move || latency::one_after_another(&rt, operations, once))
    };
    while !thread.is_finished() {
        // `join` is not used, because it would block the worker.
        tsumugi::ult::sleep(Duration::from_millis(1));
    }
    tell(&format!("{name}-of-a-thread"), thread.join().expect("no operation panics")?);
    let (micros, _) = latency::at_once(rt, ULTS, operations, once)?;
    println!("ours {name}-of-{ULTS} each {micros:.3}");
    Ok(())
}

fn tell(name: &str, [min, p10, p50]: [f64; 3]) {
    println!("ours {name} min {min:.2} p10 {p10:.2} p50 {p50:.2}");
}

/// The number of ULTs with an operation in progress at once.
const ULTS: usize = 64;

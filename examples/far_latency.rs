//! How long a put, a get and a fetch-add of 8 bytes take to another node: of
//! one ULT, of 64 at once, and of an OS thread.
//!
//! A put and a get of bytes may be seen in parts, as libfabric's own; one of a
//! word never is.
//!
//! Rank 0 works on the last rank of the job, which waits. `ci/far_latency.sh`
//! runs it between network namespaces, beside the same work in C straight over
//! libfabric: `far_latency [ROUNDS [OPERATIONS]]`.

use std::time::{Duration, Instant};
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

/// The numbers of one operation, as the C program writes them.
fn measure(
    rt: &Runtime,
    name: &str,
    operations: usize,
    once: impl Fn(&Runtime, usize) -> Result<(), AddrError> + Copy + Send + 'static,
) -> Result<(), Error> {
    one_after_another(rt, operations, name, once)?;
    let thread = {
        let (rt, name) = (rt.clone(), format!("{name}-of-a-thread"));
        std::thread::spawn(move || one_after_another(&rt, operations, &name, once))
    };
    while !thread.is_finished() {
        // Not `join`, which keeps the worker.
        tsumugi::ult::sleep(Duration::from_millis(1));
    }
    thread.join().expect("no operation panics")?;
    let (each, start) = (operations.div_ceil(ULTS), Instant::now());
    let repeat = |ult| rt.spawn(move |rt| (0..each).try_for_each(|_| once(rt, ult)));
    let ults: Vec<_> = (0..ULTS).map(repeat).collect();
    for ult in ults {
        ult.join().expect("no operation panics")?;
    }
    let micros = start.elapsed().as_nanos() as f64 / 1e3 / (each * ULTS) as f64;
    println!("ours {name}-of-{ULTS} each {micros:.3}");
    Ok(())
}

fn one_after_another(
    rt: &Runtime,
    operations: usize,
    name: &str,
    once: impl Fn(&Runtime, usize) -> Result<(), AddrError>,
) -> Result<(), AddrError> {
    for _ in 0..WARM_UP {
        once(rt, 0)?;
    }
    let mut times = Vec::with_capacity(operations);
    for _ in 0..operations {
        let start = Instant::now();
        once(rt, 0)?;
        times.push(start.elapsed().as_nanos());
    }
    times.sort_unstable();
    let at = |part: usize| times[operations * part / 100] as f64 / 1e3;
    println!("ours {name} min {:.2} p10 {:.2} p50 {:.2}", at(0), at(10), at(50));
    Ok(())
}

const WARM_UP: usize = 50;
/// Which are under way at once.
const ULTS: usize = 64;

//! Measures words with atomics by the device: the latency of a put, a get and a
//! fetch-add, one operation after another and many at once, and the number of
//! doorbells for them: with 64 at once, at most one doorbell for 8 operations.
//!
//! Rank 0 accesses the last rank of the job, which waits. `ci/verbs.sh` runs it
//! beside the same requests posted directly: `device [OPERATIONS]`.

mod latency;

use tsumugi::{AddrError, Agent, Error, MemoryOptions, Rank, Runtime};

fn main() -> Result<(), Error> {
    tsumugi::run(|rt| {
        let operations = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(1000);
        let words = MemoryOptions::new().agent(Agent::Device).share::<u64>(rt, ULTS_MAX)?;
        rt.barrier()?;
        if rt.rank() == Rank(0) {
            println!("the words are {:?}'s", words.agent());
            let first = words.at(Rank(rt.size() - 1), 0);
            let at = move |ult: usize| first.add(ult as u64);
            measure(rt, "put", operations, move |rt, ult| rt.put(at(ult), 7))?;
            measure(rt, "get", operations, move |rt, ult| rt.get(at(ult)).map(drop))?;
            measure(rt, "fetch-add", operations, move |rt, ult| {
                rt.fetch_add(at(ult), 1).map(drop)
            })?;
        }
        rt.barrier()
    })
}

fn measure(
    rt: &Runtime,
    name: &str,
    operations: usize,
    once: impl Fn(&Runtime, usize) -> Result<(), AddrError> + Copy + Send + 'static,
) -> Result<(), Error> {
    let mut least = [f64::INFINITY; 3];
    for _ in 0..ROUNDS {
        let round = latency::one_after_another(rt, operations, once)?;
        least = std::array::from_fn(|part| least[part].min(round[part]));
    }
    let [min, p10, p50] = least;
    println!("{name:<9} min {min:.2} p10 {p10:.2} p50 {p50:.2} us");
    if let Some(packets) = packets(|| once(rt, 0))? {
        println!("{name:<9} {packets:.2} packets");
    }
    for ults in [1, 16, ULTS_MAX] {
        let (mut micros, mut rung) = (f64::INFINITY, f64::INFINITY);
        // A device that repeats packets ends operations one by one, so the best round counts.
        for _ in 0..ROUNDS {
            let before = rt.network_counts().unwrap_or_default();
            let (each, count) = latency::at_once(rt, ults, operations, once)?;
            let doorbells = rt.network_counts().unwrap_or_default().doorbells - before.doorbells;
            (micros, rung) = (micros.min(each), rung.min(doorbells as f64 / count as f64));
        }
        assert!(ults < ULTS_MAX || rung <= 1.0 / 8.0, "{name}: {rung} doorbells each");
        println!("{name:<9} of {ults:>2} at once: {micros:.2} us, {rung:.3} doorbells each");
    }
    Ok(())
}

/// The number of packets that the device sends for each operation, averaged over a
/// hundred, where Soft-RoCE counts packets. It is the minimum of several tries,
/// which excludes packets of other programs.
fn packets(once: impl Fn() -> Result<(), AddrError>) -> Result<Option<f64>, Error> {
    let device = std::env::var("TSUMUGI_DEVICE").unwrap_or_default();
    let path = format!("/sys/class/infiniband/{device}/ports/1/hw_counters/sent_pkts");
    let count = || {
        // The kernel updates its counters every 10 ms.
        std::thread::sleep(std::time::Duration::from_millis(20));
        std::fs::read_to_string(&path).ok()?.trim().parse::<u64>().ok()
    };
    let mut least = None;
    for _ in 0..3 {
        let Some(before) = count() else { return Ok(None) };
        (0..100).try_for_each(|_| once())?;
        let sent = count().map(|after| (after - before) as f64 / 100.0);
        least = if least.is_none() || sent < least { sent } else { least };
    }
    Ok(least)
}

/// Rounds of one operation after another, and of many at once; the minimum counts.
const ROUNDS: usize = 3;
/// The maximum number of ULTs with an operation in progress at once.
const ULTS_MAX: usize = 64;

//! Measures a put and a get of a slice in memory outside of the rank's heap, in two
//! variants: copied through a bounce buffer, and adopted, so that the network's device
//! accesses the slice in place. For comparison, it measures a slice in the heap.
//!
//! Rank 0 accesses the last rank of the job, which waits. `ci/verbs.sh` runs it:
//! `adopted [ROUNDS]`.

use std::time::Instant;
use tsumugi::{AddrError, Error, Rank, Remote, Runtime};

fn main() -> Result<(), Error> {
    tsumugi::run(|rt| {
        let rounds = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(15);
        let bytes = rt.share::<u8>(SIZES[SIZES.len() - 1])?;
        rt.barrier()?;
        if rt.rank() == Rank(0) {
            for size in SIZES {
                measure(rt, bytes.at(Rank(rt.size() - 1), 0), size, rounds)?;
            }
        }
        rt.barrier()
    })
}

/// Measures all variants in turn. Prints the median time of each variant over `rounds`
/// rounds, and the median ratio of the adopted to the copied variant of the same round.
fn measure(rt: &Runtime, far: Remote<u8>, size: usize, rounds: usize) -> Result<(), Error> {
    let (mut copied, mut adopted) = (vec![1; size], rt.adopt(vec![2; size]));
    let mut heap = rt.buffer::<u8>(size)?;
    for name in ["put", "get"] {
        let once = |memory: &mut [u8]| match name {
            "put" => rt.put_slice(far, memory),
            _ => rt.get_slice(far, memory),
        };
        let mut times: [Vec<f64>; 3] = Default::default();
        let mut bounced = [0; 3];
        for round in 0..=rounds {
            let memories: [&mut [u8]; 3] = [&mut copied, &mut adopted, &mut heap];
            for (at, memory) in memories.into_iter().enumerate() {
                let before = rt.network_counts().unwrap_or_default().bounced;
                let took = micros(|| once(memory))?;
                bounced[at] = rt.network_counts().unwrap_or_default().bounced - before;
                // The first round registers the memory.
                if round > 0 {
                    times[at].push(took);
                }
            }
        }
        let ratios = |at: usize| times[at].iter().zip(&times[0]).map(|(one, copied)| one / copied);
        let ratio = median(ratios(1).collect());
        let [copied, adopted, heap] = times.map(median);
        println!(
            "{name} of {:>4} KiB: copied {copied:.0} us, adopted {adopted:.0} us ({ratio:.2}), heap \
             {heap:.0} us; bytes copied {bounced:?}",
            size >> 10,
        );
    }
    Ok(())
}

fn micros(once: impl FnOnce() -> Result<(), AddrError>) -> Result<f64, AddrError> {
    let start = Instant::now();
    once()?;
    Ok(start.elapsed().as_nanos() as f64 / 1e3)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

const SIZES: [usize; 4] = [64 << 10, 256 << 10, 1 << 20, 4 << 20];

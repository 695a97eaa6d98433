//! Measures the bandwidth of long messages to another node: from memory of the
//! runtime, which the receiver fetches, and from other memory, which is sent in
//! pieces.
//!
//! Rank 0 sends to the last rank of the job: `far_stream [ROUNDS]`.
//! `ci/netns.sh stream` runs it between network namespaces.

use std::time::Instant;
use tsumugi::{Error, Rank, Runtime};

fn main() -> Result<(), Error> {
    tsumugi::run(|rt| {
        let rounds = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(10);
        for bytes in [64 << 10, 256 << 10, 2 << 20, 8 << 20] {
            let mut inside = rt.buffer::<u8>(bytes)?;
            let mut outside = vec![1; bytes];
            measure(rt, "fetched", rounds, &mut inside)?;
            measure(rt, "in pieces", rounds, &mut outside)?;
        }
        Ok(())
    })
}

/// The best of `rounds` rounds; in each round, messages are sent one after the
/// other, followed by an answer.
fn measure(rt: &Runtime, way: &str, rounds: usize, memory: &mut [u8]) -> Result<(), Error> {
    let (comm, first, last) = (rt.comm(), Rank(0), Rank(rt.size() - 1));
    let mut best = 0.0_f64;
    rt.barrier()?;
    for _ in 0..rounds {
        let start = Instant::now();
        for _ in 0..MESSAGES {
            if rt.rank() == first {
                comm.send(last, 1, memory)?;
            } else if rt.rank() == last {
                comm.recv(first, 1, memory)?;
            }
        }
        let mut word = [0_u8];
        if rt.rank() == first {
            comm.recv(last, 2, &mut word)?;
        } else if rt.rank() == last {
            comm.send(first, 2, &word)?;
        }
        let rate = (MESSAGES * memory.len()) as f64 / start.elapsed().as_secs_f64();
        best = best.max(rate);
    }
    if rt.rank() == first {
        println!("{:>8} KiB {way:>9}: {:7.0} MB/s", memory.len() >> 10, best / 1e6);
    }
    rt.barrier()
}

const MESSAGES: usize = 10;

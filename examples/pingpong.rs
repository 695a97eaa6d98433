//! Measures the latency of messages: two ranks play ping-pong.
//!
//! `tsumugi run -n 2 target/release/examples/pingpong`

use std::time::Instant;
use tsumugi::{Error, Rank};

fn main() -> Result<(), Error> {
    tsumugi::run(|rt| {
        let (comm, peer) = (rt.comm(), Rank(1 - rt.rank().0));
        for bytes in [8, 64, 256, 1024, 4096, 16 << 10, 128 << 10, 2 << 20] {
            let rounds = if bytes > 8192 { 50 } else { 1000 };
            let (mine, mut theirs) = (rt.buffer::<u8>(bytes)?, rt.buffer::<u8>(bytes)?);
            let mut best = f64::INFINITY;
            for _ in 0..20 {
                rt.barrier()?;
                let start = Instant::now();
                for _ in 0..rounds {
                    if rt.rank() == Rank(0) {
                        comm.send(peer, 1, &mine)?;
                        comm.recv(peer, 1, &mut theirs)?;
                    } else {
                        comm.recv(peer, 1, &mut theirs)?;
                        comm.send(peer, 1, &mine)?;
                    }
                }
                best = best.min(start.elapsed().as_secs_f64() / f64::from(rounds) / 2.0);
            }
            if rt.rank() == Rank(0) {
                println!("{bytes:>8} bytes {:>10.3} us", best * 1e6);
            }
        }
        Ok(())
    })
}

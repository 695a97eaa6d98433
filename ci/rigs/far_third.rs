//! Measures a copy between two other ranks, compared with a put of as many bytes
//! and a message, in turns: `far_third [ROUNDS]`, on three nodes or more.
//!
//! Rank 0 requests a copy from a rank of the second node to a rank of the last
//! node. The message time is half of a round trip of 8 bytes with the source rank,
//! which receives the request: so before both operations that rank sleeps or polls
//! equally long. `ci/netns.sh third` runs it between network namespaces.

use std::time::Instant;
use tsumugi::{Error, GlobalAddr, GlobalPtr, Rank, Runtime};

fn main() -> Result<(), Error> {
    tsumugi::run(|rt| {
        let rounds = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(200);
        let global = rt.global()?;
        let own = global.expose::<u8>(BYTES_MAX)?;
        let all = rt.allgather(own.at(0).addr().to_bits())?;
        let at = |rank: Rank| GlobalPtr::<u8>::new(GlobalAddr::from_bits(all[rank.0 as usize]));
        // A rank of the middle node, and the last rank.
        let (src, dst) = (Rank(rt.size() / 2), Rank(rt.size() - 1));
        for bytes in [8, 8 << 10, BYTES_MAX] {
            let rounds = if bytes == BYTES_MAX { rounds / 10 + 1 } else { rounds };
            let values = vec![1; bytes];
            let mut took = [const { Vec::new() }; 3];
            for round in 0..rounds {
                let message = half_trip(rt, src)?;
                if rt.rank() == Rank(0) {
                    let start = Instant::now();
                    global.put_slice(at(dst), &values)?;
                    let put = start.elapsed();
                    let mark = [round as u8, 2];
                    global.put_slice(at(src), &mark)?;
                    let start = Instant::now();
                    global.copy(at(dst), at(src), bytes)?;
                    let third = start.elapsed();
                    let mut found = [0; 2];
                    global.get_slice(at(dst), &mut found)?;
                    assert_eq!(found, mark, "the copy has ended before its bytes have landed");
                    let ns = [message, put.as_nanos() as f64, third.as_nanos() as f64];
                    took.iter_mut().zip(ns).for_each(|(all, ns)| all.push(ns / 1e3));
                }
            }
            if rt.rank() == Rank(0) {
                let [message, put, third] = took.map(least_and_middle);
                let ratio = |at: usize| third[at] / (message[at] + put[at]);
                println!(
                    "{bytes:>8} B: message {:.1}/{:.1} us, put {:.1}/{:.1}, third {:.1}/{:.1} \
                     (least/middle): {:.2}/{:.2} of both",
                    message[0],
                    message[1],
                    put[0],
                    put[1],
                    third[0],
                    third[1],
                    ratio(0),
                    ratio(1),
                );
            }
            rt.barrier()?;
        }
        rt.barrier()
    })
}

/// Half of the time of a round trip between rank 0 and `other`, in ns.
fn half_trip(rt: &Runtime, other: Rank) -> Result<f64, Error> {
    let comm = rt.comm();
    let mut word = [0u64];
    let start = Instant::now();
    if rt.rank() == Rank(0) {
        comm.send(other, 1, &word)?;
        comm.recv(other, 1, &mut word)?;
    } else if rt.rank() == other {
        comm.recv(Rank(0), 1, &mut word)?;
        comm.send(Rank(0), 1, &word)?;
    }
    Ok(start.elapsed().as_nanos() as f64 / 2.0)
}

fn least_and_middle(mut all: Vec<f64>) -> [f64; 2] {
    all.sort_unstable_by(f64::total_cmp);
    [all[0], all[all.len() / 2]]
}

const BYTES_MAX: usize = 1 << 20;

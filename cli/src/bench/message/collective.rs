//! Collectives of all ranks, on two cores and with more ranks than cores.
//!
//! A broadcast has another root in each round: otherwise a root would go on before its
//! values have come to the others, and the row would say how fast it writes.

use super::bars::{Bar, times};
use super::case::{Case, OURS, cpus};
use super::command::BenchCommand;
use super::payload::{dirty, look};
use crate::bench::row::Row;
use crate::failure::Failure;
use std::time::Instant;
use tsumugi::group::{Group, Min};
use tsumugi::{Rank, Runtime};

/// The rows, each named by its collective.
pub const ROWS: &[&str] = &["barrier", "broadcast", "allreduce", "allgather", "alltoall"];
/// The numbers of ranks.
pub const RANKS: [u32; 3] = [2, 4, 8];

/// The cases of so many ranks; two of them are on a core each. The length is that of a
/// member's values; of an alltoall it is that of a block.
pub fn cases(ranks: u32, rounds: Option<u64>) -> Vec<Case> {
    let [first, second] = cpus();
    let crosses = ranks == 2 && first != second;
    let place = if crosses { format!(" cpu0={first} cpu1={second}") } else { String::new() };
    let case = |name: &'static str, bytes: usize| {
        let most = if ranks == 2 { 400 } else { 40 };
        let rounds = rounds.unwrap_or((ROUNDS_BYTES / bytes.max(1)).clamp(10, most) as u64);
        let command = format!("{name} bytes={bytes} rounds={rounds} repeat=5{place}");
        Case::new(name, format!("ranks={ranks} bytes={bytes}"), command, crosses)
    };
    let sizes = |name: &'static str| match name {
        "barrier" => &[0][..],
        _ => &SIZES[..],
    };
    ROWS.iter().flat_map(|name| sizes(name).iter().map(|bytes| case(name, *bytes))).collect()
}

/// The bars of the shortest values: with two ranks against the best peer and one trip more,
/// with eight against Open MPI, which yields.
pub(super) fn bars(rows: &[Row]) -> Vec<Bar> {
    let mut bars = Vec::new();
    for ours in rows.iter().filter(|row| row.system == OURS && SHORT.contains(&&*row.name)) {
        let is_peer =
            |row: &&Row| row.name == ours.name && row.params == ours.params && row.system != OURS;
        let peers = rows.iter().filter(is_peer);
        match ours.number("ranks") {
            _ if ours.number("bytes").is_some_and(|bytes| bytes > 8) => {}
            Some(2) => {
                let best = peers.min_by(|a, b| a.summary.median.total_cmp(&b.summary.median));
                let (Some(best), Some(trip)) = (best, ours.trip_ns()) else { continue };
                let limit = best.summary.median + trip;
                let [median, min] = [ours.summary.median, ours.summary.min];
                bars.push(Bar {
                    what: format!("{}, {}", ours.name, ours.params),
                    limit: format!("<= {} + a trip = {limit:.0} ns", best.system),
                    median: format!("{median:.0} ns"),
                    min: format!("{min:.0} ns"),
                    met: [median <= limit, min <= limit],
                });
            }
            Some(8) => bars.extend(peers.filter(|row| row.system == "openmpi").map(|row| {
                let ahead =
                    [row.summary.median / ours.summary.median, row.summary.min / ours.summary.min];
                times(format!("{} of 8 ranks, speedup over openmpi", ours.name), 1.0 / 0.7, ahead)
            })),
            _ => {}
        }
    }
    bars
}

/// Nanoseconds of a collective on average, at rank 0.
pub fn work(rt: &Runtime, command: BenchCommand<'_>) -> Result<Option<f64>, Failure> {
    let number = |name, absent| command.number(name).unwrap_or(absent) as usize;
    let (bytes, rounds) = (number("bytes", 8), number("rounds", 40));
    let (world, all) = (rt.world(), bytes * rt.size() as usize);
    let mut sent = vec![0u64; (if command.name() == "alltoall" { all } else { bytes }) / 8];
    let mut received = vec![0u64; all / 8];
    let (warm, mut start) = (rounds / 4 + 4, Instant::now());
    for round in 0..rounds + warm {
        if round == warm {
            start = Instant::now();
        }
        collective(&world, command.name(), round, [&mut sent, &mut received])?;
    }
    let ns = start.elapsed().as_nanos() as f64 / rounds as f64;
    Ok((rt.rank() == Rank(0)).then_some(ns))
}

fn collective(
    world: &Group,
    name: &str,
    round: usize,
    [sent, received]: [&mut [u64]; 2],
) -> Result<(), Failure> {
    let root = round as u32 % world.size();
    if name != "broadcast" || root == world.rank() {
        dirty(bytes_of(sent), round);
    }
    match name {
        "barrier" => return Ok(world.barrier()?),
        "broadcast" => world.broadcast(sent, root)?,
        "allreduce" => world.allreduce(sent, Min)?,
        "allgather" => world.allgather_into(sent, received)?,
        _ => world.alltoall_into(sent, received)?,
    }
    look(bytes_of(if name.starts_with("all") && name != "allreduce" { received } else { sent }));
    Ok(())
}

/// The bytes of words.
fn bytes_of(words: &mut [u64]) -> &mut [u8] {
    // SAFETY: all bits are bytes, and all bytes are bits of words; the alignment is greater.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), size_of_val(words)) }
}

/// The collectives with a bar.
const SHORT: [&str; 2] = ["barrier", "allreduce"];
const SIZES: [usize; 3] = [8, 1 << 10, 64 << 10];
/// The approximate number of bytes of one batch.
const ROUNDS_BYTES: usize = 1 << 20;

//! Collectives of all ranks, on two cores and with more ranks than cores.
//!
//! A broadcast has another root in each round: otherwise a root would go on before its
//! values have come to the others, and the row would say how fast it writes.

use super::case::{Case, cpus};
use super::command::BenchCommand;
use super::payload::{dirty, look};
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

const SIZES: [usize; 3] = [8, 1 << 10, 64 << 10];
/// The approximate number of bytes of one batch.
const ROUNDS_BYTES: usize = 1 << 20;

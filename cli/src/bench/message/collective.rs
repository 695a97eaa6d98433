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
use tsumugi_core::coll::schedule::{CollForced, CollKind};

/// The rows, each named by its collective.
pub const ROWS: &[&str] = &["barrier", "broadcast", "allreduce", "allgather", "alltoall"];
/// The numbers of ranks; 16 and 64 are measured in few rounds, as a peer that does not yield
/// takes tens of milliseconds for each.
pub const RANKS: [u32; 5] = [2, 4, 8, 16, 64];

/// The cases of so many ranks; two of them are on a core each. The length is that of a
/// member's values; of an alltoall it is that of a block.
pub fn cases(ranks: u32, rounds: Option<u64>) -> Vec<Case> {
    let [first, second] = cpus();
    let crosses = ranks == 2 && first != second;
    let place = if crosses { format!(" cpu0={first} cpu1={second}") } else { String::new() };
    let case = |name: &'static str, bytes: usize| {
        let rounds = rounds_of(rounds, bytes, ranks);
        let command = format!("{name} bytes={bytes} rounds={rounds} repeat=5{place}");
        let case = Case::new(name, format!("ranks={ranks} bytes={bytes}"), command, crosses);
        Case { passes: if ranks > FEW { CROWD_PASSES } else { case.passes }, ..case }
    };
    let sizes = |name: &'static str| match name {
        "barrier" => &[0][..],
        _ => &SIZES[..],
    };
    ROWS.iter().flat_map(|name| sizes(name).iter().map(|bytes| case(name, *bytes))).collect()
}

/// Whether a command of this name is a collective.
pub fn has(name: &str) -> bool {
    ROWS.contains(&name) || ["gather", "reduce_scatter"].contains(&name)
}

/// Rounds of a batch, unless the arguments set them.
pub fn rounds_of(given: Option<u64>, bytes: usize, ranks: u32) -> u64 {
    let most = match ranks {
        2 => 400,
        3..=FEW => 40,
        _ => 10,
    };
    given.unwrap_or((ROUNDS_BYTES / bytes.max(1)).clamp(10, most) as u64)
}

/// Nanoseconds of a collective on average, at rank 0.
pub fn work(rt: &Runtime, command: BenchCommand<'_>) -> Result<Option<f64>, Failure> {
    let number = |name, absent| command.number(name).unwrap_or(absent) as usize;
    let (bytes, rounds) = (number("bytes", 8), number("rounds", 40));
    let (group, all) = (group(rt, command)?, bytes * rt.size() as usize);
    let sends_all = ["alltoall", "reduce_scatter"].contains(&command.name());
    let mut sent = vec![0u64; (if sends_all { all } else { bytes }) / 8];
    let mut received = vec![0u64; all / 8];
    let (warm, mut start) = (rounds / 4 + 4, Instant::now());
    for round in 0..rounds + warm {
        if round == warm {
            start = Instant::now();
        }
        collective(&group, command.name(), round, [&mut sent, &mut received])?;
    }
    let ns = start.elapsed().as_nanos() as f64 / rounds as f64;
    Ok((rt.rank() == Rank(0)).then_some(ns))
}

/// The group of all ranks, with the algorithm of a command.
fn group(rt: &Runtime, command: BenchCommand<'_>) -> Result<Group, Failure> {
    let Some(number) = command.number("forced") else { return Ok(rt.world()) };
    let kind = CollKind::ALL.into_iter().find(|kind| kind.name() == command.name());
    let word = kind.and_then(|kind| Some((kind, *kind.words().get(number as usize)?)));
    let forced = word.and_then(|(kind, word)| CollForced::NONE.with(kind, word).ok());
    Ok(rt.world().duplicate_forcing(forced.unwrap_or_default())?)
}

fn collective(
    group: &Group,
    name: &str,
    round: usize,
    [sent, received]: [&mut [u64]; 2],
) -> Result<(), Failure> {
    let root = round as u32 % group.size();
    if name != "broadcast" || root == group.rank() {
        dirty(bytes_of(sent), round);
    }
    match name {
        "barrier" => return Ok(group.barrier()?),
        "broadcast" => group.broadcast(sent, root)?,
        "allreduce" => group.allreduce(sent, Min)?,
        "gather" => group.gather_into(sent, received, root)?,
        "reduce_scatter" => {
            look(bytes_of(&mut group.reduce_scatter(sent, Min)?));
            return Ok(());
        }
        "allgather" => group.allgather_into(sent, received)?,
        _ => group.alltoall_into(sent, received)?,
    }
    look(bytes_of(if ["broadcast", "allreduce"].contains(&name) { sent } else { received }));
    Ok(())
}

/// The bytes of words.
fn bytes_of(words: &mut [u64]) -> &mut [u8] {
    // SAFETY: all bits are bytes, and all bytes are bits of words; the alignment is greater.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), size_of_val(words)) }
}

/// The greatest number of ranks that is measured in as many passes as other rows.
const FEW: u32 = 8;
const CROWD_PASSES: u32 = 3;
const SIZES: [usize; 3] = [8, 1 << 10, 64 << 10];
/// The approximate number of bytes of one batch.
const ROUNDS_BYTES: usize = 1 << 20;

//! `tsumugi bench message`: messages between ranks, by each of our designs and by
//! the given peers, in turns.
//!
//! | group | what is measured |
//! |---|---|
//! | `two_cores` | half a round trip by size, pre-posted or not, on two cores |
//! | `one_core` | the same with both ranks on one core |
//! | `rate8` | messages of 8 bytes, 64 in flight |
//! | `workers` | messages of 8 bytes, each rank with 1, 2, 4 and 8 workers |
//! | `halo` | 8 ranks in a cube: compute, exchange with 26 neighbours, agree |
//! | `crowd` | 8, 32 and 64 ranks in a ring on the available cores |
//! | `outside` | half a round trip between buffers outside of the partitions |
//! | `collectives` | collectives of 2 to 64 ranks on the available cores |
//! | `algorithms` | the same and others by each of their algorithms, only if selected |
//! | `one_sided` | puts and gets by global addresses, beside the peers' ping-pong; copies between two other ranks |
//!
//! `two_cores` and `one_core` have one more system: the paper's design with the paper's rule for
//! which messages are copied once, in the place of measured sizes.
//!
//! Long messages are compared with what two cores can do [`together`].
//!
//! Each system is a [team](team) of ranks that sleeps until its turn. A sample
//! counts for the state of the machine, near or far, that was measured just before
//! and just after. If a state does not occur, the benchmark waits for it for a
//! while, and then reports that it was not seen.

mod algorithms;
mod bars;
mod bench;
mod case;
mod collective;
mod command;
mod crowd;
mod figures;
mod halo;
mod one_sided;
mod payload;
mod serve;
mod state;
mod team;
mod together;
mod work;
mod workers;

pub use self::case::{LOCKED, OURS, PAPER_RULE, RENDEZVOUS, TWO_COPY};

use self::bench::MessageBench;
use self::figures::FIGURES;
use super::catalogue::{Group, chosen};
use super::drawing::draw;
use super::table;
use crate::args;
use crate::failure::Failure;
use crate::job;

/// The rows of this figure.
pub const CATALOGUE: &[Group] = &[
    Group { name: "two_cores", rows: &["latency_pre", "latency"] },
    Group { name: "one_core", rows: &["same_core_pre", "same_core"] },
    Group { name: "rate8", rows: &["rate8"] },
    Group { name: "workers", rows: workers::ROWS },
    Group { name: "halo", rows: &["halo10", "halo20", "halo_limits"] },
    Group { name: "crowd", rows: &[crowd::ROW] },
    Group { name: "collectives", rows: collective::ROWS },
    Group { name: "algorithms", rows: algorithms::ROWS },
    Group { name: "outside", rows: &["outside"] },
    Group { name: "one_sided", rows: &["put", "get", "third"] },
];

/// Measures; returns figures and comparisons, an empty text if this process is one of
/// the measured ranks.
pub fn message(message: &args::MessageArgs) -> Result<String, Failure> {
    if let Some(folder) = &message.serve {
        if !job::is_rank() {
            return Err(Failure::Usage(
                "--serve: this process is not a rank of a benchmark".to_owned(),
            ));
        }
        // If there are cores for all ranks, ranks 0 and 1 run on the first two, as
        // commands assume: the job measures these two at its start.
        job::config(None)?.run(|rt| serve::serve(rt, folder))?;
        return Ok(String::new());
    }
    let names = chosen(message.measure.only.as_deref(), CATALOGUE)?;
    let mut bench = MessageBench::new(message, &names)?;
    let mut systems = bench.systems(&[])?;
    systems.push(case::by_the_paper(false)?);
    let cases = case::two_cores(bench.is_quick, bench.rounds());
    bench.measure(&cases, (&systems, 2), None)?;
    let cases = case::same_core(bench.is_quick, bench.rounds());
    let mut systems = bench.systems(case::YIELDING)?;
    systems.push(case::by_the_paper(true)?);
    bench.measure(&cases, (&systems, 2), Some(case::cpus()[0]))?;
    workers::measure(&mut bench)?;
    let [pairs, thirds] = case::one_sided(bench.is_quick, bench.rounds());
    let cases = case::outside(bench.is_quick, bench.rounds());
    let mut systems = bench.one_of_ours(&[])?;
    systems.insert(1, systems[0].by_slots());
    bench.measure(&cases, (&systems, 2), None)?;
    let systems = bench.one_of_ours(&[])?;
    bench.measure(&pairs, (&systems, 2), None)?;
    bench.measure(&thirds, (&systems[..1], 3), None)?;
    for ranks in collective::RANKS {
        let systems = bench.one_of_ours(if ranks == 2 { &[] } else { case::YIELDING })?;
        let cases = collective::cases(ranks, bench.rounds());
        bench.measure(&cases, (&systems, ranks), None)?;
    }
    if message.measure.only.is_some() {
        algorithms::measure(&mut bench)?;
    }
    let text = halo::measure(&mut bench)? + &crowd::measure(&mut bench)?;
    let (rows, text) = (bench.rows.end()?, bench.text + &text);
    let plots = FIGURES.iter().filter_map(|figure| Some((figure.name, figure.plot(&rows)?)));
    draw(message.measure.svg.as_deref(), plots.clone())?;
    let figures: String = plots.map(|(name, plot)| table::figure(name, &plot)).collect();
    Ok(figures + &text + &algorithms::tables(&rows) + &bars::bars(&rows))
}

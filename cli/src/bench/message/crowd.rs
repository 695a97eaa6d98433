//! Many ranks on few cores: a ring in which each rank computes for a while and
//! exchanges a message with both neighbours.
//!
//! The time of a cycle is compared with the computation alone, spread over the cores:
//! a rank that must wait until other ranks have used up their time slices takes
//! milliseconds more.

use super::bench::{LIMIT, MessageBench};
use super::case::{Case, YIELDING};
use super::halo::step_ns;
use super::state::row;
use crate::bench::trip_ns;
use crate::failure::Failure;
use crate::summary::Summary;
use crate::text;

/// Runs the whole benchmark, if it is selected; returns a text about its rows.
pub fn measure(bench: &mut MessageBench<'_>) -> Result<String, Failure> {
    if !bench.names.contains(&ROW) {
        return Ok(String::new());
    }
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let steps = (COMPUTE_US * 1e3 / step_ns()) as u64;
    let rounds = bench.rounds().unwrap_or(ROUNDS);
    let mut paces = Vec::new();
    for ranks in RANKS {
        let command = format!("crowd bytes={BYTES} steps={steps} rounds={rounds} repeat=3");
        let params = format!("ranks={ranks} bytes={BYTES} compute_us={COMPUTE_US}");
        let case = Case::new(ROW, params, command, false);
        let systems = bench.one_of_ours(YIELDING)?;
        let mut teams = bench.start(&systems, ranks, &case)?;
        let mut samples = vec![Vec::new(); teams.len()];
        let before = trip_ns();
        bench.rows.progress.stage(ROW, u64::from(bench.passes()));
        for pass in 0..bench.passes().min(PASSES) {
            for (team, samples) in teams.iter_mut().zip(&mut samples) {
                samples.extend(team.ask(&case.command, LIMIT)?.ns);
            }
            bench.rows.progress.at(u64::from(pass) + 1);
        }
        let trips = [before, trip_ns()];
        let work_us = COMPUTE_US * f64::from(ranks) / (cores as f64).min(f64::from(ranks));
        for (team, samples) in teams.iter().zip(&mut samples) {
            let Some(summary) = Summary::of(samples) else { continue };
            let us = summary.median / 1e3;
            let each = (us - work_us) * cores as f64 / f64::from(ranks);
            paces.push(vec![
                ranks.to_string(),
                team.name.clone(),
                format!("{us:.0}"),
                format!("{:.2}", us / work_us),
                format!("{each:.1}"),
            ]);
            let row = row(&team.name, ROW.to_owned(), case.params.clone(), summary, trips);
            bench.rows.write([row])?;
        }
    }
    let header = ["ranks", "of", "cycle, us", "cycle / computation", "messages, us per rank"];
    let table = text::table(&header, paces);
    Ok(format!("\nranks in a ring on {cores} cores, {BYTES} B to each neighbour\n{table}"))
}

/// The row's name.
pub const ROW: &str = "crowd";
/// The numbers of ranks, from the fewest to the most.
pub const RANKS: [u32; 3] = [8, 32, 64];
const BYTES: u64 = 1 << 10;
const COMPUTE_US: f64 = 20.0;
const ROUNDS: u64 = 20;
const PASSES: u32 = 3;

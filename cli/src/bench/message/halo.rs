//! Eight ranks on two cores in the cycle of a hydrodynamics code: the sizes and the
//! share of computation are those of LULESH, measured with its meshes of 10 x 10 x
//! 10 and 20 x 20 x 20 for each rank.

use super::bench::{LIMIT, MessageBench};
use super::case::{self, Case, OURS, YIELDING};
use super::state::row;
use super::work::compute;
use crate::bench::trip_ns;
use crate::failure::Failure;
use crate::summary::Summary;
use crate::text;
use std::time::Instant;
use tsumugi::Rank;

/// The mesh of a rank.
struct Mesh {
    side: u32,
    name: &'static str,
    sizes: &'static str,
    compute_us: f64,
}

/// Measures all selected rows; returns a text about them.
pub fn measure(bench: &mut MessageBench<'_>) -> Result<String, Failure> {
    let mut text = String::new();
    if !bench.names.iter().any(|name| name.starts_with("halo")) {
        return Ok(text);
    }
    let step_ns = step_ns();
    let mut cases = Vec::new();
    let rounds = bench.rounds().unwrap_or(ROUNDS);
    for mesh in MESHES.iter().filter(|mesh| bench.names.contains(&mesh.name)) {
        cases.push((mesh.case(mesh.name, 0.0, step_ns, rounds), None));
        let alone = mesh.alone(step_ns, rounds);
        cases.push((mesh.case(mesh.name, mesh.compute_us, step_ns, rounds), Some(alone)));
    }
    if !cases.is_empty() {
        let systems = bench.systems(YIELDING)?;
        let mut teams = bench.start(&systems, RANKS, &cases[0].0)?;
        let passes = if bench.is_quick { 1 } else { PASSES };
        let mut samples = vec![vec![Vec::new(); teams.len() + 1]; cases.len()];
        let before = trip_ns();
        for _ in 0..passes {
            bench.rows.progress.stage("halo", cases.len() as u64);
            for (index, (case, alone)) in cases.iter().enumerate() {
                for (team, samples) in teams.iter_mut().zip(&mut samples[index]) {
                    samples.extend(team.ask(&case.command, LIMIT)?.ns);
                }
                let ours = teams.iter_mut().find(|team| team.name == OURS);
                if let (Some(ours), Some(alone)) = (ours, alone) {
                    samples[index]
                        .last_mut()
                        .expect("one more than teams")
                        .extend(ours.ask(alone, LIMIT)?.ns);
                }
                bench.rows.progress.at(index as u64 + 1);
            }
        }
        let trips = [before, trip_ns()];
        for ((case, _), samples) in cases.iter().zip(&mut samples) {
            let names = teams.iter().map(|team| &*team.name).chain([COMPUTING]);
            for (system, samples) in names.zip(samples) {
                let Some(summary) = Summary::of(samples) else { continue };
                let name = case.name.to_owned();
                bench.rows.write([row(system, name, case.params.clone(), summary, trips)])?;
            }
        }
        for team in &mut teams {
            if team.name == OURS {
                text += &ways(&team.ask("counts", LIMIT)?.counts);
            }
        }
    }
    if bench.names.contains(&LIMITS) {
        text += &limits(bench, step_ns)?;
    }
    Ok(text)
}

/// The paper's table 2: each eager limit needs a job of its own.
fn limits(bench: &mut MessageBench<'_>, step_ns: f64) -> Result<String, Failure> {
    let mut shares = Vec::new();
    let rounds = bench.rounds().unwrap_or(ROUNDS);
    let limits: &[usize] = if bench.is_quick { &EAGER_LIMITS[3..4] } else { &EAGER_LIMITS };
    for (index, limit) in limits.iter().enumerate() {
        bench.rows.progress.stage(LIMITS, limits.len() as u64);
        let bytes = limit.to_string();
        let systems = case::designs()?;
        let systems = systems.into_iter().filter(|system| system.name != case::RENDEZVOUS);
        let mut systems: Vec<_> = systems.collect();
        for system in &mut systems {
            system.env.push(("TSUMUGI_EAGER_MAX_BYTES".to_owned(), bytes.clone()));
        }
        let cases =
            MESHES.each_ref().map(|mesh| mesh.case(LIMITS, mesh.compute_us, step_ns, rounds));
        let mut teams = bench.start(&systems, RANKS, &cases[0])?;
        for case in &cases {
            let before = trip_ns();
            let mut samples = vec![Vec::new(); teams.len()];
            for _ in 0..if bench.is_quick { 1 } else { PASSES } {
                for (team, samples) in teams.iter_mut().zip(&mut samples) {
                    samples.extend(team.ask(&case.command, LIMIT)?.ns);
                }
            }
            let trips = [before, trip_ns()];
            for (team, samples) in teams.iter().zip(&mut samples) {
                let Some(summary) = Summary::of(samples) else { continue };
                let params = format!("{} eager={bytes}", case.params);
                bench.rows.write([row(&team.name, LIMITS.to_owned(), params, summary, trips)])?;
            }
        }
        for team in teams.iter_mut().filter(|team| team.name != case::TWO_COPY) {
            let share = share(&team.ask("counts", LIMIT)?.counts);
            shares.push(vec![
                text::bytes(*limit as u64),
                team.name.clone(),
                format!("{share:.0} %"),
            ]);
        }
        bench.rows.progress.at(index as u64 + 1);
    }
    let table = text::table(&["eager limit", "of", "with one copy"], shares);
    Ok(format!("\nmessages of both halos that are too long for a packet\n{table}"))
}

impl Mesh {
    fn alone(&self, step_ns: f64, rounds: u64) -> String {
        let steps = (self.compute_us * 1e3 / step_ns) as u64;
        format!("alone steps={steps} rounds={rounds} repeat=3")
    }

    fn case(&self, name: &'static str, compute_us: f64, step_ns: f64, rounds: u64) -> Case {
        let steps = (compute_us * 1e3 / step_ns) as u64;
        let params = format!("mesh={} compute_us={compute_us}", self.side);
        let command = format!("halo {} steps={steps} rounds={rounds} repeat=3", self.sizes);
        Case::new(name, params, command, false)
    }
}

/// The time of one step of the computation.
pub fn step_ns() -> f64 {
    let time = |_| {
        let begin = Instant::now();
        compute(STEPS, Rank(0));
        begin.elapsed().as_nanos() as f64 / STEPS as f64
    };
    (0..20).map(time).fold(f64::MAX, f64::min)
}

/// A text about the counts of messages by path, and of their lengths.
fn ways(counts: &[(String, u64)]) -> String {
    if counts.is_empty() {
        return String::new();
    }
    let lines = counts.iter().map(|(name, n)| vec![name.replace('_', " "), text::count(*n)]);
    let table = text::table(&["", "messages"], lines);
    let share = share(counts);
    format!(
        "\nmessages of all ranks in the halos\n{table}  {share:.0} % of those that are too long \
         for a packet were copied once (in the paper: 65 % or more could be)\n"
    )
}

/// The share of single-copy messages among those that do not fit into a packet, per
/// cent.
fn share(counts: &[(String, u64)]) -> f64 {
    let count = |wanted: &str| {
        counts.iter().find(|(name, _)| name == wanted).map_or(0, |(_, count)| *count)
    };
    let once = count("direct") + count("rendezvous");
    100.0 * once as f64 / (once + count("eager")).max(1) as f64
}

/// The rows of the computation alone, without messages: a lower bound for every
/// system.
pub const COMPUTING: &str = "computing";
const RANKS: u32 = 8;
const LIMITS: &str = "halo_limits";
const MESHES: [Mesh; 2] = [
    Mesh { side: 10, name: "halo10", sizes: "faces=2652 edges=264 corners=24", compute_us: 470.0 },
    Mesh {
        side: 20,
        name: "halo20",
        sizes: "faces=10092 edges=504 corners=24",
        compute_us: 4300.0,
    },
];
const EAGER_LIMITS: [usize; 7] = [1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10];
const PASSES: u32 = 5;
/// Cycles of one sample.
const ROUNDS: u64 = 20;
const STEPS: usize = 20_000;

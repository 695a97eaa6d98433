//! `tsumugi demo`: how far is every vertex from one of them?
//!
//! ```text
//!  rank 0   read graph ─► spread ─► search ─► gather ─► compare ─► report
//!  others                 spread ─► search ─► (their memory is read)
//! ```

mod histogram;
mod probe;
mod report;
mod search;
mod spread;
mod tally;
mod world;

use self::report::{Disagreement, Report};
use self::spread::Spread;
use self::tally::Tally;
use self::world::{Outcome, World};
use crate::args;
use crate::failure::Failure;
use crate::graph::{Graph, UNREACHED};
use crate::progress::Progress;
use std::time::Instant;

/// Searches, and returns the tables.
pub fn demo(args: &args::Demo) -> Result<String, Failure> {
    let progress = Progress::new();
    progress.stage("reading the graph", 1);
    let graph = Graph::open(args.graph.as_deref(), args.names.as_deref())
        .map_err(|broken| Failure::Failed(broken.to_string()))?;
    let from = match &args.from {
        Some(from) => graph.vertex(from),
        None if args.graph.is_none() => graph.vertex(FROM),
        None => Ok(0),
    };
    let from = from.map_err(|none| Failure::Usage(format!("--from {none}")))?;
    let report = World::run(args.ranks, |world| {
        let graph = (world.rank() == 0).then_some(&graph);
        rank(&world, graph, from, args, &progress)
    });
    drop(progress);
    let report: Result<Vec<_>, _> = report.into_iter().collect();
    let report = report.map_err(|failure| Failure::Failed(failure.to_string()))?;
    let report = report.into_iter().flatten().next().expect("rank 0 reports");
    if let Some(path) = &args.json {
        let json = serde_json::to_string_pretty(&report).expect("a report has string keys");
        std::fs::write(path, json + "\n").map_err(|error| Failure::write(path, &error))?;
    }
    match report.disagreement {
        None => Ok(report.text()),
        Some(_) => Err(Failure::Failed(report.text())),
    }
}

/// What each rank does; rank 0, which has the graph, reports.
fn rank(
    world: &World,
    graph: Option<&Graph>,
    from: u32,
    args: &args::Demo,
    progress: &Progress,
) -> Outcome<Option<Report>> {
    let spread = Spread::new(world, graph.map(|graph| &graph.csr))?;
    if world.rank() == 0 {
        progress.stage("searching", spread.vertices().into());
    }
    let tally = Tally::new();
    world.barrier()?;
    let begin = Instant::now();
    search::search(world, &spread, from, args.ults, &tally, |reached| progress.at(reached))?;
    let ns = begin.elapsed().as_nanos() as u64;
    let totals = tally.gather(world)?;
    let Some(graph) = graph else {
        // Rank 0 reads this rank's memory until here.
        world.barrier()?;
        return Ok(None);
    };
    progress.stage("checking", 1);
    let get_ns = probe::get_ns(world, &spread)?;
    let found = spread.gather(world)?;
    world.barrier()?;
    let begin = Instant::now();
    let serial = graph.csr.levels(from);
    let serial_ns = begin.elapsed().as_nanos() as u64;
    Ok(Some(Report {
        graph: graph.title.clone(),
        vertices: graph.csr.vertices().into(),
        edges: graph.csr.edges(),
        from: graph.name(from),
        ranks: world.size(),
        ults: args.ults,
        workers: args.workers.unwrap_or(1),
        levels: by_level(&found),
        edges_searched: edges_searched(graph, &found),
        ns,
        serial_ns,
        operations: totals.operations,
        waits: totals.waits,
        get_ns,
        parked: totals.parked,
        disagreement: disagreement(graph, &serial, &found),
    }))
}

/// How many vertices each level has.
fn by_level(levels: &[u32]) -> Vec<u64> {
    let mut counts = Vec::new();
    for &level in levels.iter().filter(|level| **level != UNREACHED) {
        let level = level as usize;
        if counts.len() <= level {
            counts.resize(level + 1, 0);
        }
        counts[level] += 1;
    }
    counts
}

fn edges_searched(graph: &Graph, levels: &[u32]) -> u64 {
    let reached = (0u32..).zip(levels).filter(|(_, level)| **level != UNREACHED);
    reached.map(|(vertex, _)| graph.csr.row(vertex).len() as u64).sum::<u64>() / 2
}

fn disagreement(graph: &Graph, serial: &[u32], found: &[u32]) -> Option<Disagreement> {
    let vertex = serial.iter().zip(found).position(|(serial, found)| serial != found)?;
    let level = |levels: &[u32]| Some(levels[vertex]).filter(|level| *level != UNREACHED);
    Some(Disagreement {
        vertex: graph.name(vertex as u32),
        serial: level(serial),
        found: level(found),
    })
}

/// Where the search starts when nobody says.
const FROM: &str = "bash";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Csr;

    fn graph() -> Graph {
        let csr = Csr::new(5, vec![(0, 1), (1, 2), (3, 4)]);
        Graph { title: "test".into(), csr, names: None }
    }

    #[test]
    fn levels_are_counted_and_edges_among_the_reached() {
        let levels = graph().csr.levels(1);
        assert_eq!(by_level(&levels), [1, 2]);
        assert_eq!(edges_searched(&graph(), &levels), 2);
        assert!(by_level(&[UNREACHED]).is_empty());
    }

    #[test]
    fn the_first_difference_is_named() {
        let serial = graph().csr.levels(1);
        assert_eq!(disagreement(&graph(), &serial, &serial), None);
        let mut found = serial.clone();
        found[2] = 7;
        found[4] = 0;
        let expected = Disagreement { vertex: "vertex 3".into(), serial: Some(1), found: Some(7) };
        assert_eq!(disagreement(&graph(), &serial, &found), Some(expected));
        found[2] = serial[2];
        let Disagreement { serial, found, .. } =
            disagreement(&graph(), &serial, &found).expect("vertex 5 differs");
        assert_eq!((serial, found), (None, Some(0)));
    }
}

//! `tsumugi demo`: the distance of every vertex from one of them.
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

use self::report::{Disagreement, Report};
use self::search::GraphSearch;
use self::spread::Spread;
use crate::failure::Failure;
use crate::graph::{Graph, UNREACHED};
use crate::progress::ProgressLine;
use crate::{args, job};
use std::sync::Arc;
use std::time::Instant;
use tsumugi::{Rank, Runtime};

/// Searches, and returns the tables if this process is rank 0.
pub fn demo(args: &args::DemoArgs) -> Result<String, Failure> {
    if !job::is_rank() {
        // Errors in the arguments are reported once, before ranks are started.
        SearchTask::open(args)?;
        return job::run_self(args.ranks);
    }
    let report = job::config(args.workers)?.run(|rt| rank(rt, args))?;
    let Some(report) = report else { return Ok(String::new()) };
    if let Some(path) = &args.json {
        let json = serde_json::to_string_pretty(&report).expect("a report has string keys");
        std::fs::write(path, json + "\n").map_err(|error| Failure::write(path, &error))?;
    }
    match report.disagreement {
        None => Ok(report.text()),
        Some(_) => Err(Failure::Failed(report.text())),
    }
}

/// The graph to search, and the first vertex.
struct SearchTask {
    graph: Graph,
    from: u32,
}

impl SearchTask {
    fn open(args: &args::DemoArgs) -> Result<Self, Failure> {
        let graph = Graph::open(args.graph.as_deref(), args.names.as_deref())
            .map_err(|broken| Failure::Failed(broken.to_string()))?;
        let from = match &args.from {
            Some(from) => graph.vertex(from),
            None if args.graph.is_none() => graph.vertex(FROM),
            None => Ok(0),
        };
        let from = from.map_err(|none| Failure::Usage(format!("--from {none}")))?;
        Ok(Self { graph, from })
    }
}

/// The work of each rank; rank 0, which has the graph, reports.
fn rank(rt: &Runtime, args: &args::DemoArgs) -> Result<Option<Report>, Failure> {
    let is_first = rt.rank() == Rank(0);
    let progress = Arc::new(if is_first { ProgressLine::new() } else { ProgressLine::silent() });
    progress.stage("reading the graph", 1);
    let task = is_first.then(|| SearchTask::open(args)).transpose()?;
    if is_first {
        check_room(rt, args.ults)?;
    }
    let spread = Arc::new(Spread::new(rt, task.as_ref().map(|task| &task.graph.csr))?);
    let search = GraphSearch::new(rt, &spread, args.ults)?;
    let before = rt.ults().counts();
    progress.stage("searching", spread.vertices().into());
    let shown = progress.clone();
    let from = task.as_ref().map(|task| task.from);
    let (start, time) = search.run(from, move |reached| shown.at(reached))?;
    let scheduler = rt.ults().counts() - before;
    let totals = search.tally().gather(rt, scheduler)?;
    let Some(SearchTask { graph, from }) = task else {
        // Rank 0 reads this rank's memory until this barrier.
        rt.barrier()?;
        return Ok(None);
    };
    progress.stage("checking", 1);
    let get_ns = probe::get_ns(rt, &spread)?;
    let found = spread.gather(rt)?;
    rt.barrier()?;
    let begin = Instant::now();
    let serial = graph.csr.levels(from);
    let serial_ns = begin.elapsed().as_nanos() as u64;
    Ok(Some(Report {
        graph: graph.title.clone(),
        vertices: graph.csr.vertices().into(),
        edges: graph.csr.edges(),
        from: graph.name(from),
        ranks: rt.size(),
        ults: args.ults,
        workers: rt.workers() as u32,
        levels: by_level(&found),
        edges_searched: edges_searched(&graph, &found),
        start_ns: start.as_nanos() as u64,
        ns: time.as_nanos() as u64,
        serial_ns,
        operations: totals.operations,
        waits: totals.waits,
        get_ns,
        slept_at_level_barrier: totals.slept,
        disagreement: disagreement(&graph, &serial, &found),
    }))
}

/// All threads of a rank wait at a barrier together, so each needs a stack of its
/// own.
fn check_room(rt: &Runtime, ults: u32) -> Result<(), Failure> {
    let room = rt.ults().stacks_max();
    if ults as usize <= room {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "--ults {ults}: a rank has room for the stacks of {room} threads (TSUMUGI_STACK_BYTES \
         divided by TSUMUGI_ULT_STACK_BYTES)"
    )))
}

/// The number of vertices of each level.
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

/// The first vertex of the search, by default.
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
    fn levels_and_edges_of_reached_vertices_are_counted() {
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

//! `tsumugi bench program`: whole programs on arrays with pages that move, run by
//! four ranks of a node. Each run checks its answer.
//!
//! | row | what is measured |
//! |---|---|
//! | `uts` | unbalanced tree search, T1, by tasks that workers steal |
//! | `queens` | twelve queens, by such tasks |
//! | `mesh_none` | heat on a refined mesh: work and pages stay where they were dealt |
//! | `mesh_work` | the same, with work that is distributed anew after each refinement |
//! | `mesh_own` | the same, and the pages with the work, by `own` |
//! | `search_dealt` | the demo's graph searched, its rows dealt in blocks, the work by a hash |
//! | `search_own` | a search in which every rank brings the rows that it reads |
//! | `search_owned` | the same search, then |
//! | `gups` | random updates of a table, four times as many as it has words |
//! | `sort` | sample sort |
//!
//! A sample is a whole run. If accesses are counted, there is a second row of the
//! same name: the share of accesses to pages of other ranks.

use super::bar::{self, Bar, Met};
use super::catalogue::Group;
use super::line::trip_ns;
use super::row::Row;
use super::row_writer::RowWriter;
use crate::args::MeasureArgs;
use crate::failure::Failure;
use crate::graph::Graph;
use crate::summary::Summary;
use std::time::Duration;
use tsumugi::{Error, Rank, Runtime};
use tsumugi_bench_program::search::Search;
use tsumugi_bench_program::{gups, mesh, queens, sort, uts};

/// Ranks of the job.
pub const RANKS: u32 = 4;

/// The rows of this figure.
pub const CATALOGUE: &[Group] = &[
    Group { name: "tasks", rows: &["uts", "queens"] },
    Group { name: "mesh", rows: &["mesh_none", "mesh_work", "mesh_own"] },
    Group { name: "search", rows: &["search_dealt", "search_own", "search_owned"] },
    Group { name: "memory", rows: &["gups", "sort"] },
];

/// The programs, which run one after the other.
struct ProgramBench<'a> {
    rt: &'a Runtime,
    names: &'a [&'static str],
    /// The number of runs of each program.
    times: u64,
    is_quick: bool,
    rows: RowWriter,
}

/// The work of each rank; rank 0 has the rows.
pub fn rank(
    rt: &Runtime,
    names: &[&'static str],
    measure: &MeasureArgs,
) -> Result<Vec<Row>, Failure> {
    if rt.size() != RANKS {
        let found = rt.size();
        return Err(Failure::Usage(format!("bench program needs {RANKS} ranks, not {found}")));
    }
    let times = measure.ops.unwrap_or(if measure.quick { 3 } else { 11 });
    let rows = match rt.rank() {
        Rank(0) => RowWriter::new(measure.json.as_deref(), measure.csv.as_deref())?,
        _ => RowWriter::silent(),
    };
    let bench = ProgramBench { rt, names, times, is_quick: measure.quick, rows };
    let programs =
        [ProgramBench::tasks, ProgramBench::meshes, ProgramBench::searches, ProgramBench::memory];
    bench.rows.progress.stage("programs", programs.len() as u64);
    for (step, program) in (1..).zip(programs) {
        program(&bench)?;
        bench.rows.progress.at(step);
    }
    rt.barrier()?;
    bench.rows.end()
}

impl ProgramBench<'_> {
    fn tasks(&self) -> Result<(), Failure> {
        let (rt, depth, queens) = (self.rt, if self.is_quick { 8 } else { 10 }, 12);
        self.repeat("uts", &format!("depth={depth} grain=3"), "ns a node", || {
            let tree = uts::play(rt, uts::Plan { depth, grain: 3 })?;
            Ok(tree.time.as_nanos() as f64 / tree.nodes as f64)
        })?;
        self.repeat("queens", &format!("queens={queens} grain=7"), "ms", || {
            Ok(ms(queens::play(rt, queens::Plan { queens, grain: 7 })?.time))
        })
    }

    fn meshes(&self) -> Result<(), Failure> {
        let (rt, steps) = (self.rt, if self.is_quick { 24 } else { 96 });
        let shape = mesh::Shape { blocks: 16, cells: 8, level_max: 3 };
        let params = format!("blocks=256 levels=3 steps={steps}");
        let ways = [mesh::Way::Stay, mesh::Way::Work, mesh::Way::Own];
        for (name, way) in CATALOGUE[1].rows.iter().copied().zip(ways) {
            let mut shares = Vec::new();
            self.repeat(name, &params, "ms", || {
                let run = mesh::play(rt, mesh::Plan { shape, steps, period: 8 }, way)?;
                shares.push(run.share());
                Ok(ms(run.time))
            })?;
            self.keep(name, &params, REMOTE, shares)?;
        }
        Ok(())
    }

    /// The rows of the search of the demo's graph.
    fn searches(&self) -> Result<(), Failure> {
        if !self.names.iter().any(|name| name.starts_with("search")) {
            return Ok(());
        }
        let rt = self.rt;
        let graph = (rt.rank() == Rank(0)).then(|| Graph::open(None, None)).transpose();
        let graph = graph.map_err(|broken| Failure::Failed(broken.to_string()))?;
        let csr = graph.as_ref().map(|graph| &graph.csr);
        let from =
            graph.as_ref().map(|graph| graph.vertex(FROM).expect("the graph has the package"));
        let vertices = rt.sum(csr.map_or(0, |csr| u64::from(csr.vertices())))? as u32;
        let from = rt.sum(u64::from(from.unwrap_or(0)))? as u32;
        let serial = csr.map(|csr| csr.levels(from));
        let search = Search::new(rt, vertices, ULTS, csr.map(|csr| |vertex| csr.row(vertex)))?;
        let params = format!("vertices={vertices} ults={ULTS}");
        for name in ["search_dealt", "search_owned"] {
            if name == "search_owned" {
                if !self.names.iter().any(|name| ["search_own", "search_owned"].contains(name)) {
                    break;
                }
                let (moved, time) = search.own()?;
                self.keep("search_own", &format!("pages={moved}"), "ms", vec![ms(time)])?;
            }
            let mut shares = Vec::new();
            self.repeat(name, &params, "ms", || {
                let run = search.run(from)?;
                if let Some(serial) = &serial {
                    search.check(serial)?;
                }
                // No rank clears its results before they were compared.
                rt.barrier()?;
                shares.push(run.share());
                Ok(ms(run.time))
            })?;
            self.keep(name, &params, REMOTE, shares)?;
        }
        Ok(())
    }

    fn memory(&self) -> Result<(), Failure> {
        let (rt, log_words) = (self.rt, if self.is_quick { 16 } else { 20 });
        let plan = gups::Plan { log_words, ults: ULTS as u64 };
        self.repeat("gups", &format!("log_words={log_words} ults={ULTS}"), "ns an update", || {
            Ok(gups::play(rt, plan)?.as_nanos() as f64 / plan.updates() as f64)
        })?;
        let keys = if self.is_quick { 1 << 15 } else { 1 << 19 };
        self.repeat("sort", &format!("keys={keys}"), "ns a key", || {
            let all = (keys * RANKS as usize) as f64;
            Ok(sort::play(rt, sort::Plan { keys })?.time.as_nanos() as f64 / all)
        })
    }

    /// Runs a program as often as configured, if its row is selected. Collective.
    fn repeat(
        &self,
        name: &'static str,
        params: &str,
        unit: &str,
        mut once: impl FnMut() -> Result<f64, Error>,
    ) -> Result<(), Failure> {
        if !self.names.contains(&name) {
            return Ok(());
        }
        let samples = (0..self.times).map(|_| once()).collect::<Result<Vec<_>, _>>()?;
        self.keep(name, params, unit, samples)
    }

    fn keep(
        &self,
        name: &str,
        params: &str,
        unit: &str,
        mut samples: Vec<f64>,
    ) -> Result<(), Failure> {
        if !self.names.contains(&name) {
            return Ok(());
        }
        let line_ns = if self.rt.rank() == Rank(0) { trip_ns() } else { None };
        self.rows.write(Summary::of(&mut samples).map(|summary| Row {
            figure: "program".to_owned(),
            system: "tsumugi".to_owned(),
            name: name.to_owned(),
            params: format!("ranks={RANKS} network=shm {params}"),
            unit: unit.to_owned(),
            summary,
            line_ns_before: line_ns,
            line_ns_after: line_ns,
        }))
    }
}

/// The bars for the effect of relocation.
pub fn bars(rows: &[Row]) -> String {
    let share = |name: &str| {
        let row = rows.iter().find(|row| row.name == name && row.unit == REMOTE)?;
        Some(&row.summary)
    };
    let elsewhere = 1.0 - 1.0 / f64::from(RANKS);
    let dealt = share("search_dealt").map(|share| {
        let is_near = |share: f64| (share - elsewhere).abs() <= 0.05;
        of("rows read elsewhere, as dealt", &format!("{elsewhere} +- 0.05"), share, is_near)
    });
    let owned = share("search_owned")
        .map(|share| of("rows read elsewhere, after own", "<= 0.02", share, |share| share <= 0.02));
    bar::table(dealt.into_iter().chain(owned).collect())
}

fn of(what: &str, limit: &str, summary: &Summary, is_met: impl Fn(f64) -> bool) -> Bar {
    Bar {
        what: what.to_owned(),
        limit: limit.to_owned(),
        median: format!("{:.3}", summary.median),
        min: format!("{:.3}", summary.min),
        trip: None,
        met: Met::of(is_met(summary.median), is_met(summary.min)),
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The unit of shares: accesses to other ranks, over all accesses.
const REMOTE: &str = "remote";
/// User-level threads of each rank.
const ULTS: usize = 16;
/// The first vertex of the search, as in the demo.
const FROM: &str = "bash";

#[cfg(test)]
mod tests {
    use super::super::row::tests::row;
    use super::*;

    #[test]
    fn remote_shares_are_compared_with_their_limits() {
        let of = |name, share| Row { unit: REMOTE.to_owned(), ..row("tsumugi", name, share) };
        let met = [of("search_dealt", 0.748), of("search_owned", 0.01), of("mesh_work", 0.5)];
        let shown = bars(&met);
        assert_eq!(shown.matches(" yes").count(), 2, "{shown}");
        let shown = bars(&[of("search_owned", 0.5)]);
        assert!(shown.contains("0.500") && shown.contains(" no"), "{shown}");
        assert_eq!(bars(&[row("tsumugi", "search_owned", 3.0)]), "");
    }
}

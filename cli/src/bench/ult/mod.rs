//! `tsumugi bench ult`: user-level threads, beside the machine itself.
//!
//! | group | what is measured |
//! |---|---|
//! | `switch` | a bare resume and suspend, yields, park and unpark on one worker |
//! | `fork` | creating and joining, fork and join without a cutoff |
//! | `wake` | waking a ULT on another worker that spins, or that sleeps |
//! | `sync` | a mutex that is free, a turn handed over by a condition variable |
//! | `work` | the unbalanced tree T1 and the queens, a ULT per node |
//! | `memory` | ULTs asleep: bytes of each, and the time to make one |
//!
//! Every system has a process of its own for each row, with as many CPUs as it has
//! workers. The processes take turns, and are stopped meanwhile. So the peers of
//! `benches/compare` can join in, whatever their workers do when idle.

mod bars;
mod cell;
mod grid;

use self::cell::SystemResult;
use super::catalogue::{Group, chosen};
use super::line::trip_ns;
use super::row::Row as Line;
use super::row_writer::RowWriter;
use crate::args::UltArgs;
use crate::failure::Failure;
use crate::progress::ProgressLine;
use crate::summary::Summary;
use std::io::{self, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tsumugi::affinity;
use tsumugi_bench_ult::turns::{Missing, Process, take_turns};
use tsumugi_bench_ult::{Inbox, ROWS, Row, System, bare, ults};

pub const CATALOGUE: &[Group] = &[
    Group { name: "switch", rows: &["raw_switch", "yield2", "yield1000", "park_same"] },
    Group { name: "fork", rows: &["create_join", "create_join_inline", "fib", "fib_no_inline"] },
    Group { name: "wake", rows: &["wake_spinning", "wake_sleeping"] },
    Group { name: "sync", rows: &["mutex", "condvar"] },
    Group { name: "work", rows: &["uts", "nqueens"] },
    Group { name: "memory", rows: &["bytes_per_ult"] },
];

/// Measures; returns the comparisons.
pub fn measure(args: &UltArgs, peers: &[System]) -> Result<String, Failure> {
    let systems: Vec<&'static System> =
        [bare::SYSTEM, ults::SYSTEM].iter().chain(peers).map(|&system| leaked(system)).collect();
    if let [system, row, workers, cpus] = args.serve.as_slice() {
        return serve(&systems, system, row, [workers, cpus], args.quick);
    }
    let names = chosen(args.only.as_deref(), CATALOGUE)?;
    let cpus = affinity::allowed()
        .map_err(|error| Failure::Failed(format!("the cpuset cannot be read: {error}")))?;
    let writer = RowWriter::new(args.json.as_deref(), args.csv.as_deref())?;
    let mut cells = Vec::new();
    for row in ROWS.iter().filter(|row| names.contains(&row.name)) {
        let measured = measure_row(row, &systems, &cpus, args, &writer.progress)?;
        let lines = measured.iter().filter_map(|cell| cell.outcome.as_ref().ok()).flatten();
        writer.write(lines.cloned())?;
        cells.extend(measured);
    }
    let lines = writer.end()?;
    let grid = if peers.is_empty() { grid::failures(&cells) } else { grid::grid(&cells, &systems) };
    Ok(grid + &bars::bars(&lines))
}

/// Measures a row of all systems by turns.
fn measure_row(
    row: &'static Row,
    systems: &[&'static System],
    cpus: &[usize],
    args: &UltArgs,
    progress: &ProgressLine,
) -> Result<Vec<SystemResult>, Failure> {
    let wanted = contenders(row, systems);
    let budget = row.budget / if args.quick { 10 } else { 1 } * wanted.len() as u32;
    progress.stage(row.name, budget.as_millis() as u64);
    let before = trip_ns();
    let start = |(system, row, workers): &(&System, &Row, usize)| {
        if row.cpus(*workers) > cpus.len() {
            let why =
                format!("needs {} CPUs, this process may use {}", row.cpus(*workers), cpus.len());
            return Ok(Err(Missing::Refused(why)));
        }
        // The others need no pins: a process with one worker keeps to its single CPU,
        // and `bare` pins its own threads.
        let is_free = *workers > 1 && system.name != "bare";
        let pins = if is_free { &cpus[..*workers] } else { &[] };
        Process::start(&mut itself(system, row, *workers, args)?, pins)
            .map(Ok)
            .map_err(|error| Failure::Failed(format!("{} cannot be started: {error}", system.name)))
    };
    let mut processes: Vec<_> = wanted.iter().map(start).collect::<Result<_, Failure>>()?;
    let mut begin = Instant::now();
    let samples = take_turns(&mut processes, row.limit, |rounds| {
        if rounds == 0 {
            begin = Instant::now();
        }
        let elapsed = begin.elapsed();
        progress.at(elapsed.min(budget).as_millis() as u64);
        rounds > 0 && elapsed >= budget.max(Duration::from_nanos(1))
    });
    drop(processes);
    let after = trip_ns();
    let cell = |((system, row, workers), samples): ((&'static System, &'static Row, usize), _)| {
        let lines = |samples: Vec<f64>| lines(system, row, workers, &samples, [before, after]);
        let outcome: Result<Vec<f64>, Missing> = samples;
        SystemResult { system, row: row.name, workers, outcome: outcome.map(lines) }
    };
    Ok(wanted.into_iter().zip(samples).map(cell).collect())
}

/// The contenders of a row; the machine itself comes first.
fn contenders(
    row: &'static Row,
    systems: &[&'static System],
) -> Vec<(&'static System, &'static Row, usize)> {
    let bare = row.beside.and_then(Row::named).map(|bare| {
        let workers = bare.workers.first().copied().unwrap_or(1);
        (systems[0], bare, workers)
    });
    let others = row
        .workers
        .iter()
        .flat_map(|workers| systems[1..].iter().map(move |system| (*system, row, *workers)));
    bare.into_iter().chain(others).collect()
}

/// The command that runs `system` for this row.
fn itself(system: &System, row: &Row, workers: usize, args: &UltArgs) -> Result<Command, Failure> {
    let own = std::env::current_exe().map_err(|error| {
        Failure::Failed(format!("the path of this command is unknown: {error}"))
    })?;
    let mut command = Command::new(own);
    // `tsumugi bench ult`, or `compare ult`.
    command.args(std::env::args().skip(1).take_while(|word| word != "ult")).arg("ult");
    if args.quick {
        command.arg("--quick");
    }
    command.args(["--serve", system.name, row.name]);
    command.args([workers, row.cpus(workers)].map(|n| n.to_string()));
    if !is_ours(system) {
        // Messages of a peer about a thousand threads that fail are of no interest
        // here.
        command.stderr(Stdio::null());
    }
    Ok(command)
}

fn is_ours(system: &System) -> bool {
    [bare::SYSTEM.name, ults::SYSTEM.name].contains(&system.name)
}

/// Serves as `system` until its input ends.
fn serve(
    systems: &[&'static System],
    system: &str,
    row: &str,
    [workers, cpus]: [&String; 2],
    is_quick: bool,
) -> Result<String, Failure> {
    let unknown = || Failure::Usage(format!("--serve {system} {row} {workers} {cpus}"));
    let system = systems.iter().find(|known| known.name == system).ok_or_else(unknown)?;
    let row = Row::named(row).ok_or_else(unknown)?;
    let [workers, cpus] = [workers, cpus].map(|word| word.parse::<usize>().map_err(|_| unknown()));
    let (workers, cpus) = (workers?, cpus?);
    // A stopped process does not notice that the process which measures is gone; a
    // running one finds its input at an end.
    // SAFETY: the call takes numbers and accesses no memory of this process.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    let allowed = affinity::allowed().unwrap_or_default();
    // If the system does not allow pinning, all contenders are equally free.
    let _ = affinity::keep_to(&allowed[..cpus.min(allowed.len())]);
    let requests = BufReader::new(io::stdin());
    (system.serve)(Inbox::new(row, workers, is_quick, requests, io::stdout()));
    Ok(String::new())
}

/// A line for each part of the row.
fn lines(
    system: &System,
    row: &Row,
    workers: usize,
    samples: &[f64],
    [before, after]: [Option<f64>; 2],
) -> Vec<Line> {
    let parts = row.parts.iter().enumerate();
    let line = |(at, (name, unit)): (usize, &(&str, &str))| {
        let mut own: Vec<f64> = samples.iter().copied().skip(at).step_by(row.parts.len()).collect();
        Some(Line {
            figure: "ult".to_owned(),
            system: system.name.to_owned(),
            name: (*name).to_owned(),
            params: format!("workers={workers}"),
            unit: (*unit).to_owned(),
            summary: Summary::of(&mut own)?,
            line_ns_before: before,
            line_ns_after: after,
        })
    };
    parts.filter_map(line).collect()
}

/// Leaks the system: a process measures only once.
fn leaked(system: System) -> &'static System {
    Box::leak(Box::new(system))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_in_a_group_and_is_measured() {
        let mut listed: Vec<&str> =
            CATALOGUE.iter().flat_map(|group| group.rows).copied().collect();
        let mut rows: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
        listed.sort_unstable();
        rows.sort_unstable();
        assert_eq!(listed, rows);
    }

    #[test]
    fn a_bare_row_is_measured_beside_the_row_that_needs_it() {
        let systems = [leaked(bare::SYSTEM), leaked(ults::SYSTEM)];
        let names = |row: &str| -> Vec<_> {
            let contenders = contenders(Row::named(row).unwrap(), &systems).into_iter();
            contenders.map(|(system, row, workers)| (system.name, row.name, workers)).collect()
        };
        assert_eq!(names("raw_switch"), [("bare", "raw_switch", 1)]);
        assert_eq!(names("yield2"), [("bare", "raw_switch", 1), ("tsumugi", "yield2", 1)]);
        assert_eq!(names("fib"), [("tsumugi", "fib", 1), ("tsumugi", "fib", 2)]);
    }

    #[test]
    fn a_batch_may_have_several_results() {
        let row = Row::named("bytes_per_ult").unwrap();
        let lines =
            lines(&ults::SYSTEM, row, 1, &[4096.0, 900.0, 50.0, 4098.0, 800.0, 60.0], [None; 2]);
        let shown: Vec<_> = lines
            .iter()
            .map(|line| (line.name.as_str(), line.unit.as_str(), line.summary.min))
            .collect();
        let expected = [
            ("bytes_per_ult", "bytes", 4096.0),
            ("create_asleep", "ns", 800.0),
            ("wake_all_join", "ns", 50.0),
        ];
        assert_eq!(shown, expected);
    }
}

//! Locks in jobs of real processes, on the available cores.
//!
//! ```text
//!  tsumugi bench lock ─► 2, 4, 8, 16 ranks of itself ─► rows, in rank 0's file
//!                     └► the same for each peer, which prints them
//! ```

use super::super::sample::{Batch, Contender};
use super::rows::{made, params};
use super::together::{TOGETHER, Together};
use crate::args;
use crate::bench::line::trip_ns;
use crate::bench::measured::{budget, measure as by_turns};
use crate::bench::row::{self, Row};
use crate::bench::row_writer::RowWriter;
use crate::failure::Failure;
use crate::job;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use tsumugi::lock::LockKind;
use tsumugi::pvas::launch::{Guardian, Launch};
use tsumugi::{Error, Rank, Runtime};

/// Runs our jobs and the peers', one after the other.
pub fn measure(
    locks: &args::LockArgs,
    names: &[&'static str],
    rows: &RowWriter,
) -> Result<(), Failure> {
    let wants = |of: &[&str]| of.iter().any(|name| names.contains(name));
    let is_alone = wants(&ALONE);
    if !is_alone && !wants(&TOGETHER) {
        return Ok(());
    }
    let guardian = job::guardian("lock")?;
    rows.progress.stage("processes", SIZES.len() as u64);
    for (step, ranks) in (1..).zip(SIZES) {
        if ranks > 2 && !wants(&TOGETHER) {
            break;
        }
        rows.write(own(locks, ranks, &guardian)?)?;
        for peer in &locks.peer {
            let peer = self::peer(peer, ranks, &guardian)?;
            rows.write(peer.into_iter().filter(|row| names.contains(&&*row.name)))?;
        }
        rows.progress.at(step);
    }
    Ok(())
}

/// The rows of a job of this command.
fn own(locks: &args::LockArgs, ranks: u32, guardian: &Guardian) -> Result<Vec<Row>, Failure> {
    let failed = |error: std::io::Error| Failure::Failed(format!("bench lock: {error}"));
    let program = std::env::current_exe().map_err(failed)?;
    let folder = guardian.folder().expect("the guardian has a folder");
    let file = folder.join(ranks.to_string());
    let mut words: Vec<OsString> =
        vec!["bench".into(), "lock".into(), "--serve".into(), file.clone().into()];
    if locks.measure.quick {
        words.push("--quick".into());
    }
    if let Some(only) = &locks.measure.only {
        words.extend(["--only".into(), only.into()]);
    }
    // Each rank is bound to one core and cannot use others, so this process measures
    // the trips.
    let before = trip_ns();
    job::watch(Launch::new(ranks).program(&program, words), program.as_os_str())?;
    let after = trip_ns();
    let text = std::fs::read_to_string(&file).map_err(failed);
    let _ = std::fs::remove_file(&file);
    let rows = row::of_json(&text?);
    let mut rows = rows.map_err(|error| Failure::Failed(format!("bench lock: {error}")))?;
    for row in &mut rows {
        (row.line_ns_before, row.line_ns_after) = (before, after);
    }
    Ok(rows)
}

/// A peer's rows: `name window nanoseconds` in each line that it prints.
fn peer(peer: &str, ranks: u32, guardian: &Guardian) -> Result<Vec<Row>, Failure> {
    let usage = || Failure::Usage(format!("--peer '{peer}': expected NAME=COMMAND"));
    let (system, command) = peer.split_once('=').ok_or_else(usage)?;
    let count = ranks.to_string();
    let words: Vec<&str> =
        command.split_whitespace().map(|word| if word == "N" { &*count } else { word }).collect();
    let (program, rest) = words.split_first().ok_or_else(usage)?;
    let before = trip_ns();
    let output = Command::new(program).args(rest).envs([guardian.variable()]).output();
    let output =
        output.map_err(|error| Failure::Failed(format!("{program} cannot be started: {error}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::Failed(format!("{system} with {ranks} ranks: {}", said.trim())));
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let after = trip_ns();
    let mut samples: BTreeMap<(&str, &str), Vec<f64>> = BTreeMap::new();
    for line in text.lines() {
        let [name, window, ns] = line.split(' ').collect::<Vec<_>>()[..] else { continue };
        samples.entry((name, window)).or_default().extend(ns.parse::<f64>());
    }
    let of = |((name, window), mut samples): ((&str, &str), Vec<f64>)| {
        made(system, name, &params(ranks, window), &mut samples, [before, after])
    };
    Ok(samples.into_iter().filter_map(of).collect())
}

/// The work of this process as a rank of a job.
pub fn serve(measure: &args::MeasureArgs, names: &[&str], file: &Path) -> Result<(), Failure> {
    let config = job::config(Some(1))?;
    let rows = config.run(|rt| {
        let mut rows = Vec::new();
        if rt.size() == 2 && ALONE.iter().any(|name| names.contains(name)) {
            rows.extend(alone(rt, measure, names)?);
        }
        if TOGETHER.iter().any(|name| names.contains(name)) {
            let bench = Together::new(rt, measure.quick)?;
            rows.extend(bench.rows(names)?);
        }
        Ok::<_, Failure>(rows)
    })?;
    // Only rank 0 has rows.
    if rows.is_empty() {
        return Ok(());
    }
    let writer = RowWriter::of_file(file)?;
    writer.write_unshown(rows)?;
    writer.end().map(drop)
}

/// Rank 0 locks memory of rank 1; no other rank uses that lock.
fn alone(rt: &Runtime, measure: &args::MeasureArgs, names: &[&str]) -> Result<Vec<Row>, Failure> {
    let words = rt.share::<u64>(1)?;
    let word = words.at(Rank(1), 0);
    let window = rt.window::<u64>(1)?;
    let lock = rt.share_lock(Rank(1), LockKind::Readers)?;
    rt.barrier()?;
    let mut rows = Vec::new();
    if rt.rank() == Rank(0) {
        let many = |mut one: Box<dyn FnMut() -> Result<(), Error>>| {
            Box::new(move || {
                (0..BATCH).try_for_each(|_| one())?;
                Ok(BATCH)
            }) as Batch<'_>
        };
        let mut contenders = vec![
            ("tsumugi", "fetch_add", many(Box::new(|| Ok(rt.fetch_add(word, 1).map(drop)?)))),
            (
                "window",
                "shared_uncontended",
                many(Box::new(|| Ok(window.shared(Rank(1))?.release()?))),
            ),
            (
                "window",
                "exclusive_uncontended",
                many(Box::new(|| Ok(window.exclusive(Rank(1))?.release()?))),
            ),
            ("lock", "shared_uncontended", many(Box::new(|| Ok(lock.read()?.release()?)))),
            ("lock", "exclusive_uncontended", many(Box::new(|| Ok(lock.write()?.release()?)))),
        ];
        contenders.retain(|(_, name, _)| names.contains(name));
        let mut contenders: Vec<Contender<'_>> = contenders
            .into_iter()
            .map(|(system, name, batch)| Contender { system, name, batch })
            .collect();
        let budget = budget(measure);
        rows = by_turns("lock", &params(2, "each"), budget, BATCH, &mut contenders)?.rows;
    }
    rt.barrier()?;
    Ok(rows)
}

const ALONE: [&str; 3] = ["fetch_add", "shared_uncontended", "exclusive_uncontended"];
/// The numbers of ranks of a job, on however many cores.
const SIZES: [u32; 4] = [2, 4, 8, 16];
/// Lock operations of a batch.
const BATCH: u64 = 64;

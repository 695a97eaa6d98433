//! Locks in jobs of real processes, on the cores that there are.
//!
//! ```text
//!  tsumugi bench lock ─► 2, 4, 8, 16 ranks of itself ─► rows, in a file of rank 0's
//!                     └► the same of each peer, which prints them
//! ```

use super::super::sample::{Batch, Contender};
use super::super::{budget, measure as by_turns, row, trip_ns};
use crate::args;
use crate::bench::row::Row;
use crate::failure::Failure;
use crate::job;
use crate::progress::Progress;
use crate::summary::Summary;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use tsumugi::lock::Kind;
use tsumugi::pvas::launch::Launch;
use tsumugi::window::Design;
use tsumugi::{Error, Rank, Runtime, Window};

/// Our jobs and the peers', one after the other.
pub fn measure(locks: &args::Locks, names: &[&'static str]) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    let wants = |of: &[&str]| of.iter().any(|name| names.contains(name));
    let is_alone = wants(&ALONE);
    if !is_alone && !wants(&TOGETHER) {
        return Ok(rows);
    }
    let progress = Progress::new();
    progress.stage("processes", SIZES.len() as u64);
    for (step, ranks) in (1..).zip(SIZES) {
        if ranks > 2 && !wants(&TOGETHER) {
            break;
        }
        rows.extend(own(locks, ranks)?);
        for peer in &locks.peer {
            let peer = self::peer(peer, ranks)?;
            rows.extend(peer.into_iter().filter(|row| names.contains(&&*row.name)));
        }
        progress.at(step);
    }
    Ok(rows)
}

/// A job of this command.
fn own(locks: &args::Locks, ranks: u32) -> Result<Vec<Row>, Failure> {
    let failed = |error: std::io::Error| Failure::Failed(format!("bench lock: {error}"));
    let program = std::env::current_exe().map_err(failed)?;
    let file = std::env::temp_dir().join(format!("tsumugi-lock-{}-{ranks}", std::process::id()));
    let mut words: Vec<OsString> =
        vec!["bench".into(), "lock".into(), "--serve".into(), file.clone().into()];
    if locks.measure.quick {
        words.push("--quick".into());
    }
    if let Some(only) = &locks.measure.only {
        words.extend(["--only".into(), only.into()]);
    }
    // The ranks are bound to a core each, and see no other.
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

/// A peer's rows: `name nanoseconds` in each line that it prints.
fn peer(peer: &str, ranks: u32) -> Result<Vec<Row>, Failure> {
    let usage = || Failure::Usage(format!("--peer '{peer}': expected NAME=COMMAND"));
    let (system, command) = peer.split_once('=').ok_or_else(usage)?;
    let count = ranks.to_string();
    let words: Vec<&str> =
        command.split_whitespace().map(|word| if word == "N" { &*count } else { word }).collect();
    let (program, rest) = words.split_first().ok_or_else(usage)?;
    let before = trip_ns();
    let output = Command::new(program).args(rest).output();
    let output = output.map_err(|error| Failure::Failed(format!("{program}: {error}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::Failed(format!("{system} with {ranks} ranks: {}", said.trim())));
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut names: Vec<&str> = text.lines().filter_map(|line| line.split(' ').next()).collect();
    names.dedup();
    let of = |name: &str| {
        let values = text.lines().filter_map(|line| line.split_once(' '));
        let values = values.filter(|(of, _)| *of == name);
        let mut samples: Vec<f64> = values.filter_map(|(_, ns)| ns.parse().ok()).collect();
        made(system, name, &params(ranks, "theirs"), &mut samples, [before, trip_ns()])
    };
    Ok(names.into_iter().filter_map(of).collect())
}

/// Is a rank of a job.
pub fn serve(measure: &args::Measure, names: &[&str], file: &Path) -> Result<(), Failure> {
    let config = job::config(Some(1))?;
    let rows = config.run(|rt| {
        let mut rows = Vec::new();
        if rt.size() == 2 && ALONE.iter().any(|name| names.contains(name)) {
            rows.extend(alone(rt, measure, names)?);
        }
        for (design, name) in DESIGNS {
            let window = rt.window_by::<u64>(design, 1)?;
            for what in TOGETHER.into_iter().filter(|what| names.contains(what)) {
                let params = params(rt.size(), name);
                rows.extend(together(rt, &window, what, &params, measure.quick)?);
            }
        }
        Ok::<_, Failure>(rows)
    })?;
    // The others have none.
    if rows.is_empty() {
        return Ok(());
    }
    std::fs::write(file, row::json(&rows)).map_err(|error| Failure::write(file, &error))
}

/// Rank 0 locks what is rank 1's; nobody else wants it.
fn alone(rt: &Runtime, measure: &args::Measure, names: &[&str]) -> Result<Vec<Row>, Failure> {
    let words = rt.share::<u64>(1)?;
    let word = words.at(Rank(1), 0);
    let window = rt.window::<u64>(1)?;
    let lock = rt.share_lock(Rank(1), Kind::Readers)?;
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

/// All ranks at once, round after round; nanoseconds of a round.
fn together(
    rt: &Runtime,
    window: &Window<u64>,
    what: &str,
    params: &str,
    is_quick: bool,
) -> Result<Option<Row>, Failure> {
    let next = Rank((rt.rank().0 + 1) % rt.size());
    let begin = Instant::now();
    let limit = Duration::from_millis(if is_quick { 100 } else { 1_000 });
    let mut samples = Vec::new();
    loop {
        rt.barrier()?;
        let start = Instant::now();
        for _ in 0..ROUNDS {
            match what {
                "lock_all" => window.lock_all().map_err(Error::from)?.release()?,
                _ => window.exclusive(next).map_err(Error::from)?.release()?,
            }
        }
        rt.barrier()?;
        samples.push(start.elapsed().as_nanos() as f64 / f64::from(ROUNDS));
        // Rank 0 says when it is enough.
        let goes_on = rt.rank() == Rank(0) && begin.elapsed() < limit;
        if rt.sum(u64::from(goes_on))? == 0 {
            break;
        }
    }
    if rt.rank() != Rank(0) {
        return Ok(None);
    }
    Ok(made("tsumugi", what, params, &mut samples, [None; 2]))
}

fn made(
    system: &str,
    name: &str,
    params: &str,
    samples: &mut [f64],
    [line_ns_before, line_ns_after]: [Option<f64>; 2],
) -> Option<Row> {
    Some(Row {
        figure: "lock".to_owned(),
        system: system.to_owned(),
        name: name.to_owned(),
        params: params.to_owned(),
        unit: "ns".to_owned(),
        summary: Summary::of(samples)?,
        line_ns_before,
        line_ns_after,
    })
}

fn params(ranks: u32, algorithm: &str) -> String {
    format!("ranks={ranks} algorithm={algorithm}")
}

const ALONE: [&str; 3] = ["fetch_add", "shared_uncontended", "exclusive_uncontended"];
const TOGETHER: [&str; 2] = ["lock_all", "exclusive"];
const DESIGNS: [(Design, &str); 4] = [
    (Design::Each, "each"),
    (Design::Tree, "tree"),
    (Design::Global, "global"),
    (Design::TwoLevel, "two_level"),
];
/// Ranks of a job, on whatever cores there are.
const SIZES: [u32; 4] = [2, 4, 8, 16];
/// Locks of a batch.
const BATCH: u64 = 64;
/// Locks of a rank between two barriers.
const ROUNDS: u32 = 50;

//! What the rows have in common: how the programs are built, and how systems take turns.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of this repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The folder of what cargo builds in this repository.
fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or(root().join("target"), PathBuf::from)
}

/// Builds parts of this repository, which `args` name; returns the folder of the results.
pub fn cargo(args: &[&str]) -> Result<PathBuf, String> {
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--release", "--quiet"]).args(args).current_dir(root());
    match build.status().is_ok_and(|status| status.success()) {
        true => Ok(target().join("release")),
        false => Err(format!("cargo could not build {}", args.join(" "))),
    }
}

/// The folder of the programs in C.
pub fn work() -> Result<PathBuf, String> {
    let work = target().join("compare-c");
    std::fs::create_dir_all(&work).map_err(|error| error.to_string())?;
    Ok(work)
}

/// Compiles a file of this repository to a program with this name.
pub fn compile(
    name: &str,
    source: &str,
    headers: &Path,
    libraries: &[&str],
) -> Result<PathBuf, String> {
    let program = work()?.join(name);
    let mut compiler = Command::new(env::var_os("CC").unwrap_or("cc".into()));
    compiler.args(["-std=gnu11", "-O2", "-I"]).arg(headers).arg(root().join(source));
    compiler.args(libraries).args(["-lgcc_s", "-o"]).arg(&program);
    match compiler.status().is_ok_and(|status| status.success()) {
        true => Ok(program),
        false => Err(format!("the C compiler could not build {source} as {name}")),
    }
}

/// The folder of `LD_LIBRARY_PATH` that has this library.
pub fn folder(library: &str) -> Option<PathBuf> {
    let path = env::var_os("LD_LIBRARY_PATH")?;
    env::split_paths(&path).find(|folder| folder.join(library).exists())
}

/// Runs a row by each system in turn, and prints a line: of each system the minimum, the
/// median and the maximum of its times in ns, and the median as a multiple of the last
/// system's.
pub fn row<S>(
    label: &str,
    what: &str,
    rounds: usize,
    systems: &[(&str, S)],
    run: impl Fn(&S) -> Result<f64, String>,
) -> Result<(), String> {
    let mut times = vec![Vec::new(); systems.len()];
    for _ in 0..rounds {
        for ((_, system), times) in systems.iter().zip(&mut times) {
            times.push(run(system)?);
        }
    }
    times.iter_mut().for_each(|times| times.sort_by(f64::total_cmp));
    let median = |times: &Vec<f64>| times[times.len() / 2];
    let last = times.last().map(median);
    let mut line = format!("  {label}");
    for ((system, _), times) in systems.iter().zip(&times) {
        let [least, most] = [times[0], times[times.len() - 1]];
        line += &format!("  {system} {least:.1}/{:.1}/{most:.1}", median(times));
    }
    if let (2.., Some(last)) = (systems.len(), last) {
        line += &format!("  {:.2} x", median(&times[0]) / last);
    }
    println!("{line}   {what}");
    Ok(())
}

/// The last word that a program says, which is a time.
pub fn time_said_by(process: &mut Command) -> Result<f64, String> {
    let ran = process.stderr(std::process::Stdio::inherit()).output();
    let ran = ran.map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&ran.stdout);
    let time = said.split_whitespace().last().and_then(|word| word.parse().ok());
    time.filter(|_| ran.status.success())
        .ok_or_else(|| format!("{process:?} ended without an answer: {}", ran.status))
}

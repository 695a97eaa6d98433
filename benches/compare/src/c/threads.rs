//! Threads through C: one program, run in turn with `libmyth.so.0` of this project and
//! with MassiveThreads' own, where a folder of `LD_LIBRARY_PATH` has that.

use crate::turns;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A row: its name, the size of its work, and what one of its times is of.
const ROWS: [(&str, &str, &str); 5] = [
    ("fib", "25", "a call, half of them threads"),
    ("create", "300000", "a leaf of a binary tree"),
    ("keys", "100000", "a leaf that sets and reads a value"),
    ("nqueens", "9", "a thread"),
    ("uts", "3", "a node"),
];
const REPETITIONS: &str = "7";

/// Measures the rows; prints a table of the times in ns.
pub fn compare(rounds: usize, wants: &dyn Fn(&str) -> bool) -> Result<(), String> {
    if !ROWS.iter().any(|(name, ..)| wants(name)) {
        return Ok(());
    }
    let (program, ours) = build()?;
    let mut systems = vec![("tsumugi", ours)];
    match turns::folder("libmyth.so.0") {
        Some(folder) => systems.push(("MassiveThreads", folder)),
        None => println!("MassiveThreads: no libmyth.so.0 in a folder of LD_LIBRARY_PATH"),
    }
    println!("threads through C, ns: min/median/max");
    for (name, size, what) in ROWS.iter().filter(|(name, ..)| wants(name)) {
        for workers in ["1", "2"] {
            let label = format!("{name} ({workers})");
            turns::row(&label, what, rounds, &systems, |library| {
                run(&program, library, workers, [name, size, REPETITIONS])
            })?;
        }
    }
    Ok(())
}

/// Builds the library and the program; returns the program, and the library's folder.
fn build() -> Result<(PathBuf, PathBuf), String> {
    let library = turns::cargo(&["--package", "tsumugi-myth"])?;
    let work = turns::work()?;
    // The loader looks for this name.
    let name = work.join("libmyth.so.0");
    let _ = fs::remove_file(&name);
    std::os::unix::fs::symlink(library.join("libmyth.so"), &name)
        .map_err(|error| error.to_string())?;
    let program = turns::compile(
        "threads",
        "benches/compare/peers/threads.c",
        &turns::root().join("include/compat"),
        &["-L", &library.display().to_string(), "-lmyth"],
    )?;
    Ok((program, work))
}

/// Runs a row with the library of a folder: with either one a worker stays on a CPU of
/// its own, and a stack has the same size.
fn run(program: &Path, library: &Path, workers: &str, args: [&str; 3]) -> Result<f64, String> {
    let mut process = Command::new(program);
    process.env("LD_LIBRARY_PATH", library).env("MYTH_NUM_WORKERS", workers);
    process.env("MYTH_BIND_WORKERS", "1").env("MYTH_DEF_STKSIZE", "131072");
    turns::time_said_by(process.args(args))
}

//! Threads through C: one program, run in turn with `libmyth.so.0` of this project and
//! with MassiveThreads' own, where a folder of `LD_LIBRARY_PATH` has that.

use std::env;
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

/// Measures the rows; prints a table of the times in ns, minimum and median.
pub fn compare(quick: bool, wants: &dyn Fn(&str) -> bool) -> Result<(), String> {
    if !ROWS.iter().any(|(name, ..)| wants(name)) {
        return Ok(());
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (program, ours) = build(&root)?;
    let mut systems = vec![("tsumugi", ours)];
    match peer() {
        Some(folder) => systems.push(("MassiveThreads", folder)),
        None => println!("MassiveThreads: no libmyth.so.0 in a folder of LD_LIBRARY_PATH"),
    }
    println!("threads through C, ns: min/median");
    for (name, size, what) in ROWS.iter().filter(|(name, ..)| wants(name)) {
        for workers in ["1", "2"] {
            let mut times = vec![Vec::new(); systems.len()];
            for _ in 0..if quick { 5 } else { 15 } {
                for ((_, folder), times) in systems.iter().zip(&mut times) {
                    times.push(run(&program, folder, workers, [name, size, REPETITIONS])?);
                }
            }
            let mut line = format!("  {name} ({workers})");
            for ((system, _), times) in systems.iter().zip(&mut times) {
                times.sort_by(f64::total_cmp);
                line += &format!("  {system} {:.1}/{:.1}", times[0], times[times.len() / 2]);
            }
            println!("{line}   {what}");
        }
    }
    Ok(())
}

/// Builds the library and the program; returns the program, and the library's folder.
fn build(root: &Path) -> Result<(PathBuf, PathBuf), String> {
    let built = Command::new(env!("CARGO"))
        .args(["build", "--release", "--quiet", "--package", "tsumugi-myth"])
        .current_dir(root)
        .status();
    if !built.is_ok_and(|status| status.success()) {
        return Err("cargo could not build the package tsumugi-myth".into());
    }
    let target = env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    let (library, work) = (target.join("release"), target.join("compare-c"));
    fs::create_dir_all(&work).map_err(|error| error.to_string())?;
    // The loader looks for this name.
    let name = work.join("libmyth.so.0");
    let _ = fs::remove_file(&name);
    std::os::unix::fs::symlink(library.join("libmyth.so"), &name)
        .map_err(|error| error.to_string())?;
    let program = work.join("threads");
    let compiled = Command::new(env::var_os("CC").unwrap_or("cc".into()))
        .args(["-std=gnu11", "-O2", "-I"])
        .arg(root.join("include/compat"))
        .arg(root.join("benches/compare/peers/threads.c"))
        .arg("-L")
        .arg(&library)
        .args(["-lmyth", "-o"])
        .arg(&program)
        .status();
    if compiled.is_ok_and(|status| status.success()) {
        Ok((program, work))
    } else {
        Err("the C compiler could not build peers/threads.c".into())
    }
}

/// The folder of MassiveThreads' library.
fn peer() -> Option<PathBuf> {
    let path = env::var_os("LD_LIBRARY_PATH")?;
    env::split_paths(&path).find(|folder| folder.join("libmyth.so.0").exists())
}

fn run(program: &Path, library: &Path, workers: &str, args: [&str; 3]) -> Result<f64, String> {
    let ran = Command::new(program)
        .args(args)
        .env("LD_LIBRARY_PATH", library)
        .env("MYTH_NUM_WORKERS", workers)
        .output()
        .map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&ran.stdout);
    said.trim().parse().map_err(|_| format!("{args:?} ended without an answer: {}", ran.status))
}

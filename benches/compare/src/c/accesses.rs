//! Accesses of 8 bytes on another process, through C and through Rust.

use super::turns;
use std::path::PathBuf;
use std::process::Command;

/// A row: its name, which is also the kind of `access_time.c`; and the kind of
/// `access_time.rs`.
const ROWS: [(&str, &str); 4] = [
    ("put", "global_put"),
    ("get", "global_get"),
    ("fetch_add", "global_fetch_add"),
    ("copy", "global_copy"),
];

/// Measures the rows; prints a table of the times in ns.
pub fn compare(rounds: usize, wants: &dyn Fn(&str) -> bool) -> Result<(), String> {
    if !ROWS.iter().any(|(name, _)| wants(name)) {
        return Ok(());
    }
    let built = turns::cargo(&["--package", "tsumugi-capi", "--package", "tsumugi-cli"])?;
    turns::cargo(&["--package", "tsumugi", "--example", "access_time"])?;
    let library = built.join("libtsumugi.a").display().to_string();
    let program = turns::compile(
        "access_time",
        "ci/rigs/access_time.c",
        &turns::root().join("include"),
        &[&library, "-pthread", "-lm", "-ldl"],
    )?;
    let rust = built.join("examples/access_time");
    println!("accesses through C and through Rust, ns: min/median/max");
    for (name, of_rust) in ROWS.iter().filter(|(name, _)| wants(name)) {
        let systems: [(&str, (&PathBuf, &str)); 2] =
            [("C", (&program, name)), ("Rust", (&rust, of_rust))];
        turns::row(name, "8 bytes", rounds, &systems, |(program, kind)| {
            let mut job = Command::new(built.join("tsumugi"));
            turns::time_said_by(job.args(["run", "-n", "2"]).arg(program).arg(kind))
        })?;
    }
    Ok(())
}

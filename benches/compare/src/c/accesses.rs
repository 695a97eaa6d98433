//! Accesses of 8 bytes on another process, through C and through Rust.

use crate::turns;
use std::path::PathBuf;
use std::process::Command;

/// A row: its name, which is also the kind of `access_time.c`; and the kinds of
/// `access_time.rs`, by a global address and by a rank and a key.
const ROWS: [(&str, &[(&str, &str)]); 4] = [
    ("put", &[("Global", "global_put"), ("Runtime", "put")]),
    ("get", &[("Global", "global_get"), ("Runtime", "get")]),
    ("fetch_add", &[("Global", "global_fetch_add"), ("Runtime", "fetch_add")]),
    ("copy", &[("Global", "global_copy")]),
];

/// Measures the rows; prints a table of the times in ns.
pub fn compare(rounds: usize, wants: &dyn Fn(&str) -> bool) -> Result<(), String> {
    if !ROWS.iter().any(|(name, _)| wants(name)) {
        return Ok(());
    }
    let built = turns::cargo(&["--package", "tsumugi-library", "--package", "tsumugi-cli"])?;
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
        let mut systems: Vec<(&str, (&PathBuf, &str))> = vec![("C", (&program, name))];
        systems.extend(of_rust.iter().map(|(system, kind)| (*system, (&rust, *kind))));
        turns::row(name, "8 bytes", rounds, &systems, |(program, kind)| {
            let mut job = Command::new(built.join("tsumugi"));
            turns::time_said_by(job.args(["run", "-n", "2"]).arg(program).arg(kind))
        })?;
    }
    Ok(())
}

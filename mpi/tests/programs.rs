//! C programs, compiled with `include/mpi.h` and run by `tsumugi run`. Each must print what
//! it prints with MPICH: the file beside it, which `ci/mpi.sh --write` makes.

mod built;

use built::{Built, each};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn programs_print_what_they_print_with_mpich() {
    let built = Built::new();
    let sources = built::sources("programs");
    assert!(sources.len() > 150, "{} programs", sources.len());
    let wrong = each(&sources, |source| check(&built, source));
    assert!(wrong.is_empty(), "{wrong}");
}

/// Compiles a program, and runs it with each number of ranks that its first line names.
fn check(built: &Built, source: &Path) -> Result<(), String> {
    let name = source.file_stem().unwrap().to_str().unwrap();
    let text = fs::read_to_string(source).unwrap();
    let ranks = text.strip_prefix("/* Ranks: ").and_then(|text| text.split_once('.'));
    let Some((ranks, _)) = ranks else {
        return Err(format!("{name}: the first line does not say for how many ranks it is\n"));
    };
    let program = built.compile(source)?;
    let mut printed = String::new();
    for ranks in ranks.split(' ') {
        let said = Command::new("timeout")
            .arg("60")
            .arg(&built.command)
            .args(["run", "-n", ranks])
            .arg(&program)
            .output()
            .unwrap();
        writeln!(printed, "ranks: {ranks}").unwrap();
        printed += &String::from_utf8_lossy(&said.stdout);
        if !said.status.success() {
            writeln!(printed, "{}: {}", said.status, String::from_utf8_lossy(&said.stderr))
                .unwrap();
        }
    }
    let expected = fs::read_to_string(source.with_extension("out")).unwrap_or_default();
    if printed == expected {
        return Ok(());
    }
    let differs = printed.lines().zip(expected.lines()).position(|(one, other)| one != other);
    let at = differs.unwrap_or_else(|| printed.lines().count().min(expected.lines().count()));
    let from = |text: &str| text.lines().skip(at).take(4).collect::<Vec<_>>().join("\n  ");
    Err(format!(
        "{name}: from line {} on\n  {}\nand with MPICH\n  {}\n",
        at + 1,
        from(&printed),
        from(&expected)
    ))
}

/// Where the memory of a program is, its messages are as right; from the partition they go
/// straight into the receives that are posted.
#[test]
fn blocks_of_the_partition_are_sent_with_one_copy() {
    let built = Built::new();
    let source = built::sources("heap").pop().unwrap();
    let program = built.compile(&source).unwrap_or_else(|reason| panic!("{reason}"));
    for (wanted, straight) in [("off", false), ("on", true)] {
        let done = Command::new(&built.command)
            .args(["run", "-n", "2"])
            .arg(&program)
            .env("TSUMUGI_MPI_HEAP", wanted)
            .env("TSUMUGI_VERBOSE", "on")
            // Also where copies by slots are faster.
            .env("TSUMUGI_DIRECT_FROM_BYTES", "1")
            .env("TSUMUGI_ALONE_FROM_BYTES", "1")
            .output()
            .unwrap();
        let text = [&done.stdout, &done.stderr].map(|text| String::from_utf8_lossy(text)).concat();
        assert!(done.status.success() && text.contains("right\n"), "{wanted}: {text}");
        let line = text.lines().find(|line| line.contains(" messages: inline ")).expect(&text);
        assert_eq!(!line.contains(" direct 0,"), straight, "{wanted}: {text}");
    }
}

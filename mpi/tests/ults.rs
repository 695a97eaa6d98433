//! C programs that call MPI and tsumugi's own functions, which the library has, too.

#[allow(dead_code, reason = "this test names its programs")]
mod built;

use built::Built;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{fs, io};

#[test]
fn the_interfaces_share_one_rank() {
    let built = Built::new();
    let ways = [
        ("mpi_first", ""),
        ("tsumugi_first", "start"),
        ("tsumugi_first", "run"),
        ("tsumugi_first", "acp"),
        ("tsumugi_first", "unfinished"),
    ];
    for (name, way) in ways {
        let program = built.compile(&source(name)).unwrap_or_else(|reason| panic!("{reason}"));
        for ranks in ["1", "2", "3"] {
            let done = run(&built, ranks, &program, way);
            let well = String::from_utf8_lossy(&done.stdout).matches("all is well\n").count();
            let is_well = done.status.success() && well.to_string() == ranks;
            assert!(is_well, "{name} {way}, {ranks} ranks: {done:?}");
        }
    }
}

/// The program of docs/mpi.md.
#[test]
fn ults_call_mpi_with_a_tag_of_their_own() {
    let built = Built::new();
    let page = fs::read_to_string(root().join("docs/mpi.md")).unwrap();
    let text = page.split("```c\n").nth(1).and_then(|rest| rest.split("```").next());
    let source = built.library.join("ults.c");
    fs::write(&source, text.expect("docs/mpi.md has a program")).unwrap();
    let program = built.compile(&source).unwrap_or_else(|reason| panic!("{reason}"));
    let done = run(&built, "2", &program, "");
    let mut said: Vec<_> = std::str::from_utf8(&done.stdout).unwrap().lines().collect();
    said.sort_unstable();
    let wanted = ["rank 0: 100 right numbers", "rank 1: 100 right numbers"];
    assert!(done.status.success() && said == wanted, "{done:?}");
}

/// A program that is linked with libtsumugi, too, would have two runtimes if that comes first.
#[test]
fn another_copy_is_named() {
    let built = Built::new();
    let other = built.library.join("libtsumugi.so.0");
    match std::os::unix::fs::symlink(built.command.with_file_name("libtsumugi.so"), &other) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => panic!("{error}"),
        _ => {}
    }
    let shared = other.as_path();
    let archive = built.command.with_file_name("libtsumugi.a");
    let own = built.library.join("libmpi_abi.so.1");
    // By which files the program is linked, and which one the sentence names.
    let orders: [(&str, [&Path; 2], Option<&str>); 3] = [
        ("copy_shared", [shared, &own], Some("libtsumugi.so.0")),
        ("copy_static", [&archive, &own], Some("copy_static")),
        ("copy_unused", [&own, shared], None),
    ];
    for (name, libraries, named) in orders {
        let program = built
            .compile_with(&source("mpi_first"), name, &libraries)
            .unwrap_or_else(|reason| panic!("{reason}"));
        let done = run(&built, "2", &program, "");
        let said = String::from_utf8_lossy(&done.stderr);
        match named {
            Some(file) => {
                let begin = "MPI_Init_thread: there are two copies of tsumugi in this process: \
                             tsumugi_start is that of ";
                let line = said.lines().find(|line| line.starts_with(begin));
                let line = line.unwrap_or_else(|| panic!("{name}: {said}"));
                assert!(line.contains(&format!("{file}, and MPI_Init that of")), "{line}");
                assert!(
                    line.contains("link the program with the library of mpicc alone"),
                    "{line}"
                );
                assert_eq!(done.status.code(), Some(16), "{name}: {said}");
            }
            None => assert!(done.status.success(), "{name}: {said}"),
        }
    }
}

fn run(built: &Built, ranks: &str, program: &Path, way: &str) -> Output {
    Command::new(&built.command)
        .args(["run", "--timeout", "60s", "-n", ranks])
        .arg(program)
        .arg(way)
        .output()
        .unwrap()
}

fn source(name: &str) -> PathBuf {
    root().join(format!("mpi/tests/ults/{name}.c"))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

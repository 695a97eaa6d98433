//! The C interface: its header is that of its sources, and C programs run on
//! the libraries that the documented command makes.

mod library;

use library::{build, compile, header};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

const SIGABRT: i32 = 6;

/// In the order of the header.
const SOURCES: [&str; 7] = ["code", "scheduler", "thread", "park", "lock", "key", "wait"];

#[test]
fn the_header_is_that_of_the_sources() {
    header("tsumugi", &SOURCES);
}

#[test]
fn c_programs_run_on_the_library() {
    let library = build();
    for program in ["main", "threads", "argobots"] {
        for link in ["libtsumugi.so", "libtsumugi.a"] {
            let ran = Command::new(compile(&library, program, link)).output().unwrap();
            let said = String::from_utf8_lossy(&ran.stdout);
            let complained = String::from_utf8_lossy(&ran.stderr);
            assert!(ran.status.success(), "{program}: {}\n{said}{complained}", ran.status);
            assert!(said.ends_with("all is well\n"), "{program}: {said}");
        }
    }
    // What must not be ends in an abort that says why, and unwinds nobody.
    let broken = compile(&library, "main", "libtsumugi.so");
    let ran = Command::new(broken).arg("end-inside").output().unwrap();
    let complained = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.signal(), Some(SIGABRT), "{complained}");
    assert!(complained.contains("cannot end on a ULT of its own"), "{complained}");
}

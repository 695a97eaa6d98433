//! The C interface: its header matches its sources, and C programs run on the libraries
//! that the documented command makes.

mod library;

use library::{build, compile, exports, header, on_two_nodes, root};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use tsumugi::pvas::Launch;

const SIGABRT: i32 = 6;

/// The sources of the header, in its order.
const SOURCES: [&str; 11] = [
    "code",
    "scheduler",
    "thread",
    "park",
    "lock",
    "key",
    "wait",
    "job",
    "region",
    "access",
    "operation",
];

#[test]
fn the_header_matches_the_sources() {
    header("tsumugi", &SOURCES);
}

#[test]
fn c_programs_run_on_the_library() {
    let library = build();
    for program in ["main", "threads", "argobots", "order"] {
        for link in ["libtsumugi.so", "libtsumugi.a"] {
            let ran = Command::new(compile(&library, program, link)).output().unwrap();
            let said = String::from_utf8_lossy(&ran.stdout);
            let complained = String::from_utf8_lossy(&ran.stderr);
            assert!(ran.status.success(), "{program}: {}\n{said}{complained}", ran.status);
            assert!(said.ends_with("all is well\n"), "{program}: {said}");
        }
    }
    // A scheduler that a ULT of its own ends aborts the process with the reason, and
    // nothing unwinds into C.
    let broken = compile(&library, "main", "libtsumugi.so");
    let ran = Command::new(broken).arg("end-inside").output().unwrap();
    let complained = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.signal(), Some(SIGABRT), "{complained}");
    assert!(complained.contains("cannot end on a ULT of its own"), "{complained}");
}

/// C programs access the memory of all ranks, from their main threads and from ULTs.
#[test]
fn c_programs_are_ranks_of_a_job() {
    let library = build();
    for (link, ranks) in [("libtsumugi.so", 2), ("libtsumugi.so", 3), ("libtsumugi.a", 2)] {
        for way in ["start", "run"] {
            let program = compile(&library, "memory", link);
            let job = Launch::new(ranks).program(program, [way]).start();
            let job = job.expect("a job that starts");
            let code = job.wait().expect("a job that ends").code();
            assert_eq!(code, 0, "{link} on {ranks} ranks: {way}");
        }
    }
    for way in ["start", "run"] {
        on_two_nodes(&compile(&library, "memory", "libtsumugi.so"), 3, &[way]);
    }
}

#[test]
fn every_function_on_memory_is_called_by_the_program() {
    let program = fs::read_to_string(root().join("tests/foreign/memory.c")).unwrap();
    for source in ["job", "region", "access", "operation"] {
        let source = fs::read_to_string(root().join(format!("src/capi/{source}.rs"))).unwrap();
        for exported in exports(&source) {
            assert!(program.contains(&format!("{exported}(")), "no call of {exported}");
        }
    }
}

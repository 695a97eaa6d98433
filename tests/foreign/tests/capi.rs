//! The C interface: its header matches its sources, and C programs run on the libraries
//! that the documented command makes.

mod library;

use library::{build, compile, compile_names, exports, header, on_two_nodes, root, source};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use tsumugi::pvas::Launch;

const SIGABRT: i32 = 6;

/// The sources of the header, in its order.
const SOURCES: [&str; 39] = [
    "version",
    "code",
    "scheduler",
    "thread",
    "spawn",
    "worker",
    "park",
    "lock",
    "rwlock",
    "semaphore",
    "latch",
    "meeting",
    "once",
    "full",
    "key",
    "wait",
    "job",
    "region",
    "access",
    "operation",
    "signal",
    "private_heap",
    "comm",
    "request",
    "group",
    "reduction",
    "collective",
    "combine",
    "active_message",
    "rank_lock",
    "window",
    "epoch",
    "heap",
    "deque",
    "array",
    "array_elements",
    "array_atomics",
    "array_pages",
    "checkout",
];

#[test]
fn the_header_matches_the_sources() {
    header("tsumugi", "capi", &SOURCES);
}

/// What a package exports is in the library even where nothing of this one uses it.
#[test]
fn both_libraries_have_the_functions_of_both_headers() {
    let names = all_exports();
    for header in ["tsumugi", "acp"] {
        let begin = format!("{header}_");
        assert!(names.iter().any(|name| name.starts_with(&begin)), "none of {header}.h");
    }
    let library = build();
    for link in ["libtsumugi.so", "libtsumugi.a"] {
        let program = compile_names(&library, &names, link);
        let ran = Command::new(program).status().unwrap();
        assert!(ran.success(), "{link}: {ran}");
    }
}

#[test]
fn c_programs_run_on_the_library() {
    let library = build();
    for program in ["main", "threads", "argobots", "order", "sync"] {
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
    let ran = Command::new(&broken).arg("end-inside").output().unwrap();
    let complained = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.signal(), Some(SIGABRT), "{complained}");
    assert!(complained.contains("cannot end on a ULT of its own"), "{complained}");
    // So does one that ends its thread; the end of the process is allowed.
    for way in ["exit-thread", "exit-spawned"] {
        let ran = Command::new(&broken).arg(way).output().unwrap();
        let complained = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.signal(), Some(SIGABRT), "{way}: {complained}");
        assert!(complained.contains("pthread_exit"), "{way}: {complained}");
    }
    let ran = Command::new(&broken).arg("exit-process").output().unwrap();
    assert_eq!(ran.status.code(), Some(0), "{}", String::from_utf8_lossy(&ran.stderr));
}

/// The list of the symbols that an installed library has is that of the sources. A
/// function that goes, or comes unnoticed, breaks programs that were linked before.
#[test]
fn the_list_of_symbols_is_that_of_the_sources() {
    let list = fs::read_to_string(root().join("capi/install/tsumugi.map")).unwrap();
    let names = list.lines().filter_map(|line| line.strip_prefix("    ")?.strip_suffix(';'));
    let listed: BTreeSet<_> = names.filter(|name| *name != "*").map(str::to_owned).collect();
    let here: BTreeSet<_> = all_exports().into_iter().collect();
    let (gone, new) = (listed.difference(&here), here.difference(&listed));
    let (gone, new): (Vec<_>, Vec<_>) = (gone.collect(), new.collect());
    assert!(gone.is_empty() && new.is_empty(), "listed, but gone: {gone:?}; not listed: {new:?}");
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
fn every_function_of_synchronization_is_called_by_the_program() {
    let program = fs::read_to_string(root().join("tests/foreign/sync.c")).unwrap();
    for name in ["worker", "rwlock", "semaphore", "latch", "meeting", "once", "full"] {
        for exported in exports(&source("capi", name)) {
            assert!(program.contains(&format!("{exported}(")), "no call of {exported}");
        }
    }
}

#[test]
fn every_function_on_memory_is_called_by_the_program() {
    let program = fs::read_to_string(root().join("tests/foreign/memory.c")).unwrap();
    for name in ["job", "region", "access", "operation"] {
        for exported in exports(&source("capi", name)) {
            assert!(program.contains(&format!("{exported}(")), "no call of {exported}");
        }
    }
}

/// The functions that the sources of both packages export.
fn all_exports() -> Vec<String> {
    let files = ["capi", "acp"].map(|package| fs::read_dir(root().join(package).join("src")));
    files
        .into_iter()
        .flat_map(Result::unwrap)
        .map(|file| file.unwrap().path())
        .filter(|path| path.is_file())
        .flat_map(|path| exports(&fs::read_to_string(path).unwrap()))
        .collect()
}

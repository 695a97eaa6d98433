//! The interface under ACP's names: its header matches its sources, and C programs that
//! call all of its functions run as jobs of several processes.

mod library;

use library::{build, compile, exports, header, on_two_nodes, root, source};
use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};
use tsumugi::pvas::Launch;

/// The sources of the header, in its order.
const SOURCES: [&str; 14] = [
    "job",
    "memory",
    "access",
    "channel",
    "segment",
    "workspace",
    "heap",
    "element",
    "vector",
    "deque",
    "list",
    "set",
    "multiset",
    "map",
];

const PROGRAMS: [&str; 4] = ["acp_base", "acp_messages", "acp_data", "acp_walk"];

#[test]
fn the_header_matches_the_sources() {
    header("acp", "acp", &SOURCES);
}

/// The exported functions are exactly those that ACP 3.0.0 declares. ACP's header also
/// has eight macros, such as `acp_front`, for functions that do not exist in ACP either.
#[test]
fn every_function_of_acp_is_exported() {
    let expected = fs::read_to_string(root().join("tests/foreign/acp_calls.txt")).unwrap();
    let mut here: Vec<String> =
        SOURCES.iter().flat_map(|name| exports(&source("acp", name))).collect();
    here.retain(|name| name.starts_with("acp_"));
    here.sort_unstable();
    assert_eq!(here, expected.lines().collect::<Vec<_>>());
}

#[test]
fn every_exported_function_is_called_by_a_program() {
    let programs: String = PROGRAMS
        .map(|name| fs::read_to_string(root().join(format!("tests/foreign/{name}.c"))).unwrap())
        .concat();
    for name in SOURCES {
        for exported in exports(&source("acp", name)) {
            assert!(programs.contains(&format!("{exported}(")), "no program calls {exported}");
        }
    }
}

#[test]
fn programs_of_acp_run_as_jobs() {
    let library = build();
    for program in PROGRAMS {
        let links = [("libtsumugi.so", 1), ("libtsumugi.so", 2), ("libtsumugi.so", 4)];
        // Only `acp_walk` runs on one rank, too.
        let links = if program == "acp_walk" { &links[..] } else { &links[1..] };
        for &(link, ranks) in links.iter().chain(&[("libtsumugi.a", 2)]) {
            let code = run(compile(&library, program, link), ranks, "x");
            assert_eq!(code, 0, "{program} with {link} on {ranks} ranks");
        }
    }
    // The same programs on two nodes.
    for program in PROGRAMS {
        let words = ["--acp-size-smem", "20000", "--acp-multi", "1", "x"];
        on_two_nodes(&compile(&library, program, "libtsumugi.so"), 3, &words);
    }
    // A rank that aborts ends the other ranks.
    for word in ["abort", "give up"] {
        let code = run(compile(&library, "acp_base", "libtsumugi.so"), 2, word);
        assert_ne!(code, 0, "a rank ended by {word}");
    }
}

/// An impossible copy is reported on standard error, with the option that would help.
/// Copies that fail in a loop are reported a limited number of times.
#[test]
fn a_copy_beyond_the_starter_memory_is_reported() {
    let program = compile(&build(), "acp_base", "libtsumugi.so");
    let end = Command::new(program).arg("beyond").output().expect("the program runs");
    let said = String::from_utf8_lossy(&end.stderr);
    assert!(end.status.success(), "{said}");
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 16, "{said}");
    for line in &lines {
        assert!(line.starts_with("acp: rank 0: ") && line.contains("do not fit"), "{line}");
        assert!(line.contains("the starter memory of rank 0 has 10240 bytes"), "{line}");
        assert!(line.contains("--acp-size-smem"), "{line}");
    }
    assert!(lines[15].ends_with("further failures are not printed"), "{said}");
}

/// Programs are linked with the library's SONAME and not with the name of its file.
#[test]
fn the_shared_library_has_a_name() {
    let library = fs::read(build().join("libtsumugi.so")).unwrap();
    let name = b"\0libtsumugi.so.0\0";
    assert!(library.windows(name.len()).any(|bytes| bytes == name), "no SONAME");
}

/// The hook is a library that is loaded before the program's own.
#[test]
fn malloc_of_a_program_allocates_from_the_heap_of_its_rank() {
    let library = build();
    let hook = library.join("libacp_malloc.so");
    let built = Command::new(env::var_os("CC").unwrap_or("cc".into()))
        .args(["-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&hook)
        .arg(root().join("include/acp_malloc.c"))
        .status();
    assert!(built.expect("there is a C compiler").success());
    let program = compile(&library, "acp_malloc", "libtsumugi.so");
    let words = [
        format!("LD_PRELOAD={}", hook.display()),
        program.display().to_string(),
        "--acp-malloc-hook-large".into(),
        "1".into(),
    ];
    for ranks in [1, 2, 4] {
        let job = Launch::new(ranks).program("/usr/bin/env", &words).start();
        let end = job.expect("a job that starts").wait().expect("a job that ends");
        assert_eq!(end.code(), 0, "{ranks} ranks");
    }
}

/// Runs a job to its end; returns its exit code.
fn run(program: PathBuf, ranks: u32, word: &str) -> i32 {
    let job = Launch::new(ranks)
        .program(program, ["--acp-size-smem", "20000", "--acp-multi", "1", word])
        .start()
        .expect("a job that starts");
    job.wait().expect("a job that ends").code()
}

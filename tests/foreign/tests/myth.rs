//! MassiveThreads' interface: a C program that calls all of its functions runs with the
//! library that the documented command makes.

mod library;

use library::{build_myth, compile_for_myth, exports, root};
use std::fs;
use std::process::Command;

#[test]
fn a_program_of_massivethreads_runs_on_the_library() {
    let program = compile_for_myth(&build_myth(), "myth");
    for workers in ["1", "2", "4"] {
        for first in ["1", "0"] {
            let ran = Command::new(&program)
                .env("MYTH_NUM_WORKERS", workers)
                .env("MYTH_CHILD_FIRST", first)
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&ran.stdout);
            let complained = String::from_utf8_lossy(&ran.stderr);
            assert!(ran.status.success(), "{}\n{said}{complained}", ran.status);
            assert!(said.ends_with("all is well\n"), "{said}");
        }
    }
}

#[test]
fn every_function_is_declared_and_called() {
    let header = fs::read_to_string(root().join("include/compat/myth.h")).unwrap();
    let program = fs::read_to_string(root().join("tests/foreign/myth.c")).unwrap();
    let files = fs::read_dir(root().join("compat/myth/src")).unwrap();
    let sources = files.map(|file| fs::read_to_string(file.unwrap().path()).unwrap());
    // The macros make functions of names that are arguments.
    let names = sources.flat_map(|source| exports(&source));
    for name in names.filter(|name| name.starts_with("myth_")) {
        assert!(header.contains(&format!("{name}(")), "{name} is not declared");
        assert!(program.contains(&format!("{name}(")), "{name} is not called");
    }
}

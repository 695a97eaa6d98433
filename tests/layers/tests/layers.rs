//! Checks the arrows of the architecture: which crates and modules may use which.
//!
//! ```text
//!   cli ── benches/ult         the code of the benchmark of threads
//!    │     benches/lock        that of the benchmark of locks: simulated ranks, on gas
//!    │     benches/program     whole programs, on arrays whose pages move
//!    │      │
//!    │      │   capi/library   the library for C programs
//!    │      │    │   mpi       MPI's interface, and a library with all three
//!    │      │    ├───┘
//!    │      │   capi           the C interface
//!    │      │    │
//!    │      │   acp            ACP's interface
//!    │      │
//!    │      │   compat/myth    MassiveThreads' interface and library, on ult
//!    │      │    │
//!   tsumugi (facade) ── macros       the typed interface, and its procedural macros
//!    │
//!   runtime                   a rank: its start, its services and its network
//!    │
//!   ult  pvas  backends  gas   siblings do not know each other
//!    └─────┴──┬──┴───────┘
//!         core                 crossbeam-utils and heapless, nothing else
//! ```
//!
//! Inside a crate, a file uses only names of its own module or of a module above it in
//! the crate's `lib.rs`. Atomics and cells come from `core::sync` only.

use std::fs;
use std::path::{Path, PathBuf};
use tsumugi_layers::arrows::{arrows, cycles};
use tsumugi_layers::modules::{Crate, File};

/// The folders of crates, and the packages of the workspace on which each may depend.
const FLOORS: [(&str, &[&str]); 18] = [
    ("macros", &[]),
    ("core", &[]),
    ("ult", &["tsumugi-core"]),
    ("pvas", &["tsumugi-core"]),
    ("backends", &["tsumugi-core"]),
    ("gas", &["tsumugi-core"]),
    (
        "runtime",
        &[
            "tsumugi-core",
            "tsumugi-ult",
            "tsumugi-pvas",
            "tsumugi-backends",
            "tsumugi-gas",
            // For its feature `testing`, which only tests switch on.
            "tsumugi-test-networks",
        ],
    ),
    (
        ".",
        &[
            "tsumugi-macros",
            "tsumugi-core",
            "tsumugi-ult",
            "tsumugi-pvas",
            "tsumugi-backends",
            "tsumugi-gas",
            "tsumugi-runtime",
        ],
    ),
    ("acp", &["tsumugi-core", "tsumugi-ult", "tsumugi"]),
    ("capi", &["tsumugi-core", "tsumugi-ult", "tsumugi", "tsumugi-acp"]),
    ("capi/library", &["tsumugi-capi"]),
    ("mpi", &["tsumugi-core", "tsumugi-ult", "tsumugi-runtime", "tsumugi", "tsumugi-capi"]),
    ("compat/myth", &["tsumugi-core", "tsumugi-ult"]),
    ("benches/ult", &["tsumugi-core", "tsumugi-ult", "tsumugi"]),
    ("benches/lock", &["tsumugi-core", "tsumugi-gas"]),
    ("benches/program", &["tsumugi-core", "tsumugi-gas", "tsumugi", "tsumugi-bench-ult"]),
    (
        "cli",
        &[
            "tsumugi-core",
            "tsumugi",
            "tsumugi-bench-ult",
            "tsumugi-bench-lock",
            "tsumugi-bench-program",
        ],
    ),
    ("tests/networks", &["tsumugi-core", "tsumugi-backends"]),
];

/// The external crates on which the core may depend.
const CORE_DEPENDENCIES: [&str; 2] = ["crossbeam-utils", "heapless"];

/// The folders of the crates whose arrows are checked.
const CHECKED: [&str; 13] = [
    "macros",
    "core",
    "ult",
    "pvas",
    "backends",
    "gas",
    "runtime",
    ".",
    "acp",
    "capi",
    "mpi",
    "compat/myth",
    "cli",
];

/// The files that may be in a cycle of arrows: none.
const IN_CYCLES: [&str; 0] = [];

/// The only file that may name atomics, cells and the model checker.
const DOOR: &str = "core/src/sync.rs";
/// The folder of its child modules.
const BEHIND_IT: &str = "core/src/sync";

#[test]
fn crates_stand_on_lower_floors_only() {
    for (folder, allowed) in FLOORS {
        for name in dependencies(folder) {
            if name.starts_with("tsumugi") {
                assert!(allowed.contains(&name.as_str()), "{folder} must not use {name}");
            }
        }
    }
}

#[test]
fn core_needs_two_crates_and_no_std() {
    for name in dependencies("core") {
        assert!(CORE_DEPENDENCIES.contains(&name.as_str()), "core must not use {name}");
    }
    assert!(source("core/src/lib.rs").contains("#![no_std]"), "core is no_std");
}

#[test]
fn modules_use_only_what_stands_above_them() {
    let mut faults = Vec::new();
    for folder in CHECKED {
        let (of, name) = read(folder);
        let modules = &of.modules[&Vec::new()].children;
        // The root file is below all modules.
        let place = |file: usize| {
            let module = of.files[file].module.first();
            modules.iter().position(|name| Some(name) == module).unwrap_or(modules.len())
        };
        for ((from, to), (line, path)) in arrows(&of) {
            let arrow = (name(from), name(to));
            if place(to) > place(from) {
                faults.push(format!("{}:{line}: `{path}` is of {}", arrow.0, arrow.1));
            }
        }
    }
    assert!(faults.is_empty(), "these lead to modules below in lib.rs:\n{}", faults.join("\n"));
}

#[test]
fn no_file_is_in_a_cycle() {
    for folder in CHECKED {
        let (of, name) = read(folder);
        for group in cycles(&of, &arrows(&of)) {
            let names: Vec<String> = group.into_iter().map(&name).collect();
            let allowed = names.iter().all(|name| IN_CYCLES.contains(&name.as_str()));
            assert!(allowed, "these files are in a cycle: {}", names.join(" "));
        }
    }
}

#[test]
fn paths_lead_to_the_files_of_their_items() {
    let (of, name) = read("runtime");
    let file_of = |from: &str, path: &str| {
        let parts = |text: &str| -> Vec<String> {
            text.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect()
        };
        of.file_of(&parts(from), &parts(path)).map(&name)
    };
    let error = Some("runtime/src/error.rs".to_owned());
    assert_eq!(file_of("", "error::Error"), error);
    assert_eq!(file_of("route", "crate::Error"), error, "by the re-export of the root");
    assert_eq!(file_of("net::begin", "super::super::Error"), error);
    assert_eq!(file_of("route", "crate::error"), error, "a module is its file");
    assert_eq!(file_of("route", "std::fmt"), None);
    assert_eq!(file_of("route", "tsumugi_core::op::Op"), None, "an item of another crate");
}

#[test]
fn atomics_and_cells_come_through_one_door() {
    let forbidden = [
        "core::sync::atomic",
        "std::sync::atomic",
        "core::cell::UnsafeCell",
        "std::cell::UnsafeCell",
        "loom::",
        "shuttle::",
    ];
    for (folder, _) in FLOORS {
        for file in rust_files(&root().join(folder).join("src")) {
            if file == root().join(DOOR) || file.starts_with(root().join(BEHIND_IT)) {
                continue;
            }
            for (number, line) in fs::read_to_string(&file).unwrap().lines().enumerate() {
                let code = line.split("//").next().unwrap();
                for name in forbidden {
                    assert!(
                        !code.contains(name),
                        "{}:{}: only {DOOR} may name `{name}`",
                        file.display(),
                        number + 1
                    );
                }
            }
        }
    }
}

/// A crate's code, and a function that names a file of it.
fn read(folder: &str) -> (Crate, impl Fn(usize) -> String + use<>) {
    let of = Crate::read(&root().join(folder).join("src/lib.rs"));
    let name = |file: &File| file.path.strip_prefix(root()).unwrap().display().to_string();
    let names: Vec<String> = of.files.iter().map(name).collect();
    (of, move |file: usize| names[file].trim_start_matches("./").to_owned())
}

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn source(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The names under `[dependencies]`, which every user of the crate gets.
fn dependencies(folder: &str) -> Vec<String> {
    let manifest = source(&format!("{folder}/Cargo.toml"));
    manifest
        .lines()
        .skip_while(|line| line.trim() != "[dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split(['=', '.', ' ']).next())
        .filter(|name| !name.is_empty() && !name.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files
}

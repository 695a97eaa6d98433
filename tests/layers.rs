//! Holds the arrows of the architecture: who may use whom.
//!
//! ```text
//!   cli ── benches/ult         what the benchmark of threads runs
//!    │     benches/lock        and that of locks: simulated ranks, on gas
//!    │     benches/program     whole programs, on arrays whose pages move
//!    │      │
//!   tsumugi (facade)
//!    │
//!   ult  pvas  backends  gas   siblings do not know each other
//!    └─────┴──┬──┴───────┘
//!         core                 crossbeam-utils and heapless, nothing else
//! ```
//!
//! Inside a crate a file uses only names of its own module or of one that
//! stands above it in the crate's `lib.rs`. Atomics and cells come through
//! `core::sync` alone.

use std::fs;
use std::path::{Path, PathBuf};

/// Crate folder, and which packages of the workspace it may stand on.
const FLOORS: [(&str, &[&str]); 10] = [
    ("core", &[]),
    ("ult", &["tsumugi-core"]),
    ("pvas", &["tsumugi-core"]),
    ("backends", &["tsumugi-core"]),
    ("gas", &["tsumugi-core"]),
    (".", &["tsumugi-core", "tsumugi-ult", "tsumugi-pvas", "tsumugi-backends", "tsumugi-gas"]),
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
];

/// All that the core may take from outside.
const CORE_DEPENDENCIES: [&str; 2] = ["crossbeam-utils", "heapless"];

/// The one file that may name atomics, cells and the model checker.
const DOOR: &str = "core/src/sync.rs";
/// What it is made of.
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
fn core_needs_next_to_nothing() {
    for name in dependencies("core") {
        assert!(CORE_DEPENDENCIES.contains(&name.as_str()), "core must not use {name}");
    }
    assert!(source("core/src/lib.rs").contains("#![no_std]"), "core is no_std");
}

#[test]
fn modules_use_only_what_stands_above_them() {
    for (folder, _) in FLOORS {
        let Ok(order) = module_order(folder) else { continue };
        for file in rust_files(&root().join(folder).join("src")) {
            let relative = file.strip_prefix(root().join(folder).join("src")).unwrap();
            let first = relative.components().next().unwrap().as_os_str().to_str().unwrap();
            let module = first.trim_end_matches(".rs");
            let Some(own) = order.iter().position(|name| name == module) else { continue };
            for (line, used) in crate_paths(&fs::read_to_string(&file).unwrap()) {
                if let Some(other) = order.iter().position(|name| *name == used) {
                    assert!(
                        other <= own,
                        "{}:{line}: `{module}` uses `crate::{used}`, which stands below it in lib.rs",
                        file.display()
                    );
                }
            }
        }
    }
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
                        "{}:{}: `{name}` is for {DOOR} alone",
                        file.display(),
                        number + 1
                    );
                }
            }
        }
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
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

/// The modules of a crate in the order of its `lib.rs`.
fn module_order(folder: &str) -> std::io::Result<Vec<String>> {
    let lib = fs::read_to_string(root().join(folder).join("src/lib.rs"))?;
    Ok(lib
        .lines()
        .filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod "))
        .filter_map(|rest| rest.split([';', ' ']).next())
        .map(str::to_owned)
        .collect())
}

/// Line numbers and the modules named by `crate::` there.
fn crate_paths(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let code = line.split("//").next().unwrap();
        for part in code.split("crate::").skip(1) {
            let name: String =
                part.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            found.push((number + 1, name));
        }
    }
    found
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

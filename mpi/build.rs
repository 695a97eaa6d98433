//! Makes the names of the library from `include/mpi.h`: for each function MPI_X that the
//! header declares, a weak symbol MPI_X that jumps to PMPI_X; and PMPI_X itself, if the
//! sources do not have it yet. Gives the library the name by which programs look for it.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

fn main() {
    let here = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let out = env::var("OUT_DIR").expect("cargo sets it");
    for name in ["build.rs", "include/mpi.h", "names.map", "src"] {
        println!("cargo::rerun-if-changed={name}");
    }
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libmpi_abi.so.1");
    println!("cargo::rustc-cdylib-link-arg=-Wl,--version-script={here}/names.map");
    let header = fs::read_to_string("include/mpi.h").expect("the header is there");
    let declared: BTreeSet<&str> = header
        .split("MPI_FUNCTION(")
        .skip(2)
        .filter_map(|function| function.split(',').nth(1).map(str::trim))
        .collect();
    let mut built = BTreeSet::new();
    collect(Path::new("src"), &mut built);
    let mut text = String::new();
    for name in &declared {
        writeln!(text, "weak!(\"MPI_{name}\", \"PMPI_{name}\");").expect("a string has room");
    }
    for name in declared.iter().filter(|name| !built.contains(**name)) {
        writeln!(text, "unbuilt!(PMPI_{name}, \"MPI_{name}\");").expect("a string has room");
    }
    if let Some(name) = built.iter().find(|name| !declared.contains(name.as_str())) {
        panic!("the header does not declare MPI_{name}");
    }
    fs::write(Path::new(&out).join("names.rs"), text).expect("cargo's folder is writable");
}

/// Collects X of each `PMPI_X(` in the sources of a folder: a function has its name in one
/// place, at its definition.
fn collect(folder: &Path, built: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("the folder can be read").path();
        if path.is_dir() {
            collect(&path, built);
            continue;
        }
        let text = fs::read_to_string(&path).expect("a source is text");
        for part in text.split("PMPI_").skip(1) {
            let end = part.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
            let (name, rest) = part.split_at(end.unwrap_or(part.len()));
            if !name.is_empty() && rest.starts_with(['(', ',', ';', ' ', ']']) {
                built.insert(name.into());
            }
        }
    }
}

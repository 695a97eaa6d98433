//! The C++ headers: each has what it needs, together they have all functions of the C header,
//! and programs run on them.

mod library;

use library::{build, compile_cpp, compile_cpp_text, exports, on_two_nodes, root};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tsumugi::pvas::Launch;

/// Functions that C++ programs call as they are, or have in another way.
const LEFT_TO_C: [&str; 7] = [
    "tsumugi_version",
    "tsumugi_version_text",
    // Containers with an allocator.
    "tsumugi_calloc",
    "tsumugi_realloc",
    // `group::allreduce` of one value.
    "tsumugi_group_reduce_u64",
    "tsumugi_group_reduce_i64",
    "tsumugi_group_reduce_f64",
];

#[test]
fn the_headers_have_all_functions_of_the_c_header() {
    let headers = headers().into_iter().map(|path| fs::read_to_string(path).unwrap());
    let text: String = headers.collect();
    let words: Vec<&str> =
        text.split(|byte: char| !byte.is_ascii_alphanumeric() && byte != '_').collect();
    for file in fs::read_dir(root().join("capi/src")).unwrap() {
        for name in exports(&fs::read_to_string(file.unwrap().path()).unwrap()) {
            let is_there = words.contains(&name.as_str());
            assert!(is_there || LEFT_TO_C.contains(&name.as_str()), "no C++ for {name}");
        }
    }
}

#[test]
fn each_header_is_included_alone_and_by_the_one_for_all() {
    let all = fs::read_to_string(root().join("include/tsumugi.hpp")).unwrap();
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    assert!(makefile.contains("$(wildcard include/tsumugi/*.hpp)"), "they are installed");
    let library = build();
    for header in headers() {
        let name = header.file_name().unwrap().to_str().unwrap();
        let line = format!("#include <tsumugi/{name}>\n");
        assert!(all.contains(&line), "tsumugi.hpp includes {name}");
        // Twice, in a program that must not get more than it has asked for.
        let text = format!("{line}{line}int main() {{}}\n");
        compile_cpp_text(&library, &text, &format!("alone-{name}"), "libtsumugi.so");
    }
}

#[test]
fn threads_locks_and_exceptions() {
    let library = build();
    for link in ["libtsumugi.so", "libtsumugi.a"] {
        let ran = Command::new(compile_cpp(&library, "guards", link)).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stdout);
        let complained = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{link}: {}\n{said}{complained}", ran.status);
        assert!(said.ends_with("all is well\n"), "{link}: {said}");
    }
}

#[test]
fn memory_groups_and_deques() {
    let library = build();
    for (link, ranks) in [("libtsumugi.so", 1), ("libtsumugi.so", 2), ("libtsumugi.a", 3)] {
        runs(&compile_cpp(&library, "whole", link), ranks, "start");
    }
}

#[test]
fn what_ranks_have_together() {
    let library = build();
    let [shared, archive] =
        ["libtsumugi.so", "libtsumugi.a"].map(|link| compile_cpp(&library, "ranks", link));
    for (program, ranks, way) in
        [(&shared, 1, "start"), (&archive, 2, "run"), (&shared, 3, "start"), (&shared, 3, "throw")]
    {
        runs(program, ranks, way);
    }
    on_two_nodes(&shared, 3, &["start"]);
}

/// The program of docs/c.md, as it stands there.
#[test]
fn the_program_of_the_document_runs() {
    let document = fs::read_to_string(root().join("docs/c.md")).unwrap();
    let (_, block) = document.split_once("```cpp\n").expect("docs/c.md has a program in C++");
    let (program, _) = block.split_once("```\n").expect("the program ends");
    let library = build();
    let program = compile_cpp_text(&library, program, "document", "libtsumugi.so");
    for ranks in 1..=3 {
        runs(&program, ranks, "");
    }
}

fn runs(program: &Path, ranks: u32, way: &str) {
    let job = Launch::new(ranks).program(program, [way]).start().expect("a job that starts");
    let code = job.wait().expect("a job that ends").code();
    assert_eq!(code, 0, "{} on {ranks} ranks: {way}", program.display());
}

fn headers() -> Vec<PathBuf> {
    let files = fs::read_dir(root().join("include/tsumugi")).unwrap();
    files.map(|file| file.unwrap().path()).collect()
}

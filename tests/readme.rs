//! The program in the README is the example that its commands run, and the index of
//! examples has all of them.

use std::fs;
use std::path::Path;

/// The folders of examples: programs to read, and programs that measure.
const FOLDERS: [&str; 2] = ["examples", "ci/rigs"];

#[test]
fn the_program_of_the_readme_is_the_first_example() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let example = fs::read_to_string(root().join("examples/hello.rs")).unwrap();
    let (_, rest) = readme.split_once("```rust\n").expect("the README has a program");
    let (program, _) = rest.split_once("```").expect("the end of the program");
    let is_code = |line: &&str| !line.starts_with("//!");
    let code: Vec<&str> = example.lines().filter(is_code).skip_while(|l| l.is_empty()).collect();
    assert_eq!(program.lines().collect::<Vec<_>>(), code, "examples/hello.rs");
}

#[test]
fn every_example_is_in_the_index_once() {
    for folder in FOLDERS {
        let index = fs::read_to_string(root().join(folder).join("README.md")).unwrap();
        for name in examples(folder) {
            let rows = index.matches(&format!("| `{name}` |")).count();
            assert_eq!(rows, 1, "{folder}/README.md: rows of {name}");
        }
    }
}

#[test]
fn every_command_runs_an_example_that_exists() {
    let examples: Vec<String> = FOLDERS.into_iter().flat_map(examples).collect();
    let documents = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let readmes = ["README.md", "examples/README.md", "ci/rigs/README.md"];
    let readmes = readmes.map(|name| root().join(name));
    let mut count = 0;
    for path in documents.chain(readmes) {
        let text = fs::read_to_string(&path).unwrap();
        for rest in text.split("target/release/examples/").skip(1) {
            let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let name = rest.split(|c| !is_of_name(c)).next().unwrap_or_default();
            count += 1;
            let path = path.display();
            assert!(examples.iter().any(|known| known == name), "{path}: no example {name:?}");
        }
    }
    assert!(count > 10, "only {count} commands were found");
}

/// The names of all examples of a folder: files, and folders with a main program.
fn examples(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(root().join(folder)).expect("there are examples");
    let names = entries.map(|entry| entry.unwrap().path()).filter_map(|path| {
        let is_example = path.extension().is_some_and(|end| end == "rs");
        let is_folder = path.join("main.rs").is_file();
        let name = path.file_stem().filter(|_| is_example || is_folder)?;
        Some(name.to_str()?.to_owned())
    });
    names.collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

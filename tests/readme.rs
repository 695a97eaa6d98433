//! The program in the README is the example that its commands run.

use std::fs;
use std::path::Path;

#[test]
fn the_program_of_the_readme_is_the_first_example() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let example = fs::read_to_string(root.join("examples/hello.rs")).unwrap();
    let (_, rest) = readme.split_once("```rust\n").expect("the README has a program");
    let (program, _) = rest.split_once("```").expect("the end of the program");
    let is_code = |line: &&str| !line.starts_with("//!");
    let code: Vec<&str> = example.lines().filter(is_code).skip_while(|l| l.is_empty()).collect();
    assert_eq!(program.lines().collect::<Vec<_>>(), code, "examples/hello.rs");
}

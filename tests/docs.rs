//! The files, folders and items that the documents in `docs/` name exist.
//!
//! A reference is a path in backquotes and, behind it, the names of items in that file:
//! `src/ops.rs` `put`, `get`. For `Runtime::put`, the file must have each part. The path
//! of a script may be followed by arguments in the same backquotes, which the script
//! must have, too: `ci/netns.sh pages`. A path ends with one of the [`ENDS`], and that of
//! a folder with a slash.

use std::fs;
use std::path::{Path, PathBuf};

/// The ends of names of files that are checked.
const ENDS: [&str; 5] = [".rs", ".sh", ".md", ".h", ".c"];

#[test]
fn paths_and_items_in_the_documents_exist() {
    let documents = fs::read_dir(root().join("docs")).expect("there are documents");
    let paths: Vec<PathBuf> = documents.map(|entry| entry.unwrap().path()).collect();
    assert!(!paths.is_empty(), "docs/ is empty");
    let mut faults = Vec::new();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|end| end == "md")) {
        let name = path.file_name().unwrap().to_str().unwrap();
        let (count, found) = faults_of(&fs::read_to_string(path).unwrap());
        assert!(count > 0, "docs/{name} names no file of the tree");
        faults.extend(found.iter().map(|(line, what)| format!("docs/{name}:{line}: {what}")));
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn missing_files_and_items_are_reported() {
    let text = "`tests/docs.rs` `faults_of`, `fault`, `tests/none.rs`\n\
        ```text\n`tests/none.rs\n```\n`tests/readme.rs`\n  `Path::no_such_item`\n\n\
        | `no_folder/` | `ci/none.sh all`, `tests/` `ci/style.sh no_argument` |\n\
        `tests/readme.rs` `fs`, `no_item`; `no_item`\n";
    let (count, faults) = faults_of(text);
    let lines: Vec<usize> = faults.iter().map(|(line, _)| *line).collect();
    assert_eq!((count, lines), (8, vec![1, 6, 8, 8, 8, 9]));
}

/// The number of paths that a text names, and the missing files and items: the line of
/// the reference, and what is missing.
fn faults_of(text: &str) -> (usize, Vec<(usize, String)>) {
    let text = without_blocks(text);
    assert!(text.matches('`').count().is_multiple_of(2), "a backquote has no partner:\n{text}");
    let (mut line, mut count, mut faults) = (1, 0, Vec::new());
    let mut file = None; // The file of the items that may come next.
    for (at, part) in text.split('`').enumerate() {
        let (path, argument) = part.split_once(' ').unwrap_or((part, ""));
        let mut found = None;
        if at % 2 == 0 {
            let goes_on = !part.contains("\n\n") && matches!(part.trim(), "" | ",");
            file = file.filter(|_| goes_on && !part.is_empty());
        } else if is_path(path) && (argument.is_empty() || path.ends_with(".sh")) {
            count += 1;
            found = fault(path, argument);
            file = Some(path).filter(|path| !path.ends_with('/'));
        } else {
            file = file.filter(|_| part.chars().all(|c| is_letter(c) || c == ':'));
            found = file.and_then(|path| fault(path, part));
        }
        faults.extend(found.map(|what| (line, format!("`{part}`: {what}"))));
        line += part.matches('\n').count();
    }
    (count, faults)
}

fn is_path(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let is_named = ENDS.iter().any(|end| name.len() > end.len() && name.ends_with(end));
    name.len() > 1 && name.chars().all(is_plain) && (is_named || name.ends_with('/'))
}

fn fault(path: &str, item: &str) -> Option<String> {
    let place = root().join(path);
    if path.ends_with('/') {
        return (!place.is_dir()).then(|| "there is no such folder".to_owned());
    }
    let Ok(text) = fs::read_to_string(place) else { return Some("there is no such file".into()) };
    let mut names = item.split(|c| !is_letter(c));
    let missing = names.find(|name| !text.split(|c| !is_letter(c)).any(|word| word == *name));
    missing.map(|name| format!("{path} has no `{name}`"))
}

fn is_letter(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The text, with empty lines in place of its blocks of code.
fn without_blocks(text: &str) -> String {
    let mut is_in = false;
    let lines = text.lines().map(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_in ^= is_fence;
        if is_in || is_fence { "" } else { line }
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

//! The words of comments: the subject of a sentence is a thing with a name, a caller, a
//! worker or a rank, and seldom a pronoun that leaves the reader to guess which.

use std::fs;
use std::path::{Path, PathBuf};

/// Where the product is; tests have words of their own.
const FOLDERS: [&str; 10] = [
    "core/src",
    "ult/src",
    "pvas/src",
    "backends/src",
    "gas/src",
    "runtime/src",
    "src",
    "acp/src",
    "capi/src",
    "cli/src",
];

/// Pronouns that name no thing.
const PRONOUNS: [&str; 11] = [
    "whoever",
    "whomever",
    "whose",
    "whom",
    "nobody",
    "somebody",
    "anybody",
    "everybody",
    "someone",
    "anyone",
    "everyone",
];

/// So many of 10,000 words may be one. Other code bases of the field have 0.3 to 2.4.
const MOST: usize = 5;

#[test]
fn comments_name_their_subjects() {
    let (mut words, mut found) = (0, Vec::new());
    for folder in FOLDERS {
        for file in sources(&root().join(folder)) {
            let text = fs::read_to_string(&file).expect("a source");
            let name = file.strip_prefix(root()).unwrap_or(&file).display();
            for (number, comment) in comments(&text) {
                for word in comment.split(|c: char| !c.is_alphanumeric() && c != '\'') {
                    words += usize::from(!word.is_empty());
                    if PRONOUNS.contains(&word.to_lowercase().as_str()) {
                        found.push(format!("{name}:{number}: {}", comment.trim()));
                    }
                }
            }
        }
    }
    assert!(words > 100_000, "only {words} words were found");
    let most = words * MOST / 10_000;
    let count = found.len();
    assert!(count <= most, "{}\n{count} of at most {most} in {words} words", found.join("\n"));
}

#[test]
fn comments_are_found() {
    let text = "/// One.\nlet a = \"// none\"; // two\n    //! Three.\nlet b = 4;";
    assert_eq!(comments(text), [(1, "One."), (2, "two"), (3, "Three.")]);
}

/// The comments of a source, with the numbers of their lines.
fn comments(text: &str) -> Vec<(usize, &str)> {
    let lines = text.lines().enumerate();
    lines.filter_map(|(index, line)| Some((index + 1, comment(line)?))).collect()
}

fn comment(line: &str) -> Option<&str> {
    // Not in a string.
    let is_code = |at: usize| line[..at].matches('"').count().is_multiple_of(2);
    let at = line.match_indices("//").map(|(at, _)| at).find(|at| is_code(*at))?;
    Some(line[at..].trim_start_matches(['/', '!']).trim())
}

/// The product's files below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.unwrap().path()) {
        let name = entry.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if entry.is_dir() && name != "tests" {
            files.extend(sources(&entry));
        } else if name.ends_with(".rs") && name != "tests.rs" {
            files.push(entry);
        }
    }
    files
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

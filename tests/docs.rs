//! The files, folders and items that `docs/` and the READMEs name exist, and so do the
//! targets of their links.
//!
//! A reference is a path in backquotes and, behind it, the names of items in that file:
//! `src/ops.rs` `put`, `get`. A file of Rust must define the item; for `Runtime::put`, it
//! must have the word `Runtime`, too. The path of a script may be followed by arguments in
//! the same backquotes, which the script must have, too: `ci/netns.sh pages`. A path ends
//! with one of the [`ENDS`], and that of a folder with a slash. A link leads to a file, or behind `#` to a heading of a file.

use std::fs;
use std::path::{Path, PathBuf};

/// The ends of names of files that are checked.
const ENDS: [&str; 5] = [".rs", ".sh", ".md", ".h", ".c"];
/// The documents besides `docs/` whose references and links are checked.
const READMES: [&str; 3] = ["README.md", "examples/README.md", "ci/rigs/README.md"];
/// The documents of which only the links are checked.
const OTHERS: [&str; 4] = ["CONTRIBUTING.md", "SECURITY.md", "THIRD-PARTY.md", "include/README.md"];

#[test]
fn paths_and_items_in_the_documents_exist() {
    let mut faults = Vec::new();
    for name in documents() {
        let (count, found) = faults_of(&fs::read_to_string(root().join(&name)).unwrap());
        assert!(count > 0 || name == "README.md", "{name} names no file of the tree");
        faults.extend(found.iter().map(|(line, what)| format!("{name}:{line}: {what}")));
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn links_lead_to_files_and_headings() {
    let mut broken = Vec::new();
    for name in documents().into_iter().chain(OTHERS.map(str::to_owned)) {
        let path = root().join(&name);
        let found = broken_links(&path, &fs::read_to_string(&path).unwrap());
        broken.extend(found.iter().map(|target| format!("{name}: {target}")));
    }
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

#[test]
fn broken_links_are_reported() {
    let text = "[a](security.md) [b](none.md) [c](../README.md#a-program) [d](#no-such-heading)\n\
        [e](https://example.org/none.md) [f](#bootstrap)\n```text\n[g](none.md)\n```\n";
    let path = root().join("docs/security.md");
    assert_eq!(broken_links(&path, text), ["none.md", "#no-such-heading"]);
}

#[test]
fn missing_files_and_items_are_reported() {
    let text = "`tests/docs.rs` `faults_of`, `fault`, `tests/none.rs`\n\
        ```text\n`tests/none.rs\n```\n`tests/readme.rs`\n  `Path::no_such_item`\n\n\
        | `no_folder/` | `ci/none.sh all`, `tests/` `ci/style.sh no_argument` |\n\
        `tests/docs.rs` `fs`, `no_item`; `no_item`\n`tests/docs.rs` `ENDS`, `root`, `matches`\n";
    let (count, faults) = faults_of(text);
    let lines: Vec<usize> = faults.iter().map(|(line, _)| *line).collect();
    assert_eq!((count, lines), (9, vec![1, 6, 8, 8, 8, 9, 9, 10]));
}

/// The documents whose references are checked.
fn documents() -> Vec<String> {
    let entries = fs::read_dir(root().join("docs")).expect("there are documents");
    let names = entries.map(|entry| entry.unwrap().file_name().to_str().unwrap().to_owned());
    let names = names.filter(|name| name.ends_with(".md")).map(|name| format!("docs/{name}"));
    let names: Vec<String> = names.collect();
    assert!(!names.is_empty(), "docs/ is empty");
    names.into_iter().chain(READMES.map(str::to_owned)).collect()
}

/// The links of the document at `path` that lead to no file, or to no heading of a file.
fn broken_links(path: &Path, text: &str) -> Vec<String> {
    let folder = path.parent().expect("a document lies in a folder");
    let mut broken = Vec::new();
    for rest in without_blocks(text).split("](").skip(1) {
        let target = rest.split(')').next().unwrap_or_default();
        let (file, heading) = target.split_once('#').unwrap_or((target, ""));
        let to = if file.is_empty() { path.to_owned() } else { folder.join(file) };
        let is_there = to.exists() && (heading.is_empty() || has_heading(&to, heading));
        if !is_there && !target.contains("://") {
            broken.push(target.to_owned());
        }
    }
    broken
}

/// Whether a document has the heading that a link names: the letters of the heading in lower
/// case, with hyphens in place of spaces.
fn has_heading(path: &Path, link: &str) -> bool {
    let name = |title: &str| -> String {
        let kept = title.chars().filter(|c| is_letter(*c) || *c == ' ' || *c == '-');
        kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
    };
    let text = fs::read_to_string(path).unwrap_or_default();
    let text = without_blocks(&text);
    let mut titles = text.lines().filter(|line| line.starts_with('#'));
    titles.any(|line| name(line.trim_start_matches('#').trim()) == link)
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
    if let Some(name) = missing {
        return Some(format!("{path} has no `{name}`"));
    }
    let last = item.rsplit("::").next().unwrap_or_default();
    let is_missing = path.ends_with(".rs") && !last.is_empty() && !defines(&text, last);
    is_missing.then(|| format!("{path} has the word `{last}`, and does not define it"))
}

/// Whether a line of the code begins the definition of an item with this name: `fn name`,
/// `struct name` and so on, a field, or a variant; or the code re-exports the item.
fn defines(code: &str, name: &str) -> bool {
    let re_exports = code.split("pub use ").skip(1).filter_map(|rest| rest.split(';').next());
    let mut re_exported = re_exports.flat_map(|items| items.split(|c| !is_letter(c)));
    let is_re_exported = re_exported.any(|word| word == name);
    is_re_exported
        || code.lines().any(|line| {
            let line = line.trim();
            let line = match line.strip_prefix("pub(").and_then(|rest| rest.split_once(") ")) {
                Some((_, line)) => line,
                None => line.strip_prefix("pub ").unwrap_or(line),
            };
            let mut words = line.split_whitespace();
            let word = words.find(|word| !KEYWORDS.contains(word)).unwrap_or_default();
            let rest = word.strip_prefix(name).filter(|rest| !rest.starts_with(is_letter));
            rest.is_some_and(|rest| {
                let is_call =
                    rest.starts_with("::") || rest.starts_with('.') || line.ends_with(';');
                !line.starts_with(word) || !is_call
            })
        })
}

/// The words before the name of an item.
const KEYWORDS: [&str; 15] = [
    "fn",
    "struct",
    "enum",
    "union",
    "trait",
    "const",
    "static",
    "type",
    "mod",
    "macro_rules!",
    "unsafe",
    "async",
    "extern",
    "\"C\"",
    "mut",
];

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

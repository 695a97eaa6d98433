//! The copy of the tree into which mutants are woven.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The file to which the switch of all mutants is added.
pub const DOOR: &str = "core/src/sync.rs";

/// Copies all files that git does not ignore to `to`, except those that are woven there.
/// An unchanged file keeps its time, so that cargo does not build it again. Files that
/// are gone from the tree are removed from the copy.
pub fn copy(from: &Path, to: &Path, woven: &[String]) -> Result<PathBuf, String> {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(from)
        .output()
        .map_err(|error| format!("git: {error}"))?;
    let names = String::from_utf8(listed.stdout).map_err(|error| error.to_string())?;
    let names: BTreeSet<&str> = names.split('\0').filter(|name| !name.is_empty()).collect();
    for name in &names {
        if *name == DOOR || woven.iter().any(|woven| woven == name) {
            continue;
        }
        // A file may be in the index and no longer in the tree.
        let Ok(bytes) = fs::read(from.join(name)) else { continue };
        write_if_new(&to.join(name), &bytes)?;
    }
    let list = to.join(".copied");
    if let Ok(before) = fs::read_to_string(&list) {
        for gone in before.split('\0').filter(|name| !names.contains(name)) {
            let _ = fs::remove_file(to.join(gone));
        }
    }
    let all: Vec<&str> = names.into_iter().collect();
    fs::write(list, all.join("\0")).map_err(|error| error.to_string())?;
    to.canonicalize().map_err(|error| format!("{}: {error}", to.display()))
}

/// Writes a file unless it has this content already.
pub fn write_if_new(path: &Path, bytes: &[u8]) -> Result<(), String> {
    if fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    let said = |error| format!("{}: {error}", path.display());
    fs::create_dir_all(path.parent().expect("a file lies in a folder")).map_err(said)?;
    fs::write(path, bytes).map_err(said)
}

/// The Rust files among these files and below these folders, without files of tests.
///
/// # Errors
///
/// A text, if a name is neither a file nor a folder, or a folder cannot be read.
pub fn product_files(tree: &Path, asked: &[String]) -> Result<Vec<String>, String> {
    let mut files = BTreeSet::new();
    for name in asked {
        let path = tree.join(name);
        if path.is_dir() {
            under(tree, &path, &mut files)?;
        } else if path.is_file() {
            files.insert(name.clone());
        } else {
            return Err(format!("{name} is neither a file nor a folder of the tree"));
        }
    }
    Ok(files.into_iter().collect())
}

fn under(tree: &Path, folder: &Path, files: &mut BTreeSet<String>) -> Result<(), String> {
    for entry in fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))? {
        let path = entry.map_err(|error| error.to_string())?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() && name != "tests" {
            under(tree, &path, files)?;
        } else if name.ends_with(".rs") && name != "tests.rs" {
            let relative = path.strip_prefix(tree).expect("a path in the tree");
            files.insert(relative.to_string_lossy().into_owned());
        }
    }
    Ok(())
}

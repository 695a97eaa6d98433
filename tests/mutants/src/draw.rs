//! The draw of mutants, and the mutants that are never drawn.

use crate::Asked;
use crate::find::{Change, Source};
use std::fs;
use std::ops::Range;
use std::path::Path;

/// A mutant. Its number is its place in the draw.
#[derive(Debug, Clone)]
pub struct Drawn {
    /// The index of its source.
    pub source: usize,
    pub file: String,
    pub line: usize,
    pub range: Range<usize>,
    pub change: Change,
    pub what: String,
    /// The line of the source, trimmed.
    pub text: String,
}

/// Mutants that were found to change nothing that a caller can see.
#[derive(Debug, Default)]
pub struct Equivalent(Vec<[String; 3]>);

impl Equivalent {
    /// Reads lines of `file ¦ what ¦ line of the source ¦ reason`; `#` begins a comment.
    pub fn read(path: &Path) -> Result<Self, String> {
        let Ok(text) = fs::read_to_string(path) else { return Ok(Self::default()) };
        let mut all = Vec::new();
        for (number, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let parts: Vec<&str> = line.split(" ¦ ").map(str::trim).collect();
            let [file, what, source, _reason] = parts[..] else {
                return Err(format!(
                    "{}:{}: not `file ¦ what ¦ source ¦ reason`",
                    path.display(),
                    number + 1
                ));
            };
            all.push([file, what, source].map(str::to_owned));
        }
        Ok(Self(all))
    }

    fn has(&self, file: &str, what: &str, text: &str) -> bool {
        self.0.iter().any(|it| it[0] == file && it[1] == what && it[2] == text)
    }
}

/// Draws mutants in random order, a quarter more than requested, because some do not
/// compile.
pub fn sample(sources: &[Source], equivalent: &Equivalent, asked: &Asked) -> Vec<Drawn> {
    let mut all = Vec::new();
    for (index, source) in sources.iter().enumerate() {
        let lines: Vec<&str> = source.text.lines().collect();
        for candidate in &source.candidates {
            let text = lines[candidate.line - 1].trim().to_owned();
            let is_of_loom = candidate.is_ordering() && !asked.loom;
            // The switch of a mutant that a test plants itself is not changed.
            let is_planted =
                !candidate.is_beside && (text.contains("mutant(\"") || text.contains("mutate!(\""));
            if !asked.has(&source.file, candidate.line)
                || is_of_loom
                || is_planted
                || equivalent.has(&source.file, &candidate.what, &text)
            {
                continue;
            }
            all.push(Drawn {
                source: index,
                file: source.file.clone(),
                line: candidate.line,
                range: candidate.range.clone(),
                change: candidate.change.clone(),
                what: candidate.what.clone(),
                text,
            });
        }
    }
    let most = all.len().min(asked.sample + asked.sample / 4);
    let mut state = asked.seed;
    for place in 0..most {
        let other = place + (next(&mut state) % (all.len() - place) as u64) as usize;
        all.swap(place, other);
    }
    all.truncate(most);
    all
}

impl Asked {
    /// Whether a line is requested. If no line of a file is listed, all lines of it are
    /// requested.
    fn has(&self, file: &str, line: usize) -> bool {
        let mut of_file = self.lines.iter().filter(|it| it.0 == file).peekable();
        of_file.peek().is_none() || of_file.any(|it| it.1 == line)
    }
}

/// Steele, Lea and Flood: Fast splittable pseudorandom number generators (2014).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

//! An error in a file: its place, and what was expected.

use std::fmt;
use std::io;

/// A file that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenFile {
    /// The file's name.
    pub file: String,
    /// The line, from 1; absent if the error concerns the file as a whole.
    pub line: Option<u64>,
    /// The error, and what was expected.
    pub what: String,
}

impl BrokenFile {
    /// The error `what` at `line` of `file`.
    pub fn at(file: &str, line: u64, what: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line: Some(line), what: what.into() }
    }

    /// An error of a file that the operating system does not let the program read.
    pub fn unreadable(file: String, error: &io::Error) -> Self {
        Self { file, line: None, what: format!("cannot be read: {error}") }
    }
}

impl fmt::Display for BrokenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.what),
            None => write!(f, "{}: {}", self.file, self.what),
        }
    }
}

impl std::error::Error for BrokenFile {}

/// A word of a file in a form that is safe to print: quoted, printable, and not too
/// long.
pub fn quoted(word: &[u8]) -> String {
    let text = String::from_utf8_lossy(&word[..word.len().min(SHOWN_BYTES_MAX)]);
    let more = if word.len() > SHOWN_BYTES_MAX { "..." } else { "" };
    format!("'{}{more}'", text.escape_debug())
}

const SHOWN_BYTES_MAX: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_word_cannot_drive_the_terminal() {
        assert_eq!(quoted(b"\x1b[2J"), r"'\u{1b}[2J'");
        assert_eq!(quoted(&[b'x'; 50]), format!("'{}...'", "x".repeat(40)));
    }
}

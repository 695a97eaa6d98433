//! What was tried before anything relies on it, and what came of it.

use core::fmt;

/// What was tried, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probed {
    /// In the order of the trials.
    pub rows: Vec<Row>,
}

/// One trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// What was tried.
    pub name: &'static str,
    /// Bytes of the word, for atomics.
    pub width: usize,
    /// What came of it.
    pub verdict: Verdict,
}

/// What came of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It did what it should.
    Works,
    /// It was refused with the library's error.
    Refused(i32),
    /// It completed, and memory was not as it should be.
    Wrong,
    /// It did not complete in time.
    Silent,
}

impl Probed {
    /// Whether all trials of that name worked.
    pub fn works(&self, name: &str) -> bool {
        let mut rows = self.rows.iter().filter(|row| row.name == name).peekable();
        rows.peek().is_some() && rows.all(|row| row.verdict == Verdict::Works)
    }
}

/// Trials of all libraries.
impl Probed {
    pub(crate) const LANDED: &str = "a put that completes has landed";
    pub(crate) const SLEEPER: &str = "a target that sleeps is served";
    pub(crate) const STALE: &str = "a stale key is refused";
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.width {
            0 => write!(f, "{}: ", self.name)?,
            width => write!(f, "{} of {width} bytes: ", self.name)?,
        }
        match self.verdict {
            Verdict::Works => write!(f, "works"),
            Verdict::Refused(code) => write!(f, "refused, error {code}"),
            Verdict::Wrong => write!(f, "wrong"),
            Verdict::Silent => write!(f, "no answer"),
        }
    }
}

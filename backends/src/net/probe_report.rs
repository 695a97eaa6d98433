//! The results of the trials that are made before anything relies on a library.

use core::fmt;

/// The results of the trials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeReport {
    /// The trials in their order.
    pub rows: Vec<TrialRow>,
}

/// One trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrialRow {
    /// The behaviour that was tried.
    pub name: &'static str,
    /// The bytes of the word, for atomics.
    pub width: usize,
    /// The result.
    pub verdict: TrialResult,
}

/// The result of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialResult {
    /// The call did what it should.
    Works,
    /// The call was refused with this error of the library.
    Refused(i32),
    /// The call completed, and memory was not as it should be.
    Wrong,
    /// The call did not complete in time.
    Silent,
}

impl ProbeReport {
    /// Whether all trials of that name worked.
    pub fn works(&self, name: &str) -> bool {
        let mut rows = self.rows.iter().filter(|row| row.name == name).peekable();
        rows.peek().is_some() && rows.all(|row| row.verdict == TrialResult::Works)
    }
}

/// The trials that are made with all libraries.
impl ProbeReport {
    /// The trial of remote completion.
    pub const LANDED: &str = "a put that completes has landed";
    /// The trial of automatic progress.
    pub const SLEEPER: &str = "a sleeping target is served";
    /// The trial of a key that has ended.
    pub const STALE: &str = "a stale key is refused";
}

impl fmt::Display for TrialRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.width {
            0 => write!(f, "{}: ", self.name)?,
            width => write!(f, "{} of {width} bytes: ", self.name)?,
        }
        match self.verdict {
            TrialResult::Works => write!(f, "works"),
            TrialResult::Refused(code) => write!(f, "refused with error {code}"),
            TrialResult::Wrong => write!(f, "completed with a wrong result"),
            TrialResult::Silent => write!(f, "not completed in time"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feature_works_if_each_trial_of_it_worked() {
        let row = |name, verdict| TrialRow { name, width: 4, verdict };
        let rows = vec![
            row("a put", TrialResult::Works),
            row("a get", TrialResult::Works),
            row("a get", TrialResult::Wrong),
            row("an atomic", TrialResult::Silent),
        ];
        let probed = ProbeReport { rows };
        assert!(probed.works("a put"));
        assert!(!probed.works("a get") && !probed.works("an atomic"));
        assert!(!probed.works("a swap"), "no trial was made");
    }
}

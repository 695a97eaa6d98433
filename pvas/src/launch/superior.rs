//! The connection of a part of a job to the program that started all parts.

use super::outcome::RankFailure;
use std::fmt;
use std::io::PipeReader;

/// The connection of a part's launcher to the program that has started this part of
/// a job and other parts.
pub struct Superior {
    /// Receives each end, also the end of a rank with exit code 0: as `Early`,
    /// because this launcher does not see whether the rank was done.
    pub ends: Box<dyn Fn(EndReport) + Send>,
    /// Yields the dead rank that ends the job: a word of 32 bits, little-endian.
    pub deaths: PipeReader,
}

/// An end, as it is reported to a superior.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndReport {
    /// The end.
    pub failure: RankFailure,
    /// Whether another rank of this part, or of another node, had been declared
    /// lost before this end was seen; if so, this rank may have ended because of
    /// that loss.
    pub may_have_heard: bool,
}

impl fmt::Debug for Superior {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Superior")
    }
}

//! The connection of a part of a job to the program that started all parts.

use super::outcome::RankFailure;
use std::io::PipeReader;
use std::sync::mpsc::Sender;

/// The connection of a part's launcher to the program that has started this part of
/// a job and other parts.
#[derive(Debug)]
pub struct Superior {
    /// Receives each end, also the end of a rank with exit code 0: as `Early`,
    /// because this launcher does not see whether the rank was done.
    pub ends: Sender<EndReport>,
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

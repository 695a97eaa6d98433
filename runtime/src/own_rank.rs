//! The rank that this process or thread is, for reports and errors.

use std::fmt;
use std::sync::OnceLock;
use tsumugi_core::mem::Rank;

/// The rank of this process, if it is one of several.
static OWN: OnceLock<Rank> = OnceLock::new();

/// Begins a line with the rank that writes it: `rank 2: `, or nothing if the job has one
/// rank, or the thread belongs to none.
#[derive(Clone, Copy, Debug)]
pub struct RankPrefix(Option<Rank>);

impl RankPrefix {
    /// The prefix for the calling thread.
    pub fn here() -> Self {
        Self(tsumugi_ult::rank().or_else(|| OWN.get().copied()))
    }

    /// The prefix for an error that a main returns: on a thread that runs ULTs the
    /// error is a part of another text, which has the rank already.
    pub(crate) fn of_error() -> Self {
        Self(OWN.get().copied().filter(|_| tsumugi_ult::rank().is_none()))
    }
}

/// Notes that this process is `rank` of a job of `size` ranks.
pub(crate) fn set(rank: Rank, size: u32) {
    if size > 1 {
        // A process that joins a second job keeps its first number, as a rule the same.
        let _ = OWN.set(rank);
    }
}

impl fmt::Display for RankPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(rank) => write!(f, "{rank}: "),
            None => Ok(()),
        }
    }
}

//! How ranks and jobs end.

use std::fmt;
use tsumugi_core::mem::Rank;

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobOutcome {
    /// The first failure, if there was one.
    pub failure: Option<RankFailure>,
}

/// A rank that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankFailure {
    /// The rank that failed.
    pub rank: Rank,
    /// Its process.
    pub pid: u32,
    /// How it ended.
    pub end: RankEnd,
}

/// How a process ended that should not have ended so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RankEnd {
    /// With an exit code other than 0; a panic is 101.
    Exited {
        /// The code.
        code: i32,
    },
    /// By a signal.
    Killed {
        /// The signal.
        signal: i32,
    },
    /// With exit code 0, but before the rank reported that it is done.
    Early,
}

impl JobOutcome {
    /// The exit code for the launcher: the exit code of the first rank that failed,
    /// 128 + its signal, or 1 if it exited early; without a failure 0.
    pub fn code(&self) -> i32 {
        match self.failure.map(|failure| failure.end) {
            None => 0,
            Some(RankEnd::Exited { code }) => code,
            Some(RankEnd::Killed { signal }) => 128 + signal,
            Some(RankEnd::Early) => 1,
        }
    }

    /// [`code`](Self::code) as the exit code of a process: 0 only without a failure.
    pub fn exit_code(&self) -> u8 {
        // The system gives codes of 8 bits; a signal that does not fit is a failure.
        u8::try_from(self.code()).unwrap_or(1)
    }
}

impl fmt::Display for RankFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rank, pid, end } = self;
        write!(f, "{rank} (pid {pid}) ")?;
        match *end {
            RankEnd::Exited { code: 101 } => write!(f, "exited with code 101 (it panicked)"),
            RankEnd::Exited { code } => write!(f, "exited with code {code}"),
            RankEnd::Early => write!(f, "exited with code 0 before it had finished"),
            RankEnd::Killed { signal } => match crate::sys::signal_name(signal) {
                Some(name) => write!(f, "was killed by signal {signal} ({name})"),
                None => write!(f, "was killed by signal {signal}"),
            },
        }
    }
}

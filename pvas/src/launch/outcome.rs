//! How ranks and jobs end.

use std::fmt;
use std::time::Duration;
use tsumugi_core::mem::Rank;

/// How a job ended; the default is without a failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobOutcome {
    /// The first failure, if there was one.
    pub failure: Option<RankFailure>,
    /// Whether the job was ended because its time limit was over.
    pub is_out_of_time: bool,
    /// Whether output of the ranks could not be written, such as to a full disk.
    pub is_output_lost: bool,
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

/// How a process ended that should not have ended so. The enum is exhaustive: a launcher
/// that passes it on to other hosts must know each end.
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

impl From<RankFailure> for JobOutcome {
    fn from(failure: RankFailure) -> Self {
        Self { failure: Some(failure), ..Self::default() }
    }
}

impl JobOutcome {
    /// The exit code of a job that its time limit has ended, as that of `timeout`.
    pub const OUT_OF_TIME: i32 = 124;

    /// The exit code for the launcher: the exit code of the first rank that failed,
    /// 128 + its signal, or 1 if it exited early; without a failure 0, or 1 if output
    /// was lost; and [`OUT_OF_TIME`](Self::OUT_OF_TIME) after the time limit.
    pub fn code(&self) -> i32 {
        if self.is_out_of_time {
            return Self::OUT_OF_TIME;
        }
        match self.failure.map(|failure| failure.end) {
            None => i32::from(self.is_output_lost),
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

impl RankEnd {
    /// How doubtful it is that this end is the cause of the ends of other ranks; 0 is
    /// the least. A rank that learns of a death mostly ends with code 1 or a panic.
    pub fn doubt(&self) -> u32 {
        match self {
            Self::Killed { .. } => 0,
            Self::Exited { code: 1 | PANIC } | Self::Early => 2,
            Self::Exited { .. } => 1,
        }
    }

    /// Whether the process has crashed by itself, and not by a signal with which a job
    /// is ended.
    pub fn is_crash(&self) -> bool {
        const CRASHES: [i32; 7] = [
            libc::SIGSEGV,
            libc::SIGBUS,
            libc::SIGABRT,
            libc::SIGFPE,
            libc::SIGILL,
            libc::SIGTRAP,
            libc::SIGSYS,
        ];
        matches!(self, Self::Killed { signal } if CRASHES.contains(signal))
    }
}

/// The line that a launcher prints when the time limit of its job is over.
pub fn out_of_time(limit: Duration) -> String {
    format!("tsumugi: the job is ended after its time limit of {limit:?}\n")
}

/// The exit code of a Rust program that panics.
const PANIC: i32 = 101;

impl fmt::Display for RankFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rank, pid, end } = self;
        write!(f, "{rank} (pid {pid}) ")?;
        match *end {
            RankEnd::Exited { code: PANIC } => write!(f, "exited with code 101 (it panicked)"),
            RankEnd::Exited { code } => write!(f, "exited with code {code}"),
            RankEnd::Early => write!(f, "exited with code 0 before it had finished"),
            RankEnd::Killed { signal } => match crate::sys::signal_name(signal) {
                Some(name) => write!(f, "was killed by signal {signal} ({name})"),
                None => write!(f, "was killed by signal {signal}"),
            },
        }
    }
}

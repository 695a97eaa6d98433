//! Why the ranks of a node did not meet.

use crate::space::SpaceError;
use std::fmt;
use std::io;
use std::time::Duration;
use tsumugi_core::mem::Rank;

/// Why there are no memory files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeetError {
    /// The rank is not one of so many.
    Size {
        /// The rank.
        rank: u32,
        /// How many there are.
        size: u32,
    },
    /// The leader could not make them.
    Space(SpaceError),
    /// Another process has the name and does not listen, or is of a job of this user
    /// that is starting on this node.
    NameTaken {
        /// For so long.
        limit: Duration,
    },
    /// The first rank of the node did not come.
    NoLeader {
        /// For so long.
        limit: Duration,
    },
    /// A rank did not come.
    Missing {
        /// Which, the first of them.
        rank: Rank,
        /// For so long.
        limit: Duration,
    },
    /// Another user's process has the name.
    Stranger {
        /// The user.
        user: u32,
    },
    /// The leader does not take this rank.
    Refused {
        /// This rank.
        rank: Rank,
        /// Why.
        why: Verdict,
    },
    /// Not all descriptors came: the leader is gone, or this process may not
    /// have as many open (`ulimit -n`).
    Descriptors {
        /// How many came.
        found: usize,
        /// How many there are.
        wanted: usize,
    },
    /// The system refused something else.
    System {
        /// What.
        what: &'static str,
        /// Its error number; 0 if the other end broke off.
        errno: i32,
    },
}

/// What a leader thinks of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Verdict {
    /// It is one of its own.
    Welcome = 0,
    /// It was built differently.
    Build = 1,
    /// It is of another job, or of another node.
    Job = 2,
    /// It thinks that there are more ranks, or fewer.
    Size = 3,
    /// Another process is this rank.
    Taken = 4,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Welcome => "it is welcome",
            Self::Build => "it was built from another source",
            Self::Job => "it is of another job or node",
            Self::Size => "it counts the ranks of the node differently",
            Self::Taken => "another process is this rank",
        })
    }
}

impl fmt::Display for MeetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size { rank, size } => write!(f, "rank {rank} of {size} on a node"),
            Self::Space(error) => error.fmt(f),
            Self::NameTaken { limit } => write!(
                f,
                "the name of this job's socket was taken for {limit:?}: by another job of this \
                 user with the same name, or by a process that has guessed it (TSUMUGI_JOB)"
            ),
            Self::NoLeader { limit } => {
                write!(f, "the first rank of this node did not come within {limit:?}")
            }
            Self::Missing { rank, limit } => {
                write!(f, "{rank} of this node did not come within {limit:?}")
            }
            Self::Stranger { user } => {
                let job = "TSUMUGI_JOB: a name that others do not guess";
                write!(
                    f,
                    "a process of user {user} has taken the name of this job's socket ({job})"
                )
            }
            Self::Refused { rank, why } => write!(f, "the node's leader refuses {rank}: {why}"),
            Self::Descriptors { found, wanted } => write!(
                f,
                "{found} of {wanted} memory files came: the node's leader is gone, or this \
                 process may not have as many open (ulimit -n)"
            ),
            Self::System { what, errno: 0 } => {
                write!(f, "meeting the ranks of this node: {what}: the other end broke off")
            }
            Self::System { what, errno } => {
                let error = io::Error::from_raw_os_error(*errno);
                write!(f, "meeting the ranks of this node: {what}: {error}")
            }
        }
    }
}

impl std::error::Error for MeetError {}

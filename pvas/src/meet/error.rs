//! Why the ranks of a node did not meet.

use crate::space::SpaceError;
use std::fmt;
use std::io;
use std::time::Duration;
use tsumugi_core::mem::LocalRank;

/// Why a rank gets no memory files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MeetError {
    /// The rank is not below the size.
    Size {
        /// The rank.
        rank: u32,
        /// The number of ranks of the node.
        size: u32,
    },
    /// The leader could not make the files.
    Space(SpaceError),
    /// Another process has taken the socket's name: it does not listen, or it is of
    /// another job of this user that starts on this node.
    NameTaken {
        /// How long the leader tried.
        limit: Duration,
    },
    /// The first rank of the node accepted no connection.
    NoLeader {
        /// How long this rank waited.
        limit: Duration,
    },
    /// A rank did not join.
    Missing {
        /// The first of the missing ranks.
        rank: LocalRank,
        /// How long the leader waited.
        limit: Duration,
    },
    /// Another user's process has taken the name.
    Stranger {
        /// The user.
        user: u32,
    },
    /// The leader refuses this rank.
    Refused {
        /// This rank.
        rank: LocalRank,
        /// The reason.
        why: JoinVerdict,
    },
    /// Not all descriptors came: the leader is gone, or this process may not
    /// have as many open (`ulimit -n`).
    Descriptors {
        /// How many came.
        found: usize,
        /// How many should have come.
        wanted: usize,
    },
    /// The system refused another call.
    System {
        /// The call that was refused.
        what: &'static str,
        /// Its error number; 0 if the other end closed the connection or sent a message
        /// that is not valid.
        errno: i32,
    },
}

/// A leader's answer to a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum JoinVerdict {
    /// The rank belongs to this job and node.
    Welcome = 0,
    /// The rank's program was built differently.
    Build = 1,
    /// The rank belongs to another job, or to another node.
    Job = 2,
    /// The rank has another number of ranks for the node, or is not below the number.
    Size = 3,
    /// Another process has this rank.
    Taken = 4,
}

impl fmt::Display for JoinVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Welcome => "it is accepted",
            Self::Build => "its program was built from another source",
            Self::Job => "it belongs to another job or node",
            Self::Size => "it has another number of ranks for the node",
            Self::Taken => "another process has taken this rank",
        })
    }
}

impl fmt::Display for MeetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size { rank, size } => {
                write!(f, "rank {rank} does not exist: the node has {size} ranks")
            }
            Self::Space(error) => error.fmt(f),
            Self::NameTaken { limit } => write!(
                f,
                "the name of this job's socket was in use for {limit:?}: by another job of this \
                 user with the same name, or by a process that has guessed it; set TSUMUGI_JOB to \
                 another name"
            ),
            Self::NoLeader { limit } => {
                write!(f, "the first rank of this node accepted no connection within {limit:?}")
            }
            Self::Missing { rank, limit } => {
                write!(f, "{rank} of this node did not join within {limit:?}")
            }
            Self::Stranger { user } => write!(
                f,
                "a process of user {user} uses the name of this job's socket: set TSUMUGI_JOB to a \
                 name that others cannot guess"
            ),
            Self::Refused { rank, why } => {
                write!(f, "the leader of this node refuses {rank}: {why}")
            }
            Self::Descriptors { found, wanted } => write!(
                f,
                "only {found} of {wanted} memory files arrived: the leader of this node has ended, \
                 or the limit of open files is too low (ulimit -n)"
            ),
            Self::System { what, errno: 0 } => write!(
                f,
                "meeting the ranks of this node: {what}: the other end closed the connection, or \
                 sent an invalid message"
            ),
            Self::System { what, errno } => {
                let error = io::Error::from_raw_os_error(*errno);
                write!(f, "meeting the ranks of this node: {what}: {error}")
            }
        }
    }
}

impl std::error::Error for MeetError {}

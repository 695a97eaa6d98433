//! Errors outside of a single operation.

mod message;
mod no_network;

pub use message::MessageError;
pub use no_network::NoNetwork;

use crate::own_rank::RankPrefix;
use std::fmt;
use tsumugi_backends::boot::{CardError, ChooseError};
use tsumugi_core::am::{CallError, SendError};
use tsumugi_core::boot::BootError;
use tsumugi_core::coll::CollError;
use tsumugi_core::mem::RegisterError;
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_gas::address::GlobalAddr;
use tsumugi_gas::order::Full;
use tsumugi_gas::table::NameError;
use tsumugi_pvas::config::ConfigError;
use tsumugi_pvas::{AttachError, LaunchError, SpaceError};
use tsumugi_ult::StartError;

/// Any error that a program of ranks may get. Its `Debug` output is its message, so
/// that `fn main() -> Result<(), tsumugi::Error>` prints a sentence; outside of the job's
/// main function the number of this rank stands before it, if the job has several ranks.
#[non_exhaustive]
pub enum Error {
    /// An operation was refused.
    Addr(AddrError),
    /// A collective failed.
    Coll(CollError),
    /// A call of another rank's function has failed.
    Call(CallError),
    /// A message was not sent.
    Send(SendError),
    /// A message was not sent or received.
    Message(MessageError),
    /// Memory could not be registered.
    Register(RegisterError),
    /// This rank has no free block of this size left.
    OutOfMemory {
        /// The size of the request.
        bytes: usize,
        /// The variable that sets the total size: `TSUMUGI_EXPOSED_BYTES` for
        /// arrays that peers reach, `TSUMUGI_HEAP_BYTES` for buffers.
        variable: &'static str,
    },
    /// The ranks have called a collective allocation with different lengths.
    LengthsDiffer {
        /// The length on this rank.
        own: u64,
        /// A rank with another length.
        rank: Rank,
        /// The length on that rank.
        other: u64,
    },
    /// An access to global memory was refused.
    Access(AddrError<GlobalAddr>),
    /// Memory could not get a global address.
    Name(NameError),
    /// There is no room to begin another operation on global memory.
    Full(Full),
    /// A variable of the environment has a value that is not valid.
    Config(ConfigError),
    /// The ranks of a job without a launcher could not be started.
    Launch(LaunchError),
    /// The launcher's job could not be joined.
    Attach(AttachError),
    /// The partitions could not be made.
    Space(SpaceError),
    /// The ranks did not find each other.
    Boot(BootError),
    /// There is no bootstrap by which the ranks could find each other.
    Choose(ChooseError),
    /// The endpoint information (card) that a rank has published is not valid.
    Card {
        /// The rank.
        rank: Rank,
        /// The defect.
        error: CardError,
    },
    /// The job has several nodes, and no network connects them.
    SeveralNodes {
        /// The number of ranks.
        ranks: u32,
        /// The number of nodes.
        nodes: u32,
        /// The names of some nodes.
        hosts: String,
        /// The reason why there is no network.
        why: NoNetwork,
    },
    /// The scheduler could not be started.
    Start(StartError),
    /// An error of the program's own.
    Program(String),
}

impl Error {
    /// Makes an error of the program's own, for a `main` that returns this type.
    pub fn program(message: impl fmt::Display) -> Self {
        Self::Program(message.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Addr(error) => error.fmt(f),
            Self::Coll(error) => error.fmt(f),
            Self::Call(error) => error.fmt(f),
            Self::Send(error) => error.fmt(f),
            Self::Message(error) => error.fmt(f),
            Self::Register(error) => error.fmt(f),
            Self::OutOfMemory { bytes, variable } => {
                write!(
                    f,
                    "this rank has no free block of {bytes} bytes left; a larger {variable} gives \
                     it more memory"
                )
            }
            Self::LengthsDiffer { own, rank, other } => {
                write!(
                    f,
                    "this rank has called a collective allocation with length {own}, {rank} with \
                     length {other}; all ranks must give the same length"
                )
            }
            Self::Access(error) => error.fmt(f),
            Self::Name(error) => error.fmt(f),
            Self::Full(error) => error.fmt(f),
            Self::Config(error) => error.fmt(f),
            Self::Launch(error) => error.fmt(f),
            Self::Attach(error) => error.fmt(f),
            Self::Space(error) => error.fmt(f),
            Self::Boot(error) => error.fmt(f),
            Self::Choose(error) => error.fmt(f),
            Self::Card { rank, error } => {
                write!(f, "the endpoint information of {rank} is not valid: {error}")
            }
            Self::SeveralNodes { ranks, nodes, hosts, why } => write!(
                f,
                "the {ranks} ranks of this job are on {nodes} nodes ({hosts}), and no network \
                 connects the nodes: {why}; TSUMUGI_NETWORK chooses the network, TSUMUGI_NODE \
                 names the node of a rank"
            ),
            Self::Start(error) => error.fmt(f),
            Self::Program(message) => f.write_str(message),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", RankPrefix::of_error())?;
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

macro_rules! from {
    ($($variant:ident($error:ty)),* $(,)?) => {$(
        impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Self::$variant(error)
            }
        }
    )*};
}

from!(
    Addr(AddrError),
    Coll(CollError),
    Call(CallError),
    Send(SendError),
    Message(MessageError),
    Register(RegisterError),
    Access(AddrError<GlobalAddr>),
    Name(NameError),
    Full(Full),
    Config(ConfigError),
    Launch(LaunchError),
    Attach(AttachError),
    Space(SpaceError),
    Boot(BootError),
    Choose(ChooseError),
    Start(StartError),
);

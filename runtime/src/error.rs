//! The errors that a program of ranks may get, in one type.
//!
//! Messages hold one convention, which `tests` checks for each variant: the message of an
//! error is a whole sentence with its cause in it, so `source` does not return that cause
//! once more. A reporter that prints the chain of sources prints each of them once.

mod array;
mod convert;
mod message;
mod no_network;
mod window;

pub use array::ArrayError;
pub use message::MessageError;
pub use no_network::NoNetwork;
pub use window::WindowError;

use crate::own_rank::RankPrefix;
use std::fmt;
use tsumugi_backends::boot::{CardError, ChooseError};
use tsumugi_core::am::{CallError, SendError};
use tsumugi_core::boot::BootError;
use tsumugi_core::coll::CollError;
use tsumugi_core::completion::Why;
use tsumugi_core::mem::RegisterError;
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_core::wait::Interrupted;
use tsumugi_gas::address::GlobalAddr;
use tsumugi_gas::container::ContainerError;
use tsumugi_gas::order::Full;
use tsumugi_gas::table::NameError;
use tsumugi_pvas::config::ConfigError;
use tsumugi_pvas::{AttachError, LaunchError, SpaceError};
use tsumugi_ult::{JoinError, SpawnError, StartError};

/// Any error that a program of ranks may get: all other error types of these crates become
/// it by `?`.
///
/// `{}` is a whole sentence, with the cause in it; `{:?}` is the same sentence, because this
/// is what `fn main() -> Result<(), tsumugi::Error>` prints (outside of the job's main
/// function with the number of this rank before it, if the job has several ranks); `{:#?}`
/// shows the variant and its fields. [`source`](std::error::Error::source) returns what the
/// sentence does not have: the causes of an error that another library has made
/// ([`other`](Self::other)).
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
    /// There is no free block of this size left.
    OutOfMemory {
        /// The size of the request.
        bytes: usize,
        /// The variable that sets the total size: `TSUMUGI_EXPOSED_BYTES` for
        /// arrays that peers reach, `TSUMUGI_HEAP_BYTES` for buffers,
        /// `TSUMUGI_POOL_BYTES` for containers.
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
    /// The ranks have called a collective constructor with different homes.
    HomesDiffer {
        /// The home that this rank gave.
        own: Rank,
        /// A rank that gave another one.
        rank: Rank,
        /// The home that it gave.
        other: Rank,
    },
    /// An access to global memory was refused.
    Access(AddrError<GlobalAddr>),
    /// Memory could not get a global address.
    Name(NameError),
    /// There is no room to begin another operation on global memory.
    Full(Full),
    /// A container, or the heap of a pool, has refused a call.
    Container(ContainerError),
    /// An operation on an array was refused.
    Array(ArrayError),
    /// A window was not locked, an epoch not begun, or a copy not synchronised.
    Window(WindowError),
    /// There was no room to begin an operation that does not wait.
    Busy(Why),
    /// A ULT that was joined has panicked, or was cut off.
    Join(JoinError),
    /// A ULT could not be started.
    Spawn(SpawnError),
    /// A wait has ended by its limit, or by a cancellation.
    Interrupted(Interrupted),
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
    /// There is no network.
    Network(NoNetwork),
    /// The scheduler could not be started.
    Start(StartError),
    /// A sentence of the program's own.
    Program(String),
    /// Another error: of the program, of another library, or one of these crates that has
    /// no variant of its own, such as that of a channel.
    Other(Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// Makes an error of the program's own, for a `main` that returns this type.
    pub fn program(message: impl fmt::Display) -> Self {
        Self::Program(message.to_string())
    }

    /// Makes an error of any other error, which stays as it is: a `match` on
    /// [`Error::Other`] can downcast it, and its sources are those of this error.
    pub fn other(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Other(error.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((_, error)) = self.one_error() {
            return fmt::Display::fmt(error, f);
        }
        match self {
            Self::OutOfMemory { bytes, variable } => {
                write!(
                    f,
                    "no free block of {bytes} bytes is left; a larger {variable} gives more memory"
                )
            }
            Self::LengthsDiffer { own, rank, other } => {
                write!(
                    f,
                    "this rank has called a collective allocation with length {own}, {rank} with \
                     length {other}; all ranks must give the same length"
                )
            }
            Self::HomesDiffer { own, rank, other } => write!(
                f,
                "this rank has called a collective constructor with {own} as the home, {rank} \
                 with {other}; all ranks must give the same home"
            ),
            Self::Busy(why) => write!(f, "the operation was not begun: {why}"),
            Self::Card { rank, error: error @ CardError::Release { .. } } => {
                write!(f, "{rank} cannot be in one job with this rank: {error}")
            }
            Self::Card { rank, error } => {
                write!(f, "the endpoint information of {rank} is not valid: {error}")
            }
            Self::SeveralNodes { ranks, nodes, hosts, why } => write!(
                f,
                "the {ranks} ranks of this job are on {nodes} nodes ({hosts}), and no network \
                 connects the nodes: {why}; TSUMUGI_NETWORK chooses the network, TSUMUGI_NODE \
                 names the node of a rank"
            ),
            Self::Program(message) => f.write_str(message),
            Self::Other(error) => error.fmt(f),
            _ => unreachable!("this variant is one error"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Other(error) => error.source(),
            // The sentence has the cause.
            _ => None,
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            write!(f, "{}", RankPrefix::of_error())?;
            return fmt::Display::fmt(self, f);
        }
        if let Some((variant, error)) = self.one_error() {
            return f.debug_tuple(variant).field(&error).finish();
        }
        match self {
            Self::OutOfMemory { bytes, variable } => {
                let mut shown = f.debug_struct("OutOfMemory");
                shown.field("bytes", bytes).field("variable", variable).finish()
            }
            Self::LengthsDiffer { own, rank, other } => {
                let mut shown = f.debug_struct("LengthsDiffer");
                shown.field("own", own).field("rank", rank).field("other", other).finish()
            }
            Self::HomesDiffer { own, rank, other } => {
                let mut shown = f.debug_struct("HomesDiffer");
                shown.field("own", own).field("rank", rank).field("other", other).finish()
            }
            Self::Card { rank, error } => {
                f.debug_struct("Card").field("rank", rank).field("error", error).finish()
            }
            Self::SeveralNodes { ranks, nodes, hosts, why } => {
                let mut shown = f.debug_struct("SeveralNodes");
                shown.field("ranks", ranks).field("nodes", nodes).field("hosts", hosts);
                shown.field("why", why).finish()
            }
            Self::Busy(why) => f.debug_tuple("Busy").field(why).finish(),
            Self::Program(message) => f.debug_tuple("Program").field(message).finish(),
            Self::Other(error) => f.debug_tuple("Other").field(error).finish(),
            _ => unreachable!("this variant is one error"),
        }
    }
}

#[cfg(test)]
mod tests;

//! From each error of these crates to the one of all.

use super::{ArrayError, Error, MessageError, NoNetwork, WindowError};
use tsumugi_backends::boot::{CardError, ChooseError, EnvError};
use tsumugi_core::am::{CallError, SendError};
use tsumugi_core::boot::BootError;
use tsumugi_core::coll::CollError;
use tsumugi_core::completion::{Busy, Overdue};
use tsumugi_core::mem::{AddrError, RegisterError};
use tsumugi_core::wait::Interrupted;
use tsumugi_gas::address::{GlobalAddr, LeavesRegion, SplitError};
use tsumugi_gas::container::ContainerError;
use tsumugi_gas::heap::HeapError;
use tsumugi_gas::lock::{AccessRefused, TreeError};
use tsumugi_gas::order::Full;
use tsumugi_gas::page::ShapeError as PagesError;
use tsumugi_gas::table::NameError;
use tsumugi_pvas::cma::CmaError;
use tsumugi_pvas::config::ConfigError;
use tsumugi_pvas::heap::HeapError as PartitionHeapError;
use tsumugi_pvas::partition::{HeaderError, ShapeError};
use tsumugi_pvas::system::OldSystem;
use tsumugi_pvas::{AttachError, LaunchError, MeetError, SpaceError};
use tsumugi_ult::sync::channel::{RecvError, RecvWithinError, TryRecvError};
use tsumugi_ult::sync::channel::{SendError as ChannelSendError, SendWithinError, TrySendError};
use tsumugi_ult::{Cancelled, Crowded, JoinError, SpawnError, StackError, StartError};

/// The variants that are one error each. That error becomes the variant; the conversions to
/// those after the semicolon are below.
macro_rules! variants {
    ($($variant:ident($error:ty),)*; $($other:ident),* $(,)?) => {
        $(
            impl From<$error> for Error {
                fn from(error: $error) -> Self {
                    Self::$variant(error)
                }
            }
        )*

        impl Error {
            /// The name of the variant and its error, if the variant is one error, which
            /// is shown as it is.
            pub(super) fn one_error(
                &self,
            ) -> Option<(&'static str, &(dyn std::error::Error + 'static))> {
                match self {
                    $(Self::$variant(error) => Some((stringify!($variant), error)),)*
                    $(Self::$other(error) => Some((stringify!($other), error)),)*
                    Self::OutOfMemory { .. }
                    | Self::LengthsDiffer { .. }
                    | Self::HomesDiffer { .. }
                    | Self::Busy(_)
                    | Self::Card { .. }
                    | Self::SeveralNodes { .. }
                    | Self::Program(_)
                    | Self::Other(_) => None,
                }
            }
        }
    };
}

variants!(
    Addr(AddrError),
    Coll(CollError),
    Call(CallError),
    Send(SendError),
    Message(MessageError),
    Register(RegisterError),
    Access(AddrError<GlobalAddr>),
    Name(NameError),
    Full(Full),
    Join(JoinError),
    Spawn(SpawnError),
    Interrupted(Interrupted),
    Config(ConfigError),
    Launch(LaunchError),
    Attach(AttachError),
    Space(SpaceError),
    Boot(BootError),
    Choose(ChooseError),
    Network(NoNetwork),
    Start(StartError),
    ;
    Container,
    Array,
    Window,
);

/// Errors without a variant of their own.
macro_rules! other {
    ($($error:ty),* $(,)?) => {$(
        impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Self::other(error)
            }
        }
    )*};
}

other!(
    AccessRefused,
    Cancelled,
    CardError,
    CmaError,
    Crowded,
    HeaderError,
    LeavesRegion,
    PagesError,
    PartitionHeapError,
    RecvError,
    RecvWithinError,
    SplitError,
    TreeError,
    TryRecvError,
);

// A cause that has a variant of its own becomes this variant, so that a `match` finds a
// death, say, in one place.

impl From<ContainerError> for Error {
    fn from(error: ContainerError) -> Self {
        match error {
            ContainerError::Access(error) => Self::Access(error),
            error => Self::Container(error),
        }
    }
}

impl From<HeapError> for Error {
    fn from(error: HeapError) -> Self {
        ContainerError::from(error).into()
    }
}

impl From<ArrayError> for Error {
    fn from(error: ArrayError) -> Self {
        match error {
            ArrayError::Addr(error) => Self::Addr(error),
            error => Self::Array(error),
        }
    }
}

impl From<WindowError> for Error {
    fn from(error: WindowError) -> Self {
        match error {
            WindowError::Addr(error) => Self::Addr(error),
            error => Self::Window(error),
        }
    }
}

impl From<MeetError> for Error {
    fn from(error: MeetError) -> Self {
        Self::Attach(AttachError::Meet(error))
    }
}

impl From<EnvError> for Error {
    fn from(error: EnvError) -> Self {
        Self::Choose(error.into())
    }
}

impl From<OldSystem> for Error {
    fn from(error: OldSystem) -> Self {
        Self::Space(SpaceError::OldSystem(error))
    }
}

impl From<ShapeError> for Error {
    fn from(error: ShapeError) -> Self {
        Self::Space(SpaceError::Shape(error))
    }
}

impl From<StackError> for Error {
    fn from(error: StackError) -> Self {
        Self::Start(StartError::Stacks(error))
    }
}

/// Drops the buffer, which a program that goes on takes out of the [`Busy`] before.
impl<B> From<Busy<B>> for Error {
    fn from(busy: Busy<B>) -> Self {
        Self::Busy(busy.why)
    }
}

/// Drops the handle of the operation, which then goes on.
impl<T> From<Overdue<T>> for Error {
    fn from(overdue: Overdue<T>) -> Self {
        Self::Interrupted(overdue.why)
    }
}

// Errors that have the value that was not sent, which is dropped: the error of all has no
// type parameter.

impl<T> From<ChannelSendError<T>> for Error {
    fn from(_: ChannelSendError<T>) -> Self {
        Self::other(ChannelSendError(()))
    }
}

impl<T> From<TrySendError<T>> for Error {
    fn from(error: TrySendError<T>) -> Self {
        Self::other(match error {
            TrySendError::Full(_) => TrySendError::Full(()),
            TrySendError::Disconnected(_) => TrySendError::Disconnected(()),
        })
    }
}

impl<T> From<SendWithinError<T>> for Error {
    fn from(error: SendWithinError<T>) -> Self {
        match error {
            SendWithinError::Interrupted(why, _) => Self::Interrupted(why),
            SendWithinError::Disconnected(_) => Self::other(ChannelSendError(())),
        }
    }
}

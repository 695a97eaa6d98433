//! Why calls fail: classes of errors, each with a sentence that names the value.

use crate::abi;
use std::ffi::c_int;
use std::fmt::Display;
use std::ops::Deref;
use tsumugi::{Error, MessageError};

/// Why a call fails: the class of the error, and a sentence that names the value.
#[derive(Clone, Debug)]
pub(crate) struct Fault(Box<FaultText>);

/// What a fault says. In a box, because results of calls that succeed are as large.
#[derive(Clone, Debug)]
pub(crate) struct FaultText {
    pub(crate) class: c_int,
    pub(crate) text: Box<str>,
    /// The error of a message, which names ranks of the job.
    pub(crate) message: Option<MessageError>,
}

impl Deref for Fault {
    type Target = FaultText;

    fn deref(&self) -> &FaultText {
        &self.0
    }
}

/// What a call returns within the library.
pub(crate) type Answer<T = ()> = Result<T, Fault>;

impl Fault {
    #[cold]
    pub(crate) fn new(class: c_int, text: impl Display) -> Self {
        Self(Box::new(FaultText { class, text: text.to_string().into(), message: None }))
    }

    /// The same of another class.
    pub(crate) fn of_class(mut self, class: c_int) -> Self {
        self.0.class = class;
        self
    }

    /// The same with another sentence.
    pub(crate) fn saying(mut self, text: String) -> Self {
        self.0.text = text.into();
        self
    }
}

/// Fails with a class and a sentence.
macro_rules! fail {
    ($class:expr, $($text:tt)*) => {
        return Err($crate::fault::Fault::new($class, format_args!($($text)*)))
    };
}
pub(crate) use fail;

/// Fails unless a condition holds.
macro_rules! need {
    ($condition:expr, $class:expr, $($text:tt)*) => {
        if !$condition {
            $crate::fault::fail!($class, $($text)*);
        }
    };
}
pub(crate) use need;

impl From<MessageError> for Fault {
    fn from(error: MessageError) -> Self {
        let class = match error {
            MessageError::Truncated { .. } => abi::ERR_TRUNCATE,
            MessageError::PeerLost { .. } => abi::ERR_PROC_ABORTED,
            MessageError::NoSuchRank { .. } => abi::ERR_RANK,
            MessageError::TooMany { .. } => abi::ERR_NO_MEM,
            MessageError::Ended | MessageError::Failed { .. } | MessageError::Cancelled => {
                abi::ERR_OTHER
            }
            _ => abi::ERR_INTERN,
        };
        let mut fault = Self::new(class, error);
        fault.0.message = Some(error);
        fault
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        use tsumugi::{AddrError, CollError};
        if let Error::Coll(CollError::Addr(AddrError::PeerLost { rank, .. })) = error {
            return Self::from(MessageError::PeerLost { rank });
        }
        let class = match &error {
            Error::Coll(CollError::Addr(_)) => abi::ERR_PROC_ABORTED,
            Error::Coll(CollError::LengthsDiffer { .. }) => abi::ERR_TRUNCATE,
            _ => abi::ERR_OTHER,
        };
        Self::new(class, error)
    }
}

/// Whether a number is an error class of the standard.
pub(crate) fn is_class(code: c_int) -> bool {
    !name_of(code).0.is_empty()
}

/// The name and the meaning of a class; empty: there is no such class.
pub(crate) fn name_of(code: c_int) -> (&'static str, &'static str) {
    usize::try_from(code).ok().and_then(|code| CLASSES.get(code)).copied().unwrap_or(("", ""))
}

/// The classes of the standard, by their numbers.
const CLASSES: [(&str, &str); 63] = [
    ("MPI_SUCCESS", "no error"),
    ("MPI_ERR_BUFFER", "the buffer is not valid"),
    ("MPI_ERR_COUNT", "the count is not valid"),
    ("MPI_ERR_TYPE", "the datatype is not valid"),
    ("MPI_ERR_TAG", "the tag is not valid"),
    ("MPI_ERR_COMM", "the communicator is not valid"),
    ("MPI_ERR_RANK", "the rank is not valid"),
    ("MPI_ERR_REQUEST", "the request is not valid"),
    ("MPI_ERR_ROOT", "the root is not valid"),
    ("MPI_ERR_GROUP", "the group is not valid"),
    ("MPI_ERR_OP", "the operation is not valid"),
    ("MPI_ERR_TOPOLOGY", "the topology is not valid"),
    ("MPI_ERR_DIMS", "the dimensions are not valid"),
    ("MPI_ERR_ARG", "an argument is not valid"),
    ("MPI_ERR_UNKNOWN", "an unknown error"),
    ("MPI_ERR_TRUNCATE", "the message is longer than its buffer"),
    ("MPI_ERR_OTHER", "an error that has no class of its own"),
    ("MPI_ERR_INTERN", "an error within the library"),
    ("MPI_ERR_PENDING", "the request has not ended"),
    ("MPI_ERR_IN_STATUS", "the statuses have the errors"),
    ("MPI_ERR_ACCESS", "access is denied"),
    ("MPI_ERR_AMODE", "the access mode is not valid"),
    ("MPI_ERR_ASSERT", "the assertion is not valid"),
    ("MPI_ERR_BAD_FILE", "the name of the file is not valid"),
    ("MPI_ERR_BASE", "the base is not valid"),
    ("MPI_ERR_CONVERSION", "the conversion of data has failed"),
    ("MPI_ERR_DISP", "the displacement is not valid"),
    ("MPI_ERR_DUP_DATAREP", "the data representation exists already"),
    ("MPI_ERR_FILE_EXISTS", "the file exists"),
    ("MPI_ERR_FILE_IN_USE", "the file is in use"),
    ("MPI_ERR_FILE", "the file handle is not valid"),
    ("MPI_ERR_INFO_KEY", "the key is not valid"),
    ("MPI_ERR_INFO_NOKEY", "there is no such key"),
    ("MPI_ERR_INFO_VALUE", "the value is not valid"),
    ("MPI_ERR_INFO", "the info object is not valid"),
    ("MPI_ERR_IO", "an input or output error"),
    ("MPI_ERR_KEYVAL", "the attribute key is not valid"),
    ("MPI_ERR_LOCKTYPE", "the kind of the lock is not valid"),
    ("MPI_ERR_NAME", "the service name is not known"),
    ("MPI_ERR_NO_MEM", "there is no memory"),
    ("MPI_ERR_NOT_SAME", "an argument differs between ranks"),
    ("MPI_ERR_NO_SPACE", "there is no space"),
    ("MPI_ERR_NO_SUCH_FILE", "there is no such file"),
    ("MPI_ERR_PORT", "the port is not valid"),
    ("MPI_ERR_QUOTA", "the quota is exceeded"),
    ("MPI_ERR_READ_ONLY", "the file can only be read"),
    ("MPI_ERR_RMA_ATTACH", "the memory cannot be attached"),
    ("MPI_ERR_RMA_CONFLICT", "accesses to a window conflict"),
    ("MPI_ERR_RMA_RANGE", "the memory is not in the window"),
    ("MPI_ERR_RMA_SHARED", "the memory cannot be shared"),
    ("MPI_ERR_RMA_SYNC", "the synchronization of the window is wrong"),
    ("MPI_ERR_SERVICE", "the service name is not valid"),
    ("MPI_ERR_SIZE", "the size is not valid"),
    ("MPI_ERR_SPAWN", "the processes could not be started"),
    ("MPI_ERR_UNSUPPORTED_DATAREP", "the data representation is not supported"),
    ("MPI_ERR_UNSUPPORTED_OPERATION", "the operation is not supported"),
    ("MPI_ERR_WIN", "the window is not valid"),
    ("MPI_ERR_RMA_FLAVOR", "the kind of the window is wrong"),
    ("MPI_ERR_PROC_ABORTED", "a rank has died"),
    ("MPI_ERR_VALUE_TOO_LARGE", "the value is too large for its type"),
    ("MPI_ERR_SESSION", "the session is not valid"),
    ("MPI_ERR_ERRHANDLER", "the error handler is not valid"),
    ("MPI_ERR_ABI", "the ABI is not supported"),
];

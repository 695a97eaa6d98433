//! The standard ABI of MPI 5.0: handles, constants and the status. The rest of the library
//! has these values from here alone, so that another ABI is another file.

#![allow(dead_code, reason = "the lists are those of the standard, whole")]

use std::ffi::{c_int, c_void};

/// Handles, with the standard's own objects.
macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident { $($value:ident = $bits:literal),* $(,)? })*) => { $(
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub struct $name(pub usize);

        impl $name {
            $(
                #[allow(missing_docs, reason = "the standard describes its objects")]
                pub const $value: Self = Self($bits);
            )*
        }
    )* };
}

handles! {
    /// An operation of a reduction.
    MPI_Op {
        NULL = 0x20, SUM = 0x21, MIN = 0x22, MAX = 0x23, PROD = 0x24, BAND = 0x28, BOR = 0x29,
        BXOR = 0x2a, LAND = 0x30, LOR = 0x31, LXOR = 0x32, MINLOC = 0x38, MAXLOC = 0x39,
        REPLACE = 0x3c, NO_OP = 0x3d,
    }
    /// A communicator.
    MPI_Comm { NULL = 0x100, WORLD = 0x101, SELF = 0x102 }
    /// A group.
    MPI_Group { NULL = 0x108, EMPTY = 0x109 }
    /// A window.
    MPI_Win { NULL = 0x110 }
    /// A file.
    MPI_File { NULL = 0x118 }
    /// A session.
    MPI_Session { NULL = 0x120 }
    /// A message that a matched probe has found.
    MPI_Message { NULL = 0x128, NO_PROC = 0x129 }
    /// Keys with values.
    MPI_Info { NULL = 0x130, ENV = 0x131 }
    /// What happens when a call fails.
    MPI_Errhandler { NULL = 0x140, FATAL = 0x141, ABORT = 0x142, RETURN = 0x143 }
    /// An operation that was begun.
    MPI_Request { NULL = 0x180 }
    /// A datatype.
    MPI_Datatype {
        NULL = 0x200, PACKED = 0x207, INT = 0x209, LONG = 0x20a, UNSIGNED_LONG = 0x20e, DOUBLE = 0x214, FLOAT = 0x210,
        BYTE = 0x247, CHAR = 0x243,
    }
}

/// What a receive, a probe or a wait has found.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MPI_Status {
    /// The rank of the sender, in the communicator.
    pub source: c_int,
    /// The tag.
    pub tag: c_int,
    /// The error, where a call returns several statuses.
    pub error: c_int,
    /// The bytes in the first two words; whether the operation was cancelled in the third.
    pub internal: [c_int; 5],
}

impl MPI_Status {
    /// The status of a request that is null, or not active.
    pub const EMPTY: Self =
        Self { source: ANY_SOURCE, tag: ANY_TAG, error: SUCCESS, internal: [0; 5] };

    /// A status of so many bytes.
    pub fn new(source: c_int, tag: c_int, bytes: u64) -> Self {
        let mut status = Self { source, tag, ..Self::EMPTY };
        status.set_bytes(bytes);
        status
    }

    /// The bytes.
    pub fn bytes(&self) -> u64 {
        u64::from(self.internal[0].cast_unsigned())
            | u64::from(self.internal[1].cast_unsigned()) << 32
    }

    /// Sets the bytes.
    pub fn set_bytes(&mut self, bytes: u64) {
        self.internal[0] = (bytes as u32).cast_signed();
        self.internal[1] = ((bytes >> 32) as u32).cast_signed();
    }

    /// Whether the operation was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.internal[2] != 0
    }

    /// Sets whether the operation was cancelled.
    pub fn set_cancelled(&mut self, is_cancelled: bool) {
        self.internal[2] = c_int::from(is_cancelled);
    }
}

/// A constant of the standard for each line.
macro_rules! constants {
    ($($name:ident = $value:expr,)*) => { $(
        #[allow(missing_docs, reason = "the standard describes its constants")]
        pub const $name: c_int = $value;
    )* };
}

constants! {
    VERSION = 5,
    SUBVERSION = 0,
    ABI_VERSION = 1,
    ABI_SUBVERSION = 0,
    ANY_SOURCE = -1,
    ANY_TAG = -2,
    PROC_NULL = -3,
    ROOT = -4,
    UNDEFINED = -32766,
    THREAD_SINGLE = 0,
    THREAD_FUNNELED = 1024,
    THREAD_SERIALIZED = 2048,
    THREAD_MULTIPLE = 4096,
    IDENT = 201,
    CONGRUENT = 202,
    SIMILAR = 203,
    UNEQUAL = 204,
    CART = 211,
    GRAPH = 212,
    DIST_GRAPH = 213,
    COMM_TYPE_SHARED = 221,
    COMM_TYPE_HW_UNGUIDED = 222,
    COMM_TYPE_HW_GUIDED = 223,
    COMM_TYPE_RESOURCE_GUIDED = 224,
    ORDER_C = 12,
    ORDER_FORTRAN = 15,
    DISTRIBUTE_NONE = 16,
    DISTRIBUTE_BLOCK = 17,
    DISTRIBUTE_CYCLIC = 18,
    DISTRIBUTE_DFLT_DARG = 19,
    COMBINER_NAMED = 101,
    COMBINER_DUP = 102,
    COMBINER_CONTIGUOUS = 103,
    COMBINER_VECTOR = 104,
    COMBINER_HVECTOR = 105,
    COMBINER_INDEXED = 106,
    COMBINER_HINDEXED = 107,
    COMBINER_INDEXED_BLOCK = 108,
    COMBINER_HINDEXED_BLOCK = 109,
    COMBINER_STRUCT = 110,
    COMBINER_SUBARRAY = 111,
    COMBINER_DARRAY = 112,
    COMBINER_F90_REAL = 113,
    COMBINER_F90_COMPLEX = 114,
    COMBINER_F90_INTEGER = 115,
    COMBINER_RESIZED = 116,
    COMBINER_VALUE_INDEX = 117,
    TYPECLASS_INTEGER = 192,
    TYPECLASS_REAL = 193,
    TYPECLASS_COMPLEX = 194,
    KEYVAL_INVALID = 0,
    TAG_UB = 501,
    IO = 502,
    HOST = 503,
    WTIME_IS_GLOBAL = 504,
    APPNUM = 505,
    LASTUSEDCODE = 506,
    UNIVERSE_SIZE = 507,
    MAX_ERROR_STRING = 512,
    MAX_INFO_KEY = 256,
    MAX_INFO_VAL = 1024,
    MAX_LIBRARY_VERSION_STRING = 8192,
    MAX_OBJECT_NAME = 128,
    MAX_PROCESSOR_NAME = 256,
    BSEND_OVERHEAD = 512,
    SUCCESS = 0,
    ERR_BUFFER = 1,
    ERR_COUNT = 2,
    ERR_TYPE = 3,
    ERR_TAG = 4,
    ERR_COMM = 5,
    ERR_RANK = 6,
    ERR_REQUEST = 7,
    ERR_ROOT = 8,
    ERR_GROUP = 9,
    ERR_OP = 10,
    ERR_TOPOLOGY = 11,
    ERR_DIMS = 12,
    ERR_ARG = 13,
    ERR_UNKNOWN = 14,
    ERR_TRUNCATE = 15,
    ERR_OTHER = 16,
    ERR_INTERN = 17,
    ERR_PENDING = 18,
    ERR_IN_STATUS = 19,
    ERR_INFO_KEY = 31,
    ERR_INFO_NOKEY = 32,
    ERR_INFO_VALUE = 33,
    ERR_INFO = 34,
    ERR_KEYVAL = 36,
    ERR_NO_MEM = 39, ERR_NOT_SAME = 40,
    ERR_UNSUPPORTED_OPERATION = 55,
    ERR_PROC_ABORTED = 58,
    ERR_VALUE_TOO_LARGE = 59,
    ERR_SESSION = 60,
    ERR_ERRHANDLER = 61,
    ERR_LASTCODE = 0x3fff,
}

/// The highest tag: all that an `int` can say.
pub const TAG_MAX: c_int = c_int::MAX;
/// The buffer of a call whose data lies at absolute addresses.
pub const BOTTOM: *mut c_void = std::ptr::null_mut();
/// The buffer of a member whose input lies where its output goes.
pub const IN_PLACE: *const c_void = std::ptr::without_provenance(1);
/// The buffer that the library provides itself.
pub const BUFFER_AUTOMATIC: *mut c_void = std::ptr::without_provenance_mut(2);

/// The first handle that is an object of the program.
pub const OWN_FROM: usize = 0x1000;

//! Result codes, their texts, and the reason of the last failure.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::fmt::Display;
use tsumugi::array::ArrayError;
use tsumugi::global::GlobalAddr;
use tsumugi::window::WindowError;
use tsumugi::{AddrError, CallError, Error, MessageError, SendError};
use tsumugi_ult::{Interrupted, SpawnError, StartError};

/// The call has succeeded.
pub const TSUMUGI_OK: c_int = 0;
/// A pointer is null that must not be null.
pub const TSUMUGI_ERROR_NULL: c_int = -1;
/// The `size` of a struct is not one that this library accepts, or a member that
/// this library does not have is not zero.
pub const TSUMUGI_ERROR_SIZE: c_int = -2;
/// A flag does not exist.
pub const TSUMUGI_ERROR_FLAGS: c_int = -3;
/// A name is not UTF-8.
pub const TSUMUGI_ERROR_NAME: c_int = -4;
/// The scheduler cannot have so many workers, or it has no worker of this number.
pub const TSUMUGI_ERROR_WORKER: c_int = -5;
/// A stack cannot be of this size, or the memory of all stacks is too small.
pub const TSUMUGI_ERROR_STACK: c_int = -6;
/// The system, or the partition of the rank, has no memory left for the request.
pub const TSUMUGI_ERROR_MEMORY: c_int = -7;
/// The system refused to start a thread.
pub const TSUMUGI_ERROR_THREAD: c_int = -8;
/// The scheduler is running already.
pub const TSUMUGI_ERROR_RUNNING: c_int = -9;
/// The scheduler has ended, or ended before the ULT did; the object of the handle has
/// ended, or the rank has.
pub const TSUMUGI_ERROR_ENDED: c_int = -10;
/// The caller is not a ULT.
pub const TSUMUGI_ERROR_NO_ULT: c_int = -11;
/// The time limit has passed.
pub const TSUMUGI_ERROR_TIMED_OUT: c_int = -12;
/// The wait of the caller was cancelled.
pub const TSUMUGI_ERROR_CANCELLED: c_int = -13;
/// The call would have to wait.
pub const TSUMUGI_ERROR_BUSY: c_int = -14;
/// The lock is not locked, or not in this way.
pub const TSUMUGI_ERROR_NOT_LOCKED: c_int = -15;
/// There are too many foreign schedulers, regions, messages in progress or
/// communicators.
pub const TSUMUGI_ERROR_CROWDED: c_int = -16;
/// The process could not become a rank of its job, or the job has failed.
pub const TSUMUGI_ERROR_JOB: c_int = -17;
/// The address belongs to no rank.
pub const TSUMUGI_ERROR_NOWHERE: c_int = -18;
/// No region is registered under the address, or no longer.
pub const TSUMUGI_ERROR_STALE: c_int = -19;
/// Some of the bytes lie outside of their region.
pub const TSUMUGI_ERROR_RANGE: c_int = -20;
/// An atomic operation is not at a multiple of its size.
pub const TSUMUGI_ERROR_UNALIGNED: c_int = -21;
/// The region is read-only.
pub const TSUMUGI_ERROR_READ_ONLY: c_int = -22;
/// A rank has died.
pub const TSUMUGI_ERROR_LOST: c_int = -23;
/// The operation needs memory of another rank than the one given.
pub const TSUMUGI_ERROR_ELSEWHERE: c_int = -24;
/// The path to the memory has no such operation.
pub const TSUMUGI_ERROR_UNSUPPORTED: c_int = -25;
/// Other ranks cannot reach the memory, or it has no global address.
pub const TSUMUGI_ERROR_REACH: c_int = -26;
/// The job has no such rank, or the group no such member.
pub const TSUMUGI_ERROR_RANK: c_int = -27;
/// The message or the answer is longer than the room for it; its beginning is there.
pub const TSUMUGI_ERROR_TRUNCATED: c_int = -28;
/// The length is more than the call can carry, or differs from that of another rank.
pub const TSUMUGI_ERROR_LENGTH: c_int = -29;
/// The handler of the other rank has failed, or the bytes could not be moved.
pub const TSUMUGI_ERROR_FAILED: c_int = -30;
/// The rank has no handler of this number.
pub const TSUMUGI_ERROR_HANDLER: c_int = -31;
/// The value is none of those that the parameter can have.
pub const TSUMUGI_ERROR_VALUE: c_int = -32;
/// A hold or a checkout of this rank excludes the new one.
pub const TSUMUGI_ERROR_HELD: c_int = -33;

/// The meaning of a code, as a sentence without a full stop; for any other number,
/// a text that the number is no code. The text is never freed. Wait-free.
#[unsafe(no_mangle)]
pub extern "C" fn tsumugi_error_text(code: c_int) -> *const c_char {
    let text = match code {
        TSUMUGI_OK => c"done",
        TSUMUGI_ERROR_NULL => c"a pointer is NULL that must not be NULL",
        TSUMUGI_ERROR_SIZE => {
            c"the size of a struct is unknown to this library, or an unknown member is not 0"
        }
        TSUMUGI_ERROR_FLAGS => c"a flag is set that does not exist",
        TSUMUGI_ERROR_NAME => c"a name is not UTF-8",
        TSUMUGI_ERROR_WORKER => c"the scheduler has no such worker, or cannot have so many",
        TSUMUGI_ERROR_STACK => {
            c"a stack is no multiple of the page, is below 8 KiB, or exceeds the stack memory"
        }
        TSUMUGI_ERROR_MEMORY => c"the system or the rank has no memory left for the request",
        TSUMUGI_ERROR_THREAD => c"the system refused to start a thread",
        TSUMUGI_ERROR_RUNNING => c"the scheduler is running already",
        TSUMUGI_ERROR_ENDED => c"the scheduler, the rank or the object of the handle has ended",
        TSUMUGI_ERROR_NO_ULT => c"the caller is not a ULT",
        TSUMUGI_ERROR_TIMED_OUT => c"the time limit has passed",
        TSUMUGI_ERROR_CANCELLED => c"the wait of the caller was cancelled",
        TSUMUGI_ERROR_BUSY => c"the call would have to wait",
        TSUMUGI_ERROR_NOT_LOCKED => c"the lock is not locked, or not in this way",
        TSUMUGI_ERROR_CROWDED => {
            c"there are too many foreign schedulers, regions, messages or communicators"
        }
        TSUMUGI_ERROR_JOB => {
            c"the process could not become a rank of its job, or the job has failed"
        }
        TSUMUGI_ERROR_NOWHERE => c"the address belongs to no rank",
        TSUMUGI_ERROR_STALE => c"no region is registered under the address",
        TSUMUGI_ERROR_RANGE => c"some of the bytes lie outside of the region",
        TSUMUGI_ERROR_UNALIGNED => c"the address of the word is not a multiple of its size",
        TSUMUGI_ERROR_READ_ONLY => c"the region is registered read-only",
        TSUMUGI_ERROR_LOST => c"a rank has died",
        TSUMUGI_ERROR_ELSEWHERE => c"the memory belongs to another rank than the operation needs",
        TSUMUGI_ERROR_UNSUPPORTED => c"the path to the memory has no such operation",
        TSUMUGI_ERROR_REACH => c"other ranks cannot reach the memory, or it has no global address",
        TSUMUGI_ERROR_RANK => c"the job has no such rank, or the group no such member",
        TSUMUGI_ERROR_TRUNCATED => c"the message or the answer is longer than the room for it",
        TSUMUGI_ERROR_LENGTH => {
            c"the length is more than the call can carry, or differs from that of another rank"
        }
        TSUMUGI_ERROR_FAILED => {
            c"the handler of the other rank has failed, or the bytes could not be moved"
        }
        TSUMUGI_ERROR_HANDLER => c"the rank has no handler of this number",
        TSUMUGI_ERROR_VALUE => c"the value is none of those that the parameter can have",
        TSUMUGI_ERROR_HELD => c"a hold or a checkout of this rank excludes the new one",
        _ => c"the number is not a code of this library",
    };
    text.as_ptr()
}

/// The reason of the last failure of this OS thread that has one: a sentence that
/// names the object of the failure; empty if there was none. A failure without a
/// reason (such as FLAGS) leaves the string as it was: its code says all. From the
/// signals on in this header, each failure has a reason, which names the argument
/// that was NULL, the handle that has ended, or the value that was wrong. The string
/// is valid until the next call of this OS thread that fails.
#[unsafe(no_mangle)]
pub extern "C" fn tsumugi_reason() -> *const c_char {
    LAST.with_borrow(|last| last.as_ptr())
}

/// Stores the reason for a code, for [`tsumugi_reason`], and returns the code.
pub(super) fn remember(code: c_int, reason: impl Display) -> c_int {
    let reason = CString::new(reason.to_string()).unwrap_or_default();
    LAST.with_borrow_mut(|last| *last = reason);
    code
}

#[cold]
#[inline(never)]
pub(super) fn of_access(error: AddrError<GlobalAddr>) -> c_int {
    remember(code_of_addr(&error), error)
}

/// The code of a failed access to memory, locks or arrays of a rank that the caller
/// has named by its number.
pub(super) fn of_addr(error: AddrError) -> c_int {
    let code = match error {
        AddrError::NoSuchRank { .. } => TSUMUGI_ERROR_RANK,
        _ => code_of_addr(&error),
    };
    remember(code, error)
}

fn code_of_addr<A>(error: &AddrError<A>) -> c_int {
    match error {
        AddrError::Nowhere { .. } | AddrError::NoSuchRank { .. } => TSUMUGI_ERROR_NOWHERE,
        AddrError::StaleKey { .. } => TSUMUGI_ERROR_STALE,
        AddrError::OutOfRange { .. } => TSUMUGI_ERROR_RANGE,
        AddrError::Unaligned { .. } => TSUMUGI_ERROR_UNALIGNED,
        AddrError::ReadOnly { .. } => TSUMUGI_ERROR_READ_ONLY,
        AddrError::PeerLost { .. } => TSUMUGI_ERROR_LOST,
        AddrError::OtherRank { .. } => TSUMUGI_ERROR_ELSEWHERE,
        AddrError::Unsupported { .. } | AddrError::OtherNode { .. } => TSUMUGI_ERROR_UNSUPPORTED,
        AddrError::Ended => TSUMUGI_ERROR_ENDED,
        _ => TSUMUGI_ERROR_FAILED,
    }
}

pub(super) fn of_message(error: MessageError) -> c_int {
    let code = match error {
        MessageError::Truncated { .. } => TSUMUGI_ERROR_TRUNCATED,
        MessageError::Uneven { .. } => TSUMUGI_ERROR_LENGTH,
        MessageError::PeerLost { .. } => TSUMUGI_ERROR_LOST,
        MessageError::Cancelled => TSUMUGI_ERROR_CANCELLED,
        MessageError::Ended => TSUMUGI_ERROR_ENDED,
        MessageError::NoSuchRank { .. } => TSUMUGI_ERROR_RANK,
        MessageError::TooMany { .. } => TSUMUGI_ERROR_CROWDED,
        // The bytes could not be moved.
        _ => TSUMUGI_ERROR_FAILED,
    };
    remember(code, error)
}

pub(super) fn of_array(error: ArrayError) -> c_int {
    let code = match error {
        ArrayError::Addr(error) => return of_addr(error),
        ArrayError::OutOfRange { .. } | ArrayError::NoPage { .. } => TSUMUGI_ERROR_RANGE,
        ArrayError::Full { .. } | ArrayError::NoCopies { .. } | ArrayError::NoPlace { .. } => {
            TSUMUGI_ERROR_MEMORY
        }
        ArrayError::NoAddresses { .. } => TSUMUGI_ERROR_LENGTH,
        ArrayError::Lent { .. } => TSUMUGI_ERROR_HELD,
        ArrayError::NotByMessages | ArrayError::NotAlone => TSUMUGI_ERROR_UNSUPPORTED,
        _ => TSUMUGI_ERROR_VALUE,
    };
    remember(code, error)
}

pub(super) fn of_window(error: WindowError) -> c_int {
    match error {
        WindowError::Addr(error) => of_addr(error),
        error => remember(TSUMUGI_ERROR_HELD, error),
    }
}

pub(super) fn of_error(error: &Error) -> c_int {
    use tsumugi_core::coll::CollError;
    use tsumugi_core::mem::RegisterError;
    let code = match error {
        Error::Access(error) => return of_access(*error),
        Error::Addr(error) => return of_addr(*error),
        Error::Message(error) => return of_message(*error),
        Error::Array(error) => return of_array(*error),
        Error::Window(error) => return of_window(*error),
        Error::Call(CallError::PeerLost { .. }) => TSUMUGI_ERROR_LOST,
        Error::Call(CallError::Timeout) => TSUMUGI_ERROR_TIMED_OUT,
        Error::Call(CallError::UnknownHandler { .. }) => TSUMUGI_ERROR_HANDLER,
        Error::Call(CallError::Ended) => TSUMUGI_ERROR_ENDED,
        Error::Call(_) => TSUMUGI_ERROR_FAILED,
        Error::Send(SendError::TooLong { .. }) | Error::LengthsDiffer { .. } => {
            TSUMUGI_ERROR_LENGTH
        }
        Error::Coll(CollError::Addr(AddrError::PeerLost { .. })) => TSUMUGI_ERROR_LOST,
        Error::Coll(CollError::Addr(AddrError::Ended)) => TSUMUGI_ERROR_ENDED,
        Error::Coll(CollError::NoContext) => TSUMUGI_ERROR_CROWDED,
        Error::Coll(CollError::NoSuchRoot { .. }) => TSUMUGI_ERROR_RANK,
        Error::Coll(CollError::LengthsDiffer { .. } | CollError::WrongLength { .. }) => {
            TSUMUGI_ERROR_LENGTH
        }
        Error::OutOfMemory { .. } => TSUMUGI_ERROR_MEMORY,
        Error::Register(RegisterError::OutOfReach { .. }) => TSUMUGI_ERROR_REACH,
        Error::Register(_) | Error::Name(_) => TSUMUGI_ERROR_CROWDED,
        Error::Start(error) => of_start(error),
        _ => TSUMUGI_ERROR_JOB,
    };
    remember(code, error)
}

/// Does what [`of_error`] does, for `map_err`.
pub(super) fn of_failure(error: Error) -> c_int {
    of_error(&error)
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// The code of a result: `TSUMUGI_OK` or the error.
pub(super) fn code_of(result: Result<(), c_int>) -> c_int {
    result.err().unwrap_or(TSUMUGI_OK)
}

pub(super) fn of_interrupted(why: Interrupted) -> c_int {
    match why {
        Interrupted::TimedOut => TSUMUGI_ERROR_TIMED_OUT,
        Interrupted::Cancelled => TSUMUGI_ERROR_CANCELLED,
    }
}

pub(super) fn of_start(error: &StartError) -> c_int {
    use tsumugi_ult::StackError;
    match error {
        StartError::Workers(_) => TSUMUGI_ERROR_WORKER,
        StartError::Stacks(StackError::Map { .. }) => TSUMUGI_ERROR_MEMORY,
        StartError::Stacks(_) => TSUMUGI_ERROR_STACK,
        StartError::Thread(..) => TSUMUGI_ERROR_THREAD,
        _ => TSUMUGI_ERROR_FAILED,
    }
}

pub(super) fn of_spawn(error: SpawnError) -> c_int {
    match error {
        SpawnError::NoScheduler => TSUMUGI_ERROR_NO_ULT,
        SpawnError::Worker { .. } => TSUMUGI_ERROR_WORKER,
        SpawnError::Stack { .. } => TSUMUGI_ERROR_STACK,
        _ => TSUMUGI_ERROR_FAILED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    #[test]
    fn each_code_has_a_text_of_its_own() {
        let text = |code| {
            // SAFETY: the text is a literal, which ends with a NUL.
            unsafe { CStr::from_ptr(tsumugi_error_text(code)) }.to_str().unwrap()
        };
        let mut texts: Vec<_> = (TSUMUGI_ERROR_HELD..=TSUMUGI_OK).map(text).collect();
        let codes = texts.len();
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), codes);
        assert!(!texts.contains(&text(1)), "1 is not a code");
        assert_eq!(text(TSUMUGI_ERROR_HELD - 1), text(1));
    }
}

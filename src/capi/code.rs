//! What functions answer.

use std::ffi::{c_char, c_int};
use tsumugi_ult::{Interrupted, SpawnError, StartError};

/// It was done.
pub const TSUMUGI_OK: c_int = 0;
/// A pointer is null that must not be.
pub const TSUMUGI_ERROR_NULL: c_int = -1;
/// A struct's `size` is none that this library knows, or a member that it does
/// not know is not zero.
pub const TSUMUGI_ERROR_SIZE: c_int = -2;
/// A flag that does not exist.
pub const TSUMUGI_ERROR_FLAGS: c_int = -3;
/// A name that is not UTF-8.
pub const TSUMUGI_ERROR_NAME: c_int = -4;
/// There cannot be so many workers, or there is no such worker.
pub const TSUMUGI_ERROR_WORKER: c_int = -5;
/// A stack cannot be of this size, or the memory of all stacks is too small.
pub const TSUMUGI_ERROR_STACK: c_int = -6;
/// The system gave no memory.
pub const TSUMUGI_ERROR_MEMORY: c_int = -7;
/// The system gave no thread.
pub const TSUMUGI_ERROR_THREAD: c_int = -8;
/// The scheduler runs already.
pub const TSUMUGI_ERROR_RUNNING: c_int = -9;
/// The scheduler has ended, or ended before the ULT did.
pub const TSUMUGI_ERROR_ENDED: c_int = -10;
/// The caller is no ULT.
pub const TSUMUGI_ERROR_NO_ULT: c_int = -11;
/// The time limit passed.
pub const TSUMUGI_ERROR_TIMED_OUT: c_int = -12;
/// The caller was asked to give up.
pub const TSUMUGI_ERROR_CANCELLED: c_int = -13;
/// It would have to wait.
pub const TSUMUGI_ERROR_BUSY: c_int = -14;
/// The mutex is not locked.
pub const TSUMUGI_ERROR_NOT_LOCKED: c_int = -15;
/// There are too many foreign schedulers.
pub const TSUMUGI_ERROR_CROWDED: c_int = -16;

/// What a code means, in a sentence without a full stop; of any other number,
/// that it is no code. The text is never freed. Wait-free.
#[unsafe(no_mangle)]
pub extern "C" fn tsumugi_error_text(code: c_int) -> *const c_char {
    let text = match code {
        TSUMUGI_OK => c"done",
        TSUMUGI_ERROR_NULL => c"a pointer is null that must not be",
        TSUMUGI_ERROR_SIZE => c"a struct says a size that is not known here",
        TSUMUGI_ERROR_FLAGS => c"a flag does not exist",
        TSUMUGI_ERROR_NAME => c"a name is not UTF-8",
        TSUMUGI_ERROR_WORKER => c"there is no such worker, or there cannot be so many",
        TSUMUGI_ERROR_STACK => {
            c"stacks are a multiple of the page and 8 KiB at least, and must have room"
        }
        TSUMUGI_ERROR_MEMORY => c"the system gave no memory",
        TSUMUGI_ERROR_THREAD => c"the system gave no thread",
        TSUMUGI_ERROR_RUNNING => c"the scheduler runs already",
        TSUMUGI_ERROR_ENDED => c"the scheduler has ended",
        TSUMUGI_ERROR_NO_ULT => c"the caller is no ULT",
        TSUMUGI_ERROR_TIMED_OUT => c"the time limit passed",
        TSUMUGI_ERROR_CANCELLED => c"the caller was asked to give up",
        TSUMUGI_ERROR_BUSY => c"it would have to wait",
        TSUMUGI_ERROR_NOT_LOCKED => c"the mutex is not locked",
        TSUMUGI_ERROR_CROWDED => c"there are too many foreign schedulers",
        _ => c"not a code of tsumugi's",
    };
    text.as_ptr()
}

/// The code of what was done or not.
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
    }
}

pub(super) fn of_spawn(error: SpawnError) -> c_int {
    match error {
        SpawnError::NoScheduler => TSUMUGI_ERROR_NO_ULT,
        SpawnError::Worker { .. } => TSUMUGI_ERROR_WORKER,
        SpawnError::Stack { .. } => TSUMUGI_ERROR_STACK,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    #[test]
    fn each_code_has_a_text_of_its_own() {
        let text = |code| {
            // SAFETY: a literal.
            unsafe { CStr::from_ptr(tsumugi_error_text(code)) }.to_str().unwrap()
        };
        let mut texts: Vec<_> = (TSUMUGI_ERROR_CROWDED..=TSUMUGI_OK).map(text).collect();
        let codes = texts.len();
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), codes);
        assert!(!texts.contains(&text(1)), "1 is no code");
        assert_eq!(text(TSUMUGI_ERROR_CROWDED - 1), text(1));
    }
}

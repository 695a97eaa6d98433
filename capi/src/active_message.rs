//! Active messages: functions of other ranks, called by number.

use super::code::{code_of, of_failure};
use super::job::job;
use super::object::{bytes_at, null, refuse, room_at, tell};
use super::parameter::Word;
use super::{TSUMUGI_ERROR_TRUNCATED, tsumugi_job};
use std::ffi::{c_int, c_void};
use std::time::Duration;
use tsumugi::Rank;

/// The number of bytes that an answer can have.
pub const TSUMUGI_ANSWER_BYTES_MAX: usize = 224;

/// A function for the messages of a number: `from` is the rank of the caller, `bytes` the
/// message, `answer` has room for `TSUMUGI_ANSWER_BYTES_MAX` bytes. Returns the number
/// of bytes of the answer; a larger number is a failure, of which the caller is told.
/// `bytes` and `answer` are valid until the function returns.
pub type tsumugi_handler_function = Option<
    unsafe extern "C" fn(
        arg: *mut c_void,
        from: u32,
        bytes: *const c_void,
        count: usize,
        answer: *mut c_void,
    ) -> usize,
>;

/// Runs `handle` for each message to `number` from now on, from any rank. Handlers of
/// messages from one rank start in the order in which the messages were sent, one at a
/// time, on any thread of the rank that polls. A handler must not block or take long,
/// because the next message waits meanwhile: a call in it that would sleep aborts the
/// process. It may spawn ULTs, notify, unlock, send signals to ranks of its node, and
/// store what it was sent. The function and `arg` are used until the job ends; a later
/// call for the same number replaces them.
///
/// Errors: NULL.
///
/// # Safety
///
/// `job` is a live job; `handle(arg, ...)` may run on any thread until the job ends, and
/// writes at most as many bytes to `answer` as there is room for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_handler(
    job: *const tsumugi_job,
    number: u32,
    handle: tsumugi_handler_function,
    arg: *mut c_void,
) -> c_int {
    let register = || {
        // SAFETY: the caller's.
        let job = unsafe { self::job(job) }?;
        let callback = Callback::of(handle, arg)?;
        job.runtime.handler(number, move |message| callback.run(message.from, message.bytes));
        Ok(())
    };
    code_of(register())
}

/// Registers a function as `tsumugi_handler` does, which runs on a ULT of its own for
/// each message, so it may block. The ULTs start in any order.
///
/// Errors: NULL.
///
/// # Safety
///
/// As for `tsumugi_handler`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_service(
    job: *const tsumugi_job,
    number: u32,
    serve: tsumugi_handler_function,
    arg: *mut c_void,
) -> c_int {
    let register = || {
        // SAFETY: the caller's.
        let job = unsafe { self::job(job) }?;
        let callback = Callback::of(serve, arg)?;
        job.runtime.service(number, move |_, from, bytes| callback.run(from, bytes));
        Ok(())
    };
    code_of(register())
}

/// Sends `bytes` bytes to the function `number` of the rank `to`, and waits for its
/// answer. Up to 224 bytes travel in the message; the other rank reads more, up to 256
/// KiB, from a copy in this rank's heap. The answer is copied to `answer`, which has room
/// for `room` bytes, and its length is written to `answer_bytes`, unless that is NULL.
/// Blocks.
///
/// Errors: TRUNCATED (the answer is longer than the room, which has its beginning),
/// HANDLER, FAILED (the function has returned a number that is too large, or the bytes
/// could not be read), RANK, LENGTH, LOST, MEMORY, CROWDED, ENDED, NULL.
///
/// # Safety
///
/// `job` is a live job; `from` is valid for a read of `bytes` bytes; `answer` is valid
/// for a write of `room` bytes; `answer_bytes` is NULL or valid for a write.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "a message and the place of its answer")]
pub unsafe extern "C" fn tsumugi_call(
    job: *const tsumugi_job,
    to: u32,
    number: u32,
    from: *const c_void,
    bytes: usize,
    answer: *mut c_void,
    room: usize,
    answer_bytes: *mut usize,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        tsumugi_call_within(job, to, number, from, bytes, u64::MAX, answer, room, answer_bytes)
    }
}

/// Calls as `tsumugi_call` does, and waits for the answer for `limit_ns` nanoseconds at
/// most (`TSUMUGI_FOREVER`: no limit), from the moment when there is room for the call.
/// After TIMED_OUT the function may have run, or may run later.
///
/// Errors: TIMED_OUT, and those of `tsumugi_call`.
///
/// # Safety
///
/// As for `tsumugi_call`.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "a message and the place of its answer")]
pub unsafe extern "C" fn tsumugi_call_within(
    job: *const tsumugi_job,
    to: u32,
    number: u32,
    from: *const c_void,
    bytes: usize,
    limit_ns: u64,
    answer: *mut c_void,
    room: usize,
    answer_bytes: *mut usize,
) -> c_int {
    let call = || {
        // SAFETY: the caller's.
        let (job, message) = unsafe { (self::job(job)?, bytes_at(from, bytes, "from")?) };
        let answer = room_at(answer, room, "answer")?;
        let (runtime, to) = (&job.runtime, Rank(to));
        let got = match limit_ns {
            u64::MAX => runtime.call(to, number, message),
            ns => runtime.call_timeout(to, number, message, Duration::from_nanos(ns)),
        };
        let got = got.map_err(of_failure)?;
        // SAFETY: the caller's; an answer is a vector of its own.
        unsafe {
            answer.copy_from_nonoverlapping(got.as_ptr(), got.len().min(room));
            tell(answer_bytes, got.len());
        }
        if got.len() > room {
            let reason = format_args!(
                "an answer of {} bytes from {to} does not fit in {room} bytes",
                got.len()
            );
            return Err(refuse(TSUMUGI_ERROR_TRUNCATED, reason));
        }
        Ok(())
    };
    code_of(call())
}

/// Sends `bytes` bytes to the function `number` of the rank `to`, without an answer.
/// Waits only for room, and, with more than 224 bytes, until they have been read. Up to
/// 224 bytes are not answered, so no error of the function is returned for them.
///
/// Errors: those of `tsumugi_call` but TRUNCATED.
///
/// # Safety
///
/// `job` is a live job; `from` is valid for a read of `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_cast(
    job: *const tsumugi_job,
    to: u32,
    number: u32,
    from: *const c_void,
    bytes: usize,
) -> c_int {
    let cast = || {
        // SAFETY: the caller's.
        let (job, message) = unsafe { (self::job(job)?, bytes_at(from, bytes, "from")?) };
        job.runtime.cast(Rank(to), number, message).map_err(of_failure)
    };
    code_of(cast())
}

/// A function of the program and its first argument.
#[derive(Clone, Copy)]
struct Callback {
    function: unsafe extern "C" fn(*mut c_void, u32, *const c_void, usize, *mut c_void) -> usize,
    arg: Word,
}

impl Callback {
    fn of(function: tsumugi_handler_function, arg: *mut c_void) -> Result<Self, c_int> {
        let function = function.ok_or_else(|| null("the function"))?;
        Ok(Self { function, arg: Word(arg) })
    }

    /// The answer; one that is too long is refused by the side that sends it.
    fn run(&self, from: Rank, bytes: &[u8]) -> Answer {
        let mut answer = [0; TSUMUGI_ANSWER_BYTES_MAX];
        let (at, room) = (bytes.as_ptr().cast(), answer.as_mut_ptr().cast());
        // SAFETY: the contract of `tsumugi_handler`.
        let count = unsafe { (self.function)(self.arg.0, from.0, at, bytes.len(), room) };
        Answer { bytes: answer, count }
    }
}

/// The answer of a function.
struct Answer {
    bytes: [u8; TSUMUGI_ANSWER_BYTES_MAX],
    count: usize,
}

impl AsRef<[u8]> for Answer {
    fn as_ref(&self) -> &[u8] {
        // Longer than any answer, so that it is refused.
        const TOO_LONG: &[u8] = &[0; TSUMUGI_ANSWER_BYTES_MAX + 1];
        self.bytes.get(..self.count).unwrap_or(TOO_LONG)
    }
}

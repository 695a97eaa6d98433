//! ULTs whose body is a C function: spawned without options, and joined.
//!
//! A body of this kind needs no closure type and no allocation. It may end early by
//! [`exit`], which unwinds the body's frames, as `pthread_exit` does. Any other exception
//! that leaves the body aborts the process.
//!
//! Progress: [`spawn`] is lock-free, but for growth of a queue or of the descriptors;
//! [`join`] blocks.

use crate::body::{ClosureStorage, ClosureVtable, UltOutcome};
use crate::builder::Order;
use crate::host::{PanicPayload, abort, catch, resume, say};
use crate::join::JoinHandle;
use crate::join_error::{Cancelled, JoinError};
use crate::sched::current;
use crate::slab::TaskSlot;
use alloc::boxed::Box;
use core::ffi::c_void;
use core::ptr::NonNull;

/// The function that a ULT runs.
pub type Body = unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void;

/// A word of a C program, which this crate passes on without using it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Word(pub *mut c_void);

// SAFETY: this crate never dereferences the word; which threads may use it is the C
// program's responsibility.
unsafe impl Send for Word {}
// SAFETY: as for `Send`.
unsafe impl Sync for Word {}

/// Starts a ULT that calls `body(arg)` on the caller's scheduler. `before` gets the raw
/// handle before the ULT runs. `None`: the caller is no ULT. The rules for what must not live across the ULT's suspensions are at
/// [`spawn`](crate::spawn#suspension).
///
/// # Safety
///
/// `body(arg)` may run on any thread.
#[inline(always)]
pub unsafe fn spawn(
    body: Body,
    arg: *mut c_void,
    order: Order,
    before: impl FnOnce(NonNull<()>),
) -> Option<JoinHandle<Word>> {
    let worker = current::worker()?;
    // SAFETY: this thread's worker is valid until the caller suspends; nothing does before
    // `run_first`.
    let worker = unsafe { worker.as_ref() };
    let parent = worker.current()?;
    let slot = worker.slot();
    // SAFETY: the slot is free and ours; `BODY` is for what is put there.
    unsafe { slot.as_ref().fill_with((body, Word(arg)), &BODY) };
    before(slot.cast());
    match order {
        Order::HelpFirst => worker.spawned(slot),
        Order::ChildFirst => {
            worker.look_first(parent, "spawn");
            worker.look_aside(parent, "spawn");
            worker.note_spawned(slot);
            // SAFETY: we run as this ULT, and have filled the child just now.
            unsafe { worker.run_first(parent, slot) }
        }
    }
    Some(JoinHandle::new(slot))
}

/// Waits for the ULT's end, as [`JoinHandle::join`] does.
///
/// # Errors
///
/// [`Cancelled`] if its scheduler ended first.
#[inline(always)]
pub fn join(handle: JoinHandle<Word>) -> Result<Word, Cancelled> {
    // A child that ran first has ended as a rule.
    let outcome = if handle.is_finished() { handle.take() } else { join_running(handle) };
    // The body does not unwind, so an error means that the ULT was cut off.
    outcome.map_err(|_| Cancelled)
}

/// Joins a ULT that has not ended. A call of its own, so that `join` saves no registers.
#[inline(never)]
fn join_running(handle: JoinHandle<Word>) -> UltOutcome<Word> {
    handle.join()
}

/// Calls a body in a ULT of another kind; the body may [`exit`].
#[inline(always)]
pub fn run(body: impl FnOnce() -> *mut c_void) -> Word {
    let body = || {
        #[cfg(feature = "std")]
        let unwinds = Unwinds;
        let word = Word(body());
        #[cfg(feature = "std")]
        core::mem::forget(unwinds);
        word
    };
    match catch(body) {
        Ok(word) => word,
        Err(payload) => ended(payload),
    }
}

/// Ends the calling ULT's body, whose result is `value`. The frames of the body are
/// unwound. The ULT must run a body of this module.
pub fn exit(value: *mut c_void) -> ! {
    resume(Box::new(Exit(Word(value))))
}

/// The calling ULT, as [`JoinHandle::into_raw`] shows it; `None` on other threads.
#[inline]
pub fn running() -> Option<NonNull<()>> {
    // SAFETY: this thread's worker, used only here.
    let slot: TaskSlot = unsafe { current::worker()?.as_ref() }.current()?;
    Some(slot.cast())
}

/// Aborts when something other than a panic unwinds a body.
#[cfg(feature = "std")]
struct Unwinds;

#[cfg(feature = "std")]
impl Drop for Unwinds {
    fn drop(&mut self) {
        if !crate::host::panicking() {
            crate::host::abort_on_exit();
        }
    }
}

/// The payload that ends a body early.
struct Exit(Word);

type Start = (Body, Word);

static BODY: ClosureVtable =
    ClosureVtable { run: run_in, call, drop_result: |_| (), cancel: |room, _| cancel(room) };

/// Runs the body that lies in the room.
///
/// # Safety
///
/// The room holds a `Start`.
#[inline(always)]
unsafe fn outcome(room: &ClosureStorage) -> UltOutcome<Word> {
    // SAFETY: the caller's.
    let (body, arg) = unsafe { room.take::<Start>() };
    // SAFETY: the spawner's promise.
    Ok(run(|| unsafe { body(arg.0) }))
}

unsafe fn run_in(room: &ClosureStorage) {
    // SAFETY: the caller promises that the room holds what was put there.
    let outcome = unsafe { outcome(room) };
    // SAFETY: the body was taken out, so the room is empty.
    unsafe { room.put(outcome) }
}

unsafe fn call(room: &ClosureStorage, place: *mut ()) {
    // SAFETY: the caller promises that the room holds what was put there.
    let outcome = unsafe { outcome(room) };
    // SAFETY: the caller promises that the place has the outcome's type.
    unsafe { place.cast::<UltOutcome<Word>>().write(outcome) }
}

fn cancel(room: &ClosureStorage) {
    let outcome: UltOutcome<Word> = Err(JoinError::cut_off());
    // SAFETY: what is in the room needs no destructor.
    unsafe { room.put(outcome) }
}

/// The result of a body that was unwound.
#[cold]
#[inline(never)]
fn ended(payload: PanicPayload) -> Word {
    match payload.downcast::<Exit>() {
        Ok(exit) => exit.0,
        Err(_) => {
            say(b"tsumugi: a panic left a C function's ULT: the process is aborted\n");
            abort()
        }
    }
}

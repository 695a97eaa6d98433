//! Starting ULTs and waiting for them to end.

use super::code::{code_of, of_interrupted, of_spawn};
use super::parameter::{self, Word, borrow, limit, place, read};
use super::{
    TSUMUGI_ERROR_ENDED, TSUMUGI_ERROR_FLAGS, TSUMUGI_ERROR_NAME, TSUMUGI_ERROR_NO_ULT,
    TSUMUGI_ERROR_NULL, tsumugi_scheduler,
};
use ::tsumugi_ult::{self as ults, Builder, JoinHandle, Order, call};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

/// The right to join a ULT, once.
#[derive(Debug)]
pub struct tsumugi_ult {
    _opaque: [u8; 0],
}

/// Options of a new ULT; zero in a member is its default.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tsumugi_particulars {
    /// `sizeof(struct tsumugi_particulars)`.
    pub size: usize,
    /// Minimum size of the stack in bytes; by default the scheduler's ordinary
    /// size.
    pub stack_bytes: usize,
    /// A name for debuggers and traces, UTF-8, copied; by default none.
    pub name: *const c_char,
    /// The worker to which the ULT is pinned, plus one; by default none.
    pub worker_plus_one: usize,
    /// A combination of `TSUMUGI_SPAWN_*`.
    pub flags: usize,
}

// SAFETY: all members are words, and the first is the size.
unsafe impl parameter::Versioned for tsumugi_particulars {}

/// The number of a ULT: unique among the live ULTs of its scheduler.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tsumugi_id {
    /// The number of the ULT's descriptor.
    pub slot: u32,
    /// How many ULTs have used the descriptor before.
    pub generation: u32,
}

/// Whenever the ULT becomes ready, it runs before other ready ULTs.
pub const TSUMUGI_SPAWN_URGENT: usize = 1;
/// The ULT runs at once, and the caller continues later.
pub const TSUMUGI_SPAWN_CHILD_FIRST: usize = 2;
/// The ULT keeps its own floating-point control words.
pub const TSUMUGI_SPAWN_KEEP_FP_CONTROL: usize = 4;

/// Starts a ULT that calls `body(arg)` on `scheduler`, or on the caller's scheduler
/// if that is NULL. `particulars` may be NULL. The handle is written to `out`; if
/// `out` is NULL, the ULT is detached. Lock-free, except when a queue or the table
/// of descriptors grows. The head of this file lists what must not live across a
/// suspension of the ULT.
///
/// Errors: NO_ULT, WORKER, STACK, ENDED, FLAGS, NAME, SIZE, NULL.
///
/// # Safety
///
/// `scheduler` is NULL or live; `particulars` is NULL or valid for a read of as
/// many bytes as its `size` states; `body(arg)` may run on any thread; `out` is
/// NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_spawn(
    scheduler: *const tsumugi_scheduler,
    particulars: *const tsumugi_particulars,
    body: Option<unsafe extern "C" fn(*mut c_void) -> *mut c_void>,
    arg: *mut c_void,
    out: *mut *mut tsumugi_ult,
) -> c_int {
    if scheduler.is_null()
        && particulars.is_null()
        && let Some(body) = body
        // SAFETY: the caller's.
        && unsafe { spawn_simply(body, arg, Order::HelpFirst, out) }
    {
        return super::TSUMUGI_OK;
    }
    // SAFETY: the caller's.
    unsafe { spawn_with(scheduler, particulars, body, arg, out) }
}

/// Starts a ULT of the caller's scheduler, without options. False: the caller is no ULT.
///
/// # Safety
///
/// As for `tsumugi_spawn`.
#[inline(always)]
unsafe fn spawn_simply(
    body: CBody,
    arg: *mut c_void,
    order: Order,
    out: *mut *mut tsumugi_ult,
) -> bool {
    // SAFETY: the two types differ in what an exception does that leaves the body: it
    // aborts the process in both cases.
    let body = unsafe { std::mem::transmute::<CBody, call::Body>(body) };
    let tell = |raw: NonNull<()>| {
        if !out.is_null() {
            // SAFETY: the caller's.
            unsafe { out.write(raw.cast().as_ptr()) };
        }
    };
    // SAFETY: the caller's.
    let made = unsafe { call::spawn(body, arg, order, tell) };
    let is_made = made.is_some();
    if !out.is_null() {
        // The handle is the caller's.
        std::mem::forget(made);
    }
    is_made
}

/// Starts a ULT with options, or on a scheduler that is given.
///
/// # Safety
///
/// As for `tsumugi_spawn`.
#[inline(never)]
unsafe fn spawn_with(
    scheduler: *const tsumugi_scheduler,
    particulars: *const tsumugi_particulars,
    body: Option<CBody>,
    arg: *mut c_void,
    out: *mut *mut tsumugi_ult,
) -> c_int {
    let spawn = || {
        let body = body.ok_or(TSUMUGI_ERROR_NULL)?;
        let builder = match particulars.is_null() {
            true => Builder::new(),
            false => {
                // SAFETY: the caller's.
                let asked = unsafe { read(particulars) }?;
                if scheduler.is_null()
                    && asked.is_plain()
                    // SAFETY: the caller's.
                    && unsafe { spawn_simply(body, arg, asked.order(), out) }
                {
                    return Ok(());
                }
                builder(asked)?
            }
        };
        // SAFETY: the caller's.
        let spawner = unsafe { scheduler.as_ref() }.map(|scheduler| &scheduler.spawner);
        builder.check(spawner).map_err(of_spawn)?;
        let arg = Word(arg);
        let run = move || {
            let arg = arg;
            // SAFETY: the caller's.
            Word(unsafe { body(arg.0) })
        };
        let handle = match spawner {
            None => builder.spawn(run),
            Some(spawner) => builder.try_spawn_on(spawner, run).map_err(|_| TSUMUGI_ERROR_ENDED)?,
        };
        if !out.is_null() {
            // SAFETY: the caller's.
            unsafe { out.write(handle.into_raw().cast().as_ptr()) };
        }
        Ok(())
    };
    code_of(spawn())
}

/// Waits until the ULT has ended, and ends the handle. Writes the return value of
/// its body to `value`, unless `value` is NULL. The caller may be a ULT, a foreign
/// task or an OS thread. Blocks.
///
/// Errors: ENDED (the handle has ended too), NULL.
///
/// # Safety
///
/// `ult` is a live handle; `value` is NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_join(ult: *mut tsumugi_ult, value: *mut *mut c_void) -> c_int {
    // SAFETY: the caller's.
    let Ok(handle) = (unsafe { handle(ult) }) else { return TSUMUGI_ERROR_NULL };
    let Ok(answer) = call::join(ManuallyDrop::into_inner(handle)) else {
        return TSUMUGI_ERROR_ENDED;
    };
    if !value.is_null() {
        // SAFETY: the caller's.
        unsafe { value.write(answer.0) };
    }
    super::TSUMUGI_OK
}

/// Joins as `tsumugi_join` does, within a time limit; `TSUMUGI_FOREVER` is no
/// limit. If `is_cancellable` is true, a cancellation of the caller also ends the
/// wait. When the wait ends early, the handle stays live.
///
/// Errors: TIMED_OUT and CANCELLED, ENDED (the handle has ended too), NULL.
///
/// # Safety
///
/// As for `tsumugi_join`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_join_within(
    ult: *mut tsumugi_ult,
    limit_ns: u64,
    is_cancellable: bool,
    value: *mut *mut c_void,
) -> c_int {
    let join = || {
        // SAFETY: the caller's.
        let handle = ManuallyDrop::into_inner(unsafe { handle(ult) }?);
        let outcome = match (limit_ns, is_cancellable) {
            (u64::MAX, false) => handle.join(),
            _ => handle.join_within(limit(limit_ns, is_cancellable)).map_err(|(handle, why)| {
                // The handle stays the caller's.
                let _ = handle.into_raw();
                of_interrupted(why)
            })?,
        };
        // The body cannot unwind, so an error means that the ULT was cut off.
        let answer = outcome.map_err(|_| TSUMUGI_ERROR_ENDED)?;
        if !value.is_null() {
            // SAFETY: the caller's.
            unsafe { value.write(answer.0) };
        }
        Ok(())
    };
    code_of(join())
}

/// Detaches the ULT and ends the handle. Wait-free.
///
/// Errors: NULL.
///
/// # Safety
///
/// `ult` is a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_detach(ult: *mut tsumugi_ult) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { handle(ult) }.map(|handle| drop(ManuallyDrop::into_inner(handle))))
}

/// Requests that the ULT give up. The ULT goes on until it checks for the request,
/// or until a wait that a cancellation can end.
///
/// Errors: NULL.
///
/// # Safety
///
/// `ult` is a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_cancel(ult: *mut tsumugi_ult) -> c_int {
    // SAFETY: the caller's.
    code_of(unsafe { handle(ult) }.map(|handle| handle.cancel()))
}

/// Whether the ULT has ended, so that a join would not wait. Wait-free.
///
/// # Safety
///
/// `ult` is a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_is_finished(ult: *const tsumugi_ult) -> bool {
    // SAFETY: the caller's.
    unsafe { handle(ult.cast_mut()) }.is_ok_and(|handle| handle.is_finished())
}

/// The number of a ULT.
///
/// Errors: NULL.
///
/// # Safety
///
/// `ult` is a live handle; `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_id_of(ult: *const tsumugi_ult, out: *mut tsumugi_id) -> c_int {
    // SAFETY: the caller's.
    let id = unsafe { handle(ult.cast_mut()) }.map(|handle| handle.id());
    // SAFETY: the caller's.
    code_of(id.and_then(|id| unsafe { write_id(id, out) }))
}

/// The number of the calling ULT.
///
/// Errors: NO_ULT, NULL.
///
/// # Safety
///
/// `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_self(out: *mut tsumugi_id) -> c_int {
    let id = ults::id().ok_or(TSUMUGI_ERROR_NO_ULT);
    // SAFETY: the caller's.
    code_of(id.and_then(|id| unsafe { write_id(id, out) }))
}

/// Whether the calling ULT was requested to give up, by `tsumugi_cancel`.
/// Wait-free.
#[unsafe(no_mangle)]
pub extern "C" fn tsumugi_is_cancelled() -> bool {
    ults::is_cancelled()
}

/// Lets other ULTs run; in a foreign task or on an OS thread, other tasks or
/// threads. Suspends a ULT.
#[unsafe(no_mangle)]
pub extern "C" fn tsumugi_yield() {
    ults::yield_now();
}

/// Lets other ULTs run, and `ult` first if it is ready and in reach of this worker.
/// Suspends a ULT.
///
/// Errors: NULL.
///
/// # Safety
///
/// `ult` is a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_yield_to(ult: *const tsumugi_ult) -> c_int {
    // SAFETY: the caller's.
    let handle = unsafe { handle(ult.cast_mut()) };
    code_of(handle.map(|handle| {
        ults::yield_to(&handle);
    }))
}

/// Runs `call(arg)` on the worker's own stack, which is the stack of an OS thread:
/// for a function that forks, or that needs more stack than a ULT has. The function
/// must not block by calls of this library.
///
/// Errors: NULL.
///
/// # Safety
///
/// `call(arg)` is sound on this thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_on_os_stack(
    call: Option<unsafe extern "C" fn(*mut c_void)>,
    arg: *mut c_void,
) -> c_int {
    let Some(call) = call else { return TSUMUGI_ERROR_NULL };
    struct Arg(*mut c_void);
    // SAFETY: the caller of `tsumugi_on_os_stack` promises that the call is sound on
    // this thread, and waits for it here.
    unsafe impl Send for Arg {}
    let arg = Arg(arg);
    ults::on_os_stack(move || {
        // The whole of `arg` moves in, not its field.
        let arg = arg;
        // SAFETY: the caller's.
        unsafe { call(arg.0) }
    });
    super::TSUMUGI_OK
}

/// The handle behind a pointer; the caller still owns it.
///
/// # Safety
///
/// `ult` is NULL or a live handle.
unsafe fn handle(ult: *mut tsumugi_ult) -> Result<ManuallyDrop<JoinHandle<Word>>, c_int> {
    let raw = NonNull::new(ult.cast::<()>()).ok_or(TSUMUGI_ERROR_NULL)?;
    // SAFETY: the caller's contract; `tsumugi_spawn` made the handle, and its ULTs
    // return a `Word`.
    Ok(ManuallyDrop::new(unsafe { JoinHandle::from_raw(raw) }))
}

/// Writes a ULT's number to `out`.
///
/// # Safety
///
/// `out` is null or valid for a write.
unsafe fn write_id(id: ults::UltId, out: *mut tsumugi_id) -> Result<(), c_int> {
    // SAFETY: the caller's.
    let out = unsafe { place(out) }?;
    // SAFETY: the caller's.
    unsafe { out.write(tsumugi_id { slot: id.slot, generation: id.generation }) };
    Ok(())
}

/// The function that a ULT runs.
type CBody = unsafe extern "C" fn(*mut c_void) -> *mut c_void;

impl tsumugi_particulars {
    /// Whether nothing but the order of the spawn is asked for.
    fn is_plain(&self) -> bool {
        self.flags & !TSUMUGI_SPAWN_CHILD_FIRST == 0
            && self.stack_bytes | self.worker_plus_one == 0
            && self.name.is_null()
    }

    fn order(&self) -> Order {
        let child_first = self.flags & TSUMUGI_SPAWN_CHILD_FIRST != 0;
        if child_first { Order::ChildFirst } else { Order::HelpFirst }
    }
}

fn builder(asked: tsumugi_particulars) -> Result<Builder, c_int> {
    const KNOWN: usize =
        TSUMUGI_SPAWN_URGENT | TSUMUGI_SPAWN_CHILD_FIRST | TSUMUGI_SPAWN_KEEP_FP_CONTROL;
    if asked.flags & !KNOWN != 0 {
        return Err(TSUMUGI_ERROR_FLAGS);
    }
    let has = |flag| asked.flags & flag != 0;
    let mut builder = Builder::new()
        .order(asked.order())
        .urgent(has(TSUMUGI_SPAWN_URGENT))
        .keep_fp_control(has(TSUMUGI_SPAWN_KEEP_FP_CONTROL));
    if asked.stack_bytes != 0 {
        builder = builder.stack_bytes(asked.stack_bytes);
    }
    if let Some(worker) = asked.worker_plus_one.checked_sub(1) {
        builder = builder.pin(worker);
    }
    // SAFETY: the caller's: `name` is NULL or a string.
    if let Ok(name) = unsafe { borrow(asked.name) } {
        // SAFETY: the caller's.
        let name = unsafe { CStr::from_ptr(name) };
        builder = builder.name(name.to_str().map_err(|_| TSUMUGI_ERROR_NAME)?);
    }
    Ok(builder)
}

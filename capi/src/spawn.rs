//! Starting ULTs.

use super::body::{CBody, run_body, unwinding};
use super::code::{code_of, of_spawn};
use super::parameter::{self, Word, borrow, read};
use super::{
    TSUMUGI_ERROR_ENDED, TSUMUGI_ERROR_FLAGS, TSUMUGI_ERROR_NAME, TSUMUGI_ERROR_NULL,
    tsumugi_scheduler, tsumugi_ult,
};
use ::tsumugi_ult::{Builder, Order, call};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::NonNull;

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
    let body = unwinding(body);
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
        // SAFETY: the caller's.
        let run = move || unsafe { run_body(body, arg) };
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

//! Threads: made, joined, detached, ended.

use crate::process;
use std::ffi::{c_int, c_void};
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};
use std::time::Duration;
use tsumugi_ult::call::{self, Body, Word};
use tsumugi_ult::{Builder, JoinHandle, Limit, Order};

/// A thread: the address of its record.
pub type myth_thread_t = *mut c_void;

/// The function that a thread runs.
pub type myth_func_t = Option<unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void>;

/// Attributes of a thread.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct myth_thread_attr_t {
    pub(crate) stackaddr: *mut c_void,
    pub(crate) stacksize: usize,
    pub(crate) guardsize: usize,
    pub(crate) detachstate: c_int,
    pub(crate) child_first: c_int,
    pub(crate) custom_data_size: usize,
    pub(crate) custom_data: *mut c_void,
}

/// Starts a thread that calls `func(arg)`. Ends the process if there is no memory.
///
/// # Safety
///
/// `func(arg)` may run on any OS thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_create(func: myth_func_t, arg: *mut c_void) -> myth_thread_t {
    let Some(body) = func else { process::fatal("myth_create: no function") };
    // SAFETY: the caller's.
    match unsafe { call::spawn(body, arg, process::order(), |_| ()) } {
        Some(handle) => handle.into_raw().as_ptr().cast(),
        // SAFETY: the caller's.
        None => unsafe { create_elsewhere(body, arg, Builder::new().order(process::order())) },
    }
}

/// Starts a thread with attributes. `id` gets the thread before it runs, unless it is
/// NULL; NULL for `attr` stands for the defaults.
///
/// # Safety
///
/// As for [`myth_create`]; `id` is NULL or valid for a write, `attr` is NULL or valid
/// for a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_create_ex(
    id: *mut myth_thread_t,
    attr: *const myth_thread_attr_t,
    func: myth_func_t,
    arg: *mut c_void,
) -> c_int {
    let Some(body) = func else { return libc::EINVAL };
    let tell = |raw: NonNull<()>| {
        if !id.is_null() {
            // SAFETY: the caller's.
            unsafe { id.write(raw.as_ptr().cast()) };
        }
    };
    // SAFETY: the caller's.
    let asked = unsafe { attr.as_ref() };
    let order = asked.map_or_else(process::order, order_of);
    let ordinary =
        asked.is_none_or(|attr| attr.stacksize == 0 || attr.stacksize == process::attr().stacksize);
    // SAFETY: the caller's.
    let made = if ordinary { unsafe { call::spawn(body, arg, order, tell) } } else { None };
    let handle = made.unwrap_or_else(|| {
        let mut builder = Builder::new().order(order);
        if let Some(attr) = asked.filter(|attr| attr.stacksize != 0) {
            builder = builder.stack_bytes(attr.stacksize);
        }
        // SAFETY: the caller's; the address is that of a handle.
        unsafe {
            let thread = create_elsewhere(body, arg, builder);
            tell(NonNull::new_unchecked(thread).cast());
            ManuallyDrop::into_inner(handle(thread))
        }
    });
    match asked {
        Some(attr) if attr.detachstate != 0 => drop(handle),
        _ => _ = handle.into_raw(),
    }
    0
}

/// Ends the calling thread, whose result is `value`; the frames of its function are
/// unwound. The first thread of a process ends the process, with status 0.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn myth_exit(value: *mut c_void) {
    if process::is_first() {
        std::process::exit(0);
    }
    call::exit(value)
}

/// Waits for the end of a thread and frees it. Writes the result of the thread to
/// `result`, unless `result` is NULL.
///
/// # Safety
///
/// The thread is neither joined nor detached; `result` is NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_join(thread: myth_thread_t, result: *mut *mut c_void) -> c_int {
    // SAFETY: the caller's.
    let handle = ManuallyDrop::into_inner(unsafe { handle(thread) });
    // SAFETY: the caller's.
    unsafe { take(call::join(handle).ok(), result) }
}

/// Joins a thread if it has ended; else returns `EBUSY`.
///
/// # Safety
///
/// As for [`myth_join`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_tryjoin(thread: myth_thread_t, result: *mut *mut c_void) -> c_int {
    // SAFETY: the caller's.
    let handle = unsafe { handle(thread) };
    if !handle.is_finished() {
        return libc::EBUSY;
    }
    // SAFETY: the caller's.
    unsafe { take(call::join(ManuallyDrop::into_inner(handle)).ok(), result) }
}

/// Joins a thread, until a point in time of `CLOCK_REALTIME` at the latest; then
/// returns `ETIMEDOUT`.
///
/// # Safety
///
/// As for [`myth_join`]; `until` is valid for a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_timedjoin(
    thread: myth_thread_t,
    result: *mut *mut c_void,
    until: *const libc::timespec,
) -> c_int {
    // SAFETY: the caller's.
    let (handle, limit) = unsafe { (handle(thread), limit_until(until)) };
    match ManuallyDrop::into_inner(handle).join_within(limit) {
        // SAFETY: the caller's.
        Ok(outcome) => unsafe { take(outcome.ok(), result) },
        Err((handle, _)) => {
            let _ = handle.into_raw();
            libc::ETIMEDOUT
        }
    }
}

/// Lets a thread free itself at its end.
///
/// # Safety
///
/// The thread is neither joined nor detached.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_detach(thread: myth_thread_t) -> c_int {
    // SAFETY: the caller's.
    drop(ManuallyDrop::into_inner(unsafe { handle(thread) }));
    0
}

/// The calling thread; NULL on an OS thread that is no worker.
#[unsafe(no_mangle)]
pub extern "C" fn myth_self() -> myth_thread_t {
    process::ensure();
    call::running().map_or(ptr::null_mut(), |raw| raw.as_ptr().cast())
}

/// 1 if the two threads are the same, else 0.
#[unsafe(no_mangle)]
pub extern "C" fn myth_equal(a: myth_thread_t, b: myth_thread_t) -> c_int {
    c_int::from(a == b)
}

/// Lets other threads run.
#[unsafe(no_mangle)]
pub extern "C" fn myth_yield() {
    process::ensure();
    tsumugi_ult::yield_now();
}

/// Lets other threads run; the option is a hint that this library does not need.
#[unsafe(no_mangle)]
pub extern "C" fn myth_yield_ex(_option: c_int) {
    myth_yield();
}

/// Lets other threads run.
#[unsafe(no_mangle)]
pub extern "C" fn myth_sched_yield() -> c_int {
    myth_yield();
    0
}

/// Starts a thread when the caller is no ULT yet, or with options.
///
/// # Safety
///
/// As for [`myth_create`].
#[cold]
#[inline(never)]
unsafe fn create_elsewhere(body: Body, arg: *mut c_void, builder: Builder) -> myth_thread_t {
    process::ensure();
    let arg = Word(arg);
    let run = move || {
        let arg = arg;
        // SAFETY: the caller's.
        call::run(move || unsafe { body(arg.0) })
    };
    let handle: JoinHandle<Word> = match call::running() {
        Some(_) => builder.spawn(run),
        None => match builder.try_spawn_on(process::spawner(), run) {
            Ok(handle) => handle,
            Err(_) => process::fatal("myth_create: the library has ended"),
        },
    };
    handle.into_raw().as_ptr().cast()
}

fn order_of(attr: &myth_thread_attr_t) -> Order {
    if attr.child_first == 0 { Order::HelpFirst } else { Order::ChildFirst }
}

/// The handle behind a thread's address, which the caller of the library still owns.
///
/// # Safety
///
/// The thread is neither joined nor detached.
unsafe fn handle(thread: myth_thread_t) -> ManuallyDrop<JoinHandle<Word>> {
    let Some(raw) = NonNull::new(thread.cast::<()>()) else { process::fatal("no thread") };
    // SAFETY: the caller's: `myth_create` made it.
    ManuallyDrop::new(unsafe { JoinHandle::from_raw(raw) })
}

/// Writes a result.
///
/// # Safety
///
/// `result` is NULL or valid for a write.
#[inline(always)]
unsafe fn take(outcome: Option<Word>, result: *mut *mut c_void) -> c_int {
    let Some(word) = outcome else { return libc::ESRCH };
    if !result.is_null() {
        // SAFETY: the caller's.
        unsafe { result.write(word.0) };
    }
    0
}

/// The limit for a point in time of `CLOCK_REALTIME`.
///
/// # Safety
///
/// `until` is valid for a read.
pub(crate) unsafe fn limit_until(until: *const libc::timespec) -> Limit {
    // SAFETY: the caller's.
    let until = unsafe { *until };
    let at = Duration::new(until.tv_sec.max(0) as u64, until.tv_nsec.clamp(0, 999_999_999) as u32);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Limit::after(at.saturating_sub(now.unwrap_or_default()))
}

//! Schedulers of other libraries, described by their functions.

use super::code::code_of;
use super::parameter::{self, Word, place, read};
use super::{TSUMUGI_ERROR_CROWDED, TSUMUGI_ERROR_NULL, TSUMUGI_FOREVER};
use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::time::Duration;
use tsumugi_ult::{Foreign, ForeignTask, Registration};

/// How the tasks of another scheduler sleep. A blocking call of this library parks
/// the calling task, and its scheduler may run other tasks meanwhile.
///
/// `unpark` may be called on any OS thread. A task keeps its name as long as it
/// lives, on whatever OS thread it runs, and no two live tasks have the same name.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tsumugi_wait {
    /// `sizeof(struct tsumugi_wait)`.
    pub size: usize,
    /// The first argument of all the functions.
    pub context: *mut c_void,
    /// The name of the calling task, not NULL; NULL if the caller is no task of
    /// this scheduler.
    pub current: Option<unsafe extern "C" fn(context: *mut c_void) -> *mut c_void>,
    /// Suspends the caller, which is `task`, until it is unparked, or for
    /// `limit_ns` (`TSUMUGI_FOREVER`: no limit). An unpark that came before the
    /// park is kept. The function may return too early: if there is a limit, a
    /// scheduler without a clock lets other tasks run and returns.
    pub park: Option<unsafe extern "C" fn(context: *mut c_void, task: *mut c_void, limit_ns: u64)>,
    /// Ends the present park of the task, or its next park. Must not block.
    pub unpark: Option<unsafe extern "C" fn(context: *mut c_void, task: *mut c_void)>,
    /// Lets other tasks run; if it is NULL, the OS thread yields.
    pub yield_now: Option<unsafe extern "C" fn(context: *mut c_void)>,
}

// SAFETY: all members are words, and the first is the size.
unsafe impl parameter::Versioned for tsumugi_wait {}

/// The registration of a foreign scheduler.
#[derive(Debug)]
pub struct tsumugi_registration(#[allow(dead_code, reason = "held until dropped")] Registration);

/// Registers a scheduler: from now on its tasks may block in all calls of this
/// library. `wait` is copied; the copy, a few words, is never freed. Lock-free.
///
/// Errors: CROWDED, SIZE, NULL (also for `current`, `park` and `unpark`).
///
/// # Safety
///
/// `wait` is valid for a read of as many bytes as its `size` states. Its functions
/// behave as `struct tsumugi_wait` describes until the registration has been
/// destroyed and none of the scheduler's tasks is in a call of this library. `out`
/// is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_wait_register(
    wait: *const tsumugi_wait,
    out: *mut *mut tsumugi_registration,
) -> c_int {
    let register = || {
        // SAFETY: the caller's.
        let (out, wait) = unsafe { (place(out)?, read(wait)?) };
        let (Some(current), Some(park), Some(unpark)) = (wait.current, wait.park, wait.unpark)
        else {
            return Err(TSUMUGI_ERROR_NULL);
        };
        let context = Word(wait.context);
        let functions = Functions { context, current, park, unpark, yield_now: wait.yield_now };
        let functions = Box::into_raw(Box::new(functions));
        // SAFETY: the box is never freed once it is registered.
        match tsumugi_ult::register(unsafe { &*functions }) {
            Ok(registration) => {
                let made = Box::new(tsumugi_registration(registration));
                // SAFETY: the caller's.
                unsafe { out.write(Box::into_raw(made)) };
                Ok(())
            }
            Err(_) => {
                // SAFETY: the registration has failed, so there is no other
                // reference to the box.
                drop(unsafe { Box::from_raw(functions) });
                Err(TSUMUGI_ERROR_CROWDED)
            }
        }
    };
    code_of(register())
}

/// Unregisters a scheduler. Tasks of it that sleep are woken as before; a task that
/// blocks later is treated as an OS thread. NULL is allowed.
///
/// # Safety
///
/// `registration` is NULL or a live registration.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_wait_unregister(registration: *mut tsumugi_registration) {
    if !registration.is_null() {
        // SAFETY: the caller's: made by `tsumugi_wait_register`.
        drop(unsafe { Box::from_raw(registration) });
    }
}

struct Functions {
    context: Word,
    current: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    park: unsafe extern "C" fn(*mut c_void, *mut c_void, u64),
    unpark: unsafe extern "C" fn(*mut c_void, *mut c_void),
    yield_now: Option<unsafe extern "C" fn(*mut c_void)>,
}

// SAFETY: by the contract of `tsumugi_wait_register` the functions park and unpark
// as the trait requires. A function that unwinds aborts the process, because it is
// declared `extern "C"`.
unsafe impl Foreign for Functions {
    fn current(&self) -> Option<ForeignTask> {
        // SAFETY: the contract of `tsumugi_wait_register`; the same holds for each
        // call below.
        NonNull::new(unsafe { (self.current)(self.context.0) }.cast()).map(ForeignTask::new)
    }

    unsafe fn park(&self, task: ForeignTask, limit: Option<Duration>) {
        let limit_ns = limit.map_or(TSUMUGI_FOREVER, |limit| {
            limit.as_nanos().min(u128::from(TSUMUGI_FOREVER - 1)) as u64
        });
        // SAFETY: as above.
        unsafe { (self.park)(self.context.0, task.name().as_ptr().cast(), limit_ns) }
    }

    unsafe fn unpark(&self, task: ForeignTask) {
        // SAFETY: as above.
        unsafe { (self.unpark)(self.context.0, task.name().as_ptr().cast()) }
    }

    fn yield_now(&self) {
        match self.yield_now {
            // SAFETY: as above.
            Some(yield_now) => unsafe { yield_now(self.context.0) },
            None => std::thread::yield_now(),
        }
    }
}

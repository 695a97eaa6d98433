//! Schedulers of somebody else's, by their functions.

use super::code::code_of;
use super::parameter::{self, Word, place, read};
use super::{TSUMUGI_ERROR_CROWDED, TSUMUGI_ERROR_NULL, TSUMUGI_FOREVER};
use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::time::Duration;
use tsumugi_ult::{Foreign, Registration, Task};

/// How the tasks of another scheduler sleep. Whatever blocks in this library
/// parks the task that calls it, and the scheduler may run others meanwhile.
///
/// `unpark` may be called on any OS thread. A task keeps its name as long as it
/// lives, on whatever OS thread it runs, and no two that are alive share one.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tsumugi_wait {
    /// `sizeof(struct tsumugi_wait)`.
    pub size: usize,
    /// Handed to all of them.
    pub context: *mut c_void,
    /// The task that calls, by a name that is not NULL; NULL if the caller is
    /// no task of this scheduler.
    pub current: Option<unsafe extern "C" fn(context: *mut c_void) -> *mut c_void>,
    /// Suspends the caller, which is `task`, until it is unparked, or for
    /// `limit_ns` (`TSUMUGI_FOREVER`: no limit). An unpark that came before is
    /// kept. It may return too early: a scheduler without a clock lets others
    /// run and returns, if there is a limit.
    pub park: Option<unsafe extern "C" fn(context: *mut c_void, task: *mut c_void, limit_ns: u64)>,
    /// Ends the present park of the task, or the next. Must not block.
    pub unpark: Option<unsafe extern "C" fn(context: *mut c_void, task: *mut c_void)>,
    /// Lets other tasks run; NULL: the OS thread yields.
    pub yield_now: Option<unsafe extern "C" fn(context: *mut c_void)>,
}

// SAFETY: words, the first its size.
unsafe impl parameter::Versioned for tsumugi_wait {}

/// A scheduler that is known.
#[derive(Debug)]
pub struct tsumugi_registration(#[allow(dead_code, reason = "held until dropped")] Registration);

/// Makes a scheduler known: its tasks may block on everything here. `wait` is
/// copied; the copy, a few words, is never given back. Lock-free.
///
/// Errors: CROWDED, SIZE, NULL (also for `current`, `park` and `unpark`).
///
/// # Safety
///
/// `wait` is valid for the bytes that it says, and what it says about its
/// functions holds until the registration has been destroyed and none of its
/// tasks is in a call of this library. `out` is valid for a write.
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
        // SAFETY: never freed once it is known.
        match tsumugi_ult::register(unsafe { &*functions }) {
            Ok(registration) => {
                let made = Box::new(tsumugi_registration(registration));
                // SAFETY: the caller's.
                unsafe { out.write(Box::into_raw(made)) };
                Ok(())
            }
            Err(_) => {
                // SAFETY: nobody has seen it.
                drop(unsafe { Box::from_raw(functions) });
                Err(TSUMUGI_ERROR_CROWDED)
            }
        }
    };
    code_of(register())
}

/// Forgets a scheduler. Tasks of it that sleep are woken as before; whoever
/// blocks later is taken for an OS thread. NULL is no harm.
///
/// # Safety
///
/// NULL or a live registration.
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

// SAFETY: the contract of `tsumugi_wait_register`. A function that unwinds
// aborts, for it is declared as C's.
unsafe impl Foreign for Functions {
    fn current(&self) -> Option<Task> {
        // SAFETY: the contract of `tsumugi_wait_register`; for each below too.
        NonNull::new(unsafe { (self.current)(self.context.0) }.cast()).map(Task::new)
    }

    unsafe fn park(&self, task: Task, limit: Option<Duration>) {
        let limit_ns = limit.map_or(TSUMUGI_FOREVER, |limit| {
            limit.as_nanos().min(u128::from(TSUMUGI_FOREVER - 1)) as u64
        });
        // SAFETY: as above.
        unsafe { (self.park)(self.context.0, task.name().as_ptr().cast(), limit_ns) }
    }

    unsafe fn unpark(&self, task: Task) {
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

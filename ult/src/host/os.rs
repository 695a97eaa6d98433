//! Linux, and the standard library.

use alloc::boxed::Box;
use core::any::Any;
use core::ptr::NonNull;
use core::time::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tsumugi_core::sync::AtomicU32;

pub(crate) use std::io::Error as ThreadError;
pub(crate) use std::panic::resume_unwind as resume;
pub(crate) use std::process::abort;
#[cfg(not(tsumugi_loom))]
pub(crate) use std::thread::JoinHandle;
pub(crate) use std::time::Instant;

/// What a panic leaves.
pub(crate) type Payload = Box<dyn Any + Send>;

/// Runs `f` to its end or to its panic.
#[inline(always)]
pub(crate) fn catch<R>(f: impl FnOnce() -> R) -> Result<R, Payload> {
    catch_unwind(AssertUnwindSafe(f))
}

/// Starts a thread.
#[cfg(not(tsumugi_loom))]
pub(crate) fn start_thread(
    name: String,
    body: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, ThreadError> {
    std::thread::Builder::new().name(name).spawn(body)
}

/// Processors that this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get())
}

/// Sleeps while `*word == expected`; may return early.
pub(crate) fn wait(word: *const AtomicU32, expected: u32, limit: Option<Duration>) {
    let limit = limit.map(|limit| libc::timespec {
        tv_sec: limit.as_secs().min(i64::MAX as u64) as libc::time_t,
        tv_nsec: limit.subsec_nanos() as _,
    });
    let limit = limit.as_ref().map_or(core::ptr::null(), |limit| limit as *const _);
    // SAFETY: the limit outlives the call; a word that is not there is an
    // error, and any error an early return, which the caller expects.
    unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAIT, expected, limit) };
}

/// Wakes up to `count` threads that sleep on `word`, which may be gone.
pub(crate) fn wake(word: *const AtomicU32, count: u32) {
    let count = count.min(i32::MAX as u32);
    // SAFETY: a wake reads nothing; a word that is gone wakes nobody.
    unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE, count) };
}

/// Whether this thread panics.
pub(crate) fn panicking() -> bool {
    std::thread::panicking()
}

/// Runs `f`, which may ask the system for something, in a signal handler.
pub(crate) fn keep_errno(f: impl FnOnce()) {
    // SAFETY: the calling thread's own.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: the same.
    let before = unsafe { *place };
    f();
    // SAFETY: the same.
    unsafe { *place = before };
}

/// Lets the system run another thread.
pub(crate) fn yield_thread() {
    std::thread::yield_now();
}

pub(crate) fn page_bytes() -> usize {
    // SAFETY: no arguments to get wrong.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

/// Keeps a range of whole pages from forked children; the system's error number.
/// A system that does not know of that, or a sandbox that refuses it, changes
/// nothing for who forks nowhere or on an OS stack: it is told once, and goes on.
///
/// # Safety
///
/// The range is the caller's own.
pub(crate) unsafe fn keep_from_children(base: NonNull<u8>, bytes: usize) -> Result<(), i32> {
    static TOLD: std::sync::Once = std::sync::Once::new();
    // SAFETY: the caller's; the content does not change.
    match unsafe { libc::madvise(base.as_ptr().cast(), bytes, libc::MADV_DONTFORK) } {
        0 => Ok(()),
        _ => match errno() {
            errno @ (libc::EINVAL | libc::ENOSYS | libc::EPERM | libc::EACCES) => {
                TOLD.call_once(|| {
                    let error = std::io::Error::from_raw_os_error(errno);
                    let line = format!(
                        "tsumugi: stacks are not kept from forked children (madvise: {error}): \
                         a ULT may fork in on_os_stack alone\n"
                    );
                    say(line.as_bytes());
                });
                Ok(())
            }
            errno => Err(errno),
        },
    }
}

/// Reserves memory that is touched on use; the system's error number.
pub(crate) fn map(bytes: usize) -> Result<NonNull<u8>, i32> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a fresh mapping at an address of the system's choice.
    let base = unsafe { libc::mmap(core::ptr::null_mut(), bytes, access, flags, -1, 0) };
    if base == libc::MAP_FAILED {
        return Err(errno());
    }
    Ok(NonNull::new(base.cast()).expect("mmap never answers null"))
}

/// Gives back what `map` gave.
///
/// # Safety
///
/// It is all of that, and nobody uses it.
pub(crate) unsafe fn unmap(base: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller's.
    unsafe { libc::munmap(base.as_ptr().cast(), bytes) };
}

/// Makes a range what it was before `keep_from_children` and `guard`.
///
/// # Safety
///
/// The range is the caller's own.
pub(crate) unsafe fn hand_back(base: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller's.
    unsafe {
        libc::mprotect(base.as_ptr().cast(), bytes, libc::PROT_READ | libc::PROT_WRITE);
        libc::madvise(base.as_ptr().cast(), bytes, libc::MADV_DOFORK);
    }
}

/// Takes all access from a page. False: the system does not.
///
/// # Safety
///
/// The page is the caller's own, and nobody uses it.
pub(crate) unsafe fn guard(page: *mut u8) -> bool {
    // SAFETY: the caller's.
    unsafe { libc::mprotect(page.cast(), page_bytes(), libc::PROT_NONE) == 0 }
}

/// Asks for a barrier on all processors; whether there is such a thing.
pub(crate) fn membarrier(command: i32) -> bool {
    // SAFETY: takes numbers, changes no memory.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

/// Writes to standard error: no allocation, no lock.
pub(crate) fn say(bytes: &[u8]) {
    // SAFETY: the bytes are there.
    unsafe { libc::write(2, bytes.as_ptr().cast(), bytes.len()) };
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

//! The host with std: Linux, and the standard library.

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

/// The payload that a panic leaves.
pub(crate) type PanicPayload = Box<dyn Any + Send>;

/// Runs `f` to its end or to its panic.
#[inline(always)]
pub(crate) fn catch<R>(f: impl FnOnce() -> R) -> Result<R, PanicPayload> {
    catch_unwind(AssertUnwindSafe(f))
}

/// Starts a thread. The body goes into a box, so that there is one copy of the library's code
/// for threads.
#[cfg(not(tsumugi_loom))]
pub(crate) fn start_thread(
    name: String,
    body: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, ThreadError> {
    let body: Box<dyn FnOnce() + Send> = Box::new(body);
    std::thread::Builder::new().name(name).spawn(body)
}

/// The lowest byte of the calling thread's stack, and the stack's bytes.
pub(crate) fn thread_stack() -> (usize, usize) {
    let (mut low, mut bytes) = (core::ptr::null_mut(), 0);
    // SAFETY: the attributes are read and destroyed only if they were filled in.
    unsafe {
        let mut attr = core::mem::zeroed();
        if libc::pthread_getattr_np(libc::pthread_self(), &mut attr) == 0 {
            libc::pthread_attr_getstack(&attr, &mut low, &mut bytes);
            libc::pthread_attr_destroy(&mut attr);
        }
    }
    (low.addr(), bytes)
}

/// As long as it lives, the process is aborted if the calling thread exits, as by
/// `pthread_exit`.
#[cfg(not(tsumugi_loom))]
pub(crate) struct ThreadStays(*const core::ffi::c_void);

#[cfg(not(tsumugi_loom))]
impl ThreadStays {
    pub(crate) fn begin() -> Self {
        let before = key().map_or(core::ptr::null_mut(), |key| {
            // SAFETY: the key exists as long as the process does.
            unsafe { libc::pthread_getspecific(key) }
        });
        keep(core::ptr::dangling());
        Self(before)
    }
}

#[cfg(not(tsumugi_loom))]
impl Drop for ThreadStays {
    fn drop(&mut self) {
        keep(self.0);
    }
}

/// The key with a value in each thread that must stay. Its function runs when a thread exits,
/// but not when the process does, as destructors of thread locals would.
#[cfg(not(tsumugi_loom))]
fn key() -> Option<libc::pthread_key_t> {
    static KEY: std::sync::OnceLock<Option<libc::pthread_key_t>> = std::sync::OnceLock::new();
    extern "C" fn has_exited(_: *mut core::ffi::c_void) {
        abort_on_exit();
    }
    *KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: the key is written to a local; the function stays loaded.
        let failed = unsafe { libc::pthread_key_create(&mut key, Some(has_exited)) } != 0;
        (!failed).then_some(key)
    })
}

/// Aborts because a thread of a scheduler does not stay.
#[cold]
pub(crate) fn abort_on_exit() -> ! {
    say(b"tsumugi: pthread_exit, or an exception that is no panic, has left the function of a ULT. It \
          would end the thread and not the ULT: return instead. The process is aborted\n");
    abort()
}

#[cfg(not(tsumugi_loom))]
fn keep(value: *const core::ffi::c_void) {
    if let Some(key) = key() {
        // SAFETY: the key exists as long as the process does; its function reads no value.
        unsafe { libc::pthread_setspecific(key, value) };
    }
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
    // SAFETY: the limit outlives the call. An invalid word is an error of the call,
    // and any error is an early return, which the caller expects.
    unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAIT, expected, limit) };
}

/// Wakes up to `count` threads that sleep on `word`, which may be gone.
pub(crate) fn wake(word: *const AtomicU32, count: u32) {
    let count = count.min(i32::MAX as u32);
    // SAFETY: a wake uses only the word's address; if the word is gone, no thread is
    // woken.
    unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE, count) };
}

/// Whether this thread is panicking.
pub(crate) fn panicking() -> bool {
    std::thread::panicking()
}

/// Runs `f`, which may make system calls, in a signal handler, and restores errno.
pub(crate) fn keep_errno(f: impl FnOnce()) {
    // SAFETY: the address of the calling thread's own errno.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *place };
    f();
    // SAFETY: as above.
    unsafe { *place = before };
}

/// Lets the system run another thread.
pub(crate) fn yield_thread() {
    std::thread::yield_now();
}

pub(crate) fn page_bytes() -> usize {
    // SAFETY: the call takes a number and touches no memory of ours.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

/// Keeps a range of whole pages from forked children; returns the system's error
/// number on failure. If a system does not have this call, or a sandbox refuses it,
/// programs that do not fork, or fork only on an OS stack, lose nothing. In that case
/// one line goes to standard error, once, and this returns `Ok`.
///
/// # Safety
///
/// The range belongs to the caller.
pub(crate) unsafe fn keep_from_children(base: NonNull<u8>, bytes: usize) -> Result<(), i32> {
    static TOLD: std::sync::Once = std::sync::Once::new();
    // SAFETY: the range belongs to the caller; its content does not change.
    match unsafe { libc::madvise(base.as_ptr().cast(), bytes, libc::MADV_DONTFORK) } {
        0 => Ok(()),
        _ => match errno() {
            errno @ (libc::EINVAL | libc::ENOSYS | libc::EPERM | libc::EACCES) => {
                TOLD.call_once(|| {
                    let error = std::io::Error::from_raw_os_error(errno);
                    let line = format!(
                        "tsumugi: stacks are not kept from forked children (madvise: {error}): \
                         a ULT may fork only inside on_os_stack\n"
                    );
                    say(line.as_bytes());
                });
                Ok(())
            }
            errno => Err(errno),
        },
    }
}

/// Reserves memory that the system provides when it is touched; returns the system's
/// error number on failure.
pub(crate) fn map(bytes: usize) -> Result<NonNull<u8>, i32> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address that the system chooses overlaps no other.
    let base = unsafe { libc::mmap(core::ptr::null_mut(), bytes, access, flags, -1, 0) };
    if base == libc::MAP_FAILED {
        return Err(errno());
    }
    Ok(NonNull::new(base.cast()).expect("mmap does not return null"))
}

/// Unmaps a range that `map` returned.
///
/// # Safety
///
/// It is the whole range, and no code uses it.
pub(crate) unsafe fn unmap(base: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller promises that no code uses the range.
    unsafe { libc::munmap(base.as_ptr().cast(), bytes) };
}

/// Undoes `keep_from_children` and `guard` for a range.
///
/// # Safety
///
/// The range belongs to the caller.
pub(crate) unsafe fn hand_back(base: NonNull<u8>, bytes: usize) {
    // SAFETY: the range belongs to the caller.
    unsafe {
        libc::mprotect(base.as_ptr().cast(), bytes, libc::PROT_READ | libc::PROT_WRITE);
        libc::madvise(base.as_ptr().cast(), bytes, libc::MADV_DOFORK);
    }
}

/// Takes all access from a page. False: the system refused.
///
/// # Safety
///
/// The page belongs to the caller, and no code uses it.
pub(crate) unsafe fn guard(page: *mut u8) -> bool {
    // SAFETY: the page belongs to the caller, and no code uses it.
    unsafe { libc::mprotect(page.cast(), page_bytes(), libc::PROT_NONE) == 0 }
}

/// Makes the system run a barrier on all processors; false if it has no such call.
pub(crate) fn membarrier(command: i32) -> bool {
    // SAFETY: the call takes numbers and changes no memory.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

/// Writes to standard error, without allocation and without a lock.
pub(crate) fn say(bytes: &[u8]) {
    // SAFETY: the slice's bytes are readable.
    unsafe { libc::write(2, bytes.as_ptr().cast(), bytes.len()) };
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

//! The system calls of this module.

use std::ffi::{CStr, c_char, c_void};
use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// A descriptor, and the events for which it is watched.
#[derive(Clone, Copy, Debug)]
pub struct Watched<'a> {
    /// The descriptor.
    pub fd: BorrowedFd<'a>,
    /// Whether it is also watched for room to write.
    pub writes: bool,
}

/// Waits until a descriptor can be read or written (or is gone), and returns which,
/// in the same order. All false: the limit has passed, or a signal came.
pub fn poll(watched: &[Watched<'_>], limit: Duration) -> Result<Vec<bool>> {
    let one = |w: &Watched<'_>| libc::pollfd {
        fd: w.fd.as_raw_fd(),
        events: libc::POLLIN | if w.writes { libc::POLLOUT } else { 0 },
        revents: 0,
    };
    let mut polled: Vec<libc::pollfd> = watched.iter().map(one).collect();
    // Rounded up, so that a wait of less than a millisecond does not spin.
    let limit_ms = limit.as_micros().div_ceil(1000).min(60_000) as libc::c_int;
    // SAFETY: the array has the length that is passed.
    let got = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, limit_ms) };
    if got < 0 && Error::last_os_error().kind() != ErrorKind::Interrupted {
        return Err(Error::last_os_error());
    }
    Ok(polled.iter().map(|p| got > 0 && p.revents != 0).collect())
}

/// Starts a thread. The body goes into a box, so that there is one copy of the library's code
/// for threads. `pvas` has the same; the two crates do not use each other.
pub fn start_thread(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    let body: Box<dyn FnOnce() + Send> = Box::new(body);
    Builder::new().name(name.to_owned()).spawn(body)
}

/// Makes programs that this process starts not inherit a descriptor; returns an
/// error if there is no such descriptor.
pub fn close_on_exec(fd: i32) -> Result<()> {
    // SAFETY: a plain call.
    match unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) } {
        -1 => Err(Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Fills the slice with bytes that cannot be guessed.
pub fn random(bytes: &mut [u8]) -> Result<()> {
    // SAFETY: the kernel writes into the slice; up to 256 bytes come whole.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if got == bytes.len() as isize { Ok(()) } else { Err(Error::last_os_error()) }
}

/// A number that cannot be guessed.
///
/// # Errors
///
/// The error of the system, if it has no random numbers.
pub fn random_u64() -> Result<u64> {
    let mut bytes = [0; 8];
    random(&mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}

/// Loads a library, which stays until the process ends.
pub fn load(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the name ends in 0; the library's constructors run here.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    (!handle.is_null()).then_some(handle)
}

/// The address of a function of a loaded library.
pub fn symbol(library: *mut c_void, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: `load` returned the handle, and the name ends in 0.
    let at = unsafe { libc::dlsym(library, name.as_ptr().cast::<c_char>()) };
    (!at.is_null()).then_some(at)
}

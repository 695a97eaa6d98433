//! Descriptors: waiting for several, flags, and pipes that the launcher hands over.

use super::check::check;
use std::io::{Error, PipeReader, PipeWriter, Result};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// Waits until one of `fds` can be read (or its other end is gone) and returns
/// which, in the same order. All false: the limit has passed, or a signal came.
pub fn poll(fds: &[BorrowedFd<'_>], limit: Duration) -> Result<Vec<bool>> {
    let mut polled: Vec<libc::pollfd> = fds
        .iter()
        .map(|fd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 })
        .collect();
    // Rounded up, so that a wait of less than a millisecond does not spin.
    let limit_ms = limit.as_micros().div_ceil(1000).min(60_000) as libc::c_int;
    // SAFETY: the array has the length that is passed.
    let got = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, limit_ms) };
    if got < 0 && Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
        return Err(Error::last_os_error());
    }
    Ok(polled.iter().map(|p| got > 0 && p.revents != 0).collect())
}

/// Makes reads of this descriptor return `WouldBlock` instead of waiting.
pub fn set_nonblocking(fd: BorrowedFd<'_>) -> Result<()> {
    // SAFETY: plain calls on an open descriptor.
    let flags = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) };
    check(flags)?;
    // SAFETY: as above.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK) })
}

/// Lets the descriptor survive an exec. Async-signal-safe.
pub fn keep_across_exec(fd: RawFd) -> Result<()> {
    // SAFETY: a plain call on an open descriptor.
    check(unsafe { libc::fcntl(fd, libc::F_SETFD, 0) })
}

/// Takes over the reading end of a pipe that the launcher has handed over; children
/// of this process do not inherit it.
pub fn inherited_reader(fd: RawFd) -> Result<PipeReader> {
    inherited_pipe(fd, libc::O_RDONLY).map(PipeReader::from)
}

/// As [`inherited_reader`], for a writing end.
pub fn inherited_writer(fd: RawFd) -> Result<PipeWriter> {
    inherited_pipe(fd, libc::O_WRONLY).map(PipeWriter::from)
}

fn inherited_pipe(fd: RawFd, mode: libc::c_int) -> Result<OwnedFd> {
    // SAFETY: a plain call.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    check(flags)?;
    // SAFETY: zeroes are a valid `stat`, which the kernel then fills in.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: `stat` is a local.
    check(unsafe { libc::fstat(fd, &mut stat) })?;
    if flags & libc::O_ACCMODE != mode || stat.st_mode & libc::S_IFMT != libc::S_IFIFO {
        return Err(Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: a plain call on an open descriptor.
    check(unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) })?;
    // SAFETY: the descriptor is open, and the launcher opened it for this process
    // to own.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Writes one byte and changes no `errno`: for signal handlers.
pub fn write_byte(fd: RawFd, byte: u8) {
    // SAFETY: `errno` is restored; the kernel reads one byte of a local.
    unsafe {
        let errno = *libc::__errno_location();
        libc::write(fd, std::ptr::from_ref(&byte).cast(), 1);
        *libc::__errno_location() = errno;
    }
}

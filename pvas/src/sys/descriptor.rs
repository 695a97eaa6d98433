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

/// Writes all bytes, and waits where the descriptor does not. Blocking.
pub fn write_all(fd: RawFd, mut bytes: &[u8]) -> Result<()> {
    while !bytes.is_empty() {
        // SAFETY: the kernel reads the bytes of the slice.
        let written = unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
        match (written, Error::last_os_error().kind()) {
            (1.., _) => bytes = &bytes[written as usize..],
            (_, std::io::ErrorKind::Interrupted) => {}
            (_, std::io::ErrorKind::WouldBlock) => {
                let mut polled = libc::pollfd { fd, events: libc::POLLOUT, revents: 0 };
                // SAFETY: one local structure is passed.
                unsafe { libc::poll(&mut polled, 1, -1) };
            }
            _ => return Err(Error::last_os_error()),
        }
    }
    Ok(())
}

/// Whether two descriptors are of one file; false if the system does not say.
pub fn is_same_file(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> bool {
    let identity = |fd: BorrowedFd<'_>| {
        // SAFETY: zeroes are a valid `stat`, which the kernel then fills in.
        let mut stat: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: `stat` is a local.
        let found = unsafe { libc::fstat(fd.as_raw_fd(), &mut stat) } == 0;
        found.then_some((stat.st_dev, stat.st_ino))
    };
    identity(one).is_some_and(|id| identity(other) == Some(id))
}

/// Raises this process's soft limit of descriptors to `count`, as far as the hard limit
/// allows. Returns the limit before, if it was raised.
pub fn raise_descriptors(count: u64) -> Option<libc::rlimit> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes one `rlimit`, which is a local.
    let read = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } == 0;
    if !read || limit.rlim_cur >= count.min(limit.rlim_max) {
        return None;
    }
    let raised = libc::rlimit { rlim_cur: count.min(limit.rlim_max), ..limit };
    set_descriptors(&raised).then_some(limit)
}

/// Sets the limit of descriptors. Async-signal-safe.
pub fn set_descriptors(limit: &libc::rlimit) -> bool {
    // SAFETY: the kernel reads one `rlimit`.
    unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, limit) == 0 }
}

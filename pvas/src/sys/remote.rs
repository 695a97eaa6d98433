//! Copies by the kernel from and to another process's memory.

use std::io::{Error, Result};

/// Copies with one call from `at` in process `pid` to `to`; returns how many bytes
/// came.
///
/// # Safety
///
/// The caller must be allowed to write the `bytes` bytes at `to`.
pub unsafe fn read_process(pid: u32, at: usize, to: *mut u8, bytes: usize) -> Result<usize> {
    let local = libc::iovec { iov_base: to.cast(), iov_len: bytes };
    let remote = libc::iovec { iov_base: at as *mut libc::c_void, iov_len: bytes };
    let pid = pid as libc::pid_t;
    // SAFETY: the caller may write to `to`; the kernel refuses addresses that are
    // not mapped in the other process.
    copied(unsafe { libc::process_vm_readv(pid, &local, 1, &remote, 1, 0) })
}

/// Copies with one call from `from` to `at` in process `pid`; returns how many
/// bytes went.
///
/// # Safety
///
/// The `bytes` bytes at `from` must be readable, and the other process must expect
/// writes to `at`.
pub unsafe fn write_process(pid: u32, at: usize, from: *const u8, bytes: usize) -> Result<usize> {
    let local = libc::iovec { iov_base: from.cast_mut().cast(), iov_len: bytes };
    let remote = libc::iovec { iov_base: at as *mut libc::c_void, iov_len: bytes };
    let pid = pid as libc::pid_t;
    // SAFETY: the caller may read `from`; the kernel refuses addresses that are not
    // mapped in the other process.
    copied(unsafe { libc::process_vm_writev(pid, &local, 1, &remote, 1, 0) })
}

/// Forks a child that runs `body`, system calls alone, and exits with the code that
/// `body` returns; returns the child's process number.
///
/// # Safety
///
/// `body` is async-signal-safe.
pub unsafe fn fork_to(body: impl FnOnce() -> i32) -> Result<u32> {
    // SAFETY: the child calls nothing but `body` and `_exit`.
    match unsafe { libc::fork() } {
        -1 => Err(Error::last_os_error()),
        // SAFETY: the child ends here.
        0 => unsafe { libc::_exit(body()) },
        pid => Ok(pid as u32),
    }
}

/// Sleeps until it is killed. Async-signal-safe.
pub fn sleep_for_good() -> ! {
    loop {
        // SAFETY: a plain call.
        unsafe { libc::pause() };
    }
}

/// Kills a child.
pub fn kill_child(pid: u32) {
    // SAFETY: a plain call; the child has not been waited for.
    unsafe { libc::kill(pid as libc::pid_t, libc::SIGKILL) };
}

/// Waits for a child's end; returns its exit code, if it exited.
pub fn wait_child(pid: u32) -> Option<i32> {
    let mut status = 0;
    loop {
        // SAFETY: the kernel fills in a local.
        let got = unsafe { libc::waitpid(pid as libc::pid_t, &mut status, 0) };
        if got >= 0 || Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            return (got > 0 && libc::WIFEXITED(status)).then(|| libc::WEXITSTATUS(status));
        }
    }
}

fn copied(result: isize) -> Result<usize> {
    usize::try_from(result).map_err(|_| Error::last_os_error())
}

//! The own process and other processes: limits, processors, descriptors of processes.

use super::check::check;
use std::ffi::CStr;
use std::io::{Error, Result};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

/// Binds the calling thread to one CPU.
pub fn pin(cpu: usize) -> Result<()> {
    let mut words = vec![0u64; cpu / 64 + 1];
    words[cpu / 64] = 1 << (cpu % 64);
    let bytes = size_of_val(words.as_slice());
    // SAFETY: the kernel reads `bytes` bytes at the pointer, which is the length of
    // `words`.
    check(unsafe { libc::sched_setaffinity(0, bytes, words.as_ptr().cast()) })
}

/// The soft limit of `resource`; `None` if there is none.
pub fn limit(resource: libc::__rlimit_resource_t) -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel fills in a local.
    let got = unsafe { libc::getrlimit(resource, &mut limit) };
    (got == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

/// The version of the kernel, such as `6.1.0-18-amd64`.
pub fn kernel_release() -> Option<String> {
    // SAFETY: zeroes are a valid value of arrays of characters.
    let mut names: libc::utsname = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel fills in a local, whose texts end with a NUL byte.
    let release = unsafe {
        check(libc::uname(&mut names)).ok()?;
        CStr::from_ptr(names.release.as_ptr())
    };
    release.to_str().ok().map(str::to_owned)
}

/// The version of the C library, such as `2.36`; `None` if it is another one than glibc.
pub fn glibc_version() -> Option<&'static str> {
    #[cfg(target_env = "gnu")]
    // SAFETY: the library returns a constant text.
    let version = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) }.to_str().ok();
    #[cfg(not(target_env = "gnu"))]
    let version = None;
    version
}

/// A descriptor that becomes readable when the process ends.
pub fn pidfd(pid: u32) -> Result<OwnedFd> {
    // SAFETY: a plain call.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    check(fd as i32)?;
    // SAFETY: the descriptor is new, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// The number of this process's PID namespace; 0 if the system does not tell it.
pub fn pid_space() -> u64 {
    let space = std::fs::metadata("/proc/self/ns/pid");
    space.map_or(0, |space| std::os::unix::fs::MetadataExt::ino(&space))
}

/// Makes the calling process die with the thread that forked it. Returns false if
/// that thread has ended already. Async-signal-safe.
pub fn die_with_parent(parent: u32) -> Result<bool> {
    // SAFETY: plain calls.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) })?;
    // SAFETY: a plain call.
    Ok(unsafe { libc::getppid() } as u32 == parent)
}

/// Registers `forked`, to be called in every forked child, and `leaving`, to be
/// called when this process exits.
pub fn on_fork_and_exit(forked: extern "C" fn(), leaving: extern "C" fn()) -> Result<()> {
    // SAFETY: both functions stay loaded as long as the program runs.
    let failed = unsafe { libc::pthread_atfork(None, None, Some(forked)) } != 0
        // SAFETY: as above.
        || unsafe { libc::atexit(leaving) } != 0;
    if failed { Err(Error::from_raw_os_error(libc::ENOMEM)) } else { Ok(()) }
}

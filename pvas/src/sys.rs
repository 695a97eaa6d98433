//! The system calls: every `libc` call of this crate but the allocator's.
//!
//! | file | calls for |
//! |---|---|
//! | `memory` | memory files and mappings |
//! | `remote` | another process's memory |
//! | `socket` | descriptors that go through a socket |
//! | `forked` | calls that a forked process may make |
//! | here | limits, sleep, processes, signals |

pub mod forked;
mod memory;
mod remote;
mod socket;

pub use memory::*;
pub use remote::*;
pub use socket::*;

use std::io::{Error, PipeReader, PipeWriter, Result};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;
use tsumugi_core::sync::AtomicU32;

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

/// Sleeps while the word is `expected`; may return early.
pub fn futex_wait(word: &AtomicU32, expected: u32, limit: Option<Duration>) {
    let time = limit.map(|limit| libc::timespec {
        tv_sec: limit.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(limit.subsec_nanos() as i32),
    });
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the word and the time outlive the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, expected, time) };
}

/// Wakes up to `count` sleepers.
pub fn futex_wake(word: &AtomicU32, count: u32) {
    let count = count.min(i32::MAX as u32);
    // SAFETY: the word outlives the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, count) };
}

/// Runs a membarrier command on all processors that run a registered process; the
/// commands are those of `<linux/membarrier.h>`. Returns false if the system
/// refuses.
pub fn membarrier(command: i32) -> bool {
    // SAFETY: the call takes numbers and changes no memory.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
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

/// Sends a signal to exactly the process of the descriptor.
pub fn send_signal(pidfd: BorrowedFd<'_>, signal: i32) -> Result<()> {
    let null = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: a plain call.
    let sent =
        unsafe { libc::syscall(libc::SYS_pidfd_send_signal, pidfd.as_raw_fd(), signal, null, 0) };
    check(sent as i32)
}

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

/// Makes the calling process die with the thread that forked it. Returns false if
/// that thread has ended already. Async-signal-safe.
pub fn die_with_parent(parent: u32) -> Result<bool> {
    // SAFETY: plain calls.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) })?;
    // SAFETY: a plain call.
    Ok(unsafe { libc::getppid() } as u32 == parent)
}

/// Sets the default disposition of every signal that the launcher may catch, and an
/// empty signal mask. Async-signal-safe.
pub fn reset_signals(signals: &[i32]) {
    // SAFETY: a zeroed set is one that sigemptyset may fill in; all plain calls.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
        for &signal in signals {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
}

/// Sets `handler` for `signal` and returns the previous action.
pub fn catch_signal(
    signal: i32,
    handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void),
) -> Result<libc::sigaction> {
    // SAFETY: zeroes are a valid sigaction.
    let (mut new, mut old): (libc::sigaction, libc::sigaction) = unsafe { std::mem::zeroed() };
    new.sa_sigaction = handler as usize;
    new.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
    // SAFETY: both structures are locals, and the handler is async-signal-safe.
    check(unsafe { libc::sigaction(signal, &new, &mut old) })?;
    Ok(old)
}

/// Sets the action again that [`catch_signal`] returned.
pub fn restore_signal(signal: i32, old: &libc::sigaction) {
    // SAFETY: `old` came from the system.
    unsafe { libc::sigaction(signal, old, std::ptr::null_mut()) };
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

/// Writes one byte and changes no `errno`: for signal handlers.
pub fn write_byte(fd: RawFd, byte: u8) {
    // SAFETY: `errno` is restored; the kernel reads one byte of a local.
    unsafe {
        let errno = *libc::__errno_location();
        libc::write(fd, std::ptr::from_ref(&byte).cast(), 1);
        *libc::__errno_location() = errno;
    }
}

/// The name of a signal, as in `kill -l`.
pub fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGUSR2 => "SIGUSR2",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGSYS => "SIGSYS",
        _ => return None,
    })
}

fn check(result: i32) -> Result<()> {
    if result == -1 { Err(Error::last_os_error()) } else { Ok(()) }
}

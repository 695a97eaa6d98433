//! Signals: sending, catching, and their names.

use super::check::check;
use std::io::Result;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Sends a signal to exactly the process of the descriptor.
pub fn send_signal(pidfd: BorrowedFd<'_>, signal: i32) -> Result<()> {
    let null = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: a plain call.
    let sent =
        unsafe { libc::syscall(libc::SYS_pidfd_send_signal, pidfd.as_raw_fd(), signal, null, 0) };
    check(sent as i32)
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

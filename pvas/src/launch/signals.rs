//! Signals that the launcher gets for its ranks.
//!
//! The handler writes the number of the signal into a pipe that the launcher polls.
//! A signal of the terminal has gone to the whole process group, ranks included: it
//! is marked and not sent again.

use super::error::LaunchError;
use crate::sys;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use tsumugi_core::sync::{AtomicI32, Ordering};

/// The signals that are caught and passed on.
pub const FORWARDED: [i32; 6] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];

/// The caught signals of the process; a drop restores the previous actions.
pub struct Signals {
    reader: PipeReader,
    _writer: PipeWriter,
    before: Vec<(i32, libc::sigaction)>,
}

/// A signal that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caught {
    /// The number of the signal.
    pub signal: i32,
    /// Whether the ranks have received the signal, too.
    pub from_terminal: bool,
}

impl Signals {
    /// Starts to catch the signals.
    pub fn catch() -> Result<Self, LaunchError> {
        let error = |e: io::Error| LaunchError::System {
            what: "catching signals",
            errno: e.raw_os_error().unwrap_or(0),
        };
        let (reader, writer) = io::pipe().map_err(error)?;
        sys::set_nonblocking(reader.as_fd()).map_err(error)?;
        sys::set_nonblocking(writer.as_fd()).map_err(error)?;
        // AcqRel: pairs with the Release of the last owner.
        PIPE.compare_exchange(NONE, writer.as_raw_fd(), Ordering::AcqRel, Ordering::Relaxed)
            .map_err(|_| LaunchError::SignalsTaken)?;
        let mut signals = Self { reader, _writer: writer, before: Vec::new() };
        for signal in FORWARDED {
            let old = sys::catch_signal(signal, handle).map_err(error)?;
            signals.before.push((signal, old));
        }
        Ok(signals)
    }

    /// A descriptor that is readable when a signal has come.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }

    /// The signals that have come.
    pub fn take(&mut self) -> Vec<Caught> {
        let mut bytes = [0; 64];
        let read = self.reader.read(&mut bytes).unwrap_or(0);
        let caught = |byte: &u8| Caught {
            signal: i32::from(byte & !FROM_TERMINAL),
            from_terminal: byte & FROM_TERMINAL != 0,
        };
        bytes[..read].iter().map(caught).collect()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for (signal, old) in &self.before {
            sys::restore_signal(*signal, old);
        }
        // Release: pairs with the AcqRel in `catch`.
        PIPE.store(NONE, Ordering::Release);
    }
}

impl std::fmt::Debug for Signals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Signals")
    }
}

extern "C" fn handle(signal: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    let pipe = PIPE.load(Ordering::Relaxed);
    if pipe == NONE {
        return;
    }
    // SAFETY: the system passes the information of this signal.
    let code = unsafe { (*info).si_code };
    let mark = if code == libc::SI_KERNEL { FROM_TERMINAL } else { 0 };
    sys::write_byte(pipe, signal as u8 | mark);
}

/// The pipe that the handler writes to: a static, because a handler has no other
/// state.
static PIPE: AtomicI32 = AtomicI32::new(NONE);
const NONE: i32 = -1;
const FROM_TERMINAL: u8 = 0x80;

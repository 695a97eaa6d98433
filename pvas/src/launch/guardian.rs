//! What ends a job when its launcher dies without a word.
//!
//! ```text
//!  launcher ──fork──► guardian     own session, no descriptor but one:
//!    │                  │ waits    the launcher's life
//!    │ kill -9          ▼
//!    ✗            kills all that have the mark, removes the folder, ends
//! ```
//!
//! Ranks die with the thread that started them; what they have started does
//! not, and neither do folders. A launcher that lives ends its guardian itself
//! when the job is over, so that nothing is seen of it then. Signals of a
//! terminal do not reach it, and it holds no standard stream open.
//!
//! It is a forked copy of the launcher that runs no other program: one would
//! have to lie somewhere. So it calls nothing that allocates or locks.

use super::LaunchError;
use super::sweep;
use crate::config;
use crate::sys;
use crate::sys::forked;
use std::ffi::CString;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A process that ends what carries a mark when this process dies. Dropped, it
/// does so at once: every process that carries the mark, and the folder.
#[derive(Debug)]
pub struct Guardian {
    entry: String,
    folder: Option<(PathBuf, CString)>,
    /// Until it has been ended.
    process: Option<(u32, OwnedFd)>,
}

impl Guardian {
    /// Starts one. `folder` names a folder that it makes among those for
    /// temporary files, `tsumugi-FOLDER-PID-TIME`, and that goes with the job.
    ///
    /// # Errors
    ///
    /// [`LaunchError::System`].
    pub fn start(folder: Option<&str>) -> Result<Self, LaunchError> {
        let error = |error: io::Error| LaunchError::System {
            what: "starting the guardian of a job",
            errno: error.raw_os_error().unwrap_or(0),
        };
        let entry = sweep::entry();
        let own = entry.rsplit(['=', '.']).next().unwrap_or_default();
        let folder = match folder {
            None => None,
            Some(name) => {
                let path = std::env::temp_dir().join(format!("tsumugi-{name}-{own}"));
                let path = std::path::absolute(path).map_err(error)?;
                let text = CString::new(path.as_os_str().as_bytes());
                Some((path, text.map_err(|_| error(io::ErrorKind::InvalidInput.into()))?))
            }
        };
        let mut guardian = Self { entry, folder, process: None };
        let launcher = sys::pidfd(std::process::id()).map_err(error)?;
        let (mut ready, told) = io::pipe().map_err(error)?;
        let fds = [launcher.as_raw_fd(), told.as_raw_fd()];
        // SAFETY: `guard` makes system calls alone, and does not panic.
        let pid = unsafe { forked::fork(|| guard(&guardian, fds)) }.map_err(error)?;
        drop(told);
        let mut errno = [0; 4];
        let said = ready.read_exact(&mut errno).and_then(|()| match i32::from_ne_bytes(errno) {
            0 => sys::pidfd(pid),
            errno => Err(io::Error::from_raw_os_error(errno)),
        });
        match said {
            Ok(process) => {
                guardian.process = Some((pid, process));
                Ok(guardian)
            }
            Err(refused) => {
                forked::kill(pid);
                forked::reap(pid);
                Err(error(refused))
            }
        }
    }

    /// A variable of the environment: what is started with it carries the mark.
    pub fn variable(&self) -> (&'static str, &str) {
        (config::JOB, self.mark())
    }

    /// The mark.
    pub fn mark(&self) -> &str {
        self.entry.split_once('=').map_or("", |(_, mark)| mark)
    }

    /// The folder, if one was asked for.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_ref().map(|(path, _)| &**path)
    }

    /// Ends what carries the mark, and then the guardian.
    pub(super) fn end(&mut self) {
        let Some((pid, process)) = self.process.take() else { return };
        self.clear();
        // The number is its own until it is waited for, and the descriptor for ever.
        let _ = sys::send_signal(process.as_fd(), libc::SIGKILL);
        forked::reap(pid);
    }

    /// Allocates nothing.
    fn clear(&self) {
        sweep::kill_marked(&self.entry);
        if let Some((_, folder)) = &self.folder {
            forked::remove_folder(folder);
        }
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        self.end();
    }
}

/// What the forked process does, with descriptors for the launcher's life and
/// to say that it is there: system calls alone.
fn guard(guardian: &Guardian, fds: [RawFd; 2]) {
    forked::stand_alone(sweep::GUARDIAN);
    // SAFETY: this process is a copy; what used other descriptors is not in it.
    let [launcher, told] = match unsafe { forked::keep_only(fds) } {
        Ok(kept) => kept,
        Err(error) => {
            // SAFETY: it closes none before it has kept both.
            let told = unsafe { BorrowedFd::borrow_raw(fds[1]) };
            return forked::write_number(told, error.raw_os_error().unwrap_or(libc::EBADF));
        }
    };
    let made = match &guardian.folder {
        Some((_, folder)) => forked::make_folder(folder),
        None => Ok(()),
    };
    let errno = made.err().and_then(|error| error.raw_os_error()).unwrap_or(0);
    forked::write_number(told.as_fd(), errno);
    if errno != 0 {
        return;
    }
    drop(told);
    // The process's end, and not that of a pipe: a process that the launcher
    // has forked and that runs no other program would hold that too.
    forked::wait_for(launcher.as_fd(), None);
    for pause in LOOKS {
        forked::pause(pause);
        guardian.clear();
    }
}

/// Before each look: what the launcher had just forked when it died gets its
/// environment a moment later.
const LOOKS: [Duration; 4] = [
    Duration::from_millis(0),
    Duration::from_millis(20),
    Duration::from_millis(100),
    Duration::from_millis(300),
];

//! The guardian: a process that ends a job when its launcher is killed.
//!
//! ```text
//!  launcher ──fork──► guardian     own session, no descriptor but one:
//!    │                  │ waits    the launcher's life
//!    │ kill -9          ▼
//!    ✗            kills all that have the mark, removes the folder, ends
//! ```
//!
//! Ranks die with the thread that started them, but processes that ranks have
//! started do not, and folders stay. A launcher that lives ends its guardian itself
//! when the job is over, so that no trace of the guardian is left. Signals of a
//! terminal do not reach the guardian, and it holds no standard stream open.
//!
//! The guardian is a forked copy of the launcher that runs no other program,
//! because such a program would have to be installed somewhere. Therefore it calls
//! nothing that allocates or locks.

use super::error::LaunchError;
use super::process_scan;
use crate::config;
use crate::sys;
use crate::sys::forked;
use std::ffi::CString;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A process that ends all processes with a mark when this process dies. When this
/// is dropped, it ends at once every process that carries the mark, and removes the
/// folder.
#[derive(Debug)]
pub struct Guardian {
    entry: String,
    folder: Option<(PathBuf, CString)>,
    /// `None` after the guardian has been ended.
    process: Option<(u32, OwnedFd)>,
}

impl Guardian {
    /// Starts a guardian. `folder` names a folder that it makes in the directory
    /// for temporary files, `tsumugi-FOLDER-PID-TIME`, and that is removed with the
    /// job.
    ///
    /// # Errors
    ///
    /// [`LaunchError::System`], if the guardian or its folder cannot be made.
    pub fn start(folder: Option<&str>) -> Result<Self, LaunchError> {
        let error = |error: io::Error| LaunchError::System {
            what: "starting the guardian of a job",
            errno: error.raw_os_error().unwrap_or(0),
        };
        let entry = process_scan::entry();
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
        // The first call of its kind: a sandbox that forbids it forbids all launchers.
        let launcher = sys::pidfd(std::process::id()).map_err(|error| LaunchError::System {
            what: "watching processes (pidfd_open)",
            errno: error.raw_os_error().unwrap_or(0),
        })?;
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

    /// A variable of the environment: a process that is started with it carries the
    /// mark.
    pub fn variable(&self) -> (&'static str, &str) {
        (config::JOB, self.mark())
    }

    /// The mark by which the job's processes are found.
    pub fn mark(&self) -> &str {
        self.entry.split_once('=').map_or("", |(_, mark)| mark)
    }

    /// The folder, if one was requested.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_ref().map(|(path, _)| &**path)
    }

    /// Ends the processes that carry the mark, and then the guardian.
    pub(super) fn end(&mut self) {
        let Some((pid, process)) = self.process.take() else { return };
        self.clear();
        // The process number stays the guardian's until `reap`; the descriptor
        // always names the guardian.
        let _ = sys::send_signal(process.as_fd(), libc::SIGKILL);
        forked::reap(pid);
    }

    /// Ends the marked processes and removes the folder. Allocates nothing.
    fn clear(&self) {
        process_scan::kill_marked(&self.entry);
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

/// The body of the forked process. `fds` are the pidfd of the launcher, and the
/// pipe through which it reports that it is ready. It makes system calls alone.
fn guard(guardian: &Guardian, fds: [RawFd; 2]) {
    forked::stand_alone(process_scan::GUARDIAN);
    // SAFETY: this process is a copy, in which no code uses the other descriptors.
    let [launcher, told] = match unsafe { forked::keep_only(fds) } {
        Ok(kept) => kept,
        Err(error) => {
            // SAFETY: `keep_only` closes no descriptor before it has kept both.
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
    // It waits for the end of the launcher's process, not of a pipe: a process that
    // the launcher has forked and that runs no other program would hold the pipe
    // open, too.
    forked::wait_for(launcher.as_fd(), None);
    for pause in LOOKS {
        forked::pause(pause);
        guardian.clear();
    }
}

/// The pauses before each look: a process that the launcher had just forked when it
/// died gets its environment a moment later.
const LOOKS: [Duration; 4] = [
    Duration::from_millis(0),
    Duration::from_millis(20),
    Duration::from_millis(100),
    Duration::from_millis(300),
];

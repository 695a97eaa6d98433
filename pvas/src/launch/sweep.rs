//! What ranks have started and left behind.
//!
//! Every process of a job has the job's mark in its environment, unless it
//! took care to lose it. The mark of a job that a process of another job has
//! started is the other's, a dot, and its own: who ends the outer one ends the
//! inner one, too.
//!
//! Nothing here allocates or takes a lock: the [guardian](super::guardian) of a
//! job calls it in a forked process.

use crate::config;
use crate::sys;
use crate::sys::forked::{self, Folder};
use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A mark that no other job on this machine has: `TSUMUGI_JOB=`, the mark of
/// the job that this process is of, if there is one, and a new one.
pub fn entry() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let own = format!("{}-{}", std::process::id(), since.as_nanos());
    match std::env::var(config::JOB) {
        Ok(outer) if !outer.is_empty() => format!("{}={outer}.{own}", config::JOB),
        _ => format!("{}={own}", config::JOB),
    }
}

/// Kills every process that has `entry` in its environment, and waits until it
/// is gone. The guardians of inner jobs are given time to do their work first.
pub fn kill_marked(entry: &str) {
    for round in 0..ROUNDS_MAX {
        let found = find(entry.as_bytes(), round < ROUNDS_OF_GUARDIANS);
        if found.count == 0 && !found.has_starting {
            return;
        }
        if found.count == 0 {
            forked::pause(STARTS_WITHIN);
        }
        for process in found.some.iter().flatten() {
            forked::wait_for(process.as_fd(), Some(GONE_WITHIN));
        }
    }
}

/// What one look at all processes has found.
struct Found {
    /// Processes with the mark; they have been killed.
    count: usize,
    /// The first of them.
    some: [Option<OwnedFd>; AWAITED_MAX],
    /// One is about to run another program: it has lost the environment of the
    /// old one, and has none of the new one yet. What started it has been told
    /// that it runs.
    has_starting: bool,
}

fn find(entry: &[u8], spares_guardians: bool) -> Found {
    let mut found = Found { count: 0, some: [const { None }; AWAITED_MAX], has_starting: false };
    let Ok(processes) = Folder::open(c"/proc") else { return found };
    let own = std::process::id();
    processes.for_each(|name| {
        let Some(pid) = name.to_str().ok().and_then(|name| name.parse().ok()) else { return };
        if pid == own {
            return;
        }
        // The descriptor first: if the number passes to another process
        // meanwhile, that is found out by its environment.
        let Ok(process) = sys::pidfd(pid) else { return };
        let Ok(folder) = processes.folder(name) else { return };
        let Ok(environment) = folder.file(c"environ") else { return };
        match look(environment.as_fd(), entry) {
            Environment::Other => {}
            // Threads of the kernel, and what has ended, have no program.
            Environment::Empty => found.has_starting |= folder.has_link(c"exe"),
            Environment::Marked => {
                if !(spares_guardians && is_guardian(&folder)) {
                    let _ = sys::send_signal(process.as_fd(), libc::SIGKILL);
                }
                if let Some(place) = found.some.get_mut(found.count) {
                    *place = Some(process);
                }
                found.count += 1;
            }
        }
    });
    found
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Environment {
    Empty,
    Marked,
    Other,
}

/// Looks for the entry, or one that goes on with a dot, in an environment.
fn look(environment: BorrowedFd<'_>, entry: &[u8]) -> Environment {
    let mut bytes = [0; 1024];
    // How much of the entry has come; none after another byte.
    let (mut seen, mut is_empty) = (Some(0), true);
    while let Ok(len @ 1..) = forked::read(environment, &mut bytes) {
        is_empty = false;
        for &byte in bytes.iter().take(len) {
            seen = match (seen, byte) {
                (Some(at), 0 | b'.') if at == entry.len() => return Environment::Marked,
                (_, 0) => Some(0),
                (Some(at), byte) if entry.get(at) == Some(&byte) => Some(at + 1),
                _ => None,
            };
        }
    }
    // The last one may have no end.
    match seen {
        Some(at) if at == entry.len() => Environment::Marked,
        _ if is_empty => Environment::Empty,
        _ => Environment::Other,
    }
}

fn is_guardian(process: &Folder) -> bool {
    let mut name = [0; 16];
    let Ok(file) = process.file(c"comm") else { return false };
    let len = forked::read(file.as_fd(), &mut name).unwrap_or(0);
    name.get(..len).and_then(|name| name.strip_suffix(b"\n")) == Some(GUARDIAN.to_bytes())
}

/// What the system calls a guardian; at most 15 bytes. Not what ends when all
/// that is called `tsumugi` is killed.
pub const GUARDIAN: &CStr = c"job-guardian";

/// What forks faster than this is not caught.
const ROUNDS_MAX: usize = 8;
/// In so many of them guardians go on.
const ROUNDS_OF_GUARDIANS: usize = 6;
/// Processes that are waited for in one round.
const AWAITED_MAX: usize = 64;
const GONE_WITHIN: Duration = Duration::from_millis(200);
/// What has no environment for longer than some of these has none.
const STARTS_WITHIN: Duration = Duration::from_millis(2);

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_mark_is_found_whole_or_before_a_dot() {
        let look = |text: &str| {
            let (reader, mut writer) = std::io::pipe().unwrap();
            writer.write_all(text.as_bytes()).unwrap();
            drop(writer);
            super::look(reader.as_fd(), b"TSUMUGI_JOB=12-34")
        };
        let long = format!("A={}\0TSUMUGI_JOB=12-34\0", "x".repeat(5000));
        for marked in [
            "TSUMUGI_JOB=12-34\0",
            "A=b\0TSUMUGI_JOB=12-34\0C=d\0",
            "TSUMUGI_JOB=12-34.56-78\0",
            "TSUMUGI_JOB=12-34",
            &long,
        ] {
            assert_eq!(look(marked), Environment::Marked, "{marked}");
        }
        for other in [
            "A=b\0",
            "TSUMUGI_JOB=12-345\0",
            "TSUMUGI_JOB=12-3\0",
            "XTSUMUGI_JOB=12-34\0",
            "TSUMUGI_JOB=1.12-34\0",
        ] {
            assert_eq!(look(other), Environment::Other, "{other}");
        }
        assert_eq!(look(""), Environment::Empty);
    }
}

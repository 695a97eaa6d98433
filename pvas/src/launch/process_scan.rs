//! Finds and kills the processes that ranks have started and left behind.
//!
//! Every process of a job has the job's mark in its environment, unless the process
//! removed it. If a process of one job starts another job, the mark of the inner
//! job is the mark of the outer one, a dot, and a new part: so the end of the outer
//! job ends the inner one, too.
//!
//! Nothing here allocates or takes a lock: the [guardian](super::guardian) of a job
//! calls it in a forked process. A look takes five descriptors; if there are none,
//! it tries again until there are, for three seconds.

use crate::config;
use crate::sys;
use crate::sys::forked::{self, Folder};
use std::ffi::CStr;
use std::io::{Error, Result};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A mark that no other job on this machine has: `TSUMUGI_JOB=`, the mark of this
/// process's own job, if it is in one, and a new part.
pub fn entry() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let own = format!("{}-{}", std::process::id(), since.as_nanos());
    match std::env::var(config::JOB) {
        Ok(outer) if !outer.is_empty() => format!("{}={outer}.{own}", config::JOB),
        _ => format!("{}={own}", config::JOB),
    }
}

/// Kills every process that has `entry` in its environment, and waits for their
/// ends. The guardians of inner jobs get time to do their work first.
pub fn kill_marked(entry: &str) {
    let (mut rounds, mut shortages) = (0, 0);
    while rounds < ROUNDS_MAX {
        let found = find(entry.as_bytes(), rounds < ROUNDS_OF_GUARDIANS);
        for process in found.some.iter().flatten() {
            forked::wait_for(process.as_fd(), Some(GONE_WITHIN));
        }
        if found.has_passed_by && shortages < SHORTAGES_MAX {
            shortages += 1;
            forked::pause(ROOM_WITHIN);
            continue;
        }
        rounds += 1;
        match found.count {
            0 if !found.has_starting => return,
            0 => forked::pause(STARTS_WITHIN),
            _ => {}
        }
    }
}

/// The result of one look at all processes.
struct ScanResult {
    /// The number of processes with the mark; they have been killed.
    count: usize,
    /// The first of these processes.
    some: [Option<OwnedFd>; AWAITED_MAX],
    /// A process is about to run another program: it has lost the environment of
    /// the old program, and does not have that of the new one yet. Its parent may
    /// already have the result that it runs.
    has_starting: bool,
    /// There were not enough descriptors to look at all processes.
    has_passed_by: bool,
}

/// What a look found out about one process.
struct ScannedProcess {
    process: OwnedFd,
    environment: Environment,
    /// Whether a process without an environment has a program: threads of the
    /// kernel and processes that have ended have none.
    has_program: bool,
    is_guardian: bool,
}

fn find(entry: &[u8], spares_guardians: bool) -> ScanResult {
    let (some, own) = ([const { None }; AWAITED_MAX], std::process::id());
    let mut found = ScanResult { count: 0, some, has_starting: false, has_passed_by: false };
    let processes = match Folder::open(c"/proc") {
        Ok(processes) => processes,
        Err(error) => {
            found.has_passed_by = is_shortage(&error);
            return found;
        }
    };
    processes.for_each(|name| {
        let Some(pid) = name.to_str().ok().and_then(|name| name.parse().ok()) else { return };
        if pid == own {
            return;
        }
        let mut seen = see(&processes, name, pid, entry);
        if seen.as_ref().is_err_and(is_shortage) {
            // The found processes have been killed already; it is not necessary to
            // wait for them, so their descriptors can be closed.
            found.some.fill_with(|| None);
            seen = see(&processes, name, pid, entry);
        }
        let seen = match seen {
            Ok(seen) => seen,
            Err(error) => return found.has_passed_by |= is_shortage(&error),
        };
        match seen.environment {
            Environment::Other => {}
            Environment::Empty => found.has_starting |= seen.has_program,
            Environment::Marked => {
                if !(spares_guardians && seen.is_guardian) {
                    let _ = sys::send_signal(seen.process.as_fd(), libc::SIGKILL);
                }
                if let Some(place) = found.some.get_mut(found.count) {
                    *place = Some(seen.process);
                }
                found.count += 1;
            }
        }
    });
    found
}

fn see(processes: &Folder, name: &CStr, pid: u32, entry: &[u8]) -> Result<ScannedProcess> {
    // The descriptor first: if the number passes to another process meanwhile, the
    // environment of that process shows it.
    let process = sys::pidfd(pid)?;
    let folder = processes.folder(name)?;
    let environment = look(folder.file(c"environ")?.as_fd(), entry);
    let is_marked = environment == Environment::Marked;
    let is_guardian = is_marked && is_guardian(&folder)?;
    let has_program = environment == Environment::Empty && folder.has_link(c"exe");
    Ok(ScannedProcess { process, environment, has_program, is_guardian })
}

/// Whether no descriptor is left, in this process or in the system, or no memory
/// for one.
fn is_shortage(error: &Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Environment {
    Empty,
    Marked,
    Other,
}

/// Looks in an environment for the entry, or for one that goes on with a dot.
fn look(environment: BorrowedFd<'_>, entry: &[u8]) -> Environment {
    let mut bytes = [0; 1024];
    // How many bytes of the entry have matched; `None` after a different byte.
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
    // The last variable may have no terminating zero.
    match seen {
        Some(at) if at == entry.len() => Environment::Marked,
        _ if is_empty => Environment::Empty,
        _ => Environment::Other,
    }
}

fn is_guardian(process: &Folder) -> Result<bool> {
    let mut name = [0; 16];
    let file = process.file(c"comm")?;
    let len = forked::read(file.as_fd(), &mut name).unwrap_or(0);
    Ok(name.get(..len).and_then(|name| name.strip_suffix(b"\n")) == Some(GUARDIAN.to_bytes()))
}

/// The process name of a guardian; at most 15 bytes. It does not contain `tsumugi`,
/// so that a `pkill tsumugi` does not end it.
pub const GUARDIAN: &CStr = c"job-guardian";

/// The largest number of rounds; processes that fork faster than this are not
/// caught.
const ROUNDS_MAX: usize = 8;
/// In this many rounds the guardians of inner jobs are spared.
const ROUNDS_OF_GUARDIANS: usize = 6;
/// The largest number of processes that are waited for in one round.
const AWAITED_MAX: usize = 64;
const GONE_WITHIN: Duration = Duration::from_millis(200);
/// The pause before a second look at a process without an environment; after some
/// of these pauses it counts as having none.
const STARTS_WITHIN: Duration = Duration::from_millis(2);
/// How often the scan waits for descriptors.
const SHORTAGES_MAX: usize = 300;
/// The pause in which processes that end return their descriptors.
const ROOM_WITHIN: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;
    use std::process::{Child, Command};

    fn marked(count: usize, name: &str) -> (String, Vec<Child>) {
        let mark = format!("{}-{name}", std::process::id());
        let mut sleep = Command::new("sleep");
        sleep.arg("1000").env(config::JOB, &mark);
        let children = (0..count).map(|_| sleep.spawn().unwrap()).collect();
        (format!("{}={mark}", config::JOB), children)
    }

    fn are_killed(children: Vec<Child>) {
        for mut child in children {
            let has_ended = child.try_wait().unwrap().is_some();
            child.kill().unwrap();
            child.wait().unwrap();
            assert!(has_ended, "process {} was not killed", child.id());
        }
    }

    /// Limits the number of descriptors of process `pid`; 0 is this process.
    fn limit(pid: u32, descriptors: u64) {
        let limit = libc::rlimit { rlim_cur: descriptors, rlim_max: 1024 };
        let pid = pid.cast_signed();
        // SAFETY: the call changes a limit of this process, or of its child.
        unsafe { libc::prlimit(pid, libc::RLIMIT_NOFILE, &limit, std::ptr::null_mut()) };
    }

    /// Kills the marked processes from a process with two descriptors and this many more.
    fn kill_with(descriptors: u64, entry: &str) -> u32 {
        let (mut ready, told) = std::io::pipe().unwrap();
        let fds = [told.as_raw_fd(), told.as_raw_fd()];
        let work = || {
            // SAFETY: the process is a copy, and uses no other descriptor.
            let kept = unsafe { forked::keep_only(fds) };
            limit(0, 2 + descriptors);
            if let Ok([told, _]) = &kept {
                forked::write_number(told.as_fd(), 0);
                kill_marked(entry);
            }
        };
        // SAFETY: system calls alone.
        let pid = unsafe { forked::fork(work) }.unwrap();
        drop(told);
        ready.read_exact(&mut [0; 4]).unwrap();
        pid
    }

    #[test]
    fn few_descriptors_are_enough() {
        let (entry, children) = marked(20, "few");
        forked::reap(kill_with(5, &entry));
        are_killed(children);
    }

    #[test]
    fn a_scan_waits_for_free_descriptors() {
        let (entry, children) = marked(1, "none");
        let pid = kill_with(0, &entry);
        forked::pause(5 * ROOM_WITHIN);
        limit(pid, 64);
        forked::reap(pid);
        are_killed(children);
    }

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

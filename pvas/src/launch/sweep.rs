//! What ranks have started and left behind.
//!
//! Every process of a job has the job's mark in its environment, unless it
//! took care to lose it.

use crate::config;
use crate::sys;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A mark that no other job on this machine has.
pub fn mark() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{}-{}", std::process::id(), since.as_nanos())
}

/// Kills every process that carries the mark, and waits until it is gone.
pub fn kill_marked(mark: &str) {
    let entry = format!("{}={mark}", config::JOB).into_bytes();
    for _ in 0..ROUNDS_MAX {
        let Found { marked: left, has_starting } = find(&entry);
        if left.is_empty() && !has_starting {
            return;
        }
        if left.is_empty() {
            thread::sleep(STARTS_WITHIN);
        }
        for process in &left {
            let _ = sys::send_signal(process.as_fd(), libc::SIGKILL);
        }
        for process in &left {
            let _ = sys::poll(&[process.as_fd()], GONE_WITHIN);
        }
    }
}

/// What one look at all processes has found.
struct Found {
    marked: Vec<OwnedFd>,
    /// One is about to run another program: it has lost the environment of the
    /// old one, and has none of the new one yet. Whoever started it has been
    /// told that it runs.
    has_starting: bool,
}

fn find(entry: &[u8]) -> Found {
    let mut found = Found { marked: Vec::new(), has_starting: false };
    let Ok(processes) = fs::read_dir("/proc") else { return found };
    let own = std::process::id();
    let numbers = processes.filter_map(|process| process.ok()?.file_name().to_str()?.parse().ok());
    for pid in numbers.filter(|pid: &u32| *pid != own) {
        // The descriptor first: if the number passes to another process
        // meanwhile, that is found out by its environment.
        let Ok(process) = sys::pidfd(pid) else { continue };
        let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else { continue };
        if environment.split(|byte| *byte == 0).any(|found| found == entry) {
            found.marked.push(process);
        } else if environment.is_empty() {
            // Threads of the kernel, and what has ended, have no program.
            found.has_starting |= fs::read_link(format!("/proc/{pid}/exe")).is_ok();
        }
    }
    found
}

/// What forks faster than this is not caught.
const ROUNDS_MAX: usize = 8;
const GONE_WITHIN: Duration = Duration::from_millis(200);
/// What has no environment for longer than some of these has none.
const STARTS_WITHIN: Duration = Duration::from_millis(2);

//! What ranks have started and left behind.
//!
//! Every process of a job has the job's mark in its environment, unless it
//! took care to lose it.

use crate::config;
use crate::sys;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
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
        let left = marked(&entry);
        if left.is_empty() {
            return;
        }
        for process in &left {
            let _ = sys::send_signal(process.as_fd(), libc::SIGKILL);
        }
        for process in &left {
            let _ = sys::poll(&[process.as_fd()], GONE_WITHIN);
        }
    }
}

fn marked(entry: &[u8]) -> Vec<OwnedFd> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let own = std::process::id();
    processes
        .filter_map(|process| process.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid != own)
        .filter_map(|pid: u32| {
            // The descriptor first: if the number passes to another process
            // meanwhile, that is found out by its environment.
            let process = sys::pidfd(pid).ok()?;
            let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
            environment.split(|byte| *byte == 0).any(|found| found == entry).then_some(process)
        })
        .collect()
}

/// What forks faster than this is not caught.
const ROUNDS_MAX: usize = 8;
const GONE_WITHIN: Duration = Duration::from_millis(200);

//! Fencing: ends a rank of this node that was held off its processor for too long.
//!
//! Neighbours write to each other's memory by plain stores, and nothing can refuse
//! the stores of such a rank when it runs again. Therefore its process is ended.
//! The launcher or the failure detector notices this death as any other.

use crate::attach::Member;
use crate::partition::{ControlBlock, RankState};
use crate::sys;
use std::os::fd::AsFd;
use tsumugi_core::mem::Rank;

impl Member {
    /// Ends the process of a neighbour, whether it is stopped or not. Returns false
    /// and does nothing if the process is this one, has ended, or has another PID
    /// namespace, and also if a debugger holds it or it writes a core dump.
    ///
    /// # Panics
    ///
    /// If there is no such rank on this node.
    pub fn end_neighbour(&self, rank: Rank) -> bool {
        let control = self.control_of(rank);
        let is_here = control.pid_space() == self.control().pid_space();
        if !is_here || control.state() != RankState::Running || control.pid() == std::process::id()
        {
            return false;
        }
        end(control)
    }
}

fn end(control: &ControlBlock) -> bool {
    let pid = control.pid();
    // The descriptor stays with that process, even if its number is reused.
    let Ok(process) = sys::pidfd(pid) else { return false };
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    if is_looked_into(&status) || control.state() != RankState::Running {
        return false;
    }
    sys::send_signal(process.as_fd(), libc::SIGKILL).is_ok()
}

/// Whether a process with that `/proc/PID/status` stands still because it is
/// examined: by a debugger, or for a core dump.
fn is_looked_into(status: &str) -> bool {
    let is = |name: &str, value: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.is_some_and(|line| line.trim_start().starts_with(value))
    };
    is("State:", "t") || is("CoreDumping:", "1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SpaceConfig;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};
    use tsumugi_core::sync::Ordering;

    #[test]
    fn a_stopped_neighbour_is_ended() {
        let members = Member::threads(2, &SpaceConfig::small()).unwrap();
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        assert!(!members[0].end_neighbour(Rank(1)), "the rank is this process");
        members[1].control().pid_word().store(child.id(), Ordering::SeqCst);
        let process = sys::pidfd(child.id()).unwrap();
        sys::send_signal(process.as_fd(), libc::SIGSTOP).unwrap();
        assert!(members[0].end_neighbour(Rank(1)));
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
        assert!(!members[0].end_neighbour(Rank(1)), "the rank has ended");
        members[1].finish();
        assert!(!members[0].end_neighbour(Rank(1)), "the rank was ended already");
    }

    #[test]
    fn a_process_under_a_debugger_or_in_a_core_dump_is_not_ended() {
        for (status, is_so) in [
            ("Name:\tcat\nState:\tT (stopped)\nCoreDumping:\t0\n", false),
            ("Name:\tcat\nState:\tt (tracing stop)\nCoreDumping:\t0\n", true),
            ("Name:\tcat\nState:\tD (disk sleep)\nCoreDumping:\t1\n", true),
            ("", false),
        ] {
            assert_eq!(is_looked_into(status), is_so, "{status}");
        }
    }
}

//! Noticing deaths where no launcher of ours watches.
//!
//! Each rank watches the next one of its node that is still there, in a ring:
//!
//! ```text
//!  0 ──► 1 ──► 2 ──► 3 ──► 0        2 dies:   0 ──► 1 ─────────► 3 ──► 0
//!                                             1 has declared it lost
//! ```
//!
//! so that each is watched by one other, whoever dies and however many. A
//! thread sleeps on the process's descriptor: it costs nothing while all live.
//! A process of another PID namespace cannot be watched and is passed over.

use crate::attach::Member;
use crate::partition::{State, declare_gone, declare_lost};
use crate::sys;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::AsFd;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tsumugi_core::mem::Rank;

/// The thread of one rank; it ends when this is dropped.
#[derive(Debug)]
pub struct Detector {
    /// Closed, it wakes the thread.
    stop: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

/// What became of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watched {
    /// The process has ended.
    Ended,
    /// It is no business of ours, or not any more.
    Passed,
    /// The detector is to end.
    Stopped,
}

impl Detector {
    /// Watches for `member`'s node from here on. One that is found dead is
    /// declared lost to all, and named on standard error.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn start(member: &Member) -> io::Result<Self> {
        let (stopped, stop) = io::pipe()?;
        let member = member.clone();
        let thread = thread::Builder::new().name("tsumugi-detector".into());
        let thread = thread.spawn(move || go_round(&member, &stopped))?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Detector {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn go_round(member: &Member, stopped: &PipeReader) {
    let (own, size) = (member.rank().0, member.size());
    for step in 1..size {
        let peer = Rank((own + step) % size);
        match watch(member, peer, stopped) {
            Watched::Stopped => return,
            Watched::Ended => bury(member, peer),
            Watched::Passed => {}
        }
    }
}

fn watch(member: &Member, peer: Rank, stopped: &PipeReader) -> Watched {
    let control = member.control_of(peer);
    let deadline = Instant::now() + ATTACH_WITHIN;
    while control.pid() == 0 {
        if control.state() == State::Failed {
            return Watched::Passed;
        }
        if Instant::now() >= deadline {
            return Watched::Ended;
        }
        match sys::poll(&[stopped.as_fd()], LOOK_AGAIN) {
            Ok(ready) if !ready[0] => {}
            _ => return Watched::Stopped,
        }
    }
    if control.pid_space() != member.control().pid_space() {
        return Watched::Passed;
    }
    let process = match sys::pidfd(control.pid()) {
        Ok(process) => process,
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Watched::Ended,
        Err(_) => return Watched::Passed,
    };
    loop {
        match sys::poll(&[process.as_fd(), stopped.as_fd()], Duration::MAX) {
            Ok(ready) if ready[1] => return Watched::Stopped,
            Ok(ready) if ready[0] => return Watched::Ended,
            Ok(_) => {}
            Err(_) => return Watched::Stopped,
        }
    }
}

/// A process is gone: whether it may be, and what that means.
fn bury(member: &Member, dead: Rank) {
    let controls = || member.space().controls();
    let control = member.control_of(dead);
    match control.state() {
        State::Finished => declare_gone(controls()),
        State::Failed => {}
        State::Starting | State::Running => {
            // Whoever ends because another one did is not named.
            let is_first = controls().all(|control| control.state() != State::Failed);
            declare_lost(dead, controls());
            if is_first {
                let host = std::fs::read_to_string("/proc/sys/kernel/hostname");
                let host = host.unwrap_or_default();
                let (pid, host) = (control.pid(), host.trim());
                // One write, so that it does not mix with what ranks print.
                let line =
                    format!("tsumugi: {dead} (pid {pid} on {host}) ended before it was done\n");
                eprint!("{line}");
            }
        }
    }
}

/// A rank that was handed its memory has so long to attach to it.
const ATTACH_WITHIN: Duration = Duration::from_secs(60);
/// While a rank has not attached.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use std::process::{Child, Command, Stdio};

    fn members(size: u32) -> Vec<Member> {
        let config = Config {
            exposed_bytes: 16 << 20,
            heap_bytes: 64 << 20,
            stack_bytes: 16 << 20,
            ..Config::default()
        };
        Member::threads(size, &config).unwrap()
    }

    /// Ranks of which all but the first are processes that only wait.
    fn with_processes(size: u32) -> (Vec<Member>, Vec<Child>) {
        let members = members(size);
        let children: Vec<Child> =
            (1..size).map(|_| Command::new("cat").stdin(Stdio::piped()).spawn().unwrap()).collect();
        for (member, child) in members[1..].iter().zip(&children) {
            member.control().pid_word().store(child.id(), tsumugi_core::sync::Ordering::SeqCst);
        }
        (members, children)
    }

    fn until_lost(member: &Member) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while member.control().is_alive() {
            assert!(Instant::now() < deadline, "{} is not declared lost", member.rank());
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn deaths_are_declared_one_after_the_other() {
        let (members, mut children) = with_processes(4);
        let _detector = Detector::start(&members[0]).unwrap();
        // The second neighbour first: it is found when the first one is gone.
        for dead in [1, 0] {
            children[dead].kill().unwrap();
            children[dead].wait().unwrap();
        }
        until_lost(&members[1]);
        until_lost(&members[2]);
        assert!(members[3].control().is_alive() && members[0].control().is_alive());
        assert_eq!(members[3].control().state(), State::Running);
        children[2].kill().unwrap();
        until_lost(&members[3]);
        children[2].wait().unwrap();
    }

    #[test]
    fn whoever_has_finished_may_go() {
        let (members, mut children) = with_processes(3);
        members[1].finish();
        let _detector = Detector::start(&members[0]).unwrap();
        children[0].kill().unwrap();
        children[0].wait().unwrap();
        children[1].kill().unwrap();
        children[1].wait().unwrap();
        until_lost(&members[2]);
        assert!(members[1].control().is_alive());
        assert_eq!(members[1].control().state(), State::Finished);
    }

    #[test]
    fn processes_of_other_namespaces_are_passed_over_and_it_ends_when_told() {
        let members = members(2);
        members[1].control().set_pid_space(1);
        members[1].control().pid_word().store(u32::MAX >> 2, tsumugi_core::sync::Ordering::SeqCst);
        drop(Detector::start(&members[0]).unwrap());
        let (alive, mut children) = with_processes(2);
        drop(Detector::start(&alive[0]).unwrap());
        assert!(members[1].control().is_alive() && alive[1].control().is_alive());
        children[0].kill().unwrap();
        children[0].wait().unwrap();
    }
}

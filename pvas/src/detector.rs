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
//! After a death whoever is left gets the time that our launcher gives it
//! (`TSUMUGI_GRACE_MS`), then SIGTERM, then SIGKILL; where a site's launcher ends the job first, so be it.
//! A process of another PID namespace cannot be watched and is passed over.
//!
//! Where our launcher has started ranks on several nodes, it says through a pipe
//! who has died, and each rank's thread hears of it; through another one it is told
//! who is declared lost here.

use crate::attach::Member;
use crate::config;
use crate::partition::{State, declare_gone};
use crate::sys;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::{AsFd, BorrowedFd};
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

/// What happens to the ranks that are left after a death.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// They hear of it, and whoever is still there after this time is ended.
    End {
        /// Until SIGTERM; SIGKILL comes 700 ms later.
        grace: Duration,
    },
    /// They hear of it; somebody else ends them.
    Leave,
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
    /// declared lost to all, and named on standard error; and so is, unnamed, a
    /// rank of any node of which `launcher` says that it has died: it has named it.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn start(member: &Member, rest: Rest, launcher: Option<Launcher>) -> io::Result<Self> {
        let (stopped, stop) = io::pipe()?;
        let member = member.clone();
        let deaths = launcher.map(|Launcher { deaths, losses }| {
            member.culprit().expect();
            losses.into_iter().for_each(|losses| member.culprit().tell_of(losses));
            deaths
        });
        let thread = thread::Builder::new().name("tsumugi-detector".into());
        let thread = thread.spawn(move || {
            Round { member: &member, stopped: &stopped, rest, deaths, sentence: None }.go();
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

/// The launcher of ranks on several nodes.
#[derive(Debug)]
pub struct Launcher {
    /// Where it says who has died.
    deaths: PipeReader,
    /// Where it is told who is declared lost.
    losses: Option<PipeWriter>,
}

impl Launcher {
    /// Ours, if it has started this process as a rank of several nodes. Once: its
    /// descriptors are taken.
    pub fn of_this_process() -> Option<Self> {
        let fd = |name| std::env::var(name).ok()?.parse().ok();
        let deaths = sys::inherited_reader(fd(config::DEATHS)?).ok()?;
        let losses = fd(config::LOSSES).and_then(|fd| sys::inherited_writer(fd).ok());
        Some(Self { deaths, losses })
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

/// One detector's round.
struct Round<'a> {
    member: &'a Member,
    stopped: &'a PipeReader,
    rest: Rest,
    /// Where the launcher says who has died.
    deaths: Option<PipeReader>,
    sentence: Option<Sentence>,
}

/// What is still to be done to the ranks that are left.
#[derive(Clone, Copy)]
struct Sentence {
    terminate_at: Option<Instant>,
    kill_at: Option<Instant>,
}

impl Round<'_> {
    fn go(mut self) {
        let (own, size) = (self.member.local().0, self.member.space().size());
        for step in 1..size {
            let peer = Rank((own + step) % size);
            match self.watch(peer) {
                Watched::Stopped => return,
                Watched::Ended => self.bury(peer),
                Watched::Passed => {}
            }
        }
        // Nobody is left but this rank, which may be what is to end.
        while self.sentence.is_some() || self.deaths.is_some() {
            if self.wait(&[], Duration::MAX) == Watched::Stopped {
                return;
            }
        }
    }

    fn watch(&mut self, peer: Rank) -> Watched {
        let control = self.member.space().control(peer);
        let deadline = Instant::now() + ATTACH_WITHIN;
        while control.pid() == 0 {
            if control.state() == State::Failed {
                return Watched::Passed;
            }
            if Instant::now() >= deadline {
                return Watched::Ended;
            }
            if self.wait(&[], LOOK_AGAIN) == Watched::Stopped {
                return Watched::Stopped;
            }
        }
        if control.pid_space() != self.member.control().pid_space() {
            return Watched::Passed;
        }
        let process = match sys::pidfd(control.pid()) {
            Ok(process) => process,
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Watched::Ended,
            Err(_) => return Watched::Passed,
        };
        loop {
            match self.wait(&[process.as_fd()], Duration::MAX) {
                Watched::Passed => {}
                other => return other,
            }
        }
    }

    /// Sleeps until a process of `fds` has ended, and carries out what comes
    /// due meanwhile.
    fn wait(&mut self, fds: &[BorrowedFd<'_>], limit: Duration) -> Watched {
        let due = self.sentence.and_then(|sentence| sentence.terminate_at.or(sentence.kill_at));
        let left =
            due.map_or(limit, |due| limit.min(due.saturating_duration_since(Instant::now())));
        let mut all: Vec<BorrowedFd<'_>> = [&[self.stopped.as_fd()], fds].concat();
        all.extend(self.deaths.as_ref().map(AsFd::as_fd));
        let Ok(ready) = sys::poll(&all, left) else { return Watched::Stopped };
        let (first, told) = ready.split_at(1 + fds.len());
        if told.first() == Some(&true) {
            self.hear();
        }
        self.execute();
        match first {
            [true, ..] => Watched::Stopped,
            [_, true, ..] => Watched::Ended,
            _ => Watched::Passed,
        }
    }

    /// The launcher says who has died: each word is a rank of the job.
    fn hear(&mut self) {
        let Some(deaths) = &mut self.deaths else { return };
        let mut word = [0; size_of::<u32>()];
        let rank = match deaths.read(&mut word) {
            Ok(count) if count == word.len() => Rank(u32::from_le_bytes(word)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return,
            // The launcher is gone, or this is none of its pipes.
            _ => return self.deaths = None,
        };
        if rank.0 < self.member.size() && self.member.culprit().tell(rank) {
            self.member.declare_lost(rank);
        }
    }

    /// A process is gone: whether it may be, and what that means.
    fn bury(&mut self, dead: Rank) {
        let controls = || self.member.space().controls();
        let control = self.member.space().control(dead);
        match control.state() {
            State::Finished => return declare_gone(controls()),
            State::Failed => {}
            State::Starting | State::Running => {
                // Whoever ends because another one did is not named.
                let is_first = controls().all(|control| control.state() != State::Failed)
                    && self.member.gone_count() == 0;
                let called = self.member.neighbours().nth(dead.0 as usize);
                let called = called.expect("a rank of this node");
                self.member.declare_lost(called);
                if is_first {
                    say(called, control.pid());
                }
            }
        }
        if let (None, Rest::End { grace }) = (self.sentence, self.rest) {
            let terminate_at = Instant::now() + grace;
            let kill_at = Some(terminate_at + KILL_AFTER);
            self.sentence = Some(Sentence { terminate_at: Some(terminate_at), kill_at });
        }
    }

    /// Carries out what has come due.
    fn execute(&mut self) {
        let now = Instant::now();
        let Some(sentence) = &mut self.sentence else { return };
        let signal = if sentence.terminate_at.is_some_and(|at| at <= now) {
            sentence.terminate_at = None;
            libc::SIGTERM
        } else if sentence.kill_at.is_some_and(|at| at <= now) {
            self.sentence = None;
            libc::SIGKILL
        } else {
            return;
        };
        let (own, size) = (self.member.local().0, self.member.space().size());
        // This one last.
        for rank in (1..=size).map(|step| Rank((own + step) % size)) {
            let control = self.member.space().control(rank);
            let is_here = control.pid_space() == self.member.control().pid_space();
            if control.pid() != 0 && control.state() == State::Running && is_here {
                // One that is gone by now needs none.
                let _ = sys::pidfd(control.pid())
                    .and_then(|process| sys::send_signal(process.as_fd(), signal));
            }
        }
    }
}

fn say(dead: Rank, pid: u32) {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    // One write, so that it does not mix with what ranks print.
    let line = format!("tsumugi: {dead} (pid {pid} on {}) ended before it was done\n", host.trim());
    eprint!("{line}");
}

/// A rank that was handed its memory has so long to attach to it.
const ATTACH_WITHIN: Duration = Duration::from_secs(60);
/// From SIGTERM on, as of the launcher.
const KILL_AFTER: Duration = Duration::from_millis(700);
/// While a rank has not attached.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use std::process::{Child, Command, Stdio};
    use tsumugi_core::sync::Ordering;

    fn members(size: u32) -> Vec<Member> {
        let config = Config {
            exposed_bytes: 16 << 20,
            heap_bytes: 64 << 20,
            stack_bytes: 16 << 20,
            ..Config::default()
        };
        Member::threads(size, &config).unwrap()
    }

    /// Ranks that are processes which only wait.
    fn with_processes(size: u32) -> (Vec<Member>, Vec<Child>) {
        let members = members(size);
        let cat = || Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let children: Vec<Child> = members.iter().map(|_| cat()).collect();
        for (member, child) in members.iter().zip(&children) {
            member.control().pid_word().store(child.id(), Ordering::SeqCst);
        }
        (members, children)
    }

    const AT_ONCE: Rest = Rest::End { grace: Duration::ZERO };

    fn kill(child: &mut Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    fn until_lost(member: &Member) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while member.control().is_alive() {
            assert!(Instant::now() < deadline, "{} is not declared lost", member.rank());
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn deaths_are_declared_and_the_others_are_ended() {
        let (members, mut children) = with_processes(4);
        let _detector = Detector::start(&members[0], AT_ONCE, None).unwrap();
        // The second neighbour first: it is found when the first one is gone.
        kill(&mut children[2]);
        kill(&mut children[1]);
        until_lost(&members[1]);
        until_lost(&members[2]);
        // SIGTERM, also to the one that has noticed.
        for child in [3, 0] {
            // `wait` would close its input, and it would end well.
            let _input = children[child].stdin.take();
            assert!(!children[child].wait().unwrap().success());
        }
        until_lost(&members[3]);
        assert!(members[0].control().is_alive(), "nobody watches that one here");
    }

    #[test]
    fn where_somebody_else_does_it_nobody_is_ended() {
        let (members, mut children) = with_processes(3);
        let _detector = Detector::start(&members[0], Rest::Leave, None).unwrap();
        kill(&mut children[1]);
        until_lost(&members[1]);
        // Of a promise that nothing happens, no more can be seen.
        thread::sleep(2 * LOOK_AGAIN);
        assert!(children[2].try_wait().unwrap().is_none());
        kill(&mut children[2]);
        until_lost(&members[2]);
        kill(&mut children[0]);
    }

    #[test]
    fn whoever_has_finished_may_go() {
        let (members, mut children) = with_processes(3);
        members[1].finish();
        let _detector = Detector::start(&members[0], AT_ONCE, None).unwrap();
        kill(&mut children[1]);
        kill(&mut children[2]);
        until_lost(&members[2]);
        assert!(members[1].control().is_alive());
        assert_eq!(members[1].control().state(), State::Finished);
        kill(&mut children[0]);
    }

    #[test]
    fn processes_of_other_namespaces_are_passed_over_and_it_ends_when_told() {
        let members = members(2);
        members[1].control().set_pid_space(1);
        members[1].control().pid_word().store(u32::MAX >> 2, Ordering::SeqCst);
        drop(Detector::start(&members[0], AT_ONCE, None).unwrap());
        let (alive, mut children) = with_processes(2);
        drop(Detector::start(&alive[0], AT_ONCE, None).unwrap());
        assert!(members[1].control().is_alive() && alive[1].control().is_alive());
        children.iter_mut().for_each(kill);
    }

    #[test]
    fn what_the_launcher_says_is_known_to_all() {
        let (members, mut children) = with_processes(2);
        let (deaths, mut launcher) = io::pipe().unwrap();
        let (mut told, losses) = io::pipe().unwrap();
        let from = Launcher { deaths, losses: Some(losses) };
        let detector = Detector::start(&members[0], Rest::Leave, Some(from)).unwrap();
        // No rank has the first number, and the second one counts.
        for rank in [7_u32, 1, 0] {
            io::Write::write_all(&mut launcher, &rank.to_le_bytes()).unwrap();
        }
        assert_eq!(members[0].culprit().wait(), Some(Rank(1)));
        until_lost(&members[1]);
        let mut word = [0; 4];
        told.read_exact(&mut word).unwrap();
        assert_eq!(word, 1_u32.to_le_bytes(), "before it was declared lost");
        // It ends when all waits are broken off.
        drop(detector);
        assert_eq!(members[0].control().lot().lost(), Some(Rank(1)));
        children.iter_mut().for_each(kill);
    }
}

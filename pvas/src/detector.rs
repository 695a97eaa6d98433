//! The failure detector of a node where tsumugi's launcher does not watch.
//!
//! Each rank watches the next rank of its node that is still alive, in a ring:
//!
//! ```text
//!  0 ──► 1 ──► 2 ──► 3 ──► 0        2 dies:   0 ──► 1 ─────────► 3 ──► 0
//!                                             1 has declared it lost
//! ```
//!
//! so that each rank is watched by one other rank, whichever ranks die and however
//! many. The thread of a detector sleeps on the pidfd of the watched process: it
//! costs nothing while all ranks live. After a death the ranks that are left get
//! the same time as from tsumugi's launcher (`TSUMUGI_GRACE_TIMEOUT`), then SIGTERM,
//! then SIGKILL; a site's launcher may end the job earlier. A process of another
//! PID namespace cannot be watched and is passed over.
//!
//! Where tsumugi's launcher has started ranks on several nodes, it writes to a pipe
//! which ranks have died, and the thread of each rank reads that pipe; through
//! another pipe the launcher receives the ranks that are declared lost here.

use crate::attach::Member;
use crate::config;
use crate::partition::{RankState, declare_gone};
use crate::sys;
use crate::thread;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tsumugi_core::mem::{LocalRank, Rank};

/// The failure detector of one rank: a thread, which ends when this value is
/// dropped.
#[derive(Debug)]
pub struct Detector {
    /// When this end of the pipe is closed, the thread wakes.
    stop: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

/// How the ranks that are left after a death end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rest {
    /// The ranks learn of it, and the processes that are still there after this
    /// time are ended.
    End {
        /// The time until SIGTERM; SIGKILL comes 700 ms later.
        grace: Duration,
    },
    /// The ranks learn of it; a launcher that is not tsumugi's ends them.
    Leave,
}

/// The outcome of a wait for a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watched {
    /// The process has ended.
    Ended,
    /// The process is not watched, or not any more.
    Passed,
    /// The detector must end.
    Stopped,
}

impl Detector {
    /// Starts to watch for `member`'s node. A rank that is found dead is declared
    /// lost to all and named on standard error. A rank of any node that `launcher`
    /// reports dead is declared lost as well, but not named: the launcher has named
    /// it.
    ///
    /// # Errors
    ///
    /// The error of the system, if the pipe or the thread cannot be made.
    pub fn start(member: &Member, rest: Rest, launcher: Option<Launcher>) -> io::Result<Self> {
        let (stopped, stop) = io::pipe()?;
        let member = member.clone();
        let deaths = launcher.map(|Launcher { deaths, losses }| {
            member.first_failure().expect();
            losses.into_iter().for_each(|losses| member.first_failure().tell_of(losses));
            deaths
        });
        let go = move || {
            DetectorLoop { member: &member, stopped: &stopped, rest, deaths, sentence: None }.go();
        };
        let thread = thread::start("tsumugi-detector", go)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

/// The pipes to and from the launcher of ranks on several nodes.
#[derive(Debug)]
pub struct Launcher {
    /// From this pipe the ranks that have died are read.
    deaths: PipeReader,
    /// To this pipe the ranks that are declared lost are written.
    losses: Option<PipeWriter>,
}

impl Launcher {
    /// tsumugi's launcher, if it has started this process as a rank of several
    /// nodes. Must be called once: it takes the descriptors.
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

/// The work of a detector's thread.
struct DetectorLoop<'a> {
    member: &'a Member,
    stopped: &'a PipeReader,
    rest: Rest,
    /// From this pipe the ranks that have died are read.
    deaths: Option<PipeReader>,
    sentence: Option<Sentence>,
}

/// The signals that the ranks that are left have still to get.
#[derive(Clone, Copy)]
struct Sentence {
    terminate_at: Option<Instant>,
    kill_at: Option<Instant>,
}

impl DetectorLoop<'_> {
    fn go(mut self) {
        let (own, size) = (self.member.local().0, self.member.space().size());
        for step in 1..size {
            let peer = LocalRank((own + step) % size);
            match self.watch(peer) {
                Watched::Stopped => return,
                Watched::Ended => self.bury(peer),
                Watched::Passed => {}
            }
        }
        // Only this rank is left; it may still have to be ended.
        while self.sentence.is_some() || self.deaths.is_some() {
            if self.wait(&[], Duration::MAX) == Watched::Stopped {
                return;
            }
        }
    }

    fn watch(&mut self, peer: LocalRank) -> Watched {
        let control = self.member.space().control(peer);
        let deadline = Instant::now() + ATTACH_WITHIN;
        while control.pid() == 0 {
            if control.state() == RankState::Failed {
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

    /// Sleeps until a process of `fds` has ended, and sends the signals that become
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

    /// Reads one rank that has died from the launcher's pipe: each word is the
    /// number of a rank of the job.
    fn hear(&mut self) {
        let Some(deaths) = &mut self.deaths else { return };
        let mut word = [0; size_of::<u32>()];
        let rank = match deaths.read(&mut word) {
            Ok(count) if count == word.len() => Rank(u32::from_le_bytes(word)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return,
            // The launcher is gone, or this is not its pipe.
            _ => return self.deaths = None,
        };
        if rank.0 < self.member.size() && self.member.first_failure().tell(rank) {
            self.member.declare_lost(rank);
        }
    }

    /// Handles the end of a process: if the rank had not finished, this is a
    /// failure.
    fn bury(&mut self, dead: LocalRank) {
        let controls = || self.member.space().controls();
        let control = self.member.space().control(dead);
        match control.state() {
            RankState::Finished => return declare_gone(controls()),
            RankState::Failed => {}
            RankState::Starting | RankState::Running => {
                // Only the first failure is named: later ranks may end because of
                // it.
                let is_first = controls().all(|control| control.state() != RankState::Failed)
                    && self.member.gone_count() == 0;
                let called = self.member.neighbours().nth(dead.0 as usize);
                let called = called.expect("the node has this place");
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

    /// Sends the signals that have become due.
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
        // This rank is the last one.
        for rank in (1..=size).map(|step| LocalRank((own + step) % size)) {
            let control = self.member.space().control(rank);
            let is_here = control.pid_space() == self.member.control().pid_space();
            if control.pid() != 0 && control.state() == RankState::Running && is_here {
                // A process that has ended by now needs no signal.
                let _ = sys::pidfd(control.pid())
                    .and_then(|process| sys::send_signal(process.as_fd(), signal));
            }
        }
    }
}

fn say(dead: Rank, pid: u32) {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    // One write, so that the line does not mix with the output of ranks.
    let line = format!("tsumugi: {dead} (pid {pid} on {}) ended before it was done\n", host.trim());
    eprint!("{line}");
}

/// A rank that has received its memory files must attach within this time.
const ATTACH_WITHIN: Duration = Duration::from_secs(60);
/// The time from SIGTERM to SIGKILL, the same as the launcher's.
const KILL_AFTER: Duration = Duration::from_millis(700);
/// The time between looks at a rank that has not attached yet.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests;

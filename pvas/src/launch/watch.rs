//! The launcher's loop: deaths, signals, the time limit, and the looks for a stall.

use super::child::Child;
use super::follower::followers_sentence;
use super::job::LaunchedJob;
use super::outcome::{self, JobOutcome, RankEnd, RankFailure};
use super::relay::Relay;
use super::signals::Caught;
use super::stall::Stall;
use super::superior::{EndReport, Superior};
use crate::partition::{ControlBlock, RankState, declare_gone, declare_lost};
use crate::space::ControlMapping;
use crate::sys;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};
use tsumugi_core::mem::Rank;

impl LaunchedJob {
    /// Watches until all ranks have ended.
    pub(super) fn watch(&mut self) -> io::Result<JobOutcome> {
        let superior = self.superior.take();
        let grace = if superior.is_some() { self.grace.max(HEARD_WITHIN) } else { self.grace };
        let mut watch = JobWatch {
            grace,
            is_part: superior.is_some(),
            superior,
            relay: self.relay.take(),
            limit: self.limit.map(|limit| (limit, Instant::now() + limit)),
            is_out_of_time: false,
            failure: None,
            followers: 0,
            sentence: None,
            interrupts: 0,
        };
        let mut stall = Stall::new(Instant::now());
        while self.children.iter().any(|child| !child.has_ended()) {
            let due = watch.due().map_or(stall.next(), |due| due.min(stall.next()));
            let is_told = watch.wait(self, due.saturating_duration_since(Instant::now()))?;
            for caught in self.signals.as_mut().map(|signals| signals.take()).unwrap_or_default() {
                watch.pass_on(caught, &self.children);
            }
            for gone in gone(self)? {
                watch.bury(gone, &self.windows);
            }
            if is_told {
                watch.hear(&mut self.children);
            }
            watch.execute(&self.children);
            if let Some(text) = stall.poll(Instant::now(), controls(&self.windows)) {
                watch.say(text);
            }
        }
        self.guardian.end();
        if !watch.is_part && !watch.is_out_of_time {
            let line = followers_sentence(watch.followers);
            line.into_iter().for_each(|line| watch.say(line));
        }
        // What the ranks have written last.
        let is_output_lost = !watch.relay.take().is_none_or(Relay::end);
        self.is_over = true;
        let JobWatch { failure, is_out_of_time, .. } = watch;
        Ok(JobOutcome { failure, is_out_of_time, is_output_lost })
    }
}

/// A process that has ended.
struct Gone {
    rank: Rank,
    pid: u32,
    status: ExitStatus,
    may_have_heard: bool,
}

/// The processes that have ended since the last look. In a part of a job the first
/// is the one that was declared lost first.
fn gone(job: &mut LaunchedJob) -> io::Result<Vec<Gone>> {
    let mut all = Vec::new();
    loop {
        let before = all.len();
        for child in &mut job.children {
            if let Some(status) = child.poll_end()? {
                let (rank, pid) = (child.rank(), child.pid());
                all.push(Gone { rank, pid, status, may_have_heard: false });
            }
        }
        let Some(losses) = &mut job.losses else {
            // Ends of one look have no order.
            sort(&mut all, &|gone| end_of(gone.status).map_or(0, |end| end.doubt() as usize));
            return Ok(all);
        };
        if all.len() > before {
            // A rank at which this look found no end may have ended before a rank
            // at which it did.
            continue;
        }
        if !all.is_empty() {
            losses.read();
            sort(&mut all, &|gone| losses.place(gone.rank));
            all.iter_mut().for_each(|gone| gone.may_have_heard = losses.may_have_told(gone.rank));
        }
        return Ok(all);
    }
}

/// Keeps the order of equal keys.
fn sort(all: &mut [Gone], key: &dyn Fn(&Gone) -> usize) {
    all.sort_by_key(key);
}

/// How a process ended, if not with code 0.
fn end_of(status: ExitStatus) -> Option<RankEnd> {
    match (status.code(), status.signal()) {
        (Some(0), _) => None,
        (Some(code), _) => Some(RankEnd::Exited { code }),
        (None, signal) => Some(RankEnd::Killed { signal: signal.unwrap_or(libc::SIGKILL) }),
    }
}

struct JobWatch {
    /// A rank that learns of a death has this time to end by itself.
    grace: Duration,
    /// Whether the job is a part, also after its superior has ended.
    is_part: bool,
    superior: Option<Superior>,
    relay: Option<Relay>,
    /// The time limit of the job, and when it is over.
    limit: Option<(Duration, Instant)>,
    is_out_of_time: bool,
    failure: Option<RankFailure>,
    /// The number of ranks that ended because of the failure.
    followers: usize,
    sentence: Option<Sentence>,
    interrupts: u32,
}

/// The signals that the ranks that are left have still to get.
#[derive(Clone, Copy)]
struct Sentence {
    terminate_at: Option<Instant>,
    kill_at: Option<Instant>,
}

impl JobWatch {
    /// Handles the end of a rank: if the rank had not finished, this is a failure.
    fn bury(&mut self, gone: Gone, windows: &[ControlMapping]) {
        let Gone { rank, pid, status, may_have_heard } = gone;
        // A part of a job has no windows: the launcher does not see the states of
        // its ranks.
        let control = windows.get(rank.0 as usize);
        let state = control.map_or(RankState::Starting, |control| control.state());
        let early = || (state == RankState::Running).then_some(RankEnd::Early);
        let end = end_of(status).or_else(early);
        if let Some(superior) = &self.superior {
            let failure = RankFailure { rank, pid, end: end.unwrap_or(RankEnd::Early) };
            (superior.ends)(EndReport { failure, may_have_heard });
        }
        let Some(end) = end else {
            if let Some(control) = control {
                control.set_state(RankState::Finished);
            }
            declare_gone(controls(windows));
            return;
        };
        let failure = RankFailure { rank, pid, end };
        match self.failure {
            _ if self.is_out_of_time => {}
            None => {
                self.failure = Some(failure);
                if self.superior.is_none() {
                    self.expect_followers(rank);
                    self.say(format!("tsumugi: {failure}\n"));
                }
            }
            // A crash has a cause of its own. An interrupted job ends by signals.
            Some(_) if self.superior.is_none() && end.is_crash() => {
                self.say(format!("tsumugi: {failure}\n"));
            }
            Some(_) if self.interrupts == 0 => self.followers += 1,
            Some(_) => {}
        }
        if state == RankState::Finished {
            declare_gone(controls(windows));
            return;
        }
        declare_lost(rank, controls(windows));
        if self.sentence.is_none() {
            // The grace begins when the superior has named the dead rank.
            let word = if self.superior.is_some() { WORD_WITHIN } else { Duration::ZERO };
            self.pass_sentence(self.grace + word, KILL_AFTER);
        }
    }

    fn pass_sentence(&mut self, grace: Duration, kill_after: Duration) {
        let terminate_at = Instant::now() + grace;
        let kill_at = Some(terminate_at + kill_after);
        self.sentence = Some(Sentence { terminate_at: Some(terminate_at), kill_at });
    }

    /// Reads from the superior which rank's death ends the job.
    fn hear(&mut self, children: &mut [Child]) {
        let Some(superior) = &mut self.superior else { return };
        let mut word = [0; size_of::<u32>()];
        if superior.deaths.read_exact(&mut word).is_err() {
            // The superior has ended, and ends this part by a signal.
            self.superior = None;
            return;
        }
        let dead = Rank(u32::from_le_bytes(word));
        self.expect_followers(dead);
        children.iter_mut().for_each(|child| child.tell(dead));
        self.pass_sentence(self.grace, KILL_AFTER_THERE);
    }

    fn pass_on(&mut self, caught: Caught, children: &[Child]) {
        let mut signal = caught.signal;
        if signal == libc::SIGINT {
            self.interrupts += 1;
            if self.interrupts > 1 {
                signal = libc::SIGKILL;
            }
        }
        if !caught.from_terminal || signal == libc::SIGKILL {
            children.iter().for_each(|child| child.signal(signal));
        }
    }

    /// Sends the signals that have become due.
    fn execute(&mut self, children: &[Child]) {
        let now = Instant::now();
        if let Some((limit, _)) = self.limit.take_if(|(_, end)| *end <= now) {
            self.is_out_of_time = true;
            self.say(outcome::out_of_time(limit));
            self.pass_sentence(Duration::ZERO, KILL_AFTER);
        }
        let Some(sentence) = &mut self.sentence else { return };
        if sentence.terminate_at.is_some_and(|at| at <= now) {
            sentence.terminate_at = None;
            children.iter().for_each(|child| child.signal(libc::SIGTERM));
        }
        if sentence.kill_at.is_some_and(|at| at <= now) {
            sentence.kill_at = None;
            children.iter().for_each(|child| child.signal(libc::SIGKILL));
        }
    }

    fn due(&self) -> Option<Instant> {
        let sentence = self.sentence.and_then(|it| it.terminate_at.or(it.kill_at));
        sentence.into_iter().chain(self.limit.map(|(_, end)| end)).min()
    }

    /// Prints a line after what ranks have written before.
    fn say(&self, line: String) {
        self.relay.iter().for_each(|relay| relay.say(&*line));
    }

    fn expect_followers(&self, cause: Rank) {
        self.relay.iter().for_each(|relay| relay.expect_followers(cause));
    }

    /// Sleeps until something happens, for at most `limit`. Returns whether the
    /// superior has sent something.
    fn wait(&self, job: &LaunchedJob, limit: Duration) -> io::Result<bool> {
        let superior = self.superior.iter().map(|superior| superior.deaths.as_fd());
        let running = job.children.iter().filter_map(Child::pidfd);
        let signals = job.signals.iter().map(|signals| signals.fd());
        let fds: Vec<BorrowedFd<'_>> = superior.chain(running).chain(signals).collect();
        let ready = sys::poll(&fds, limit)?;
        Ok(self.superior.is_some() && ready.first() == Some(&true))
    }
}

fn controls(windows: &[ControlMapping]) -> impl Iterator<Item = &ControlBlock> + Clone {
    windows.iter().map(|window| &**window)
}

/// After the superior has named a dead rank, programs on all nodes have a second to
/// act on the death, and a little more for ranks that learn of it late.
const HEARD_WITHIN: Duration = Duration::from_millis(1200);
/// The time for the answer of a superior, which waits for better answers than the
/// first.
const WORD_WITHIN: Duration = Duration::from_secs(1);
/// The time from SIGTERM to SIGKILL.
const KILL_AFTER: Duration = Duration::from_millis(700);
/// The same after the superior has named the dead rank: SIGKILL comes at most 1.6 s
/// after the death, because an answer that waits for a better one takes 0.15 s.
const KILL_AFTER_THERE: Duration = Duration::from_millis(250);

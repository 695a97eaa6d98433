//! The decision which rank's or agent's end is the cause of a job's end: a state
//! machine on the agents' reports, without a socket and without a clock.
//!
//! ```text
//!            killed, or a code            150 ms later: the best one
//!  no end ──────────────────► decided ◄────────────────────── some end
//!    └── code 1, a panic, an early end, an agent that ended, ──►─┘
//!        any end of a rank that may have learned of another
//! ```
//!
//! A rank that learns of a death mostly ends with code 1 or a panic, and its end may
//! be reported before that of the rank that died. So such ends wait for a better
//! candidate; of equal candidates the first counts. A rank ends once: a report that
//! an agent repeats, because it has lost the answer, is ignored.

use std::collections::HashSet;
use std::time::{Duration, Instant};
use tsumugi::Rank;
use tsumugi::boot::tcp::{HEARD, ProcessEnd, SIGNAL};
use tsumugi::pvas::launch::{self, JobOutcome, RankEnd, RankFailure};

/// The state of the decision; see the module's documentation.
#[derive(Debug, Default)]
pub struct CauseFinder {
    /// Ranks with a reported end.
    told: HashSet<u32>,
    ends: Vec<Candidate>,
    decide_at: Option<Instant>,
    decided: Option<Cause>,
    with_it: Vec<Rank>,
}

/// The cause of a job's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The end of a rank.
    Rank(RankFailure),
    /// The end of a host's agent, if no rank of the host is known to have failed.
    Host {
        /// The index of the host.
        index: usize,
        /// The agent's exit code.
        code: i32,
    },
}

/// A candidate for the cause.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    cause: Cause,
    may_have_heard: bool,
}

impl Cause {
    /// The exit code of the command.
    pub fn code(&self) -> i32 {
        match *self {
            Self::Rank(failure) => JobOutcome::from(failure).code(),
            Self::Host { code, .. } => code,
        }
    }
}

impl Candidate {
    /// The class of the candidate: the lower it is, the less likely the end is a
    /// consequence of another one.
    fn class(&self) -> u32 {
        match self.cause {
            Cause::Rank(_) if self.may_have_heard => 3,
            Cause::Rank(failure) => failure.end.doubt(),
            Cause::Host { .. } => 4,
        }
    }

    fn is_good(&self) -> bool {
        self.class() < 2
    }
}

impl CauseFinder {
    /// Takes reports that ranks of one host have ended. Returns those that must be
    /// printed because they are neither the cause nor a consequence of it.
    pub fn ended(&mut self, ends: &[ProcessEnd], now: Instant) -> Vec<RankFailure> {
        let news: Vec<ProcessEnd> =
            ends.iter().filter(|end| self.told.insert(end.rank)).copied().collect();
        if self.decided.is_some() {
            let (own, with_it): (Vec<_>, Vec<_>) =
                news.iter().map(failure_of).partition(|failure| failure.end.is_crash());
            self.with_it.extend(with_it.iter().map(|failure| failure.rank));
            return own;
        }
        let candidate = |end: &ProcessEnd| Candidate {
            cause: Cause::Rank(failure_of(end)),
            may_have_heard: end.how & HEARD != 0,
        };
        let mut ends: Vec<Candidate> = news.iter().map(candidate).collect();
        // The order of ends that one host reports together is unknown.
        ends.sort_by_key(Candidate::class);
        ends.into_iter().for_each(|end| self.consider(end, now));
        Vec::new()
    }

    /// Takes the report that an agent has ended with this code, which is not 0.
    pub fn agent_ended(&mut self, index: usize, code: i32, now: Instant) {
        if self.decided.is_none() {
            let cause = Cause::Host { index, code };
            self.consider(Candidate { cause, may_have_heard: false }, now);
        }
    }

    fn consider(&mut self, end: Candidate, now: Instant) {
        let due = if end.is_good() { now } else { now + BETTER_WITHIN };
        self.decide_at = Some(self.decide_at.map_or(due, |at| at.min(due)));
        self.ends.push(end);
    }

    /// Returns the cause, once, as soon as it is decided.
    pub fn poll(&mut self, now: Instant) -> Option<Cause> {
        if self.decided.is_some() || self.decide_at.is_none_or(|at| now < at) {
            return None;
        }
        let class = |end: &Candidate| if end.is_good() { 0 } else { end.class() };
        let cause = self.ends.iter().min_by_key(|end| class(end))?.cause;
        self.decided = Some(cause);
        let others = self.ends.drain(..).map(|end| end.cause).filter(|end| *end != cause);
        self.with_it.extend(others.filter_map(|end| match end {
            Cause::Rank(failure) => Some(failure.rank),
            Cause::Host { .. } => None,
        }));
        Some(cause)
    }

    /// The time at which [`poll`](Self::poll) may return a cause.
    pub fn due(&self) -> Option<Instant> {
        self.decide_at.filter(|_| self.decided.is_none())
    }

    /// A line with the number of ranks that ended because of the cause.
    pub fn others(&self) -> Option<String> {
        let mut ranks = self.with_it.clone();
        ranks.sort_unstable();
        ranks.dedup();
        launch::followers_sentence(ranks.len())
    }
}

fn failure_of(end: &ProcessEnd) -> RankFailure {
    let how = end.how & !HEARD;
    let is_killed = how & SIGNAL != 0;
    let number = (how & !SIGNAL) as i32;
    let how = match (is_killed, number) {
        (true, signal) => RankEnd::Killed { signal },
        (false, 0) => RankEnd::Early,
        (false, code) => RankEnd::Exited { code },
    };
    RankFailure { rank: Rank(end.rank), pid: end.pid, end: how }
}

/// The greatest delay of the report of the first end after the reports of others.
const BETTER_WITHIN: Duration = Duration::from_millis(150);

#[cfg(test)]
mod tests {
    use super::*;

    struct Bed {
        verdict: CauseFinder,
        start: Instant,
    }

    fn bed() -> Bed {
        Bed { verdict: CauseFinder::default(), start: Instant::now() }
    }

    impl Bed {
        fn at(&self, ms: u64) -> Instant {
            self.start + Duration::from_millis(ms)
        }

        fn ended(&mut self, ms: u64, ends: &[(u32, u32)]) -> Vec<RankFailure> {
            let end = |&(rank, how): &(u32, u32)| ProcessEnd { rank, pid: 1, how };
            let ends: Vec<ProcessEnd> = ends.iter().map(end).collect();
            self.verdict.ended(&ends, self.at(ms))
        }

        /// The rank of the cause, and the exit code.
        fn cause(&mut self, ms: u64) -> Option<(Option<u32>, i32)> {
            let cause = self.verdict.poll(self.at(ms))?;
            let rank = if let Cause::Rank(failure) = cause { Some(failure.rank.0) } else { None };
            Some((rank, cause.code()))
        }
    }

    #[test]
    fn a_signal_or_a_code_of_its_own_is_the_cause_at_once() {
        for (how, code) in [(SIGNAL | 9, 137), (3, 3)] {
            let mut bed = bed();
            bed.ended(0, &[(5, how)]);
            assert_eq!(bed.cause(0), Some((Some(5), code)));
            assert_eq!(bed.cause(500), None, "a cause is reported once");
        }
    }

    #[test]
    fn an_end_that_may_be_a_consequence_waits_for_a_better_cause() {
        let mut bed = bed();
        bed.ended(0, &[(0, 1)]);
        bed.ended(20, &[(1, 101)]);
        assert_eq!(bed.cause(100), None);
        bed.ended(100, &[(2, 1), (3, SIGNAL | 11)]);
        assert_eq!(bed.cause(100), Some((Some(3), 139)));
        let others = "tsumugi: 3 other ranks ended because of it\n";
        assert_eq!(bed.verdict.others().as_deref(), Some(others));
    }

    #[test]
    fn the_end_of_a_rank_that_knew_of_another_end_is_not_the_cause() {
        for (how, code) in [(3, 3), (SIGNAL | 9, 137), (1, 1), (0, 1)] {
            let mut bed = bed();
            // Ends that the agent saw together, reported in one message or in two.
            bed.ended(0, &[(1, HEARD | 7), (2, HEARD | SIGNAL | 6)]);
            assert_eq!(bed.cause(0), None, "a better cause may come");
            bed.ended(1, &[(0, HEARD | 7), (4, how), (3, HEARD)]);
            assert_eq!(bed.cause(150), Some((Some(4), code)));
            let others = "tsumugi: 4 other ranks ended because of it\n";
            assert_eq!(bed.verdict.others().as_deref(), Some(others));
        }
        let mut alone = bed();
        alone.ended(0, &[(1, HEARD | 7)]);
        assert_eq!(alone.cause(150), Some((Some(1), 7)), "there is no other cause");
    }

    #[test]
    fn an_end_that_is_reported_again_is_ignored() {
        let mut bed = bed();
        bed.ended(0, &[(1, 3)]);
        bed.ended(0, &[(1, 3)]);
        assert_eq!(bed.cause(0), Some((Some(1), 3)));
        bed.ended(1, &[(1, 3), (2, SIGNAL | 6)]);
        assert_eq!(bed.ended(2, &[(2, SIGNAL | 6)]), [], "the end was reported");
        assert_eq!(bed.verdict.others(), None);
    }

    #[test]
    fn of_equal_ends_the_first_is_the_cause() {
        let mut bed = bed();
        bed.ended(0, &[(4, 0)]);
        bed.ended(10, &[(1, 1)]);
        bed.verdict.agent_ended(0, 1, bed.at(20));
        assert_eq!(bed.verdict.due(), Some(bed.at(150)));
        assert_eq!(bed.cause(150), Some((Some(4), 1)), "rank 4 ended first");
    }

    #[test]
    fn later_codes_and_signals_are_consequences_and_crashes_are_not() {
        let mut bed = bed();
        bed.ended(0, &[(4, 7)]);
        assert_eq!(bed.cause(0), Some((Some(4), 7)));
        let said = bed.ended(5, &[(0, SIGNAL | 15), (1, SIGNAL | 9), (2, 9), (3, SIGNAL | 6)]);
        assert_eq!(said.iter().map(|failure| failure.rank.0).collect::<Vec<_>>(), [3]);
        let others = "tsumugi: 3 other ranks ended because of it\n";
        assert_eq!(bed.verdict.others().as_deref(), Some(others));
    }

    #[test]
    fn an_agent_that_ends_is_the_cause_if_no_rank_is() {
        let mut bed = bed();
        bed.verdict.agent_ended(1, 255, bed.at(0));
        assert_eq!(bed.cause(150), Some((None, 255)));
        assert_eq!(bed.verdict.others(), None);
        bed.ended(200, &(0..10).map(|rank| (rank, 1)).collect::<Vec<_>>());
        let others = "tsumugi: 10 other ranks ended because of it\n";
        assert_eq!(bed.verdict.others().as_deref(), Some(others));
    }
}

//! Detects a deadlock of a whole job.
//!
//! A rank is quiet when all its workers sleep and nothing outside of them may wake
//! one. If all attached ranks are quiet at two looks, and no worker woke between
//! the two (the counts of wake-ups agree), then no thread is left that could wake a
//! worker: the launcher, or the thread that has started ranks as threads, then requests from
//! each rank a report of which ULTs wait for what.

use crate::futex::SharedFutex;
use crate::partition::{ControlBlock, RankState};
use std::fmt::Write;
use std::time::{Duration, Instant};
use tsumugi_core::sync::Ordering;

/// The looks of one launcher, or of the thread that has started ranks as threads.
#[derive(Debug)]
pub struct Stall {
    /// The sum of wake-ups at the last look, if all ranks were quiet.
    last: Option<u64>,
    /// Set when this stall has been reported; the inner value is the sum of
    /// wake-ups after the report, when it is known.
    reported: Option<Option<u64>>,
    /// The number of each rank's report request, and how often the answers were
    /// looked for.
    asked: Option<(Vec<Option<u32>>, u32)>,
    next: Instant,
}

impl Stall {
    /// Makes a detector; its first look is due one interval from `now`.
    pub fn new(now: Instant) -> Self {
        Self { last: None, reported: None, asked: None, next: now + LOOK }
    }

    /// When the next look is due.
    pub fn next(&self) -> Instant {
        self.next
    }

    /// Looks, if it is time; returns a text if there is something to print.
    pub fn poll<'c>(
        &mut self,
        now: Instant,
        controls: impl Iterator<Item = &'c ControlBlock> + Clone,
    ) -> Option<String> {
        if now < self.next {
            return None;
        }
        if let Some((asked, looks)) = self.asked.take() {
            if looks < ANSWER_LOOKS && !have_all_answered(&asked, controls.clone()) {
                self.asked = Some((asked, looks + 1));
                self.next = now + ANSWER;
                return None;
            }
            self.next = now + LOOK;
            self.reported = Some(None);
            return Some(collect(&asked, controls));
        }
        self.next = now + LOOK;
        let sum = quiet_sum(controls.clone());
        let settled = sum.is_some() && sum == self.last;
        self.last = sum;
        match self.reported {
            // The report itself woke workers: when they are quiet again, that is
            // still the stall that was reported.
            Some(None) => self.reported = sum.map(Some).or(Some(None)),
            Some(Some(reported)) if sum != Some(reported) => self.reported = None,
            Some(Some(_)) => {}
            None if settled => {
                self.asked = Some((controls.map(ask).collect(), 1));
                self.next = now + ANSWER;
            }
            None => {}
        }
        None
    }
}

/// The count of all wake-ups, if all ranks that have started are quiet.
fn quiet_sum<'c>(controls: impl Iterator<Item = &'c ControlBlock>) -> Option<u64> {
    let (mut sum, mut running) = (0u64, 0);
    for control in controls {
        match control.state() {
            RankState::Starting => return None,
            RankState::Finished | RankState::Failed => {}
            RankState::Running => {
                let workers = control.workers().load(Ordering::SeqCst) as usize;
                let quiet = workers > 0
                    && control.bells().asleep() == workers
                    && control.outside().load(Ordering::SeqCst) == 0;
                if !quiet {
                    return None;
                }
                running += 1;
            }
        }
        sum = sum.wrapping_add(control.activity().load(Ordering::SeqCst));
    }
    (running > 0).then_some(sum)
}

fn ask(control: &ControlBlock) -> Option<u32> {
    (control.state() == RankState::Running).then(|| {
        let number = control.ask_report();
        control.bells().ring(&SharedFutex);
        number
    })
}

fn have_all_answered<'c>(
    asked: &[Option<u32>],
    controls: impl Iterator<Item = &'c ControlBlock>,
) -> bool {
    let has = |(asked, control): (&Option<u32>, &ControlBlock)| {
        asked.is_none_or(|number| control.report(number).is_some())
    };
    asked.iter().zip(controls).all(has)
}

fn collect<'c>(asked: &[Option<u32>], controls: impl Iterator<Item = &'c ControlBlock>) -> String {
    let mut text = String::from(
        "tsumugi: all ranks are quiet: every worker sleeps and nothing is left to wake one\n",
    );
    let mut there: Vec<(String, Waits)> = Vec::new();
    let mut all = Vec::new();
    for (rank, (asked, control)) in asked.iter().zip(controls).enumerate() {
        // A collective may wait for a rank that has ended before it.
        all.push(rank);
        let Some(number) = asked else {
            let _ = writeln!(text, "tsumugi:   rank {rank}: has ended");
            continue;
        };
        let report = control.report(*number).unwrap_or_else(|| "no report within 2 s".to_owned());
        for (collective, wanted) in report.lines().filter_map(collective_in) {
            let known = there.iter().position(|(name, _)| *name == collective);
            let known = known.unwrap_or_else(|| {
                there.push((collective, Waits::default()));
                there.len() - 1
            });
            let waits = &mut there[known].1;
            waits.ranks.push(rank);
            waits.wanted.extend(wanted);
        }
        for line in report.lines() {
            let _ = writeln!(text, "tsumugi:   rank {rank}: {line}");
        }
    }
    there.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    for (collective, Waits { ranks, mut wanted }) in there {
        // The launcher does not know the members of a group that is not that of all ranks;
        // it knows for whom its members wait.
        wanted.sort_unstable();
        wanted.dedup();
        let expected = if collective.contains(OF_GROUP) { &wanted } else { &all };
        let is_missing = |rank: &&usize| ranks.binary_search(rank).is_err();
        let mut missing = expected.iter().filter(is_missing).peekable();
        if missing.peek().is_some() {
            let names: Vec<_> = missing.by_ref().take(NAMES_MAX).map(usize::to_string).collect();
            let more = missing.count();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let names = names.join(", ");
            let _ = writeln!(text, "tsumugi:   {collective} waits for rank {names}{more}");
        }
    }
    text
}

/// The ranks that wait in a collective, in their order, and those for which they wait, as far
/// as they have told.
#[derive(Default)]
struct Waits {
    ranks: Vec<usize>,
    wanted: Vec<usize>,
}

/// The collective in which the ULT of a line waits, and the rank for which it waits:
/// `barrier 12`, `gather 5 of group 3, for rank 2`.
fn collective_in(line: &str) -> Option<(String, Option<usize>)> {
    let (_, collective) = line.split_once(" waits in ")?;
    let wanted = collective.split(", for rank ").nth(1);
    let wanted = wanted.and_then(|rank| rank.split(',').next()?.parse().ok());
    Some((collective.split(',').next().unwrap_or(collective).to_owned(), wanted))
}

/// What the name of a collective of some ranks has.
const OF_GROUP: &str = " of group ";
/// The most ranks that are named.
const NAMES_MAX: usize = 8;
/// The time between two looks.
const LOOK: Duration = Duration::from_secs(1);
/// The time between two looks for answers.
const ANSWER: Duration = Duration::from_millis(200);
/// The number of looks for answers: ranks on busy cores have two seconds.
const ANSWER_LOOKS: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SpaceConfig;
    use crate::space::Space;
    use std::sync::Arc;
    use tsumugi_core::mem::LocalRank;

    fn quiet_pair() -> Arc<Space> {
        let config = SpaceConfig::small();
        let space = Space::create(2, &config).unwrap();
        for control in space.controls() {
            control.attach(1).unwrap();
            control.workers().store(1, Ordering::SeqCst);
            let _ticket = control.bells().prepare(0);
        }
        space
    }

    /// Makes the next `count` checks of `stall`, each as soon as it is due.
    fn looks(stall: &mut Stall, space: &Space, count: usize) -> Vec<String> {
        (0..count).filter_map(|_| stall.poll(stall.next(), space.controls())).collect()
    }

    /// Runs the steps of a worker between its wake-up by a bell and its next sleep.
    fn answer(space: &Space, rank: u32) {
        let control = space.control(LocalRank(rank));
        let number = control.wanted_report().expect("asked");
        control.answer_report(number, "ULT 1: signal\nULT 2: join");
        control.activity().fetch_add(1, Ordering::SeqCst);
        let _ticket = control.bells().prepare(0);
    }

    #[test]
    fn a_stall_is_reported_once() {
        let space = quiet_pair();
        let mut stall = Stall::new(Instant::now());
        assert_eq!(looks(&mut stall, &space, 2), [""; 0], "the second check requests reports");
        answer(&space, 1);
        assert_eq!(looks(&mut stall, &space, 9), [""; 0], "the other rank may still answer");
        let said = looks(&mut stall, &space, 1);
        assert!(said[0].contains("rank 0: no report"), "{said:?}");
        assert!(said[0].contains("rank 1: ULT 1: signal\ntsumugi:   rank 1: ULT 2"), "{said:?}");
        let _ticket = space.control(LocalRank(0)).bells().prepare(0);
        assert_eq!(looks(&mut stall, &space, 5), [""; 0], "the same stall");
        space.control(LocalRank(0)).activity().fetch_add(1, Ordering::SeqCst);
        assert_eq!(looks(&mut stall, &space, 4), [""; 0], "another stall");
        answer(&space, 0);
        answer(&space, 1);
        assert_eq!(looks(&mut stall, &space, 1).len(), 1, "all ranks have answered");
    }

    #[test]
    fn a_collective_is_named_with_the_ranks_that_it_waits_for() {
        let space = quiet_pair();
        let mut stall = Stall::new(Instant::now());
        assert_eq!(looks(&mut stall, &space, 2), [""; 0]);
        for (control, line) in space.controls().zip(["ULT 1 waits in barrier 12, for 1.0 s", "x"]) {
            let number = control.wanted_report().expect("asked");
            control.answer_report(number, line);
        }
        let said = looks(&mut stall, &space, 1).concat();
        assert!(said.ends_with("\ntsumugi:   barrier 12 waits for rank 1\n"), "{said}");
    }

    #[test]
    fn a_collective_of_a_group_waits_for_a_member() {
        let space = quiet_pair();
        let mut stall = Stall::new(Instant::now());
        assert_eq!(looks(&mut stall, &space, 2), [""; 0]);
        let waits = "ULT 1 waits in gather 5 of group 3, for rank 1, for 1.0 s";
        let alone = "an operation waits in scan 2 of group 4, for rank 1\nULT 2 waits in scan 2 of \
                     group 4, for rank 0";
        for (control, line) in space.controls().zip([format!("{waits}\n{alone}"), "x".to_owned()]) {
            let number = control.wanted_report().expect("asked");
            control.answer_report(number, &line);
        }
        let said = looks(&mut stall, &space, 1).concat();
        assert!(said.contains("tsumugi:   gather 5 of group 3 waits for rank 1\n"), "{said}");
        assert!(said.contains("tsumugi:   scan 2 of group 4 waits for rank 1\n"), "{said}");
    }

    #[test]
    fn no_stall_is_reported_while_a_wake_up_is_possible() {
        let space = quiet_pair();
        let one = space.control(LocalRank(1));
        let mut stall = Stall::new(Instant::now());
        one.outside().store(1, Ordering::SeqCst);
        assert_eq!(looks(&mut stall, &space, 5), [""; 0], "a timer");
        one.outside().store(0, Ordering::SeqCst);
        one.bells().stay(0);
        assert_eq!(looks(&mut stall, &space, 5), [""; 0], "a worker that runs");
        let _ticket = one.bells().prepare(0);
        one.set_state(RankState::Starting);
        assert_eq!(looks(&mut stall, &space, 5), [""; 0], "a rank that has not started");
        one.set_state(RankState::Running);
        for _ in 0..5 {
            one.activity().fetch_add(1, Ordering::SeqCst);
            assert_eq!(looks(&mut stall, &space, 1), [""; 0], "a counter has moved");
        }
        one.set_state(RankState::Finished);
        one.bells().stay(0);
        assert_eq!(looks(&mut stall, &space, 12).len(), 1, "one rank is left, and it is quiet");
    }
}

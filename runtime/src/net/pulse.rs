//! A failure detector within a node: finds ranks of this node that were stopped for
//! too long, although the node's heartbeats go on.
//!
//! ```text
//!  poller of each rank ─ counts on, in its control ──► poller of the node's first rank:
//!                                                      a rank with a count that stands
//!                                                      still for 1.5 times the limit
//!                                                      is ended
//! ```
//!
//! For its peers such a rank is like a silent node: an operation that waits for it
//! would wait for ever. If the poller of the first rank was late itself, it gives the
//! others as much more time, so a node that was stopped as a whole loses none of its
//! ranks. In a job of one node there is no poller, and no rank is given up.
//!
//! Times are milliseconds of any clock; they wrap after some weeks.

use super::silence::{LOOK, LOOKS, Rule};
use std::time::{Duration, Instant};
use tsumugi_core::mem::Rank;
use tsumugi_core::sync::Ordering;
use tsumugi_pvas::Member;

/// The counters of one rank's poller; when this is dropped, the rank has no pulse.
pub(super) struct Pulses {
    member: Member,
    begun: Instant,
    seen: LastPulse,
}

/// The counts that the first rank of a node has seen at its neighbours.
#[derive(Debug)]
struct LastPulse {
    given_up: u32,
    looked: u32,
    neighbours: Box<[RankPulse]>,
}

#[derive(Clone, Copy, Debug, Default)]
struct RankPulse {
    count: u32,
    /// When the count was new.
    at: u32,
    /// Looks since the count was new.
    looks: u8,
}

impl Pulses {
    pub(super) fn new(member: &Member, limit: Duration) -> Self {
        let neighbours = vec![RankPulse::default(); member.space().size() as usize].into();
        let given_up = Rule::new(limit).given_up;
        let pulses = Self {
            member: member.clone(),
            begun: Instant::now(),
            seen: LastPulse { given_up, looked: 0, neighbours },
        };
        pulses.count();
        pulses
    }

    /// Counts on, and looks at the other counts, if it is time. Returns the ranks
    /// with counts that have stood still for too long.
    pub(super) fn round(&mut self) -> Vec<Rank> {
        let now = self.begun.elapsed().as_millis() as u32;
        if now.wrapping_sub(self.seen.looked) < LOOK / 2 {
            return Vec::new();
        }
        self.count();
        let member = &self.member;
        let mut living = member.neighbours().filter(|rank| member.is_alive(*rank));
        if living.next() != Some(member.rank()) {
            // A rank that becomes the first one begins with the counts that it sees
            // then.
            self.seen.looked = now;
            return Vec::new();
        }
        let counts = member.space().controls().map(|control| match control.is_alive() {
            // Relaxed: no other memory is read because of this count.
            true => control.pulse().load(Ordering::Relaxed),
            false => 0,
        });
        let still = self.seen.round(now, counts);
        still.into_iter().filter_map(|local| member.neighbours().nth(local)).collect()
    }

    /// Increments the pulse of this rank; only its poller writes that word.
    fn count(&self) {
        let pulse = self.member.control().pulse();
        // Relaxed, both: the pulse orders no other memory.
        pulse.store(pulse.load(Ordering::Relaxed).wrapping_add(2) | 1, Ordering::Relaxed);
    }
}

impl Drop for Pulses {
    fn drop(&mut self) {
        self.member.control().pulse().store(0, Ordering::Relaxed);
    }
}

impl LastPulse {
    /// Returns the local indices of ranks with counts that stand still for too long;
    /// their time begins anew.
    fn round(&mut self, now: u32, counts: impl Iterator<Item = u32>) -> Vec<usize> {
        let late = now.wrapping_sub(self.looked).saturating_sub(LOOK);
        self.looked = now;
        let mut still = Vec::new();
        for ((place, pulse), count) in self.neighbours.iter_mut().enumerate().zip(counts) {
            if count == 0 || count != pulse.count {
                *pulse = RankPulse { count, at: now, looks: 0 };
                continue;
            }
            pulse.at = pulse.at.wrapping_add(late);
            pulse.looks = pulse.looks.saturating_add(1);
            let silence = now.wrapping_sub(pulse.at).cast_signed();
            if silence >= self.given_up.cast_signed() && pulse.looks >= LOOKS {
                *pulse = RankPulse { count, at: now, looks: 0 };
                still.push(place);
            }
        }
        still
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(5);
    const GIVEN_UP: u32 = 7500;

    fn seen() -> LastPulse {
        let given_up = Rule::new(LIMIT).given_up;
        assert_eq!(given_up, GIVEN_UP);
        LastPulse { given_up, looked: 0, neighbours: vec![RankPulse::default(); 2].into() }
    }

    /// Looks every `every` milliseconds until `until`, while the second rank has the
    /// given count. Returns the times at which it was found.
    fn look(seen: &mut LastPulse, every: u32, until: u32, count: impl Fn(u32) -> u32) -> Vec<u32> {
        let mut found = Vec::new();
        while seen.looked.wrapping_add(every) <= until {
            let now = seen.looked + every;
            let still = seen.round(now, [now | 1, count(now)].into_iter());
            assert!(still.is_empty() || still == [1], "{still:?}");
            found.extend(still.iter().map(|_| now));
        }
        found
    }

    #[test]
    fn a_rank_that_counts_within_the_limit_is_never_suspected() {
        // One count in that time is enough.
        let step = |now: u32| (now / GIVEN_UP) * 2 + 1;
        assert_eq!(look(&mut seen(), 50, 100 * GIVEN_UP, step), []);
    }

    #[test]
    fn a_rank_that_stands_still_is_suspected_after_one_and_a_half_limits_and_again_later() {
        let found = look(&mut seen(), 50, 2 * GIVEN_UP + 100, |_| 7);
        assert_eq!(found, [GIVEN_UP + 50, 2 * GIVEN_UP + 50]);
    }

    #[test]
    fn a_rank_without_a_poller_is_never_suspected() {
        assert_eq!(look(&mut seen(), 50, 10 * GIVEN_UP, |_| 0), []);
    }

    #[test]
    fn delays_of_the_looking_rank_do_not_count() {
        let mut seen = seen();
        assert_eq!(look(&mut seen, 50, 1000, |_| 7), []);
        // All ranks of the node were stopped for an hour.
        assert_eq!(seen.round(3_600_000, [1, 7].into_iter()), [0; 0]);
        assert_eq!(look(&mut seen, 50, 3_600_000 + GIVEN_UP - 1100, |_| 7), []);
        assert_eq!(look(&mut seen, 50, 3_600_000 + GIVEN_UP, |_| 7).len(), 1);
        // A looker that runs twice a second counts a fifth of the time.
        let mut seen = self::seen();
        assert_eq!(look(&mut seen, 500, 5 * GIVEN_UP - 500, |_| 7), []);
    }

    #[test]
    fn a_time_that_wraps_changes_nothing() {
        let mut seen = seen();
        let start = u32::MAX - 1000;
        seen.round(start, [1, 7].into_iter());
        for step in 1..=GIVEN_UP / 50 {
            let still = seen.round(start.wrapping_add(50 * step), [1 + 2 * step, 7].into_iter());
            assert_eq!(still.len(), usize::from(step == GIVEN_UP / 50), "{step}");
        }
    }
}

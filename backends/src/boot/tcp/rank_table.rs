//! The state of the server, without a socket and without a clock: the cards, the
//! barrier, and how far each rank has come.
//!
//! ```text
//!             join               leave             grace is over
//!  not there ──────► connected ─────────► away ───────────────────► lost
//!                       │  ▲                │
//!                Finish │  └──── join ──────┘  (the same session)
//!                       ▼
//!                    finished
//! ```
//!
//! Every request may come twice, because a connection can break before its answer.

use super::frame::{BootMessage, Refusal};
use super::heads::runs_of;
use std::time::{Duration, Instant};

/// The cards of a job, and how far each rank has come.
#[derive(Debug)]
pub struct RankTable {
    entries: Vec<RankEntry>,
    /// The time after which a rank that has not come is missing.
    deadline: Instant,
    grace: Duration,
}

/// The state of one rank.
#[derive(Debug, Default)]
struct RankEntry {
    session: Option<u64>,
    card: Option<Vec<u8>>,
    state: RankState,
    /// The last barrier that the rank has reached.
    round: u32,
    /// Whether the rank waits for the end of that barrier.
    waits: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum RankState {
    #[default]
    NotThere,
    Connected,
    Away(Instant),
    Lost,
    Finished,
}

impl RankTable {
    /// Makes a table for `size` ranks; each must come before `deadline`, and must
    /// come back within `grace`.
    pub fn new(size: u32, deadline: Instant, grace: Duration) -> Self {
        Self { entries: (0..size).map(|_| RankEntry::default()).collect(), deadline, grace }
    }

    /// Records that a rank has connected and has proved the secret.
    ///
    /// # Errors
    ///
    /// - [`Refusal::Size`]: the rank is not below the size of the job, or `size` is
    ///   another size.
    /// - [`Refusal::Taken`]: another process has the rank.
    /// - [`Refusal::Lost`]: the rank was declared lost.
    pub fn join(&mut self, rank: u32, size: u32, session: u64) -> Result<(), Refusal> {
        let entries = self.entries.len();
        let entry = self.entries.get_mut(rank as usize).ok_or(Refusal::Size)?;
        if size as usize != entries {
            return Err(Refusal::Size);
        }
        if entry.session.is_some_and(|known| known != session) {
            return Err(Refusal::Taken);
        }
        match entry.state {
            RankState::Lost => return Err(Refusal::Lost),
            RankState::Finished => {}
            _ => entry.state = RankState::Connected,
        }
        (entry.session, entry.waits) = (Some(session), false);
        Ok(())
    }

    /// Records that the connection of a rank is gone.
    pub fn leave(&mut self, rank: u32, now: Instant) {
        let entry = &mut self.entries[rank as usize];
        entry.waits = false;
        if entry.state == RankState::Connected {
            entry.state = RankState::Away(now);
        }
    }

    /// Handles a request of a rank that has joined; returns the answer, if it need
    /// not wait.
    ///
    /// # Errors
    ///
    /// The message, if it is not a request, if it requests the heads behind the last
    /// rank, or if it names a barrier that is neither the rank's last one nor the next
    /// one.
    pub fn handle(
        &mut self,
        rank: u32,
        message: BootMessage,
    ) -> Result<Option<BootMessage>, BootMessage> {
        let size = self.entries.len();
        let entry = &mut self.entries[rank as usize];
        let done = Some(BootMessage::Done { round: 0 });
        match message {
            BootMessage::Put { card } => {
                entry.card = Some(card);
                Ok(done)
            }
            BootMessage::Get { rank } => {
                let card = self.entries.get(rank as usize).and_then(|entry| entry.card.clone());
                Ok(Some(
                    card.map_or(BootMessage::NoCard { rank }, |card| BootMessage::Card {
                        rank,
                        card,
                    }),
                ))
            }
            BootMessage::GetHeads { from } if (from as usize) < size => {
                let entries = &self.entries[from as usize..];
                let runs = runs_of(entries.iter().map(|entry| entry.card.as_deref()));
                Ok(Some(BootMessage::Heads { from, runs }))
            }
            // The barrier that the rank has reached, repeated, or the next one.
            BootMessage::Barrier { round } if round == entry.round || round == entry.round + 1 => {
                (entry.round, entry.waits) = (round, true);
                Ok(None)
            }
            BootMessage::Finish => {
                entry.state = RankState::Finished;
                Ok(done)
            }
            other => Err(other),
        }
    }

    /// Whether a rank has come and has not reported that it is done.
    pub fn is_unfinished(&self, rank: u32) -> bool {
        let entry = self.entries.get(rank as usize);
        entry.is_some_and(|entry| entry.session.is_some() && entry.state != RankState::Finished)
    }

    /// The answers that have become due, each with its rank.
    pub fn poll(&mut self, now: Instant) -> Vec<(u32, BootMessage)> {
        let grace = self.grace;
        for entry in &mut self.entries {
            match entry.state {
                RankState::Away(since) if now >= since + grace => entry.state = RankState::Lost,
                _ => {}
            }
        }
        let reached = self.entries.iter().map(|entry| entry.round).min().unwrap_or(0);
        let first = |wanted: RankState| self.entries.iter().position(|entry| entry.state == wanted);
        let lost = first(RankState::Lost).or(first(RankState::Finished)).map(|rank| rank as u32);
        let missing = first(RankState::NotThere).filter(|_| now >= self.deadline);
        let broken = match (missing, lost) {
            (Some(rank), _) => Some(BootMessage::Missing { rank: rank as u32 }),
            (None, Some(rank)) => Some(BootMessage::Lost { rank }),
            (None, None) => None,
        };
        let mut answers = Vec::new();
        for (rank, entry) in (0..).zip(&mut self.entries) {
            let answer = match &broken {
                _ if !entry.waits => continue,
                _ if entry.round <= reached => BootMessage::Done { round: entry.round },
                Some(broken) => broken.clone(),
                None => continue,
            };
            entry.waits = false;
            answers.push((rank, answer));
        }
        answers
    }

    /// The time at which [`poll`](Self::poll) may have answers without a further
    /// request.
    pub fn due(&self) -> Option<Instant> {
        let away = self.entries.iter().filter_map(|entry| match entry.state {
            RankState::Away(since) => Some(since + self.grace),
            RankState::NotThere => Some(self.deadline),
            _ => None,
        });
        away.min()
    }

    /// Whether no rank will come any more.
    pub fn is_over(&self) -> bool {
        self.entries
            .iter()
            .all(|entry| matches!(entry.state, RankState::Finished | RankState::Lost))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bed {
        table: RankTable,
        start: Instant,
    }

    fn bed(size: u32) -> Bed {
        let start = Instant::now();
        let table = RankTable::new(size, start + Duration::from_secs(60), Duration::from_secs(2));
        Bed { table, start }
    }

    impl Bed {
        fn with(mut self, ranks: &[u32]) -> Self {
            let size = self.table.entries.len() as u32;
            ranks.iter().for_each(|rank| self.table.join(*rank, size, u64::from(*rank)).unwrap());
            self
        }

        fn say(&mut self, rank: u32, message: BootMessage) -> Option<BootMessage> {
            self.table.handle(rank, message).unwrap()
        }

        fn after(&mut self, seconds: u64) -> Vec<(u32, BootMessage)> {
            self.table.poll(self.start + Duration::from_secs(seconds))
        }
    }

    #[test]
    fn a_barrier_ends_when_all_ranks_and_their_cards_have_arrived() {
        let mut bed = bed(2).with(&[0, 1]);
        assert_eq!(bed.say(0, BootMessage::Get { rank: 1 }), Some(BootMessage::NoCard { rank: 1 }));
        assert_eq!(
            bed.say(1, BootMessage::Put { card: vec![5] }),
            Some(BootMessage::Done { round: 0 })
        );
        assert_eq!(bed.say(0, BootMessage::Barrier { round: 1 }), None);
        assert_eq!(bed.after(0), []);
        assert_eq!(bed.say(1, BootMessage::Barrier { round: 1 }), None);
        let done = BootMessage::Done { round: 1 };
        assert_eq!(bed.after(0), [(0, done.clone()), (1, done)]);
        let card = BootMessage::Card { rank: 1, card: vec![5] };
        assert_eq!(bed.say(0, BootMessage::Get { rank: 1 }), Some(card));
        assert_eq!(bed.say(0, BootMessage::Get { rank: 9 }), Some(BootMessage::NoCard { rank: 9 }));
        let heads = bed.say(0, BootMessage::GetHeads { from: 1 });
        let Some(BootMessage::Heads { from: 1, runs }) = heads else { panic!("{heads:?}") };
        assert_eq!((runs.len(), runs[0].count, runs[0].head[0]), (1, 1, 5));
        let beyond = BootMessage::GetHeads { from: 2 };
        assert_eq!(bed.table.handle(0, beyond.clone()), Err(beyond));
    }

    #[test]
    fn a_rank_that_reconnects_continues() {
        let mut bed = bed(2).with(&[0, 1]);
        bed.say(0, BootMessage::Barrier { round: 1 });
        bed.say(1, BootMessage::Barrier { round: 1 });
        bed.table.leave(1, bed.start);
        assert_eq!(
            bed.after(1),
            [(0, BootMessage::Done { round: 1 })],
            "rank 1 had arrived before it left"
        );
        bed.table.join(1, 2, 1).unwrap();
        bed.say(1, BootMessage::Barrier { round: 1 });
        assert_eq!(
            bed.after(9),
            [(1, BootMessage::Done { round: 1 })],
            "rank 1 gets the answer that it missed"
        );
    }

    #[test]
    fn a_barrier_names_the_rank_that_is_lost_or_missing() {
        let mut gone = bed(3).with(&[0, 1, 2]);
        gone.say(0, BootMessage::Barrier { round: 1 });
        gone.table.leave(2, gone.start);
        assert_eq!(gone.table.due(), Some(gone.start + Duration::from_secs(2)));
        assert_eq!(gone.after(1), []);
        assert_eq!(gone.after(2), [(0, BootMessage::Lost { rank: 2 })]);
        gone.say(1, BootMessage::Barrier { round: 1 });
        assert_eq!(
            gone.after(2),
            [(1, BootMessage::Lost { rank: 2 })],
            "a rank that arrives later gets the same answer"
        );
        assert_eq!(gone.table.join(2, 3, 2), Err(Refusal::Lost));
        let mut never = bed(3).with(&[0, 2]);
        never.say(0, BootMessage::Barrier { round: 1 });
        assert_eq!(never.after(59), []);
        assert_eq!(never.after(60), [(0, BootMessage::Missing { rank: 1 })]);
    }

    #[test]
    fn a_barrier_does_not_wait_for_a_rank_that_has_finished() {
        let mut bed = bed(2).with(&[0, 1]);
        bed.say(1, BootMessage::Finish);
        bed.table.leave(1, bed.start);
        bed.say(0, BootMessage::Barrier { round: 1 });
        assert_eq!(bed.after(0), [(0, BootMessage::Lost { rank: 1 })]);
        assert!(!bed.table.is_over());
        let unfinished = [0, 1, 9].map(|rank| bed.table.is_unfinished(rank));
        assert_eq!(unfinished, [true, false, false]);
        bed.say(0, BootMessage::Finish);
        assert!(bed.table.is_over());
    }

    #[test]
    fn duplicate_and_unknown_ranks_are_refused() {
        let mut bed = bed(2).with(&[0]);
        assert_eq!(bed.table.join(0, 2, 77), Err(Refusal::Taken));
        assert_eq!(bed.table.join(1, 3, 1), Err(Refusal::Size));
        assert_eq!(bed.table.join(2, 2, 1), Err(Refusal::Size));
        let skips = BootMessage::Barrier { round: 5 };
        assert_eq!(bed.table.handle(0, skips.clone()), Err(skips));
    }
}

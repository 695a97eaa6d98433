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

use super::frame::{Message, Refusal};
use super::heads::runs_of;
use std::time::{Duration, Instant};

/// The cards of a job, and how far each rank has come.
#[derive(Debug)]
pub struct Board {
    seats: Vec<Seat>,
    /// The time after which a rank that has not come is missing.
    deadline: Instant,
    grace: Duration,
}

/// The state of one rank.
#[derive(Debug, Default)]
struct Seat {
    session: Option<u64>,
    card: Option<Vec<u8>>,
    place: Place,
    /// The last barrier that the rank has reached.
    round: u32,
    /// Whether the rank waits for the end of that barrier.
    waits: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    NotThere,
    Connected,
    Away(Instant),
    Lost,
    Finished,
}

impl Board {
    /// Makes a board for `size` ranks; each must come before `deadline`, and must
    /// come back within `grace`.
    pub fn new(size: u32, deadline: Instant, grace: Duration) -> Self {
        Self { seats: (0..size).map(|_| Seat::default()).collect(), deadline, grace }
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
        let seats = self.seats.len();
        let seat = self.seats.get_mut(rank as usize).ok_or(Refusal::Size)?;
        if size as usize != seats {
            return Err(Refusal::Size);
        }
        if seat.session.is_some_and(|known| known != session) {
            return Err(Refusal::Taken);
        }
        match seat.place {
            Place::Lost => return Err(Refusal::Lost),
            Place::Finished => {}
            _ => seat.place = Place::Connected,
        }
        (seat.session, seat.waits) = (Some(session), false);
        Ok(())
    }

    /// Records that the connection of a rank is gone.
    pub fn leave(&mut self, rank: u32, now: Instant) {
        let seat = &mut self.seats[rank as usize];
        seat.waits = false;
        if seat.place == Place::Connected {
            seat.place = Place::Away(now);
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
    pub fn handle(&mut self, rank: u32, message: Message) -> Result<Option<Message>, Message> {
        let size = self.seats.len();
        let seat = &mut self.seats[rank as usize];
        let done = Some(Message::Done { round: 0 });
        match message {
            Message::Put { card } => {
                seat.card = Some(card);
                Ok(done)
            }
            Message::Get { rank } => {
                let card = self.seats.get(rank as usize).and_then(|seat| seat.card.clone());
                Ok(Some(card.map_or(Message::NoCard { rank }, |card| Message::Card { rank, card })))
            }
            Message::GetHeads { from } if (from as usize) < size => {
                let seats = &self.seats[from as usize..];
                let runs = runs_of(seats.iter().map(|seat| seat.card.as_deref()));
                Ok(Some(Message::Heads { from, runs }))
            }
            // The barrier that the rank has reached, repeated, or the next one.
            Message::Barrier { round } if round == seat.round || round == seat.round + 1 => {
                (seat.round, seat.waits) = (round, true);
                Ok(None)
            }
            Message::Finish => {
                seat.place = Place::Finished;
                Ok(done)
            }
            other => Err(other),
        }
    }

    /// Whether a rank has come and has not reported that it is done.
    pub fn is_unfinished(&self, rank: u32) -> bool {
        let seat = self.seats.get(rank as usize);
        seat.is_some_and(|seat| seat.session.is_some() && seat.place != Place::Finished)
    }

    /// The answers that have become due, each with its rank.
    pub fn poll(&mut self, now: Instant) -> Vec<(u32, Message)> {
        let grace = self.grace;
        for seat in &mut self.seats {
            match seat.place {
                Place::Away(since) if now >= since + grace => seat.place = Place::Lost,
                _ => {}
            }
        }
        let reached = self.seats.iter().map(|seat| seat.round).min().unwrap_or(0);
        let first = |wanted: Place| self.seats.iter().position(|seat| seat.place == wanted);
        let lost = first(Place::Lost).or(first(Place::Finished)).map(|rank| rank as u32);
        let missing = first(Place::NotThere).filter(|_| now >= self.deadline);
        let broken = match (missing, lost) {
            (Some(rank), _) => Some(Message::Missing { rank: rank as u32 }),
            (None, Some(rank)) => Some(Message::Lost { rank }),
            (None, None) => None,
        };
        let mut answers = Vec::new();
        for (rank, seat) in (0..).zip(&mut self.seats) {
            let answer = match &broken {
                _ if !seat.waits => continue,
                _ if seat.round <= reached => Message::Done { round: seat.round },
                Some(broken) => broken.clone(),
                None => continue,
            };
            seat.waits = false;
            answers.push((rank, answer));
        }
        answers
    }

    /// The time at which [`poll`](Self::poll) may have answers without a further
    /// request.
    pub fn due(&self) -> Option<Instant> {
        let away = self.seats.iter().filter_map(|seat| match seat.place {
            Place::Away(since) => Some(since + self.grace),
            Place::NotThere => Some(self.deadline),
            _ => None,
        });
        away.min()
    }

    /// Whether no rank will come any more.
    pub fn is_over(&self) -> bool {
        self.seats.iter().all(|seat| matches!(seat.place, Place::Finished | Place::Lost))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bed {
        board: Board,
        start: Instant,
    }

    fn bed(size: u32) -> Bed {
        let start = Instant::now();
        let board = Board::new(size, start + Duration::from_secs(60), Duration::from_secs(2));
        Bed { board, start }
    }

    impl Bed {
        fn with(mut self, ranks: &[u32]) -> Self {
            let size = self.board.seats.len() as u32;
            ranks.iter().for_each(|rank| self.board.join(*rank, size, u64::from(*rank)).unwrap());
            self
        }

        fn say(&mut self, rank: u32, message: Message) -> Option<Message> {
            self.board.handle(rank, message).unwrap()
        }

        fn after(&mut self, seconds: u64) -> Vec<(u32, Message)> {
            self.board.poll(self.start + Duration::from_secs(seconds))
        }
    }

    #[test]
    fn a_barrier_ends_when_all_ranks_and_their_cards_have_arrived() {
        let mut bed = bed(2).with(&[0, 1]);
        assert_eq!(bed.say(0, Message::Get { rank: 1 }), Some(Message::NoCard { rank: 1 }));
        assert_eq!(bed.say(1, Message::Put { card: vec![5] }), Some(Message::Done { round: 0 }));
        assert_eq!(bed.say(0, Message::Barrier { round: 1 }), None);
        assert_eq!(bed.after(0), []);
        assert_eq!(bed.say(1, Message::Barrier { round: 1 }), None);
        let done = Message::Done { round: 1 };
        assert_eq!(bed.after(0), [(0, done.clone()), (1, done)]);
        let card = Message::Card { rank: 1, card: vec![5] };
        assert_eq!(bed.say(0, Message::Get { rank: 1 }), Some(card));
        assert_eq!(bed.say(0, Message::Get { rank: 9 }), Some(Message::NoCard { rank: 9 }));
        let heads = bed.say(0, Message::GetHeads { from: 1 });
        let Some(Message::Heads { from: 1, runs }) = heads else { panic!("{heads:?}") };
        assert_eq!((runs.len(), runs[0].count, runs[0].head[0]), (1, 1, 5));
        let beyond = Message::GetHeads { from: 2 };
        assert_eq!(bed.board.handle(0, beyond.clone()), Err(beyond));
    }

    #[test]
    fn a_rank_that_reconnects_continues() {
        let mut bed = bed(2).with(&[0, 1]);
        bed.say(0, Message::Barrier { round: 1 });
        bed.say(1, Message::Barrier { round: 1 });
        bed.board.leave(1, bed.start);
        assert_eq!(
            bed.after(1),
            [(0, Message::Done { round: 1 })],
            "rank 1 had arrived before it left"
        );
        bed.board.join(1, 2, 1).unwrap();
        bed.say(1, Message::Barrier { round: 1 });
        assert_eq!(
            bed.after(9),
            [(1, Message::Done { round: 1 })],
            "rank 1 gets the answer that it missed"
        );
    }

    #[test]
    fn a_barrier_names_the_rank_that_is_lost_or_missing() {
        let mut gone = bed(3).with(&[0, 1, 2]);
        gone.say(0, Message::Barrier { round: 1 });
        gone.board.leave(2, gone.start);
        assert_eq!(gone.board.due(), Some(gone.start + Duration::from_secs(2)));
        assert_eq!(gone.after(1), []);
        assert_eq!(gone.after(2), [(0, Message::Lost { rank: 2 })]);
        gone.say(1, Message::Barrier { round: 1 });
        assert_eq!(
            gone.after(2),
            [(1, Message::Lost { rank: 2 })],
            "a rank that arrives later gets the same answer"
        );
        assert_eq!(gone.board.join(2, 3, 2), Err(Refusal::Lost));
        let mut never = bed(3).with(&[0, 2]);
        never.say(0, Message::Barrier { round: 1 });
        assert_eq!(never.after(59), []);
        assert_eq!(never.after(60), [(0, Message::Missing { rank: 1 })]);
    }

    #[test]
    fn a_barrier_does_not_wait_for_a_rank_that_has_finished() {
        let mut bed = bed(2).with(&[0, 1]);
        bed.say(1, Message::Finish);
        bed.board.leave(1, bed.start);
        bed.say(0, Message::Barrier { round: 1 });
        assert_eq!(bed.after(0), [(0, Message::Lost { rank: 1 })]);
        assert!(!bed.board.is_over());
        let unfinished = [0, 1, 9].map(|rank| bed.board.is_unfinished(rank));
        assert_eq!(unfinished, [true, false, false]);
        bed.say(0, Message::Finish);
        assert!(bed.board.is_over());
    }

    #[test]
    fn duplicate_and_unknown_ranks_are_refused() {
        let mut bed = bed(2).with(&[0]);
        assert_eq!(bed.board.join(0, 2, 77), Err(Refusal::Taken));
        assert_eq!(bed.board.join(1, 3, 1), Err(Refusal::Size));
        assert_eq!(bed.board.join(2, 2, 1), Err(Refusal::Size));
        let skips = Message::Barrier { round: 5 };
        assert_eq!(bed.board.handle(0, skips.clone()), Err(skips));
    }
}

//! Waiting until nobody reads any more who read when this began, anywhere.
//!
//! ```text
//!  of each rank:  crowd: read ─► nobody of either phase ─► next
//!                   │  ▲ └─► somebody of the other phase: pause, again
//!                   │  └───────── lost the race ──┐
//!                   └─► compare-swap: turn ───────┘
//!                         └─► until nobody of the phase before is left,
//!                             or the phase was turned again
//! ```
//!
//! The phase is turned only when nobody of the other one is left, so whoever
//! finds it turned again knows that all of the one before have gone. One sweep
//! is good for all pages that had moved before it began: its cost, one read a
//! rank where nobody reads, is shared by as many frames as were kept for it.

use super::gate::Crowd;
use super::{Act, Book, Word};
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_core::sync::mutant;

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sweep {
    book: Book,
    rank: u32,
    at: At,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum At {
    Look,
    Pause,
    Turn(u64),
    Wait(u8),
    PauseFor(u8),
    Over,
    Failed(AddrError),
}

impl Sweep {
    /// One that is to begin.
    pub const fn new(book: Book) -> Self {
        Self { book, rank: 0, at: At::Look }
    }

    /// What comes next. At [`Act::Over`] what was retired before may be freed.
    pub fn act(&self) -> Act {
        let crowd = self.book.crowd(Rank(self.rank));
        match self.at {
            // Not a load: a read that comes into the crowd after this one sees
            // by it which headers were marked before.
            At::Look => Act::Do(Word::add(crowd, 0)),
            At::Wait(_) => Act::Do(Word::load(crowd)),
            At::Pause | At::PauseFor(_) => Act::Pause(None),
            At::Turn(seen) => Act::Do(Word::exchange(crowd, seen, Crowd(seen).turned().0)),
            At::Over => Act::Over,
            At::Failed(error) => Act::Failed(error),
        }
    }

    /// How it ended.
    pub fn answer(&mut self, result: Result<u64, AddrError>) {
        self.at = match (result, self.at) {
            // It reads nothing any more.
            (Err(AddrError::PeerLost { .. }), At::Look | At::Turn(_) | At::Wait(_))
                if !mutant("page_sweep_ends_at_the_dead") =>
            {
                self.next()
            }
            (Err(error), _) => At::Failed(error),
            (Ok(old), At::Turn(seen)) if old == seen => At::Wait(Crowd(seen).phase()),
            (Ok(old), At::Look | At::Turn(_)) => self.finds(old),
            (Ok(old), At::Wait(phase)) => {
                let crowd = Crowd(old);
                let is_empty = crowd.count(phase) == 0 || crowd.phase() == phase;
                if is_empty { self.next() } else { At::PauseFor(phase) }
            }
            (Ok(_), At::Pause) => At::Look,
            (Ok(_), At::PauseFor(phase)) => At::Wait(phase),
            (Ok(_), At::Over | At::Failed(_)) => unreachable!("{self:?} asked for nothing"),
        };
    }

    fn finds(&mut self, bits: u64) -> At {
        let crowd = Crowd(bits);
        match [crowd.phase(), 1 - crowd.phase()].map(|phase| crowd.count(phase)) {
            _ if mutant("page_sweep_blind") => self.next(),
            [0, 0] => self.next(),
            [_, 0] => At::Turn(bits),
            _ => At::Pause,
        }
    }

    fn next(&mut self) -> At {
        self.rank += 1;
        if self.rank < self.book.shape().homes.ranks() { At::Look } else { At::Over }
    }
}

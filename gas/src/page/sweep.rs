//! A sweep: a grace period over all ranks. It waits until all reads that were under
//! way when it began have ended, anywhere.
//!
//! ```text
//!  of each rank:  crowd: read ─► no read of either phase ─► next
//!                   │  ▲ └─► reads of the other phase: pause, again
//!                   │  └───────── lost the race ──┐
//!                   └─► compare-swap: turn ───────┘
//!                         └─► until no read of the phase before is left,
//!                             or the phase was turned again
//! ```
//!
//! The phase is turned only when the count of the other phase is 0. So a sweep that
//! finds the phase turned again has the proof that all reads of the phase before
//! have ended. One sweep is enough for all pages that had moved before it began: its
//! cost, one read per rank without readers, is shared by all frames that were
//! collected for it.

use super::gate::Crowd;
use super::{Act, Book, Word};
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_core::sync::mutant;

/// One sweep.
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
    /// A sweep that is to begin.
    pub const fn new(book: Book) -> Self {
        Self { book, rank: 0, at: At::Look }
    }

    /// The next step. At [`Act::Over`] frames that were retired before the sweep
    /// began may be freed.
    pub fn act(&self) -> Act {
        let crowd = self.book.crowd(Rank(self.rank));
        match self.at {
            // Not a load: a read that enters the crowd after this operation sees
            // through it which headers were marked before.
            At::Look => Act::Do(Word::add(crowd, 0)),
            At::Wait(_) => Act::Do(Word::load(crowd)),
            At::Pause | At::PauseFor(_) => Act::Pause(None),
            At::Turn(seen) => Act::Do(Word::exchange(crowd, seen, Crowd(seen).turned().0)),
            At::Over => Act::Over,
            At::Failed(error) => Act::Failed(error),
        }
    }

    /// Takes the result of the last step.
    pub fn answer(&mut self, result: Result<u64, AddrError>) {
        self.at = match (result, self.at) {
            // A dead rank reads nothing any more.
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
            (Ok(_), At::Over | At::Failed(_)) => unreachable!("no answer is due: {self:?}"),
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

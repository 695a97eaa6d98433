//! The thief of a rank, and its choice of victims.

use super::{Task, TaskWords};
use tsumugi::{AddrError, Rank, Runtime, Stealer};
use tsumugi_core::random;

/// Looks at other ranks in a random order, more often at those of its node.
pub(super) struct Thief {
    stealer: Stealer<TaskWords>,
    near: Vec<Rank>,
    all: Vec<Rank>,
    seed: u64,
}

impl Thief {
    pub(super) fn new(rt: &Runtime, stealer: Stealer<TaskWords>) -> Self {
        let others = |ranks: &mut dyn Iterator<Item = Rank>| {
            ranks.filter(|rank| *rank != rt.rank()).collect::<Vec<_>>()
        };
        let (near, all) = (others(&mut rt.neighbours()), others(&mut rt.ranks()));
        Self { stealer, near, all, seed: u64::from(rt.rank().0) }
    }

    /// Takes the oldest task of one other rank, if that has any.
    pub(super) fn steal(&mut self) -> Result<Option<Task>, AddrError> {
        let Some(from) = self.choose() else { return Ok(None) };
        Ok(self.stealer.steal(from)?.map(|words| Task::from_words(&words)))
    }

    fn choose(&mut self) -> Option<Rank> {
        self.seed = random::first(self.seed);
        let among = match self.seed % FAR_ONE_IN {
            0 => &self.all,
            _ if self.near.is_empty() => &self.all,
            _ => &self.near,
        };
        among.get((self.seed >> 32) as usize % among.len().max(1)).copied()
    }
}

/// One of so many thefts may go to another node.
const FAR_ONE_IN: u64 = 4;

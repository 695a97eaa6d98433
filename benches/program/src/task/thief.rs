//! The thief of a rank, and its choice of victims.

use super::memory::Memory;
use super::{Task, WORDS};
use tsumugi::{AddrError, Rank, Runtime};
use tsumugi_core::random;
use tsumugi_gas::steal::{Theft, TheftAction};

/// Looks at other ranks in a random order, more often at those of its node.
pub(super) struct Thief {
    near: Vec<Rank>,
    all: Vec<Rank>,
    seed: u64,
}

impl Thief {
    pub(super) fn new(rt: &Runtime) -> Self {
        let others = |ranks: &mut dyn Iterator<Item = Rank>| {
            ranks.filter(|rank| *rank != rt.rank()).collect::<Vec<_>>()
        };
        let (near, all) = (others(&mut rt.neighbours()), others(&mut rt.ranks()));
        Self { near, all, seed: u64::from(rt.rank().0) }
    }

    /// Takes the oldest task of one other rank, if that has any.
    pub(super) fn steal(
        &mut self,
        rt: &Runtime,
        memory: &Memory,
    ) -> Result<Option<Task>, AddrError> {
        let Some(from) = self.choose() else { return Ok(None) };
        let mut theft = Theft::new(memory.ends(from).addr(), super::DEQUE_TASKS);
        let mut words = [0; WORDS];
        loop {
            let answer = match theft.act() {
                TheftAction::Do(op) if op.writes() => {
                    rt.compare_swap(memory.ends(from), op.compare(), op.operand())
                }
                TheftAction::Do(_) => rt.get(memory.ends(from)),
                TheftAction::Copy(item) => {
                    rt.get_slice(memory.item(from, item), &mut words).map(|()| 0)
                }
                TheftAction::Taken => return Ok(Some(Task::from_words(&words))),
                TheftAction::Nothing => return Ok(None),
                TheftAction::Failed(error) => return Err(error),
            };
            theft.answer(answer);
        }
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

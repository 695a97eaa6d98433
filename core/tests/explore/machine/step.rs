//! The steps of machines, their lines in a trace, and the digest of a state.

use super::REQUESTS;
use super::world::{Work, World};
use crate::program::PeerIndex;
use crate::search::mix;
use tsumugi_core::msg::MatchingDesign;
use tsumugi_core::msg::locked_matching::{Board, PostState};

#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// The next operation of the rank's program.
    Do {
        rank: PeerIndex,
    },
    /// The rank sees one more packet and takes it.
    Take {
        rank: PeerIndex,
        from: PeerIndex,
    },
    /// The rank looks at its lanes, without any packet that it has not seen.
    Look {
        rank: PeerIndex,
    },
    /// A copy under way is done, or its part that was claimed last.
    Copied {
        index: u8,
    },
    Die {
        rank: PeerIndex,
    },
    /// The rank dies while it holds the lock of another rank's board.
    DieLocking {
        rank: PeerIndex,
        of: PeerIndex,
    },
    Lose {
        rank: PeerIndex,
        peer: PeerIndex,
    },
}

/// A digest of the states of a board's posts.
pub fn digest_of(board: &Board<'_>) -> u64 {
    let mut digest = 0;
    for index in 0..REQUESTS as u32 {
        let word = match board.standing(index) {
            PostState::Posted => 0,
            PostState::Claimed(rank) => 1 + u64::from(rank.0),
            PostState::Done(arrival) => 8 + arrival.len,
            PostState::Failed(_) => 4,
        };
        mix(&mut digest, word);
    }
    digest
}

impl World<'_, '_> {
    pub fn digest(&self) -> u64 {
        let mut digest = self.net.borrow().digest();
        for Work { rank, job, part, has_claimed } in &self.works {
            mix(&mut digest, u64::from(*rank) ^ job.copy.to);
            let from = part.as_ref().map_or(1, |part| part.start << 1);
            mix(&mut digest, from << 1 | u64::from(*has_claimed));
        }
        if self.real.design == MatchingDesign::Locked {
            for board in self.boards {
                mix(&mut digest, digest_of(board));
            }
        }
        digest
    }

    pub fn tell(&self, step: Step) -> String {
        match step {
            Step::Do { rank } => format!("rank {rank}: {:?}", self.next(rank)),
            Step::Take { rank, from } => {
                let net = self.net.borrow();
                let lane = &net.lanes[usize::from(from)][usize::from(rank)];
                let (packet, load, _) = &lane.packets[lane.seen];
                format!("rank {rank} takes from rank {from}: {packet:?} {load:?}")
            }
            Step::Copied { index } => {
                let work = &self.works[usize::from(index)];
                let (rank, copy) = (work.rank, &work.job.copy);
                match (work.job.split, &work.part) {
                    (None, _) => {
                        format!("rank {rank} has copied {:#x} to {:#x}", copy.from, copy.to)
                    }
                    (Some((_, side)), None) => format!("rank {rank}, {side:?}, claims"),
                    (Some((_, side)), Some(part)) => {
                        format!("rank {rank}, {side:?}, has copied {part:?} to {:#x}", copy.to)
                    }
                }
            }
            _ => format!("{step:?}"),
        }
    }
}

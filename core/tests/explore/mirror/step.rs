//! The steps of the model of the mirror, and their lines in a trace.

use super::{Mirror, Packet, Place, State};
use crate::program::{Op, PeerIndex};

#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// The next operation of the rank's program; a send goes by the lane.
    Do {
        rank: PeerIndex,
    },
    /// A send that found a post copies into it.
    Claim {
        rank: PeerIndex,
    },
    Publish {
        rank: PeerIndex,
        post: u8,
    },
    Take {
        rank: PeerIndex,
        from: PeerIndex,
    },
    Copied {
        index: u8,
    },
    Return {
        rank: PeerIndex,
        from: PeerIndex,
    },
    ReadReturned {
        rank: PeerIndex,
        to: PeerIndex,
    },
    FindEmpty {
        rank: PeerIndex,
        to: PeerIndex,
    },
    Die {
        rank: PeerIndex,
    },
    Lose {
        rank: PeerIndex,
        peer: PeerIndex,
    },
}

impl Mirror<'_> {
    /// The steps that are possible between two ranks.
    pub(super) fn steps_between(
        &self,
        state: &State,
        rank: PeerIndex,
        peer: PeerIndex,
        steps: &mut std::vec::Vec<Step>,
    ) {
        let lane = &state.lanes[usize::from(peer)][usize::from(rank)];
        let is_dead = state.nodes[usize::from(peer)].is_dead;
        let mine = &state.nodes[usize::from(rank)].peers[usize::from(peer)];
        let theirs = &state.nodes[usize::from(peer)].peers[usize::from(rank)];
        let waits = lane.first().is_some_and(|packet| match *packet {
            Packet::Delivered { message, .. } => {
                self.place == Place::Held && !is_dead && self.is_copying(state, rank, message)
            }
            _ => false,
        });
        if !lane.is_empty() && !waits {
            steps.push(Step::Take { rank, from: peer });
        }
        let early = self.is("lost_before_the_lane_is_empty");
        if is_dead && !mine.is_lost && (lane.is_empty() || early) {
            steps.push(Step::Lose { rank, peer });
        }
        // Only if it makes a difference: the log has an entry that can go.
        let said = state.returned[usize::from(rank)][usize::from(peer)];
        if theirs.log.iter().any(|&(seq, _)| (said..mine.taken).contains(&seq)) {
            steps.push(Step::Return { rank, from: peer });
        }
        let said = state.returned[usize::from(peer)][usize::from(rank)];
        let can_go = mine.log.iter().any(|&(seq, _)| seq < said);
        if self.is("log_dropped_after_an_earlier_look") {
            if lane.is_empty() && mine.pending.is_none() && !mine.log.is_empty() {
                steps.push(Step::FindEmpty { rank, to: peer });
            }
            if mine.pending.is_some() && can_go {
                steps.push(Step::ReadReturned { rank, to: peer });
            }
        } else {
            if mine.pending.is_none_or(|before| before < said) && can_go {
                steps.push(Step::ReadReturned { rank, to: peer });
            }
            if lane.is_empty() && mine.pending.is_some() {
                steps.push(Step::FindEmpty { rank, to: peer });
            }
        }
    }

    /// The line of a trace for a step that is about to happen.
    pub(super) fn told(&self, before: &State, step: Step) -> String {
        let node = |rank: PeerIndex| &before.nodes[usize::from(rank)];
        match step {
            Step::Do { rank } => match self.next(before, rank) {
                Some(Op::Post { from, tag }) => {
                    let number = node(rank).posts.len();
                    format!("rank {rank} posts receive {number}: from {from:?}, tag {tag:?}")
                }
                Some(op) => format!("rank {rank}: {op:?}, by the lane"),
                None => format!("{step:?}"),
            },
            Step::Claim { rank } => {
                format!("rank {rank}: {:?}, directly", self.next(before, rank))
            }
            Step::Publish { rank, post } => format!("rank {rank} publishes receive {post}"),
            Step::Take { rank, from } => {
                let packet = &before.lanes[usize::from(from)][usize::from(rank)][0];
                format!("rank {rank} takes from rank {from}: {packet:?}")
            }
            Step::Copied { index } => {
                format!("the copy is done: {:?}", before.copies[usize::from(index)])
            }
            Step::Return { rank, from } => {
                let taken = node(rank).peers[usize::from(from)].taken;
                format!("rank {rank} tells rank {from} in the return line: {taken} taken")
            }
            Step::ReadReturned { rank, to } => {
                format!("rank {rank} reads the return line of rank {to}")
            }
            Step::FindEmpty { rank, to } => {
                format!("rank {rank} finds the lane from rank {to} empty")
            }
            Step::Die { rank } => format!("rank {rank} dies"),
            Step::Lose { rank, peer } => format!("rank {rank} learns that rank {peer} is dead"),
        }
    }
}

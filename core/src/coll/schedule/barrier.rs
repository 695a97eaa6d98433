//! The dissemination barrier (D. Hensgen, R. Finkel, U. Manber: "Two algorithms for
//! barrier synchronization", 1988): in round `k` each member notifies the one at the
//! distance `2^k`. So after log2 P rounds each has heard of all.

use super::peers::{log2_ceil, minus, plus};
use super::step::{BufferSpan, CollStep};
use crate::mutate;

#[derive(Clone, Copy, Debug)]
pub struct Dissemination {
    pub(super) me: u32,
    pub(super) size: u32,
}

impl Dissemination {
    pub(super) const fn rounds(&self) -> u32 {
        log2_ceil(self.size)
    }

    pub(super) fn step(&self, round: u32, index: u32) -> Option<CollStep> {
        let Self { me, size } = *self;
        let distance = mutate!("coll_barrier_short": 1 << round => 1);
        match index {
            0 => Some(CollStep::Send { to: plus(me, distance, size), from: BufferSpan::EMPTY }),
            1 => {
                let from = minus(me, distance, size);
                Some(CollStep::Receive { from, into: BufferSpan::EMPTY })
            }
            _ => None,
        }
    }
}

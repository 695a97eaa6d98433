//! A partition of the network that lasts longer than nodes wait, and then heals.
//!
//! ```text
//!  cut ──► give up, pair by pair ──► notified: nodes end
//!    └────────────── heal ──────────────┘
//!              sooner or later: messages of before and during the cut arrive
//! ```
//!
//! The nodes are on two sides. Either the nodes of one side give all nodes of the
//! other side up, and these end when they have been notified. Or each side gives the
//! other up; then both go on, each as a job of its own, or the far side ends when it
//! has been notified.

use super::actor::Actor;
use super::net::Net;
use crate::mem::Rank;
use crate::random::SplitMix64;
use crate::time::{Clock, Instant};
use alloc::vec::Vec;

/// A partition of a network; see the module's documentation.
#[derive(Clone, Debug)]
pub struct NetPartition {
    /// For each node whether it is on the far side, which is always given up.
    far: Vec<bool>,
    is_mutual: bool,
    far_ends: bool,
    /// The steps, each with its time in nanoseconds from the start.
    steps: Vec<(u64, PartitionStep)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PartitionStep {
    Cut,
    GiveUp(Rank, Rank),
    Heal,
    End(Rank),
}

impl NetPartition {
    /// A partition of `nodes` nodes, drawn from `seed`, that begins within
    /// `within_ns` nanoseconds; node `stays` is on the side that never ends.
    ///
    /// # Panics
    ///
    /// If there is only one node.
    pub fn drawn(nodes: u32, seed: u64, within_ns: u64, stays: Rank) -> Self {
        assert!(nodes > 1, "a network partition needs at least two nodes, not {nodes}");
        let mut draw = SplitMix64::new(seed ^ SALT);
        let mut far: Vec<bool> = (0..nodes).map(|_| draw.chance(500)).collect();
        far[stays.0 as usize] = false;
        if !far.contains(&true) {
            let other = 1 + draw.below(u64::from(nodes) - 1) as u32;
            far[((stays.0 + other) % nodes) as usize] = true;
        }
        let is_mutual = draw.chance(500);
        let far_ends = !is_mutual || draw.chance(500);
        let cut = draw.below(within_ns);
        let first = cut + draw.below(SILENCE_NS);
        let spread = [1, SPREAD_NS][draw.below(2) as usize];
        let side = |is_far: bool| -> Vec<Rank> {
            (0..nodes).map(Rank).filter(|rank| far[rank.0 as usize] == is_far).collect()
        };
        let (near, away) = (side(false), side(true));
        let mut steps = Vec::new();
        let mut last = first;
        for &one in &near {
            for &other in &away {
                let mut at = || {
                    let at = first + draw.below(spread);
                    last = last.max(at);
                    at
                };
                let there = at();
                steps.push((there, PartitionStep::GiveUp(one, other)));
                if is_mutual {
                    steps.push((at(), PartitionStep::GiveUp(other, one)));
                }
            }
        }
        // The network may heal before the last node has given its peers up.
        let heal = if draw.chance(500) {
            first + draw.below(last - first + 1)
        } else {
            last + draw.below(SILENCE_NS)
        };
        steps.push((cut, PartitionStep::Cut));
        steps.push((heal, PartitionStep::Heal));
        if far_ends {
            for &rank in &away {
                let told = heal.max(last) + draw.below(SILENCE_NS);
                steps.push((told, PartitionStep::End(rank)));
            }
        }
        steps.sort_unstable();
        Self { far, is_mutual, far_ends, steps }
    }

    /// Runs the steps from now on, while the actors go on; `ended` is called for
    /// each node that ends.
    pub fn run<A: Actor>(
        &self,
        net: &Net,
        actors: &mut [A],
        mut ended: impl FnMut(&mut [A], Rank),
    ) {
        let begin = net.now().as_ns();
        for &(after, step) in &self.steps {
            net.run_until(Instant::from_ns(begin + after), actors);
            self.act(net, step);
            if let PartitionStep::End(rank) = step {
                ended(actors, rank);
            }
        }
    }

    /// Like [`run`](Self::run), for nodes that are no actors: `run_until` must let
    /// all nodes go on until the given time.
    pub fn run_by(&self, net: &Net, mut run_until: impl FnMut(Instant)) {
        let begin = net.now().as_ns();
        for &(after, step) in &self.steps {
            run_until(Instant::from_ns(begin + after));
            self.act(net, step);
        }
    }

    fn act(&self, net: &Net, step: PartitionStep) {
        match step {
            PartitionStep::Cut => net.cut(|rank| self.far[rank.0 as usize]),
            PartitionStep::GiveUp(by, whom) => net.give_up(by, whom),
            PartitionStep::Heal => net.heal(),
            PartitionStep::End(rank) => net.kill(rank),
        }
    }

    /// Whether a node has ended when all steps are done.
    pub fn has_ended(&self, rank: Rank) -> bool {
        self.far_ends && self.far[rank.0 as usize]
    }

    /// Whether, when all steps are done, node `whom` has ended or node `by` has
    /// given it up.
    pub fn is_lost(&self, by: Rank, whom: Rank) -> bool {
        let [by, whom] = [by, whom].map(|rank| self.far[rank.0 as usize]);
        by != whom && (whom || self.is_mutual)
    }

    /// Whether two nodes are on different sides.
    pub fn parts(&self, a: Rank, b: Rank) -> bool {
        self.far[a.0 as usize] != self.far[b.0 as usize]
    }
}

/// Makes the random numbers of a partition differ from the network's.
const SALT: u64 = 0x5a1d_70a7;
/// The longest time from a cut until the first node gives another up. The times
/// until the network heals, and until a node ends that was given up, have the same
/// limit.
const SILENCE_NS: u64 = 100_000;
/// The longest time from the first node that gives another up to the last, if they
/// do not all do so at once.
const SPREAD_NS: u64 = 50_000;

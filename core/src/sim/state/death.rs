//! Nodes that die, and cuts of the network between nodes.

use super::NetState;
use crate::mem::Rank;
use crate::sim::flight::DueAction;

impl NetState {
    pub(in crate::sim) fn kill(&mut self, rank: Rank) {
        if self.is_dead(rank) {
            return;
        }
        let now = self.calendar.now_ns();
        self.nodes[rank.0 as usize].dead_at = now;
        self.forget_unanswered(rank);
        for node in 0..self.config.nodes {
            let knows = self.suspicion.has_given_up(Rank(node), rank);
            if !knows && !self.is_dead(Rank(node)) {
                let jitter = self.draw.below(self.config.latency_ns_max);
                let at = now + self.config.detect_ns + jitter;
                self.calendar.add(at, DueAction::Death, node, u64::from(rank.0));
            }
        }
    }

    pub(in crate::sim) fn is_dead(&self, rank: Rank) -> bool {
        self.nodes[rank.0 as usize].dead_at != u64::MAX
    }

    pub(in crate::sim) fn cut(&mut self, side: impl Fn(Rank) -> bool) {
        self.is_cut = true;
        for (index, node) in self.nodes.iter_mut().enumerate() {
            node.side = side(Rank(index as u32));
        }
    }

    pub(in crate::sim) fn heal(&mut self) {
        self.is_cut = false;
    }
}

//! Ranks that die, and ranks that are given up and live.

use super::Game;
use tsumugi_core::mem::PeerIndex;

/// Two nodes of which one gives the other up, or both give each other up.
pub struct Parted {
    /// A rank of the node that is given up in any case.
    far: usize,
    is_mutual: bool,
    far_ends: bool,
}

impl Game<'_> {
    /// A rank dies.
    pub(super) fn end(&mut self, rank: usize) {
        self.players[rank].is_dead = true;
        self.net.post.drop_some(rank, &mut self.seeded);
    }

    /// The network is cut.
    pub(super) fn part(&mut self) {
        let far = self.draw(self.players.len() as u64) as usize;
        let is_mutual = self.draw(2) == 0;
        let far_ends = !is_mutual || self.draw(2) == 0;
        self.net.post.is_cut = true;
        self.parted = Some(Parted { far, is_mutual, far_ends });
    }

    /// Whether a rank is lost to another rank, which may not have learned it yet.
    pub(super) fn is_lost(&self, by: usize, whom: usize) -> bool {
        self.players[whom].is_dead || self.gives_up(by, whom)
    }

    fn gives_up(&self, by: usize, whom: usize) -> bool {
        let Some(Parted { far, is_mutual, .. }) = self.parted else { return false };
        let is_far = |rank| !self.net.post.is_far(far, PeerIndex(rank as u32));
        is_far(by) != is_far(whom) && (is_mutual || is_far(whom))
    }

    /// Whether no rank is lost to any rank.
    pub(super) fn is_whole(&self) -> bool {
        self.parted.is_none() && self.players.iter().all(|player| !player.is_dead)
    }

    /// Reports the next lost rank to a rank; returns whether there was one.
    pub(super) fn lose_one(&mut self, rank: usize) -> bool {
        let all = 0..self.players.len();
        let mut lost = all.filter(|whom| self.is_lost(rank, *whom));
        let Some(lost) = lost.find(|whom| !self.players[rank].told[*whom]) else { return false };
        if self.players[lost].is_dead {
            self.net.see_all(lost, rank);
            self.net.post.deliver_all(lost, rank);
        }
        self.players[rank].is_asleep = false;
        self.players[rank].told[lost] = true;
        let (machine, mut wire) = self.machine(rank);
        machine.lost(&mut wire, PeerIndex(lost as u32));
        if self.gives_up(rank, lost) {
            self.net.post.give_up(rank, lost);
        } else {
            self.net.post.lose(rank, lost);
        }
        self.collect(rank);
        true
    }

    /// Reports all losses, heals the cut, and ends the ranks of the other node if the plan says so.
    pub(super) fn mend(&mut self) {
        let ranks = 0..self.players.len();
        if self.parted.is_none() {
            return;
        }
        for rank in ranks.clone() {
            while !self.players[rank].is_dead && self.lose_one(rank) {}
        }
        self.net.post.is_cut = false;
        let Some(Parted { far, far_ends: true, .. }) = self.parted else { return };
        let ended: Vec<usize> =
            ranks.filter(|rank| !self.net.post.is_far(far, PeerIndex(*rank as u32))).collect();
        ended.into_iter().for_each(|rank| self.end(rank));
    }
}

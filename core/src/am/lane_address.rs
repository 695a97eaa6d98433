//! The place of this rank's lanes in a peer's memory, and the operations on it.

use super::lanes::{AmLane, AmShape};
use super::tables::AmPeer;
use crate::mem::{PeerIndex, RemoteAddr};
use crate::op::{Kind, Op};

/// This rank's place in a peer's memory: the start of that memory, its shape, and
/// the number of this rank's lanes in it.
#[derive(Clone, Copy)]
pub(super) struct LaneAddress {
    pub(super) at: RemoteAddr,
    pub(super) shape: AmShape,
    pub(super) own: PeerIndex,
}

impl LaneAddress {
    /// Returns the place in the memory of a peer, if its address is known.
    pub(super) fn of(peer: &AmPeer, shape: AmShape) -> Option<Self> {
        Some(Self { at: peer.at?, shape, own: PeerIndex(peer.own) })
    }

    /// Returns the address of cell `number` of a lane.
    pub(super) fn cell(&self, lane: AmLane, number: u32) -> RemoteAddr {
        self.at.add(self.shape.cell(lane, self.own, number) as u64)
    }

    /// Returns the operation that rings the bell for one cell.
    pub(super) fn ring(&self) -> Op {
        let (offset, one) = self.shape.arrival(self.own);
        Op::atomic(Kind::FetchAdd, self.at.add(offset as u64), one).notifying()
    }

    /// Returns the operation that sends the count of the peer's requests that
    /// were taken.
    pub(super) fn return_credit(&self, taken: u32) -> Op {
        // A swap: when it has completed, the word is at the peer.
        let credit = self.at.add(self.shape.credit(self.own) as u64);
        Op::atomic(Kind::Swap, credit, u64::from(taken))
    }

    /// Returns the operation that rings the bell for returned credits.
    pub(super) fn ring_notice(&self) -> Op {
        let (offset, bit) = self.shape.notice(self.own);
        Op::atomic(Kind::FetchOr, self.at.add(offset as u64), bit).notifying()
    }
}

//! The death of a rank: requests that wait for it end.

use super::list::IndexList;
use super::machine::MessageMachine;
use super::outcome::RequestError;
use super::tables::{DuePacket, OfferState, RequestState};
use super::wire::LaneTransport;
use crate::mem::PeerIndex;

impl MessageMachine<'_> {
    /// Takes the death of a rank. Packets that it had sent before are taken
    /// first; messages that have all their bytes here can still be received.
    /// Every other request that waits for the rank ends with [`RequestError::PeerLost`];
    /// receives from any source go on.
    ///
    /// Buffers that are being copied from or to the rank are in use until
    /// [`job_done`](Self::job_done).
    pub fn lost<W: LaneTransport>(&mut self, wire: &mut W, peer: PeerIndex) {
        let from = peer.0 as usize;
        if from >= self.tables.peers.len() || self.tables.peers[from].lost {
            return;
        }
        self.lose_lock(peer);
        self.drain(wire, from);
        self.lose_claims(wire, from);
        self.tables.peers[from].lost = true;
        for index in 0..self.tables.requests.len() {
            self.forget_question(index, from);
            let entry = &self.tables.requests[index];
            let is_its = entry.peer == peer.0 || entry.source == peer.0;
            if is_its && self.abandon(index, from) {
                self.end(index, Some(RequestError::PeerLost { peer }));
            }
        }
        let record = &mut self.tables.peers[from];
        debug_assert_eq!((record.unoffered, record.offered, record.held), (0, 0, 0));
        record.dues = IndexList::EMPTY;
        record.mirror_len = 0;
        record.acks = 0;
        record.revisit = false;
        if record.credits_due {
            record.credits_due = false;
            self.credits_due.remove(self.tables.peers, from);
        }
        if core::mem::take(&mut self.tables.peers[from].busy) {
            self.busy.remove(self.tables.peers, from);
        }
    }

    /// Removes a request that waits for the rank from its lists. Returns whether
    /// the request must end with an error.
    pub(super) fn abandon(&mut self, index: usize, from: usize) -> bool {
        let entry = &mut self.tables.requests[index];
        match entry.state {
            RequestState::Free | RequestState::Ended => return false,
            // A job ends by itself.
            RequestState::Pushing
            | RequestState::Claiming
            | RequestState::Fetching
            | RequestState::Helping => return false,
            RequestState::Waiting => {
                self.tables.peers[from].waiting.remove(self.tables.requests, index);
            }
            RequestState::Posted => {
                self.unpost(index);
                self.tables.requests[index].offered = OfferState::No;
            }
            RequestState::Told | RequestState::Streaming | RequestState::Coming => {}
            // The own bytes are here, or were sent.
            RequestState::Closing => {
                let is_whole = entry.due == DuePacket::Fin && entry.error.is_none();
                entry.due = DuePacket::Nothing;
                if is_whole {
                    self.end(index, None);
                    return false;
                }
            }
        }
        self.tables.requests[index].due = DuePacket::Nothing;
        true
    }
}

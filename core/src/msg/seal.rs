//! The end of the job: the rank takes no part in messages any more, and requests that
//! are under way end.
//!
//! ```text
//!   seal        no access to a buffer of a peer begins any more; requests whose
//!     │         buffers no peer knows end
//!   is_copying  until false: the accesses that had begun
//!     │
//!   (all ranks have come so far)
//!     │
//!   end_all     no peer accesses a buffer of this rank: all other requests end
//! ```

use super::list::IndexList;
use super::machine::MessageMachine;
use super::outcome::RequestError;
use super::tables::{DuePacket, OfferState, RequestState};
use super::wire::LaneTransport;

impl MessageMachine<'_> {
    /// Ends the part of this rank: from now on the machine takes no packet and begins
    /// no copy, and each send is refused. Sends that wait for room, and receives that
    /// no peer knows, end with [`RequestError::Ended`]. The caller must begin no
    /// receive any more.
    pub fn seal(&mut self) {
        for from in 0..self.tables.peers.len() {
            self.tables.peers[from].lost = true;
        }
        for index in 0..self.tables.requests.len() {
            let state = self.tables.requests[index].state;
            if state == RequestState::Waiting {
                let to = self.tables.requests[index].peer as usize;
                self.tables.peers[to].waiting.remove(self.tables.requests, index);
            } else if state == RequestState::Posted && self.is_private(index) {
                self.unpost(index);
            } else {
                // The last packet of a request tells later whether all bytes are here.
                if state != RequestState::Closing {
                    self.tables.requests[index].due = DuePacket::Nothing;
                }
                continue;
            }
            self.end(index, Some(RequestError::Ended));
        }
        for from in 0..self.tables.peers.len() {
            let peer = &mut self.tables.peers[from];
            peer.dues = IndexList::EMPTY;
            peer.mirror_len = 0;
            peer.acks = 0;
            peer.revisit = false;
            if core::mem::take(&mut self.tables.peers[from].credits_due) {
                self.credits_due.remove(self.tables.peers, from);
            }
            if core::mem::take(&mut self.tables.peers[from].busy) {
                self.busy.remove(self.tables.peers, from);
            }
        }
    }

    /// Whether a copy from or to a buffer of a peer is under way: the caller of
    /// [`seal`](Self::seal) carries these out.
    pub fn is_copying(&self) -> bool {
        self.tables.requests.iter().any(|entry| {
            matches!(
                entry.state,
                RequestState::Pushing
                    | RequestState::Claiming
                    | RequestState::Fetching
                    | RequestState::Helping
            )
        })
    }

    /// Ends all requests of a sealed machine with [`RequestError::Ended`], except
    /// those that have all their bytes. To be called when the machines of all ranks
    /// are sealed and [copy](Self::is_copying) nothing any more, or their ranks have
    /// died.
    pub fn end_all<W: LaneTransport>(&mut self, wire: &mut W) {
        self.find_done(wire);
        let mut at = self.boarded.first();
        while let Some(post) = at {
            at = IndexList::<1>::after(self.tables.requests, post);
            self.remove_post(post);
        }
        for index in 0..self.tables.requests.len() {
            let entry = &self.tables.requests[index];
            debug_assert_ne!(entry.state, RequestState::Waiting, "the machine is sealed");
            if self.abandon(index, 0) {
                self.end(index, Some(RequestError::Ended));
            }
        }
    }

    /// Whether no peer knows the buffer of a posted receive; takes the receive off
    /// the board if that can still be done.
    fn is_private(&mut self, post: usize) -> bool {
        self.take_down(post)
            && matches!(
                self.tables.requests[post].offered,
                OfferState::No | OfferState::Held | OfferState::Ripe
            )
    }
}

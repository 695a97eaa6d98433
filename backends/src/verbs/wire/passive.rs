//! The passive side of connections: pairs for peers that reach this rank. They only
//! answer, and are made when the peer's rank sends a connect request.
//!
//! ```text
//!  connect request ─► connect reply ─► disconnect, a newer connect request, the rank is declared dead
//! ```
//!
//! Beyond `pairs_max` passive pairs, each new one makes this rank request the oldest
//! passive pair to leave; beyond twice as many, new ones are refused.

use super::super::cm::{CmKind, CmMessage};
use super::super::connection::{Connection, ConnectionState, psn_of};
use super::super::pair::{RemoteQp, number_of};
use super::super::passive::PassiveQp;
use super::VerbsWire;

impl VerbsWire {
    /// Handles a connect request: makes a pair for the peer and sends a connect reply.
    pub(in crate::verbs) fn accept_connect(&mut self, message: &CmMessage) {
        let struck = |connection: &Connection| {
            connection.rank == message.from && connection.state == ConnectionState::PeerDead
        };
        if self.connections.iter().any(struck) {
            return;
        }
        if let Some(at) = self.passive_qps.iter().position(|passive| passive.rank == message.from) {
            let passive = &self.passive_qps[at];
            if passive.attempt == message.attempt {
                return self.send_connect_reply(at);
            }
            if passive.attempt > message.attempt {
                return;
            }
            self.end_passive(at);
        }
        if self.passive_qps.len() >= self.pairs_max {
            self.request_disconnect();
            if self.passive_qps.len() >= 2 * self.pairs_max {
                // The peer will send a connect request again.
                return;
            }
        }
        let Ok(ah) = self.device.create_ah(&message.address) else { return };
        let Ok(qp) = self.device.create_qp(&self.qp_params, false) else {
            return self.device.destroy_ah(ah);
        };
        let remote = RemoteQp { pair: message.pair, psn: message.psn, address: message.address };
        if self.device.answer(qp, &remote).is_err() {
            self.device.destroy_qp(qp);
            return self.device.destroy_ah(ah);
        }
        let (rank, attempt, cm_qp) = (message.from, message.attempt, message.address.cm_qp);
        self.passive_qps.push_back(PassiveQp { rank, attempt, qp, ah, cm_qp });
        self.send_connect_reply(self.passive_qps.len() - 1);
    }

    fn send_connect_reply(&mut self, at: usize) {
        let PassiveQp { rank, attempt, qp, ah, cm_qp } = self.passive_qps[at];
        // SAFETY: the pair is open as long as the passive pair.
        let pair = unsafe { number_of(qp) };
        self.send_cm_to(CmKind::ConnectReply, rank, attempt, (pair, psn_of(attempt)), (ah, cm_qp));
    }

    /// Requests the passive pair that has been there longest to leave, and puts it last.
    fn request_disconnect(&mut self) {
        let Some(passive) = self.passive_qps.pop_front() else { return };
        let PassiveQp { rank, attempt, ah, cm_qp, .. } = passive;
        self.passive_qps.push_back(passive);
        self.send_cm_to(CmKind::DisconnectRequest, rank, attempt, (0, 0), (ah, cm_qp));
    }

    /// Ends a passive pair, and its pair.
    pub(in crate::verbs) fn end_passive(&mut self, at: usize) {
        let Some(passive) = self.passive_qps.remove(at) else { return };
        self.device.destroy_qp(passive.qp);
        self.device.destroy_ah(passive.ah);
    }
}

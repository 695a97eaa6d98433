//! The handling of messages between ranks about their pairs, as far as they concern
//! the active side; [`passive`](super::passive) handles those of the passive side.

use super::super::cm::{CmKind, CmMessage};
use super::super::connection::{Connection, ConnectionState, psn_of};
use super::super::pair::{RemoteQp, number_of};
use super::super::passive::PassiveQp;
use super::super::sys::*;
use super::VerbsWire;
use std::time::Instant;
use tsumugi_core::mem::Rank;

impl VerbsWire {
    /// Handles a message that has come.
    pub(in crate::verbs) fn handle_cm_message(&mut self, message: &CmMessage) {
        if message.job != self.job || message.to != self.own {
            self.counters.strays += 1;
            return;
        }
        self.counters.cm_messages += 1;
        match message.word {
            CmKind::ConnectRequest => self.accept_connect(message),
            CmKind::ConnectReply => self.finish_connect(message),
            CmKind::Disconnect => {
                let of = |passive: &PassiveQp| {
                    passive.rank == message.from && passive.attempt == message.attempt
                };
                if let Some(at) = self.passive_qps.iter().position(of) {
                    self.end_passive(at);
                }
            }
            CmKind::DisconnectRequest => self.handle_disconnect_request(message),
        }
    }

    fn finish_connect(&mut self, message: &CmMessage) {
        let of = |connection: &Connection| {
            connection.rank == message.from
                && connection.attempt == message.attempt
                && matches!(connection.state, ConnectionState::Opening { .. })
        };
        let Some(at) = self.connections.iter().position(of) else { return };
        let connection = &mut self.connections[at];
        let remote = RemoteQp { pair: message.pair, psn: message.psn, address: connection.address };
        let answered = self.device.answer(connection.qp, &remote);
        let timeout = self.qp_params.timeout;
        let opened = answered.and_then(|()| {
            self.device.send_requests(connection.qp, &remote, psn_of(connection.attempt), timeout)
        });
        self.connecting -= 1;
        match opened {
            Ok(()) => {
                connection.state = ConnectionState::Open;
                connection.opened_at = Some(Instant::now());
            }
            Err(_) => {
                connection.state = ConnectionState::Unanswered { since: Instant::now() };
                self.destroy_qp(at as u32);
            }
        }
    }

    fn handle_disconnect_request(&mut self, message: &CmMessage) {
        let Some(at) =
            self.connections.iter().position(|connection| connection.rank == message.from)
        else {
            return;
        };
        let connection = &mut self.connections[at];
        if connection.attempt == message.attempt && !connection.qp.is_null() {
            // If the connection is fresh, the peer sends the request again when another
            // passive pair comes.
            if connection.state == ConnectionState::Open && !connection.is_unused(Instant::now()) {
                connection.state = ConnectionState::Draining;
                self.finish_draining(at as u32);
            }
        } else if !connection.ah.is_null() {
            let ah_attr = (connection.ah, connection.address.cm_qp);
            self.send_cm_to(CmKind::Disconnect, message.from, message.attempt, (0, 0), ah_attr);
        }
    }

    /// Sends a message about a connection of this rank.
    pub(in crate::verbs) fn send_cm(&mut self, word: CmKind, at: u32) {
        let Connection { rank, attempt, qp, ah, address, .. } = self.connections[at as usize];
        // SAFETY: a pair that is not null is open.
        let pair = if qp.is_null() { 0 } else { unsafe { number_of(qp) } };
        self.send_cm_to(word, rank, attempt, (pair, psn_of(attempt)), (ah, address.cm_qp));
    }

    /// Sends a message; it may be lost.
    pub(in crate::verbs) fn send_cm_to(
        &mut self,
        word: CmKind,
        to: Rank,
        attempt: u64,
        (pair, psn): (u32, u32),
        ah_attr: (*mut ibv_ah, u32),
    ) {
        let Some(mut cm) = self.cm.take() else { return };
        let address = self.device.address(cm.number(), self.target());
        let message =
            CmMessage { word, job: self.job, from: self.own, to, pair, psn, attempt, address };
        cm.send_cm(&message, ah_attr, |number| self.wr_id(number));
        self.cm = Some(cm);
    }
}

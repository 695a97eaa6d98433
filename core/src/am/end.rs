//! How calls end: by the death of a rank, by their deadline, and for their
//! caller.

use super::machine::{AmMachine, earlier};
use super::outcome::{AmOutput, CallError, Token};
use super::tables::CallState;
use crate::mem::PeerIndex;
use crate::mutate;
use crate::time::Instant;

impl AmMachine<'_> {
    /// Takes the death of a rank: the machine takes nothing from it and sends
    /// nothing to it any more.
    pub(super) fn lose(&mut self, peer: PeerIndex) {
        let Some(record) = self.tables.peers.get_mut(peer.0 as usize) else { return };
        if core::mem::replace(&mut record.lost, true) {
            return;
        }
        record.due = 0;
        self.has_room = true;
        for index in 0..self.tables.calls.len() {
            let call = &mut self.tables.calls[index];
            if call.to != peer {
                continue;
            }
            match call.state {
                CallState::Waiting => self.end(index, CallState::Lost),
                CallState::Late { .. } => call.state = CallState::Late { payload_back: true },
                CallState::Abandoned => self.end(index, CallState::PayloadBack),
                CallState::Free | CallState::Lost | CallState::PayloadBack => {}
            }
        }
    }

    /// Ends the calls with a deadline that has passed.
    pub(super) fn expire(&mut self, now: Instant) {
        self.earliest = None;
        for index in 0..self.tables.calls.len() {
            let call = &self.tables.calls[index];
            let (Some(deadline), CallState::Waiting) = (call.deadline, call.state) else {
                continue;
            };
            if deadline > now {
                self.earliest = earlier(self.earliest, Some(deadline));
                continue;
            }
            mutate!("am_timeout_frees_reply_cell": {} => {
                let peer = &mut self.tables.peers[call.to.0 as usize];
                peer.unanswered = peer.unanswered.saturating_sub(1);
            });
            self.end(index, CallState::Late { payload_back: !self.tables.calls[index].long });
        }
    }

    pub(super) fn end(&mut self, index: usize, state: CallState) {
        self.tables.calls[index].state = state;
        self.ended.push(self.tables.calls, index);
    }

    pub(super) fn free_call(&mut self, index: usize) {
        let call = &mut self.tables.calls[index];
        call.generation = call.generation.wrapping_add(1);
        call.state = CallState::Free;
        self.free_calls.push(self.tables.calls, index);
        self.has_room = true;
    }

    pub(super) fn poll_ended(&mut self) -> Option<AmOutput> {
        let index = self.ended.pop(self.tables.calls)?;
        let call = &self.tables.calls[index];
        let token = Token::new(index, call.generation);
        let out = match call.state {
            CallState::Lost => {
                let rank = self.rank_of(call.to);
                AmOutput::Done { token, result: Err(CallError::PeerLost { rank }) }
            }
            CallState::Late { payload_back } => {
                let done = AmOutput::Done { token, result: Err(CallError::Timeout) };
                match (call.long, payload_back) {
                    (false, _) => {}
                    (true, true) => {
                        self.end(index, CallState::PayloadBack);
                        return Some(done);
                    }
                    (true, false) => {
                        self.tables.calls[index].state = CallState::Abandoned;
                        return Some(done);
                    }
                }
                done
            }
            _ => AmOutput::Released { token },
        };
        self.free_call(index);
        Some(out)
    }
}

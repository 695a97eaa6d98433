//! The passive side of connections: pairs for peers that reach this rank. They only
//! answer, and are made when the peer's rank sends a hello.
//!
//! ```text
//!  hello ─► welcome ─► bye, a newer hello, the rank is struck
//! ```
//!
//! Beyond `pairs_max` guests, each new one makes this rank request the oldest guest
//! to leave; beyond twice as many, new ones are refused.

use super::super::door::{Call, Word};
use super::super::guest::Guest;
use super::super::link::{Link, State, psn_of};
use super::super::pair::{Far, number_of};
use super::Line;

impl Line {
    /// Handles a hello: makes a pair for the peer and sends a welcome.
    pub(in crate::verbs) fn admit(&mut self, call: &Call) {
        let struck = |link: &Link| link.rank == call.from && link.state == State::Struck;
        if self.links.iter().any(struck) {
            return;
        }
        if let Some(at) = self.guests.iter().position(|guest| guest.rank == call.from) {
            let guest = &self.guests[at];
            if guest.turn == call.turn {
                return self.welcome(at);
            }
            if guest.turn > call.turn {
                return;
            }
            self.dismiss(at);
        }
        if self.guests.len() >= self.pairs_max {
            self.ask_to_leave();
            if self.guests.len() >= 2 * self.pairs_max {
                // The peer will send a hello again.
                return;
            }
        }
        let Ok(ah) = self.device.make_way(&call.address) else { return };
        let Ok(qp) = self.device.make_pair(&self.terms, false) else {
            return self.device.end_way(ah);
        };
        let far = Far { pair: call.pair, psn: call.psn, address: call.address };
        if self.device.answer(qp, &far).is_err() {
            self.device.end_pair(qp);
            return self.device.end_way(ah);
        }
        let (rank, turn, door) = (call.from, call.turn, call.address.door);
        self.guests.push_back(Guest { rank, turn, qp, ah, door });
        self.welcome(self.guests.len() - 1);
    }

    fn welcome(&mut self, at: usize) {
        let Guest { rank, turn, qp, ah, door } = self.guests[at];
        // SAFETY: the pair is open as long as the guest.
        let pair = unsafe { number_of(qp) };
        self.say_of(Word::Welcome, rank, turn, (pair, psn_of(turn)), (ah, door));
    }

    /// Requests the guest that has been there longest to leave, and puts it last.
    fn ask_to_leave(&mut self) {
        let Some(guest) = self.guests.pop_front() else { return };
        let Guest { rank, turn, ah, door, .. } = guest;
        self.guests.push_back(guest);
        self.say_of(Word::Leave, rank, turn, (0, 0), (ah, door));
    }

    /// Ends a guest, and its pair.
    pub(in crate::verbs) fn dismiss(&mut self, at: usize) {
        let Some(guest) = self.guests.remove(at) else { return };
        self.device.end_pair(guest.qp);
        self.device.end_way(guest.ah);
    }
}

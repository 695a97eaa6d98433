//! The handling of calls between ranks about their pairs, as far as they concern
//! links; [`guests`](super::guests) handles the calls that concern guests.

use super::super::door::{Call, Word};
use super::super::guest::Guest;
use super::super::link::{Link, State, psn_of};
use super::super::pair::{Far, number_of};
use super::super::sys::*;
use super::Line;
use std::time::Instant;
use tsumugi_core::mem::Rank;

impl Line {
    /// Handles a call that has come.
    pub(in crate::verbs) fn hear(&mut self, call: &Call) {
        if call.job != self.job || call.to != self.own {
            self.counts.strays += 1;
            return;
        }
        self.counts.calls += 1;
        match call.word {
            Word::Hello => self.admit(call),
            Word::Welcome => self.welcomed(call),
            Word::Bye => {
                let of = |guest: &Guest| guest.rank == call.from && guest.turn == call.turn;
                if let Some(at) = self.guests.iter().position(of) {
                    self.dismiss(at);
                }
            }
            Word::Leave => self.leave(call),
        }
    }

    fn welcomed(&mut self, call: &Call) {
        let of = |link: &Link| {
            link.rank == call.from
                && link.turn == call.turn
                && matches!(link.state, State::Opening { .. })
        };
        let Some(at) = self.links.iter().position(of) else { return };
        let link = &mut self.links[at];
        let far = Far { pair: call.pair, psn: call.psn, address: link.address };
        let answered = self.device.answer(link.qp, &far);
        let timeout = self.terms.timeout;
        let opened =
            answered.and_then(|()| self.device.ask_of(link.qp, &far, psn_of(link.turn), timeout));
        self.opening -= 1;
        match opened {
            Ok(()) => {
                link.state = State::Open;
                link.fresh = Some(Instant::now());
            }
            Err(_) => {
                link.state = State::Silent { since: Instant::now() };
                self.end_pair(at as u32);
            }
        }
    }

    fn leave(&mut self, call: &Call) {
        let Some(at) = self.links.iter().position(|link| link.rank == call.from) else { return };
        let link = &mut self.links[at];
        if link.turn == call.turn && !link.qp.is_null() {
            // If the link is fresh, the peer sends the request again when another
            // guest comes.
            if link.state == State::Open && !link.is_fresh(Instant::now()) {
                link.state = State::Draining;
                self.settle(at as u32);
            }
        } else if !link.ah.is_null() {
            let way = (link.ah, link.address.door);
            self.say_of(Word::Bye, call.from, call.turn, (0, 0), way);
        }
    }

    /// Sends a call about a link of this rank.
    pub(in crate::verbs) fn say(&mut self, word: Word, at: u32) {
        let Link { rank, turn, qp, ah, address, .. } = self.links[at as usize];
        // SAFETY: a pair that is not null is open.
        let pair = if qp.is_null() { 0 } else { unsafe { number_of(qp) } };
        self.say_of(word, rank, turn, (pair, psn_of(turn)), (ah, address.door));
    }

    /// Sends a call; it may be lost.
    pub(in crate::verbs) fn say_of(
        &mut self,
        word: Word,
        to: Rank,
        turn: u64,
        (pair, psn): (u32, u32),
        way: (*mut ibv_ah, u32),
    ) {
        let Some(mut door) = self.door.take() else { return };
        let address = self.device.address(door.number(), self.target());
        let call = Call { word, job: self.job, from: self.own, to, pair, psn, turn, address };
        door.say(&call, way, |number| self.wr_id(number));
        self.door = Some(door);
    }
}

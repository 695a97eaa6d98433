//! What a sender knows of the receives that wait for its messages, so that it
//! can copy straight into their buffers.
//!
//! A receive from one rank is *offered* to that rank, which keeps its offers
//! in a *mirror* in the order in which they were posted. A message first looks
//! there. One that meets none is written down in the *log*, because an offer
//! may be under way that it will meet at the receiver:
//!
//! ```text
//!   receiver                                      sender
//!   post P, `taken` messages so far ──offer──►  log: first open message from
//!                                                    number `taken` on that P
//!                                                    takes? ── both forgotten
//!                                                    none   ── P into mirror
//! ```
//!
//! Both sides then match alike, each by itself: between two ranks the matching
//! is a function of the order of messages and of posts, and `taken` says where
//! one stood in the other. A receive from any source breaks that, as does any
//! that its source does not know of: later receives that could take the same
//! message are *held back* until it is gone.
//!
//! A logged message is dropped when it was taken before every offer that can
//! still come: the receiver says how many it has taken (`returned`), *then*
//! the lane from it is found empty. The word alone may be newer than offers
//! that still lie in the lane.

use super::list::List;
use super::machine::Machine;
use super::outcome::Label;
use super::packet::{Kind, Load, Offer, Packet};
use super::setup::Design;
use super::tables::{ANY, Due, Mirrored, Offered, State};
use super::wire::Wire;
use crate::mem::Rank;
use crate::sync::mutant;

/// The receive that will take a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    /// Its name.
    pub(super) id: u32,
    /// Its buffer, if that can be reached, and how long that is.
    pub(super) at: Option<u64>,
    pub(super) room: u64,
}

impl Machine<'_> {
    /// The receive that will take the next message to that rank, if it is
    /// known. It is this message's from here on.
    #[inline]
    pub(super) fn claim(&mut self, to: Rank, label: Label) -> Option<Claim> {
        if self.tables.peers[to.0 as usize].mirror_len == 0 {
            None
        } else {
            self.find_claim(to, label)
        }
    }

    fn find_claim(&mut self, to: Rank, label: Label) -> Option<Claim> {
        let len = self.tables.peers[to.0 as usize].mirror_len;
        for place in 0..len {
            let offer = self.tables.mirror[self.mirror_at(to, place)];
            if offer.takes(label) {
                self.forget(to, place);
                return Some(Claim { id: offer.id, at: offer.far, room: offer.room });
            }
        }
        None
    }

    /// A receive was just posted, the last of all: its source shall know, if
    /// that is worth it and nothing before it is in the way.
    #[inline(always)]
    pub(super) fn publish<W: Wire>(&mut self, wire: &mut W, post: usize) {
        if self.has_board() {
            return self.put_up_post(post);
        }
        let source = self.tables.requests[post].peer;
        if source == ANY {
            return;
        }
        self.tables.peers[source as usize].unoffered += 1;
        if self.design != Design::Mirror {
            return;
        }
        let is_starved = wire.is_starved(Rank(source));
        if self.wants_offer(post, is_starved) {
            self.publish_if_free(source as usize, post);
            let first = self.tables.peers[source as usize].ripe.first();
            if first.is_some_and(|first| first != post) {
                // A packet takes one along: more are there in time only if
                // they go now.
                self.push_offers(wire, source as usize);
            }
        }
    }

    /// Tells a source to forget a receive that is to be cancelled. Whether it
    /// can be right away.
    pub(super) fn withdraw<W: Wire>(&mut self, wire: &mut W, post: usize) -> bool {
        match self.tables.requests[post].offered {
            Offered::No | Offered::Held | Offered::Ripe => true,
            Offered::Yes if mutant("msg_cancel_unasked") => true,
            Offered::Yes => {
                self.tables.requests[post].offered = Offered::Cancelling;
                let source = self.tables.requests[post].peer as usize;
                self.owe(post, source, Due::Cancel);
                self.push_dues(wire, source);
                false
            }
            Offered::Cancelling => false,
        }
    }

    /// A posted receive goes out of the table: what was held back by it may be
    /// offered.
    #[inline(always)]
    pub(super) fn unoffer(&mut self, post: usize) {
        if self.has_board() {
            self.take_down(post);
            return;
        }
        let entry = &self.tables.requests[post];
        let source = entry.peer as usize;
        if entry.peer != ANY && entry.offered == Offered::No {
            let peer = &mut self.tables.peers[source];
            peer.unoffered -= 1;
            if peer.held > 0 {
                peer.revisit = true;
                self.rouse(source);
            }
        } else if self.design == Design::Mirror {
            self.unoffer_wanted(post);
        }
    }

    /// The same for one from any source, or that its source should know of.
    fn unoffer_wanted(&mut self, post: usize) {
        let entry = &mut self.tables.requests[post];
        if entry.peer == ANY {
            return self.revisit_all();
        }
        let source = entry.peer as usize;
        let peer = &mut self.tables.peers[source];
        match entry.offered {
            Offered::No | Offered::Held => {
                peer.unoffered -= 1;
                peer.held -= u32::from(entry.offered == Offered::Held);
            }
            Offered::Ripe => {
                peer.offered -= 1;
                peer.ripe.remove(self.tables.requests, post);
            }
            Offered::Yes => peer.offered -= 1,
            Offered::Cancelling => {
                peer.offered -= 1;
                if entry.due == Due::Cancel {
                    // It was not asked yet.
                    entry.due = Due::Nothing;
                    entry.offered = Offered::Yes;
                    peer.dues.remove(self.tables.requests, post);
                }
            }
        }
        let was_held = self.tables.requests[post].offered == Offered::Held;
        let peer = &mut self.tables.peers[source];
        if peer.held > 0 && (was_held || peer.offered <= self.shape.mirror / 2) {
            peer.revisit = true;
            self.rouse(source);
        }
    }

    /// Receives of that source that were held back are looked at again.
    pub(super) fn revisit<W: Wire>(&mut self, wire: &mut W, source: usize) {
        self.tables.peers[source].revisit = false;
        let is_starved = wire.is_starved(Rank(source as u32));
        let mut looked = 0;
        let mut at = self.tables.peers[source].posted.first();
        while let Some(post) = at
            && self.tables.peers[source].unoffered > 0
            && looked < LOOK
        {
            at = List::<0>::after(self.tables.requests, post);
            looked += 1;
            let offered = self.tables.requests[post].offered;
            if offered == Offered::Held
                || offered == Offered::No && self.wants_offer(post, is_starved)
            {
                self.publish_if_free(source, post);
            }
        }
    }

    /// The next offer to that rank, to ride along with a packet that goes now.
    #[inline]
    pub(super) fn take_offer(&mut self, to: Rank) -> Load {
        let peer = &mut self.tables.peers[to.0 as usize];
        let Some(post) = peer.ripe.pop(self.tables.requests) else { return Load::Empty };
        let taken = peer.here.taken;
        let id = self.id(post);
        self.counts.offered += 1;
        let entry = &mut self.tables.requests[post];
        entry.offered = Offered::Yes;
        Load::Offer(Offer {
            id,
            taken,
            context: entry.context,
            tag: (!entry.any_tag).then_some(entry.tag),
            at: entry.in_reach.then_some(entry.at),
            room: entry.len,
        })
    }

    /// Offers that found nothing to ride on go alone.
    pub(super) fn push_offers<W: Wire>(&mut self, wire: &mut W, to: usize) -> bool {
        let mut has_moved = false;
        let rank = Rank(to as u32);
        while !self.tables.peers[to].ripe.is_empty() && self.has_lines(wire, rank, 1) {
            let offer = self.take_offer(rank);
            wire.push(rank, &Packet { count: Packet::OFFER, ..Packet::new(Kind::Post) }, offer);
            has_moved = true;
        }
        has_moved
    }

    /// A peer offers a receive.
    pub(super) fn offered(&mut self, from: usize, offer: Offer) {
        if self.design != Design::Mirror {
            self.counts.dropped += 1;
            return;
        }
        let log_len = self.shape.log_len();
        let peer = &mut self.tables.peers[from];
        // What was taken before this offer was taken before any later one.
        if offer.taken.wrapping_sub(peer.log_low) <= peer.sent.wrapping_sub(peer.log_low)
            && !mutant("msg_k_ignored")
        {
            peer.log_low = offer.taken;
        }
        let entry = Mirrored {
            id: offer.id,
            tag: offer.tag.unwrap_or(0),
            context: offer.context,
            any_tag: offer.tag.is_none(),
            far: offer.at,
            room: offer.room,
            ..Mirrored::EMPTY
        };
        let (mut number, sent) = (peer.log_low, peer.sent);
        while number != sent {
            let at = from * log_len as usize + (number & (log_len - 1)) as usize;
            let logged = &mut self.tables.log[at];
            let label = Label { context: logged.context, tag: logged.tag };
            if logged.open && entry.takes(label) {
                logged.open = false;
                return;
            }
            number = number.wrapping_add(1);
        }
        if self.tables.peers[from].mirror_len == self.shape.mirror {
            self.counts.dropped += 1;
            return;
        }
        let place = self.tables.peers[from].mirror_len;
        self.tables.peers[from].mirror_len += 1;
        let at = self.mirror_at(Rank(from as u32), place);
        let Mirrored { ack, ack_open, .. } = self.tables.mirror[at];
        self.tables.mirror[at] = Mirrored { ack, ack_open, ..entry };
        if !self.tables.peers[from].waiting.is_empty() {
            self.rouse(from);
        }
    }

    /// A peer wants to have an offer back: it is told whether it was used.
    pub(super) fn cancelled<W: Wire>(&mut self, wire: &mut W, from: usize, id: u32) {
        let rank = Rank(from as u32);
        let len = self.tables.peers[from].mirror_len;
        let place =
            (0..len).find(|place| self.tables.mirror[self.mirror_at(rank, *place)].id == id);
        if let Some(place) = place {
            self.forget(rank, place);
        }
        let peer = &mut self.tables.peers[from];
        if peer.acks == self.shape.mirror {
            self.counts.dropped += 1;
            return;
        }
        let at = (peer.acks_first + peer.acks) % self.shape.mirror;
        peer.acks += 1;
        let ack = &mut self.tables.mirror[from * self.shape.mirror as usize + at as usize];
        (ack.ack, ack.ack_open) = (id, place.is_some());
        if !self.push_acks(wire, from) {
            self.rouse(from);
        }
    }

    /// Answers that found no room.
    pub(super) fn push_acks<W: Wire>(&mut self, wire: &mut W, to: usize) -> bool {
        let mut has_moved = false;
        let rank = Rank(to as u32);
        while self.tables.peers[to].acks > 0 && self.has_lines(wire, rank, 1) {
            let peer = &mut self.tables.peers[to];
            let first = peer.acks_first;
            peer.acks -= 1;
            peer.acks_first = if first + 1 == self.shape.mirror { 0 } else { first + 1 };
            let ack = self.tables.mirror[to * self.shape.mirror as usize + first as usize];
            let count = if ack.ack_open { 0 } else { Packet::DONE };
            let packet = Packet { count, id: ack.ack, ..Packet::new(Kind::CancelAck) };
            wire.push(rank, &packet, Load::Empty);
            has_moved = true;
        }
        has_moved
    }

    /// The lane from that rank was found empty after it had said that it took
    /// so many messages: no offer can come any more that is older.
    #[inline]
    pub(super) fn drop_log(&mut self, from: usize, taken: u32) {
        let peer = &mut self.tables.peers[from];
        if taken.wrapping_sub(peer.log_low) <= peer.sent.wrapping_sub(peer.log_low) {
            peer.log_low = taken;
        }
    }

    /// Whether the source would have use for knowing of a receive.
    #[inline(always)]
    fn wants_offer(&self, post: usize, is_starved: bool) -> bool {
        let entry = &self.tables.requests[post];
        let peer = &self.tables.peers[entry.peer as usize];
        let offered_from = u64::from(peer.thresholds.offered_from());
        is_starved || entry.in_reach && !peer.far && entry.len >= offered_from
    }

    fn publish_if_free(&mut self, source: usize, post: usize) {
        let was_held = self.tables.requests[post].offered == Offered::Held;
        if self.tables.peers[source].offered >= self.shape.mirror || self.is_held_back(post) {
            if !was_held {
                self.tables.requests[post].offered = Offered::Held;
                self.tables.peers[source].held += 1;
            }
            return;
        }
        let peer = &mut self.tables.peers[source];
        peer.held -= u32::from(was_held);
        peer.unoffered -= 1;
        peer.offered += 1;
        peer.ripe.push(self.tables.requests, post);
        self.tables.requests[post].offered = Offered::Ripe;
        self.rouse(source);
    }

    /// Whether an earlier receive that the source does not know of could take
    /// the same message. To look at more than some counts as one.
    fn is_held_back(&self, post: usize) -> bool {
        let entry = &self.tables.requests[post];
        let peer = &self.tables.peers[entry.peer as usize];
        let no_wildcards = self.any_posted.is_empty() || mutant("msg_wildcard_passed");
        if peer.unoffered <= 1 && no_wildcards {
            return false;
        }
        for (list, is_any) in [(&peer.posted, false), (&self.any_posted, true)] {
            if is_any && no_wildcards {
                continue;
            }
            let mut at = list.first();
            let mut looked = 0;
            while let Some(other) = at {
                let earlier = &self.tables.requests[other];
                if earlier.number >= entry.number {
                    break;
                }
                let is_unknown = matches!(earlier.offered, Offered::No | Offered::Held);
                if is_unknown && earlier.overlaps(entry) || looked == LOOK {
                    return true;
                }
                looked += 1;
                at = List::<0>::after(self.tables.requests, other);
            }
        }
        false
    }

    fn revisit_all(&mut self) {
        for peer in 0..self.tables.peers.len() {
            if self.tables.peers[peer].held > 0 {
                self.tables.peers[peer].revisit = true;
                self.rouse(peer);
            }
        }
    }

    /// Takes an offer out of the mirror; the order of the others stays.
    fn forget(&mut self, of: Rank, place: u32) {
        for place in (1..=place).rev() {
            let (to, from) = (self.mirror_at(of, place), self.mirror_at(of, place - 1));
            let Mirrored { ack, ack_open, .. } = self.tables.mirror[to];
            self.tables.mirror[to] = Mirrored { ack, ack_open, ..self.tables.mirror[from] };
        }
        let peer = &mut self.tables.peers[of.0 as usize];
        let first = peer.mirror_first + 1;
        peer.mirror_first = if first == self.shape.mirror { 0 } else { first };
        peer.mirror_len -= 1;
    }

    #[inline]
    fn mirror_at(&self, of: Rank, place: u32) -> usize {
        let mirror = self.shape.mirror;
        let at = self.tables.peers[of.0 as usize].mirror_first + place;
        of.0 as usize * mirror as usize + if at >= mirror { at - mirror } else { at } as usize
    }

    /// The peer's answer to a cancel.
    pub(super) fn cancel_answered(&mut self, from: usize, id: u32) {
        let peer = &mut self.tables.peers[from];
        peer.asked = peer.asked.saturating_sub(1);
        let Some(post) = self.named_any(id) else { return };
        let entry = &self.tables.requests[post];
        if entry.offered != Offered::Cancelling || entry.peer as usize != from {
            return;
        }
        if entry.state == State::Posted {
            self.unpost(post);
            self.tables.requests[post].offered = Offered::No;
            self.end(post, Some(super::outcome::Ended::Cancelled));
        } else {
            self.answered(post);
        }
    }

    /// There will be no answer, as the rank has died.
    pub(super) fn forget_question(&mut self, index: usize, of: usize) {
        let entry = &self.tables.requests[index];
        let is_its = entry.peer as usize == of && entry.offered == Offered::Cancelling;
        if is_its && entry.state != State::Posted {
            self.answered(index);
        }
    }

    /// A receive that was to be cancelled has its message.
    fn answered(&mut self, index: usize) {
        let entry = &mut self.tables.requests[index];
        entry.offered = Offered::No;
        if entry.state == State::Free {
            self.release(index);
        }
    }
}

/// Receives that are looked at for one that can be offered.
const LOOK: u32 = 128;

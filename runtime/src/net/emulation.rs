//! Emulation of remote operations: an *emulated operation* is an operation that the
//! target's processor carries out for the origin.
//!
//! ```text
//!  begin ─► Unsent ── window, room ──► Sent ──── answer, loss ────► ended
//!              │                        │                             │
//!              └── loss ────────────────┴──► PeerLost             completion
//! ```
//!
//! Puts and gets of memory are emulated where the provider's own are not reliable: in
//! pieces, one after another.
//!
//! Parcels arrive once and whole, so only the emulated operations of the origin have an
//! id: a slot and the slot's generation (its life). A rank has at most [`WINDOW`]
//! requests under way to each peer. So each peer causes at most that many answers that
//! wait for room, and a peer that sends more requests gets no answer to them. All that
//! arrives is checked: lengths, kinds, widths, ids, and the address, as any other
//! address.

mod counts;
mod request;

pub(super) use request::EmulatedRequest;
pub(crate) use request::JOINED_BYTES;

use counts::RankCounts;
use request::{
    ANSWER, ANSWER_BYTES, EmulatedReply, PIECE_BYTES, REQUEST, REQUEST_BYTES, RequestBytes,
    parse_request, piece_of, request, result, take_piece,
};
use std::collections::VecDeque;
use tsumugi_core::backend::{Completion, LoadStore};
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_core::mem::{RegionKey, RemoteAddr, Width};
use tsumugi_core::op::{Kind, Op};

/// The emulated operations of one link: its own requests, and the answers to those of
/// its peers.
#[derive(Debug)]
pub(super) struct Emulation {
    own: Rank,
    slots: Vec<OriginSlot>,
    free: Vec<u16>,
    unsent: VecDeque<u16>,
    /// Requests under way to each rank.
    under_way: RankCounts,
    ended: VecDeque<Completion>,
    answers: VecDeque<EmulatedReply>,
    /// Answers to requests that have notified a thread here: the operations of that
    /// thread go first. The answers at the end only free places of the origin.
    patient: VecDeque<EmulatedReply>,
    /// How many times in a row patient answers were put off.
    put_off: u8,
    /// If there was no room for all: the kind of parcel that goes first when there
    /// is room again.
    short: Option<SlotTurn>,
    /// The number of answers of both lists for each rank.
    owed: RankCounts,
    /// The buffer in which a parcel is built.
    room: Box<RequestBytes>,
}

#[derive(Clone, Copy, Debug)]
struct OriginSlot {
    op: Op,
    /// The second operation, which goes in the parcel of a put.
    then: Option<Op>,
    life: u16,
    state: SlotState,
    /// Bytes of a put or get that were moved already.
    moved: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlotState {
    Free,
    Unsent,
    Sent,
}

/// The kinds of parcels, which take turns where room is short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlotTurn {
    EmulatedReply,
    Request,
    Patient,
}

/// The result of an attempt to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// The parcel was sent.
    Yes,
    /// There is no room now.
    Full,
    /// The parcel cannot be sent, because this rank is lost.
    Lost(Rank),
}

impl Emulation {
    pub(super) fn new(own: Rank) -> Self {
        let op = Op::get_word(RemoteAddr { offset: 0, rank: own, key: NO_KEY }, Width::W8);
        Self {
            own,
            slots: vec![
                OriginSlot { op, then: None, life: 0, state: SlotState::Free, moved: 0 };
                SLOTS
            ],
            free: (0..SLOTS as u16).rev().collect(),
            unsent: VecDeque::with_capacity(SLOTS),
            under_way: RankCounts::default(),
            ended: VecDeque::with_capacity(SLOTS),
            answers: VecDeque::with_capacity(SLOTS),
            patient: VecDeque::with_capacity(SLOTS),
            put_off: 0,
            short: None,
            owed: RankCounts::default(),
            room: Box::new([0; REQUEST_BYTES + PIECE_BYTES]),
        }
    }

    /// Begins an operation, and a second one that goes in its parcel; false if too
    /// many are under way.
    pub(super) fn begin(&mut self, op: &Op, then: impl FnOnce() -> Option<Op>) -> bool {
        let Some(at) = self.free.pop() else { return false };
        let slot = &mut self.slots[at as usize];
        slot.then = then();
        slot.life = slot.life.wrapping_add(1);
        (slot.op, slot.state, slot.moved) = (*op, SlotState::Unsent, 0);
        self.unsent.push_back(at);
        true
    }

    /// Sends parcels that wait, as far as there is room. Answers go first, because
    /// ranks wait for them. No request goes to a rank for which the device `holds`
    /// operations: it must not overtake operations that were begun before. Patient
    /// answers go last. They are put off while something has `just_come`, which is
    /// handled after this returns, and while their patience lasts; but not if there
    /// are many of them, and not for ever. After there was no room for all, one of
    /// each kind goes in turn before the rest: a rank that sends many requests does
    /// not delay the answers to other ranks.
    pub(super) fn send(
        &mut self,
        memory: &impl LoadStore,
        holds: impl Fn(Rank) -> bool,
        just_come: bool,
        mut send: impl FnMut(Rank, &[u8]) -> Sent,
    ) {
        if !self.take_turns(memory, &holds, &mut send) {
            return;
        }
        if !self.reply(memory, &mut send, false, MANY) || !self.ask(memory, &holds, &mut send, MANY)
        {
            self.short = Some(SlotTurn::Patient);
            return;
        }
        let are_many = self.patient.len() >= WINDOW as usize / 2;
        let Some(first) = self.patient.front_mut() else { return };
        if are_many || self.put_off == PUT_OFF_MAX || (first.patience == 0 && !just_come) {
            self.put_off = 0;
            if !self.reply(memory, &mut send, true, MANY) {
                self.short = Some(SlotTurn::Patient);
            }
        } else {
            first.patience = first.patience.saturating_sub(u8::from(!just_come));
            self.put_off += 1;
        }
    }

    /// Sends one parcel of each kind, in turns that begin with the kind in `short`;
    /// false: there is no room.
    fn take_turns(
        &mut self,
        memory: &impl LoadStore,
        holds: &impl Fn(Rank) -> bool,
        send: &mut impl FnMut(Rank, &[u8]) -> Sent,
    ) -> bool {
        let Some(first) = self.short else { return true };
        let mut turn = first;
        loop {
            let (has_room, next) = match turn {
                SlotTurn::EmulatedReply => (self.reply(memory, send, false, 1), SlotTurn::Request),
                SlotTurn::Request => (self.ask(memory, holds, send, 1), SlotTurn::Patient),
                SlotTurn::Patient => (self.reply(memory, send, true, 1), SlotTurn::EmulatedReply),
            };
            if !has_room {
                self.short = Some(turn);
                return false;
            }
            turn = next;
            if turn == first {
                self.short = None;
                return true;
            }
        }
    }

    /// Sends at most `limit` answers; false: there is no room for the next one.
    fn reply(
        &mut self,
        memory: &impl LoadStore,
        send: &mut impl FnMut(Rank, &[u8]) -> Sent,
        patient: bool,
        limit: usize,
    ) -> bool {
        let answers = if patient { &mut self.patient } else { &mut self.answers };
        for _ in 0..limit {
            let Some(answer) = answers.front() else { break };
            let to = answer.to;
            // A rank that is lost needs no answer.
            if send(to, answer.write(memory, &mut self.room)) == Sent::Full {
                return false;
            }
            answers.pop_front();
            self.owed.take(to);
        }
        true
    }

    /// Sends at most `limit` requests; false: there is no room for the next one.
    fn ask(
        &mut self,
        memory: &impl LoadStore,
        holds: &impl Fn(Rank) -> bool,
        send: &mut impl FnMut(Rank, &[u8]) -> Sent,
        limit: usize,
    ) -> bool {
        let mut sent = 0;
        for _ in 0..self.unsent.len() {
            if sent == limit {
                break;
            }
            let Some(at) = self.unsent.pop_front() else { return true };
            let OriginSlot { op, then, life, moved, .. } = self.slots[at as usize];
            let to = op.remote.rank;
            if self.under_way.of(to) >= WINDOW || holds(to) {
                self.unsent.push_back(at);
                continue;
            }
            let request = request(&op, then.as_ref(), id(at, life), moved, memory, &mut self.room);
            let request = match request {
                Ok(request) => request,
                Err(error) => {
                    self.end(at, Err(error));
                    continue;
                }
            };
            match send(to, request) {
                Sent::Yes => {
                    self.under_way.add(to);
                    sent += 1;
                    self.slots[at as usize].state = SlotState::Sent;
                }
                Sent::Full => {
                    self.unsent.push_front(at);
                    return false;
                }
                Sent::Lost(rank) => self.end(at, Err(AddrError::PeerLost { rank })),
            }
        }
        true
    }

    /// How many requests and answers wait for room.
    pub(super) fn unsent(&self) -> usize {
        self.unsent.len() + self.answers.len() + self.patient.len()
    }

    /// Handles a parcel that has come: `serve` carries out the request in it. False:
    /// the parcel is malformed, answers no request, or is one more than its sender
    /// may have under way.
    pub(super) fn handle(
        &mut self,
        from: Rank,
        bytes: &[u8],
        memory: &impl LoadStore,
        serve: impl FnOnce(EmulatedRequest<'_>) -> Result<u64, AddrError>,
    ) -> bool {
        match bytes {
            [REQUEST, ..] => {
                let Some((asked, id)) = parse_request(bytes, self.own) else { return false };
                if self.owed.of(from) >= WINDOW {
                    return false;
                }
                self.owed.add(from);
                let (bytes, tells, patience) = match asked {
                    EmulatedRequest::Get(from, bytes) => (Some((from, bytes)), false, 0),
                    EmulatedRequest::Put(_, _, notify) => (None, notify, 0),
                    EmulatedRequest::Word(op) => (None, op.notify, 0),
                    EmulatedRequest::Joined(..) => (None, true, PATIENCE),
                };
                let answer = EmulatedReply { to: from, id, result: serve(asked), patience, bytes };
                match (tells, patience) {
                    (false, _) => self.answers.push_back(answer),
                    (true, 0) => self.patient.push_front(answer),
                    _ => self.patient.push_back(answer),
                }
                true
            }
            [ANSWER, ..] => {
                let Some((bytes, rest)) = bytes.split_first_chunk::<ANSWER_BYTES>() else {
                    return false;
                };
                let number = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
                let (at, life) = (number(4), number(6));
                let Some(slot) = self.slots.get(usize::from(at)) else { return false };
                let is_ours = slot.state == SlotState::Sent
                    && slot.life == life
                    && slot.op.remote.rank == from;
                if !is_ours {
                    return false;
                }
                self.under_way.take(from);
                let OriginSlot { op, moved, .. } = *slot;
                let result = match (result(&op, bytes), op.kind) {
                    (Ok(_), Kind::Get) => take_piece(&op, moved, rest, memory),
                    (result, _) => result,
                };
                let moved = if op.width().is_none() { moved + piece_of(&op, moved) } else { 0 };
                if result.is_ok() && op.width().is_none() && moved < op.bytes() {
                    let slot = &mut self.slots[usize::from(at)];
                    (slot.moved, slot.state) = (moved, SlotState::Unsent);
                    self.unsent.push_back(at);
                } else {
                    self.end(at, result);
                }
                true
            }
            _ => false,
        }
    }

    /// Ends all emulated operations to ranks for which `lost` returns a rank; their
    /// errors name the rank that it returns.
    pub(super) fn lose(&mut self, lost: impl Fn(Rank) -> Option<Rank>) {
        for at in 0..SLOTS as u16 {
            let OriginSlot { op, state, .. } = self.slots[usize::from(at)];
            if state != SlotState::Free
                && let Some(rank) = lost(op.remote.rank)
            {
                self.unsent.retain(|other| *other != at);
                self.end(at, Err(AddrError::PeerLost { rank }));
            }
        }
        self.answers.retain(|answer| lost(answer.to).is_none());
        self.patient.retain(|answer| lost(answer.to).is_none());
        self.under_way.retain(|rank| lost(rank).is_none());
        self.owed.retain(|rank| lost(rank).is_none());
    }

    /// Whether there is nothing to send and no completion to hand over.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.answers.is_empty()
            && self.patient.is_empty()
            && self.unsent.is_empty()
            && self.ended.is_empty()
    }

    /// Hands over completions.
    pub(super) fn poll(&mut self, completions: &mut [Completion]) -> usize {
        let count = completions.len().min(self.ended.len());
        for (to, from) in completions.iter_mut().zip(self.ended.drain(..count)) {
            *to = from;
        }
        count
    }

    fn end(&mut self, at: u16, result: Result<u64, AddrError>) {
        let slot = &mut self.slots[usize::from(at)];
        slot.state = SlotState::Free;
        self.free.push(at);
        self.ended.push_back(Completion { tag: slot.op.tag, result });
    }
}

/// Bytes of the tables of a link.
pub fn footprint() -> usize {
    let slot = size_of::<OriginSlot>() + 2 * size_of::<u16>() + size_of::<Completion>();
    SLOTS * (slot + 2 * size_of::<EmulatedReply>()) + size_of::<RequestBytes>()
}

fn id(at: u16, life: u16) -> u32 {
    u32::from(at) | u32::from(life) << 16
}

const NO_KEY: RegionKey = RegionKey::from_bits(0);
/// How often an answer that only frees places is looked at before it goes: its
/// request has notified other threads here, which go first.
const PATIENCE: u8 = 16;
/// How often patient answers are put off at most, where parcels arrive all the time.
const PUT_OFF_MAX: u8 = 64;
/// No limit.
const MANY: usize = usize::MAX;
/// Emulated operations of a link that may be under way.
const SLOTS: usize = 256;
/// Emulated operations that may be under way to one peer.
const WINDOW: u32 = 16;

#[cfg(test)]
mod tests;

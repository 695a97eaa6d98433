//! Operations that the target's processor carries out for others.
//!
//! ```text
//!  begin ─► Unsent ── window, room ──► Sent ──── answer, loss ────► ended
//!              │                        │                             │
//!              └── loss ────────────────┴──► PeerLost             completion
//! ```
//!
//! Puts and gets of memory are errands where the provider is not to be trusted
//! with them: in pieces, one after another.
//!
//! Parcels come once and whole, so nothing is numbered but the errands of the
//! one who asks: a slot and its life. A rank has at most [`WINDOW`] requests
//! under way to each peer; so the answers that wait for room are as many from
//! each at the most, and whoever sends more is not answered. What arrives is
//! checked: lengths, kinds, widths, ids, and the address as any other.

mod form;

pub(super) use form::Asked;
pub(crate) use form::JOINED_BYTES;

use crate::{AddrError, Rank};
use form::{
    ANSWER, ANSWER_BYTES, Answer, PIECE_BYTES, Parcel, REQUEST, REQUEST_BYTES, parse_request,
    piece_of, request, result, take_piece,
};
use std::collections::{BTreeMap, VecDeque};
use tsumugi_core::backend::{Completion, LoadStore};
use tsumugi_core::mem::{RegionKey, RemoteAddr, Width};
use tsumugi_core::op::{Kind, Op};

/// The errands of one link.
#[derive(Debug)]
pub(super) struct Errands {
    own: Rank,
    slots: Vec<Slot>,
    free: Vec<u16>,
    unsent: VecDeque<u16>,
    /// Requests under way to each rank.
    under_way: BTreeMap<u32, u32>,
    ended: VecDeque<Completion>,
    answers: VecDeque<Answer>,
    /// Those to what has told somebody here: what that one does goes first. Those
    /// that nobody waits for last.
    patient: VecDeque<Answer>,
    /// How many times in a row those were not sent.
    put_off: u8,
    /// There was no room for all: whose turn it is when there is some again.
    short: Option<Turn>,
    /// Of all answers, how many for each rank.
    owed: BTreeMap<u32, u32>,
    /// Where a parcel is written before it goes.
    room: Box<Parcel>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    op: Op,
    /// What goes in the parcel of a put.
    then: Option<Op>,
    life: u16,
    state: State,
    /// Bytes of a put or get that are done.
    moved: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    Unsent,
    Sent,
}

/// What takes turns where room is short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Answer,
    Request,
    Patient,
}

/// What came of an attempt to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// It is on its way.
    Yes,
    /// There is no room now.
    Full,
    /// It cannot be, for this rank is lost.
    Lost(Rank),
}

impl Errands {
    pub(super) fn new(own: Rank) -> Self {
        let op = Op::get_word(RemoteAddr { offset: 0, rank: own, key: NO_KEY }, Width::W8);
        Self {
            own,
            slots: vec![Slot { op, then: None, life: 0, state: State::Free, moved: 0 }; SLOTS],
            free: (0..SLOTS as u16).rev().collect(),
            unsent: VecDeque::with_capacity(SLOTS),
            under_way: BTreeMap::new(),
            ended: VecDeque::with_capacity(SLOTS),
            answers: VecDeque::with_capacity(SLOTS),
            patient: VecDeque::with_capacity(SLOTS),
            put_off: 0,
            short: None,
            owed: BTreeMap::new(),
            room: Box::new([0; REQUEST_BYTES + PIECE_BYTES]),
        }
    }

    /// Begins an operation, and what goes along in its parcel; false if too many
    /// are under way.
    pub(super) fn begin(&mut self, op: &Op, then: impl FnOnce() -> Option<Op>) -> bool {
        let Some(at) = self.free.pop() else { return false };
        let slot = &mut self.slots[at as usize];
        slot.then = then();
        slot.life = slot.life.wrapping_add(1);
        (slot.op, slot.state, slot.moved) = (*op, State::Unsent, 0);
        self.unsent.push_back(at);
        true
    }

    /// Sends what waits, as far as there is room. Answers first: somebody
    /// waits for them. No request to a rank that the device `holds` something
    /// for: it does not overtake what was begun before. Patient answers last, and
    /// put off while something has `just_come`, which is looked at when this has
    /// returned, or while their patience lasts; not if there are many, and not for
    /// ever. After there was no room for all, one of each in turn goes before the
    /// rest: who asks for much keeps nobody else from being answered.
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
            self.short = Some(Turn::Patient);
            return;
        }
        let are_many = self.patient.len() >= WINDOW as usize / 2;
        let Some(first) = self.patient.front_mut() else { return };
        if are_many || self.put_off == PUT_OFF_MAX || (first.patience == 0 && !just_come) {
            self.put_off = 0;
            if !self.reply(memory, &mut send, true, MANY) {
                self.short = Some(Turn::Patient);
            }
        } else {
            first.patience = first.patience.saturating_sub(u8::from(!just_come));
            self.put_off += 1;
        }
    }

    /// Sends one of each, from whose turn it is on; false: there is no room for
    /// these.
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
                Turn::Answer => (self.reply(memory, send, false, 1), Turn::Request),
                Turn::Request => (self.ask(memory, holds, send, 1), Turn::Patient),
                Turn::Patient => (self.reply(memory, send, true, 1), Turn::Answer),
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

    /// Sends answers, at most so many; false: there is no room for these.
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
            // Whoever is lost needs none.
            if send(to, answer.write(memory, &mut self.room)) == Sent::Full {
                return false;
            }
            answers.pop_front();
            take_one(&mut self.owed, to);
        }
        true
    }

    /// Sends requests, at most so many; false: there is no room for these.
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
            let Slot { op, then, life, moved, .. } = self.slots[at as usize];
            let to = op.remote.rank;
            let under_way = self.under_way.entry(to.0).or_default();
            if *under_way >= WINDOW || holds(to) {
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
                    *under_way += 1;
                    sent += 1;
                    self.slots[at as usize].state = State::Sent;
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

    /// A parcel has come: `execute` carries out what it asks for. False: it
    /// makes no sense.
    pub(super) fn handle(
        &mut self,
        from: Rank,
        bytes: &[u8],
        memory: &impl LoadStore,
        serve: impl FnOnce(Asked<'_>) -> Result<u64, AddrError>,
    ) -> bool {
        match bytes {
            [REQUEST, ..] => {
                let Some((asked, id)) = parse_request(bytes, self.own) else { return false };
                let owed = self.owed.entry(from.0).or_default();
                if *owed >= WINDOW {
                    return false;
                }
                *owed += 1;
                let (bytes, tells, patience) = match asked {
                    Asked::Get(from, bytes) => (Some((from, bytes)), false, 0),
                    Asked::Put(_, _, notify) => (None, notify, 0),
                    Asked::Word(op) => (None, op.notify, 0),
                    Asked::Joined(..) => (None, true, PATIENCE),
                };
                let answer = Answer { to: from, id, result: serve(asked), patience, bytes };
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
                let is_ours =
                    slot.state == State::Sent && slot.life == life && slot.op.remote.rank == from;
                if !is_ours {
                    return false;
                }
                take_one(&mut self.under_way, from);
                let Slot { op, moved, .. } = *slot;
                let result = match (result(&op, bytes), op.kind) {
                    (Ok(_), Kind::Get) => take_piece(&op, moved, rest, memory),
                    (result, _) => result,
                };
                let moved = if op.width().is_none() { moved + piece_of(&op, moved) } else { 0 };
                if result.is_ok() && op.width().is_none() && moved < op.bytes() {
                    let slot = &mut self.slots[usize::from(at)];
                    (slot.moved, slot.state) = (moved, State::Unsent);
                    self.unsent.push_back(at);
                } else {
                    self.end(at, result);
                }
                true
            }
            _ => false,
        }
    }

    /// Ends all errands to ranks that are lost, which is because of the one that
    /// `lost` says.
    pub(super) fn lose(&mut self, lost: impl Fn(Rank) -> Option<Rank>) {
        for at in 0..SLOTS as u16 {
            let Slot { op, state, .. } = self.slots[usize::from(at)];
            if state != State::Free
                && let Some(rank) = lost(op.remote.rank)
            {
                self.unsent.retain(|other| *other != at);
                self.under_way.remove(&op.remote.rank.0);
                self.end(at, Err(AddrError::PeerLost { rank }));
            }
        }
        self.answers.retain(|answer| lost(answer.to).is_none());
        self.patient.retain(|answer| lost(answer.to).is_none());
        self.owed.retain(|rank, _| lost(Rank(*rank)).is_none());
    }

    /// Whether there is anything to send or to hand over.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.answers.is_empty()
            && self.patient.is_empty()
            && self.unsent.is_empty()
            && self.ended.is_empty()
    }

    /// Hands over what has ended.
    pub(super) fn poll(&mut self, completions: &mut [Completion]) -> usize {
        let count = completions.len().min(self.ended.len());
        for (to, from) in completions.iter_mut().zip(self.ended.drain(..count)) {
            *to = from;
        }
        count
    }

    fn end(&mut self, at: u16, result: Result<u64, AddrError>) {
        let slot = &mut self.slots[usize::from(at)];
        slot.state = State::Free;
        self.free.push(at);
        self.ended.push_back(Completion { tag: slot.op.tag, result });
    }
}

/// Bytes of the tables of a link.
pub(super) fn footprint() -> usize {
    let slot = size_of::<Slot>() + 2 * size_of::<u16>() + size_of::<Completion>();
    SLOTS * (slot + 2 * size_of::<Answer>()) + size_of::<Parcel>()
}

fn take_one(counts: &mut BTreeMap<u32, u32>, rank: Rank) {
    if let Some(count) = counts.get_mut(&rank.0) {
        *count = count.saturating_sub(1);
    }
}

fn id(at: u16, life: u16) -> u32 {
    u32::from(at) | u32::from(life) << 16
}

const NO_KEY: RegionKey = RegionKey::from_bits(0);
/// Looks at an answer that only frees places, before it goes: what it is an
/// answer to has others at work.
const PATIENCE: u8 = 16;
/// Where something comes all the time.
const PUT_OFF_MAX: u8 = 64;
/// As many as there are.
const MANY: usize = usize::MAX;
/// Errands of a link that are under way.
const SLOTS: usize = 256;
/// Of those, to one peer.
const WINDOW: u32 = 16;

#[cfg(test)]
mod tests;

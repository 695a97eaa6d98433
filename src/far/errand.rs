//! Operations that the target's processor carries out for others.
//!
//! ```text
//!  begin ─► Unsent ── window, room ──► Sent ──── answer, loss ────► ended
//!              │                        │                             │
//!              └── loss ────────────────┴──► PeerLost             completion
//!
//!  request: 1 | kind 1 | width 1 | notify 1 | id 4 | key 4 | 0 4 | offset 8 |
//!           operand 8 | compare 8
//!  answer:  2 | what 1 | 0 2 | id 4 | value 8
//! ```
//!
//! Parcels come once and whole, so nothing is numbered but the errands of the
//! one who asks: a slot and its life. A rank has at most [`WINDOW`] requests
//! under way to each peer; so the answers that wait for room are as many from
//! each at the most, and whoever sends more is not answered. What arrives is
//! checked: lengths, kinds, widths, ids, and the address as any other.

use crate::{AddrError, Rank};
use std::collections::{HashMap, VecDeque};
use tsumugi_core::backend::Completion;
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
    under_way: HashMap<u32, u32>,
    ended: VecDeque<Completion>,
    answers: VecDeque<(Rank, [u8; ANSWER_BYTES])>,
    /// Of those, how many for each rank.
    owed: HashMap<u32, u32>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    op: Op,
    life: u16,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    Unsent,
    Sent,
}

/// What came of an attempt to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// It is on its way.
    Yes,
    /// There is no room now.
    Full,
    /// Nobody is there.
    Lost,
}

impl Errands {
    pub(super) fn new(own: Rank) -> Self {
        let op = Op::get_word(RemoteAddr { offset: 0, rank: own, key: NO_KEY }, Width::W8);
        Self {
            own,
            slots: vec![Slot { op, life: 0, state: State::Free }; SLOTS],
            free: (0..SLOTS as u16).rev().collect(),
            unsent: VecDeque::with_capacity(SLOTS),
            under_way: HashMap::new(),
            ended: VecDeque::with_capacity(SLOTS),
            answers: VecDeque::with_capacity(SLOTS),
            owed: HashMap::new(),
        }
    }

    /// Begins a word operation; false if too many are under way.
    pub(super) fn begin(&mut self, op: &Op) -> bool {
        debug_assert!(op.width().is_some(), "{op:?} is no word's");
        let Some(at) = self.free.pop() else { return false };
        let slot = &mut self.slots[at as usize];
        slot.life = slot.life.wrapping_add(1);
        (slot.op, slot.state) = (*op, State::Unsent);
        self.unsent.push_back(at);
        true
    }

    /// Sends what waits, as far as there is room. Answers first: somebody
    /// waits for them.
    pub(super) fn send(&mut self, mut send: impl FnMut(Rank, &[u8]) -> Sent) {
        while let Some((to, answer)) = self.answers.front() {
            let to = *to;
            // Whoever is lost needs none.
            if send(to, answer) == Sent::Full {
                return;
            }
            self.answers.pop_front();
            take_one(&mut self.owed, to);
        }
        for _ in 0..self.unsent.len() {
            let Some(at) = self.unsent.pop_front() else { return };
            let Slot { op, life, .. } = self.slots[at as usize];
            let to = op.remote.rank;
            let under_way = self.under_way.entry(to.0).or_default();
            if *under_way >= WINDOW {
                self.unsent.push_back(at);
                continue;
            }
            match send(to, &request(&op, id(at, life))) {
                Sent::Yes => {
                    *under_way += 1;
                    self.slots[at as usize].state = State::Sent;
                }
                Sent::Full => {
                    self.unsent.push_front(at);
                    return;
                }
                Sent::Lost => self.end(at, Err(AddrError::PeerLost { rank: to })),
            }
        }
    }

    /// How many requests and answers wait for room.
    pub(super) fn unsent(&self) -> usize {
        self.unsent.len() + self.answers.len()
    }

    /// A parcel has come: `execute` carries out what it asks for. False: it
    /// makes no sense.
    pub(super) fn handle(
        &mut self,
        from: Rank,
        bytes: &[u8],
        execute: impl FnOnce(&Op) -> Result<u64, AddrError>,
    ) -> bool {
        match bytes {
            [REQUEST, ..] => {
                let Some((op, id)) = parse_request(bytes, self.own) else { return false };
                let owed = self.owed.entry(from.0).or_default();
                if *owed >= WINDOW {
                    return false;
                }
                *owed += 1;
                self.answers.push_back((from, answer(id, execute(&op))));
                true
            }
            [ANSWER, ..] => {
                let Ok(bytes): Result<&[u8; ANSWER_BYTES], _> = bytes.try_into() else {
                    return false;
                };
                let number = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
                let (at, life) = (number(4), number(6));
                let Some(slot) = self.slots.get(usize::from(at)) else { return false };
                let is_ours =
                    slot.state == State::Sent && slot.life == life && slot.op.remote.rank == from;
                if is_ours {
                    let result = result(&slot.op, bytes);
                    take_one(&mut self.under_way, from);
                    self.end(at, result);
                }
                is_ours
            }
            _ => false,
        }
    }

    /// Ends all errands to ranks that `is_lost` says of.
    pub(super) fn lose(&mut self, is_lost: impl Fn(Rank) -> bool) {
        for at in 0..SLOTS as u16 {
            let Slot { op, state, .. } = self.slots[usize::from(at)];
            let rank = op.remote.rank;
            if state != State::Free && is_lost(rank) {
                self.unsent.retain(|other| *other != at);
                self.under_way.remove(&rank.0);
                self.end(at, Err(AddrError::PeerLost { rank }));
            }
        }
        self.answers.retain(|(to, _)| !is_lost(*to));
        self.owed.retain(|rank, _| !is_lost(Rank(*rank)));
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

fn take_one(counts: &mut HashMap<u32, u32>, rank: Rank) {
    if let Some(count) = counts.get_mut(&rank.0) {
        *count = count.saturating_sub(1);
    }
}

fn id(at: u16, life: u16) -> u32 {
    u32::from(at) | u32::from(life) << 16
}

fn request(op: &Op, id: u32) -> [u8; REQUEST_BYTES] {
    let mut bytes = [0; REQUEST_BYTES];
    bytes[0] = REQUEST;
    bytes[1] = op.kind as u8;
    bytes[2] = op.width().map_or(0, |width| width as u8);
    bytes[3] = u8::from(op.notify);
    bytes[4..8].copy_from_slice(&id.to_le_bytes());
    bytes[8..12].copy_from_slice(&op.remote.key.to_bits().to_le_bytes());
    bytes[16..24].copy_from_slice(&op.remote.offset.to_le_bytes());
    bytes[24..32].copy_from_slice(&op.operand().to_le_bytes());
    bytes[32..40].copy_from_slice(&op.compare().to_le_bytes());
    bytes
}

fn parse_request(bytes: &[u8], own: Rank) -> Option<(Op, u32)> {
    let bytes: &[u8; REQUEST_BYTES] = bytes.try_into().ok()?;
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
    let remote = RemoteAddr { offset: word(16), rank: own, key: RegionKey::from_bits(half(8)) };
    let kind = KINDS.into_iter().find(|kind| *kind as u8 == bytes[1])?;
    let (operand, compare) = (word(24), word(32));
    let width = WIDTHS.into_iter().find(|width| *width as u8 == bytes[2])?;
    let op = match (kind, width) {
        (Kind::PutWord, _) => Op::put_word(remote, width, operand),
        (Kind::GetWord, _) => Op::get_word(remote, width),
        (Kind::CompareSwap, Width::W4) => Op::compare_swap(remote, compare as u32, operand as u32),
        (Kind::CompareSwap, Width::W8) => Op::compare_swap(remote, compare, operand),
        (_, Width::W4) => Op::atomic(kind, remote, operand as u32),
        (_, Width::W8) => Op::atomic(kind, remote, operand),
        _ => return None,
    };
    let op = match bytes[3] {
        0 => op,
        1 => op.notifying(),
        _ => return None,
    };
    Some((op, half(4)))
}

fn answer(id: u32, result: Result<u64, AddrError>) -> [u8; ANSWER_BYTES] {
    let (what, value) = match result {
        Ok(old) => (0, old),
        Err(AddrError::OutOfRange { region_bytes, .. }) => (2, region_bytes),
        Err(AddrError::Unaligned { align, .. }) => (3, align),
        Err(AddrError::ReadOnly { .. }) => (4, 0),
        Err(AddrError::PeerLost { .. }) => (5, 0),
        Err(_) => (1, 0),
    };
    let mut bytes = [0; ANSWER_BYTES];
    (bytes[0], bytes[1]) = (ANSWER, what);
    bytes[4..8].copy_from_slice(&id.to_le_bytes());
    bytes[8..].copy_from_slice(&value.to_le_bytes());
    bytes
}

fn result(op: &Op, answer: &[u8; ANSWER_BYTES]) -> Result<u64, AddrError> {
    let value = u64::from_le_bytes(answer[8..].try_into().expect("8 bytes"));
    let addr = op.remote;
    Err(match answer[1] {
        0 => return Ok(value),
        2 => AddrError::OutOfRange { addr, bytes: op.bytes(), region_bytes: value },
        3 => AddrError::Unaligned { addr, align: value },
        4 => AddrError::ReadOnly { addr },
        5 => AddrError::PeerLost { rank: addr.rank },
        _ => AddrError::StaleKey { addr },
    })
}

const REQUEST: u8 = 1;
const ANSWER: u8 = 2;
const REQUEST_BYTES: usize = 40;
const ANSWER_BYTES: usize = 16;
const KINDS: [Kind; 8] = [
    Kind::PutWord,
    Kind::GetWord,
    Kind::FetchAdd,
    Kind::Swap,
    Kind::CompareSwap,
    Kind::FetchAnd,
    Kind::FetchOr,
    Kind::FetchXor,
];
const WIDTHS: [Width; 4] = [Width::W1, Width::W2, Width::W4, Width::W8];
const NO_KEY: RegionKey = RegionKey::from_bits(0);
/// Errands of a link that are under way.
const SLOTS: usize = 256;
/// Of those, to one peer.
const WINDOW: u32 = 16;

#[cfg(test)]
mod tests;

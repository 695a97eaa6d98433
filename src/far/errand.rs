//! Operations that the target's processor carries out for others.
//!
//! ```text
//!  begin ─► Unsent ── window, room ──► Sent ──── answer, loss ────► ended
//!              │                        │                             │
//!              └── loss ────────────────┴──► PeerLost             completion
//!
//!  request: 1 | kind 1 | width 1 | notify 1 | id 4 | key 4 | 0 4 | offset 8 |
//!           operand, or bytes 8 | compare 8 | bytes of a put ...
//!  answer:  2 | what 1 | 0 2 | id 4 | value 8 | bytes of a get ...
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

use super::parcel::PACKET_BYTES;
use crate::{AddrError, Rank};
use std::collections::{BTreeMap, VecDeque};
use std::ptr::NonNull;
use tsumugi_core::backend::{Completion, LoadStore, load_bytes};
use tsumugi_core::mem::{LocalAddr, RegionKey, RemoteAddr, Width};
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
    /// Of those, how many for each rank.
    owed: BTreeMap<u32, u32>,
    /// Where a parcel is written before it goes.
    room: Box<Parcel>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    op: Op,
    life: u16,
    state: State,
    /// Bytes of a put or get that are done.
    moved: u64,
}

/// What waits to be sent back.
#[derive(Clone, Copy, Debug)]
struct Answer {
    to: Rank,
    id: u32,
    result: Result<u64, AddrError>,
    /// The bytes that go with it, read when it is sent.
    bytes: Option<(RemoteAddr, u64)>,
}

/// What another rank asks for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Asked<'b> {
    /// An operation on a word.
    Word(Op),
    /// These bytes are to be there.
    Put(RemoteAddr, &'b [u8], bool),
    /// So many bytes from there: whether they may be had.
    Get(RemoteAddr, u64),
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
            slots: vec![Slot { op, life: 0, state: State::Free, moved: 0 }; SLOTS],
            free: (0..SLOTS as u16).rev().collect(),
            unsent: VecDeque::with_capacity(SLOTS),
            under_way: BTreeMap::new(),
            ended: VecDeque::with_capacity(SLOTS),
            answers: VecDeque::with_capacity(SLOTS),
            owed: BTreeMap::new(),
            room: Box::new([0; REQUEST_BYTES + PIECE_BYTES]),
        }
    }

    /// Begins an operation; false if too many are under way.
    pub(super) fn begin(&mut self, op: &Op) -> bool {
        let Some(at) = self.free.pop() else { return false };
        let slot = &mut self.slots[at as usize];
        slot.life = slot.life.wrapping_add(1);
        (slot.op, slot.state, slot.moved) = (*op, State::Unsent, 0);
        self.unsent.push_back(at);
        true
    }

    /// Sends what waits, as far as there is room. Answers first: somebody
    /// waits for them.
    pub(super) fn send(
        &mut self,
        memory: &impl LoadStore,
        mut send: impl FnMut(Rank, &[u8]) -> Sent,
    ) {
        while let Some(answer) = self.answers.front() {
            let to = answer.to;
            // Whoever is lost needs none.
            if send(to, answer.write(memory, &mut self.room)) == Sent::Full {
                return;
            }
            self.answers.pop_front();
            take_one(&mut self.owed, to);
        }
        for _ in 0..self.unsent.len() {
            let Some(at) = self.unsent.pop_front() else { return };
            let Slot { op, life, moved, .. } = self.slots[at as usize];
            let to = op.remote.rank;
            let under_way = self.under_way.entry(to.0).or_default();
            if *under_way >= WINDOW {
                self.unsent.push_back(at);
                continue;
            }
            let request = match request(&op, id(at, life), moved, memory, &mut self.room) {
                Ok(request) => request,
                Err(error) => {
                    self.end(at, Err(error));
                    continue;
                }
            };
            match send(to, request) {
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
                let bytes = match asked {
                    Asked::Get(from, bytes) => Some((from, bytes)),
                    Asked::Word(_) | Asked::Put(..) => None,
                };
                self.answers.push_back(Answer { to: from, id, result: serve(asked), bytes });
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
        self.answers.retain(|answer| !is_lost(answer.to));
        self.owed.retain(|rank, _| !is_lost(Rank(*rank)));
    }

    /// Whether there is anything to send or to hand over.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.answers.is_empty() && self.unsent.is_empty() && self.ended.is_empty()
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

type Parcel = [u8; REQUEST_BYTES + PIECE_BYTES];

/// Bytes of the tables of a link.
pub(super) fn footprint() -> usize {
    let slot = size_of::<Slot>() + 2 * size_of::<u16>() + size_of::<Completion>();
    SLOTS * (slot + size_of::<Answer>()) + size_of::<Parcel>()
}

fn take_one(counts: &mut BTreeMap<u32, u32>, rank: Rank) {
    if let Some(count) = counts.get_mut(&rank.0) {
        *count = count.saturating_sub(1);
    }
}

fn id(at: u16, life: u16) -> u32 {
    u32::from(at) | u32::from(life) << 16
}

impl Answer {
    fn write<'p>(&self, memory: &impl LoadStore, parcel: &'p mut Parcel) -> &'p [u8] {
        let (mut result, mut count) = (self.result, 0);
        if let (Ok(_), Some((from, bytes))) = (result, self.bytes) {
            let to = parcel[ANSWER_BYTES..].as_mut_ptr();
            // SAFETY: the parcel has room for a piece, and no piece is longer:
            // it was checked when it was asked for.
            result = unsafe { load_bytes(memory, from, to, bytes as usize) }.map(|()| 0);
            count = if result.is_ok() { bytes as usize } else { 0 };
        }
        let (what, value) = match result {
            Ok(old) => (0, old),
            Err(AddrError::OutOfRange { region_bytes, .. }) => (2, region_bytes),
            Err(AddrError::Unaligned { align, .. }) => (3, align),
            Err(AddrError::ReadOnly { .. }) => (4, 0),
            Err(AddrError::PeerLost { .. }) => (5, 0),
            Err(_) => (1, 0),
        };
        parcel[..4].copy_from_slice(&[ANSWER, what, 0, 0]);
        parcel[4..8].copy_from_slice(&self.id.to_le_bytes());
        parcel[8..16].copy_from_slice(&u64::to_le_bytes(value));
        &parcel[..ANSWER_BYTES + count]
    }
}

/// Bytes of the next piece of a put or get.
fn piece_of(op: &Op, moved: u64) -> u64 {
    (op.bytes() - moved).min(PIECE_BYTES as u64)
}

fn request<'p>(
    op: &Op,
    id: u32,
    moved: u64,
    memory: &impl LoadStore,
    parcel: &'p mut Parcel,
) -> Result<&'p [u8], AddrError> {
    let (mut operand, mut count, mut notify) = (op.operand(), 0, op.notify);
    if op.width().is_none() {
        operand = piece_of(op, moved);
        notify &= moved + operand == op.bytes();
        if op.kind == Kind::Put {
            count = operand as usize;
            let from = local_piece(op, moved, operand, memory)?;
            // SAFETY: resolved for as many bytes, which belong to the
            // operation; the parcel has room for a piece.
            unsafe {
                let to = parcel[REQUEST_BYTES..].as_mut_ptr();
                std::ptr::copy_nonoverlapping(from.as_ptr(), to, count);
            }
        }
    }
    let width = op.width().map_or(0, |width| width as u8);
    parcel[..4].copy_from_slice(&[REQUEST, op.kind as u8, width, u8::from(notify)]);
    parcel[4..8].copy_from_slice(&id.to_le_bytes());
    parcel[8..12].copy_from_slice(&op.remote.key.to_bits().to_le_bytes());
    parcel[12..16].fill(0);
    let words = [op.remote.offset.wrapping_add(moved), operand, op.compare()];
    for (to, word) in parcel[16..].chunks_exact_mut(8).zip(words) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    Ok(&parcel[..REQUEST_BYTES + count])
}

/// The local end of a piece.
fn local_piece(
    op: &Op,
    moved: u64,
    bytes: u64,
    memory: &impl LoadStore,
) -> Result<NonNull<u8>, AddrError> {
    let LocalAddr { offset, key } = op.local();
    memory.local(LocalAddr { offset: offset.wrapping_add(moved), key }, bytes)
}

/// The bytes of a piece have come.
fn take_piece(
    op: &Op,
    moved: u64,
    bytes: &[u8],
    memory: &impl LoadStore,
) -> Result<u64, AddrError> {
    let piece = piece_of(op, moved);
    if bytes.len() as u64 != piece {
        return Err(AddrError::Unsupported { addr: op.remote });
    }
    let to = local_piece(op, moved, piece, memory)?;
    // SAFETY: resolved for as many bytes, which belong to the operation.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.as_ptr(), bytes.len()) };
    Ok(0)
}

fn parse_request(bytes: &[u8], own: Rank) -> Option<(Asked<'_>, u32)> {
    let (bytes, rest) = bytes.split_first_chunk::<REQUEST_BYTES>()?;
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
    let remote = RemoteAddr { offset: word(16), rank: own, key: RegionKey::from_bits(half(8)) };
    let kind = KINDS.into_iter().find(|kind| *kind as u8 == bytes[1])?;
    let (operand, compare) = (word(24), word(32));
    let notify = match bytes[3] {
        0 => false,
        1 => true,
        _ => return None,
    };
    let count = if kind == Kind::Put { operand } else { 0 };
    if rest.len() as u64 != count || operand > PIECE_BYTES as u64 && bytes[2] == 0 {
        return None;
    }
    if let (Kind::Put | Kind::Get, 0) = (kind, bytes[2]) {
        let asked = match kind {
            Kind::Put => Asked::Put(remote, rest, notify),
            _ => Asked::Get(remote, operand),
        };
        return Some((asked, half(4)));
    }
    let width = WIDTHS.into_iter().find(|width| *width as u8 == bytes[2])?;
    let op = match (kind, width) {
        (Kind::Put | Kind::Get, _) => return None,
        (Kind::PutWord, _) => Op::put_word(remote, width, operand),
        (Kind::GetWord, _) => Op::get_word(remote, width),
        (Kind::CompareSwap, Width::W4) => Op::compare_swap(remote, compare as u32, operand as u32),
        (Kind::CompareSwap, Width::W8) => Op::compare_swap(remote, compare, operand),
        (_, Width::W4) => Op::atomic(kind, remote, operand as u32),
        (_, Width::W8) => Op::atomic(kind, remote, operand),
        _ => return None,
    };
    Some((Asked::Word(if notify { op.notifying() } else { op }), half(4)))
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
const KINDS: [Kind; 10] = [
    Kind::Put,
    Kind::Get,
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
/// Of a put or get, in one parcel.
const PIECE_BYTES: usize = PACKET_BYTES - 1 - REQUEST_BYTES;
const NO_KEY: RegionKey = RegionKey::from_bits(0);
/// Errands of a link that are under way.
const SLOTS: usize = 256;
/// Of those, to one peer.
const WINDOW: u32 = 16;

#[cfg(test)]
mod tests;

//! The format of emulated operations and their answers on the network.
//!
//! ```text
//!  request: 1 | kind 1 | width 1 | notify 1 | id 4 | key 4 | 0 4 | offset 8 |
//!           operand, or bytes 8 | compare 8 | bytes of a put ...
//!  answer:  2 | what 1 | 0 2 | id 4 | value 8 | bytes of a get ...
//! ```
//!
//! A put may carry a second operation, on a word of the same rank, which is carried
//! out after the bytes have landed. Then `notify` is 2, and the request of the
//! second stands before the bytes. The answer is for both; its value is that of the
//! second.
//!
//! Numbers are little-endian. The parser takes any bytes: it checks lengths, kinds
//! and widths, and the thread that carries an emulated operation out checks addresses.

use super::super::packet::PACKET_BYTES;
use std::ptr::NonNull;
use tsumugi_core::backend::{LoadStore, load_bytes};
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_core::mem::{LocalAddr, RegionKey, RemoteAddr, Width};
use tsumugi_core::op::{Kind, Op};

/// An answer that is to be sent back.
#[derive(Clone, Copy, Debug)]
pub(super) struct EmulatedReply {
    pub to: Rank,
    pub id: u32,
    pub result: Result<u64, AddrError>,
    /// Looks at this answer before it goes, because no thread waits for it.
    pub patience: u8,
    /// The bytes that go with the answer; they are read when it is sent.
    pub bytes: Option<(RemoteAddr, u64)>,
}

/// A request of another rank.
#[derive(Clone, Copy, Debug)]
pub(in crate::net) enum EmulatedRequest<'b> {
    /// An operation on a word.
    Word(Op),
    /// Puts these bytes; true: and notifies.
    Put(RemoteAddr, &'b [u8], bool),
    /// Puts these bytes and then carries out the operation on a word.
    Joined(RemoteAddr, &'b [u8], Op),
    /// Gets this many bytes: checks only whether the rank may read them.
    Get(RemoteAddr, u64),
}

/// A buffer in which a parcel is built.
pub type RequestBytes = [u8; REQUEST_BYTES + PIECE_BYTES];

impl EmulatedReply {
    pub(super) fn write<'p>(
        &self,
        memory: &impl LoadStore,
        parcel: &'p mut RequestBytes,
    ) -> &'p [u8] {
        let (mut result, mut count) = (self.result, 0);
        if let (Ok(_), Some((from, bytes))) = (result, self.bytes) {
            let to = parcel[ANSWER_BYTES..].as_mut_ptr();
            // SAFETY: the parcel has room for a piece, and `bytes` is no more: that
            // was checked when the request was parsed.
            result = unsafe { load_bytes(memory, from, to, bytes as usize) }.map(|()| 0);
            count = if result.is_ok() { bytes as usize } else { 0 };
        }
        let (what, value) = match result {
            Ok(old) => (0, old),
            Err(AddrError::OutOfRange { region_bytes, .. }) => (2, region_bytes.unwrap_or(UNKNOWN)),
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
pub(super) fn piece_of(op: &Op, moved: u64) -> u64 {
    (op.bytes() - moved).min(PIECE_BYTES as u64)
}

pub(super) fn request<'p>(
    op: &Op,
    then: Option<&Op>,
    id: u32,
    moved: u64,
    memory: &impl LoadStore,
    parcel: &'p mut RequestBytes,
) -> Result<&'p [u8], AddrError> {
    let (mut operand, mut count, mut notify) = (op.operand(), 0, u8::from(op.notify));
    let along = if then.is_some() { REQUEST_BYTES } else { 0 };
    if op.width().is_none() {
        operand = piece_of(op, moved);
        notify &= u8::from(moved + operand == op.bytes());
        if op.kind == Kind::Put {
            count = operand as usize;
            let from = local_piece(op, moved, operand, memory)?;
            assert!(along == 0 || count <= JOINED_BYTES as usize && operand == op.bytes());
            // SAFETY: `from` is resolved for `count` bytes, which belong to the
            // operation; the parcel has room for a piece, or for fewer bytes and a
            // second request.
            unsafe {
                let to = parcel[REQUEST_BYTES + along..].as_mut_ptr();
                std::ptr::copy_nonoverlapping(from.as_ptr(), to, count);
            }
        }
    }
    if let Some(then) = then {
        notify = JOINED;
        write_head(
            then,
            u8::from(then.notify),
            id,
            0,
            then.operand(),
            &mut parcel[REQUEST_BYTES..],
        );
    }
    write_head(op, notify, id, moved, operand, parcel);
    Ok(&parcel[..REQUEST_BYTES + along + count])
}

fn write_head(op: &Op, notify: u8, id: u32, moved: u64, operand: u64, to: &mut [u8]) {
    let width = op.width().map_or(0, |width| width as u8);
    to[..4].copy_from_slice(&[REQUEST, op.kind as u8, width, notify]);
    to[4..8].copy_from_slice(&id.to_le_bytes());
    to[8..12].copy_from_slice(&op.remote.key.to_bits().to_le_bytes());
    to[12..16].fill(0);
    let words = [op.remote.offset.wrapping_add(moved), operand, op.compare()];
    for (to, word) in to[16..REQUEST_BYTES].chunks_exact_mut(8).zip(words) {
        to.copy_from_slice(&word.to_le_bytes());
    }
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

/// Stores the bytes of a piece of a get, which have come.
pub(super) fn take_piece(
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

pub(super) fn parse_request(bytes: &[u8], own: Rank) -> Option<(EmulatedRequest<'_>, u32)> {
    let (bytes, rest) = bytes.split_first_chunk::<REQUEST_BYTES>()?;
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
    let remote = RemoteAddr { offset: word(16), rank: own, key: RegionKey::from_bits(half(8)) };
    let kind = KINDS.into_iter().find(|kind| *kind as u8 == bytes[1])?;
    let (operand, compare) = (word(24), word(32));
    if bytes[3] == JOINED {
        return parse_joined(kind, bytes[2], remote, rest, word(24)).zip(Some(half(4)));
    }
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
            Kind::Put => EmulatedRequest::Put(remote, rest, notify),
            _ => EmulatedRequest::Get(remote, operand),
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
    Some((EmulatedRequest::Word(if notify { op.notifying() } else { op }), half(4)))
}

/// Parses a put with a second operation.
fn parse_joined(
    kind: Kind,
    width: u8,
    to: RemoteAddr,
    rest: &[u8],
    count: u64,
) -> Option<EmulatedRequest<'_>> {
    let (then, rest) = rest.split_at_checked(REQUEST_BYTES)?;
    if kind != Kind::Put || width != 0 || rest.len() as u64 != count {
        return None;
    }
    // A put that is joined itself is too short here.
    match parse_request(then, to.rank)? {
        (EmulatedRequest::Word(op), _) if op.writes() => {
            Some(EmulatedRequest::Joined(to, rest, op))
        }
        _ => None,
    }
}

pub(super) fn result(op: &Op, answer: &[u8; ANSWER_BYTES]) -> Result<u64, AddrError> {
    let value = u64::from_le_bytes(answer[8..].try_into().expect("8 bytes"));
    let addr = op.remote;
    Err(match answer[1] {
        0 => return Ok(value),
        2 => {
            let region_bytes = (value != UNKNOWN).then_some(value);
            AddrError::OutOfRange { addr, bytes: op.bytes(), region_bytes }
        }
        3 => AddrError::Unaligned { addr, align: value },
        4 => AddrError::ReadOnly { addr },
        5 => AddrError::PeerLost { rank: addr.rank },
        _ => AddrError::StaleKey { addr },
    })
}

/// In an answer, the length of a region that the answering rank does not know.
const UNKNOWN: u64 = u64::MAX;
/// The value of `notify` for a put with a second operation.
pub(super) const JOINED: u8 = 2;
/// The longest put that can carry a second operation.
pub(crate) const JOINED_BYTES: u64 = (PIECE_BYTES - REQUEST_BYTES) as u64;
pub(super) const REQUEST: u8 = 1;
pub(super) const ANSWER: u8 = 2;
pub(super) const REQUEST_BYTES: usize = 40;
pub(super) const ANSWER_BYTES: usize = 16;
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
/// Bytes of a put or get in one parcel.
pub(super) const PIECE_BYTES: usize = PACKET_BYTES - 1 - REQUEST_BYTES;

//! Two ranks, and parcels that a test carries by hand.

mod credits;
mod lanes;
mod lost;
mod parcels;
mod refused;

use super::*;
use crate::msg::packet::{INLINE_BYTES_MAX, PacketKind};
use std::boxed::Box;
use std::string::ToString;
use std::vec;
use std::vec::Vec;

const SHAPE: MessageShape =
    MessageShape { peers: 2, lines: 8, slots: 4, slot_bytes: 256, quota: 4, mirror: 1 };
/// The number of chunks that the lanes can have at most.
const CHUNKS: usize = 2 * NetworkLane::places(&SHAPE);
const A: PeerIndex = PeerIndex(0);
const B: PeerIndex = PeerIndex(1);

/// Memory in which an address is an offset.
struct Memory(Vec<u8>);

impl Buffers for Memory {
    fn read(&mut self, at: u64, into: &mut [u8]) {
        into.copy_from_slice(&self.0[at as usize..][..into.len()]);
    }
    fn write(&mut self, at: u64, bytes: &[u8]) {
        self.0[at as usize..][..bytes.len()].copy_from_slice(bytes);
    }
}

/// Memory that remote ranks can fetch from: the word of a buffer is its address and
/// length.
struct Fetchable;

impl Buffers for Fetchable {
    fn read(&mut self, _: u64, _: &mut [u8]) {}
    fn write(&mut self, _: u64, _: &[u8]) {}
    fn place(&mut self, at: u64, len: u64) -> Option<u64> {
        Some(at << 32 | len)
    }
}

fn mail() -> NetworkLanes<'static> {
    mail_of(SHAPE)
}

fn mail_of(shape: MessageShape) -> NetworkLanes<'static> {
    let ends = Vec::leak((0..2).map(|_| NetworkLaneEnd::EMPTY).collect());
    let mut mail = NetworkLanes::new(shape, ends).unwrap();
    for rank in [A, B] {
        let places = Vec::leak((0..NetworkLane::places(&shape)).map(|_| None).collect());
        mail.connect(rank, Box::leak(Box::new(NetworkLane::new(&shape, places).unwrap())));
    }
    let chunks = 2 * NetworkLane::places(&shape);
    mail.feed(Vec::leak((0..chunks).map(|_| LaneChunk::EMPTY).collect()));
    assert!(!mail.is_short());
    mail
}

/// All parcels to be sent, each of at most `bytes_max` bytes.
fn parcels(mail: &mut NetworkLanes<'_>, bytes_max: usize) -> Vec<Vec<u8>> {
    let mut into = vec![0; bytes_max];
    let mut parcels = Vec::new();
    while let Some((to, len)) = mail.poll_parcel(&mut into) {
        parcels.push(into[..len].to_vec());
        mail.posted(to);
    }
    parcels
}

fn inline(tag: u32, count: u8) -> Packet {
    Packet { count, tag, context: 3, ..Packet::new(PacketKind::Inline) }
}

/// Sends one packet and takes it.
fn one(a: &mut NetworkLanes<'_>, b: &mut NetworkLanes<'_>) {
    a.push(B, &inline(1, 0), PacketLoad::Inline(0), &mut Memory(Vec::new()));
    for parcel in parcels(a, 1024) {
        b.take(A, &parcel).unwrap();
    }
    assert!(b.peek(A).is_some());
    b.pop(A);
}

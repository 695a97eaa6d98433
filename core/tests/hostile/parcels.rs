//! The effect of parcels from another node on a machine, whatever their bytes: no panic, and no
//! access outside of the buffers that were given. `fuzz/` has a target for it.

use tsumugi_core::mem::{LocalRank, PeerIndex};
use tsumugi_core::msg::*;

/// Parcels to a rank that has sends and receives under way, each after its length in two
/// bytes. Returns the number of parcels that were taken.
pub fn parcels(bytes: &[u8]) -> usize {
    let shape = MessageShape {
        lines: 16,
        slots: 4,
        slot_bytes: 64,
        quota: 4,
        mirror: 2,
        ..MessageShape::of(2)
    };
    let mut peers = [MessagePeer::EMPTY; 2];
    let mut requests = [RequestEntry::EMPTY; 16];
    let mut unexpected = vec![UnexpectedMessage::EMPTY; shape.unexpected()];
    let mut log = vec![LoggedMessage::EMPTY; shape.log()];
    let mut mirror = vec![MirroredOffer::EMPTY; shape.mirrored()];
    let tables = MessageTables {
        peers: &mut peers,
        requests: &mut requests,
        unexpected: &mut unexpected,
        log: &mut log,
        mirror: &mut mirror,
    };
    let thresholds = Thresholds { eager_max: 128, ..Thresholds::FAR };
    let mut machine =
        MessageMachine::new(LocalRank(ME.0), shape, MatchingDesign::Mirror, thresholds, tables)
            .unwrap();
    machine.set_remote(PEER);
    // No more than one lane can ever use, plus the largest request of a call.
    let mut chunks: Vec<LaneChunk<'_>> =
        (0..2 * NetworkLane::places(&shape)).map(|_| LaneChunk::EMPTY).collect();
    let mut places: Vec<ChunkPlace<'_>> = (0..NetworkLane::places(&shape)).map(|_| None).collect();
    let mut lane = NetworkLane::new(&shape, &mut places).unwrap();
    let mut ends = [NetworkLaneEnd::EMPTY, NetworkLaneEnd::EMPTY];
    let mut mail = NetworkLanes::new(shape, &mut ends).unwrap();
    mail.connect(PEER, &mut lane);
    mail.feed(&mut chunks);
    let mut wire = At { mail, own: Own(vec![7; 4096]) };
    // One request of each kind, for which answers could arrive.
    let (in_reach, label) = (true, Label { context: 0, tag: 1 });
    for (at, len) in SENT {
        let _ = machine.send(&mut wire, PEER, label, MessageBytes { at, len, in_reach });
    }
    let patterns = [(Some(PEER), Some(1)), (None, None), (None, Some(2))];
    for ((source, tag), (at, len)) in patterns.into_iter().zip(RECEIVED) {
        let pattern = Pattern { context: 0, source, tag };
        let _ = machine.receive(&mut wire, pattern, MessageBytes { at, len, in_reach });
    }
    let (mut rest, mut taken) = (bytes, 0);
    while let Some((len, more)) = rest.split_first_chunk() {
        let len = usize::from(u16::from_le_bytes(*len)).min(more.len());
        let (parcel, more) = more.split_at(len);
        rest = more;
        assert!(!wire.mail.is_short(), "{} chunks are left", wire.mail.chunks_free());
        taken += usize::from(wire.mail.take(PEER, parcel).is_ok());
        while let Some(from) = wire.mail.poll_arrived() {
            machine.look(&mut wire, from);
        }
        machine.advance(&mut wire);
        machine.rest(&mut wire);
        // Every other copy fails, as if the peer had announced a wrong place.
        while let Some(CopyJob { request, copy: Copy { peer, to, len, .. }, .. }) =
            machine.poll_job()
        {
            assert_eq!(peer, PEER);
            assert!(are_in(&RECEIVED, to, len), "{len} bytes to {to}");
            let failed = RequestError::Failed { peer };
            machine.job_done(&mut wire, request, if taken % 2 == 0 { Err(failed) } else { Ok(()) });
        }
        let mut parcel = [0; 512];
        while let Some((to, _)) = wire.mail.poll_parcel(&mut parcel) {
            wire.mail.posted(to);
        }
    }
    let pattern = Pattern { context: 0, source: None, tag: None };
    while machine.probe(&pattern).is_some() {
        let (at, len) = RECEIVED[3];
        let into = MessageBytes { at, len, in_reach };
        if machine.receive(&mut wire, pattern, into).is_err() {
            break;
        }
    }
    machine.lost(&mut wire, PEER);
    wire.mail.lost(PEER);
    taken
}

/// A rank without neighbours except itself.
struct At<'t> {
    mail: NetworkLanes<'t>,
    own: Own,
}

/// Memory whose addresses are offsets; a read outside of sent messages, or a write outside of
/// receives, panics.
struct Own(Vec<u8>);

/// The places of the buffers, and their lengths.
const SENT: [(u64, u64); 3] = [(0, 100), (100, 1000), (1100, 1000)];
const RECEIVED: [(u64, u64); 4] = [(2200, 200), (2400, 200), (3000, 200), (3200, 300)];

fn are_in(buffers: &[(u64, u64)], at: u64, len: u64) -> bool {
    buffers.iter().any(|(start, room)| {
        at.checked_sub(*start).is_some_and(|offset| offset <= *room && len <= room - offset)
    })
}

impl Buffers for Own {
    fn read(&mut self, at: u64, into: &mut [u8]) {
        assert!(are_in(&SENT, at, into.len() as u64), "{} bytes are read at {at}", into.len());
        into.copy_from_slice(&self.0[at as usize..][..into.len()]);
    }
    fn write(&mut self, at: u64, bytes: &[u8]) {
        let len = bytes.len() as u64;
        assert!(are_in(&RECEIVED, at, len), "{len} bytes are written at {at}");
        self.0[at as usize..][..bytes.len()].copy_from_slice(bytes);
    }
}

impl LaneTransport for At<'_> {
    fn has_room(&mut self, to: PeerIndex, lines: u32) -> bool {
        self.mail.has_room(to, lines)
    }
    fn push(&mut self, to: PeerIndex, packet: &Packet, load: PacketLoad) {
        self.mail.push(to, packet, load, &mut self.own);
    }
    fn peek(&mut self, from: PeerIndex) -> Option<Packet> {
        self.mail.peek(from)
    }
    fn deliver(&mut self, from: PeerIndex, at: u64, len: u64) {
        self.mail.deliver(from, at, len, &mut self.own);
    }
    fn keep(&mut self, from: PeerIndex, into: &mut [u64; INLINE_WORDS]) {
        self.mail.keep(from, into);
    }
    fn deliver_kept(&mut self, kept: &[u64; INLINE_WORDS], at: u64, len: u64) {
        let bytes: Vec<u8> = kept.iter().flat_map(|word| word.to_ne_bytes()).collect();
        self.own.write(at, &bytes[..len as usize]);
    }
    fn offer(&mut self, from: PeerIndex) -> Offer {
        self.mail.offer(from)
    }
    fn pop(&mut self, from: PeerIndex) {
        self.mail.pop(from);
    }
    fn returned(&mut self, to: PeerIndex) -> Returned {
        self.mail.returned(to)
    }
    fn give_back(&mut self, from: PeerIndex, returned: Returned) -> bool {
        self.mail.give_back(from, returned)
    }
    fn untold(&mut self, from: PeerIndex) -> u32 {
        self.mail.untold(from)
    }
    fn set_starved(&mut self, to: PeerIndex) {
        self.mail.set_starved(to);
    }
    fn is_starved(&mut self, from: PeerIndex) -> bool {
        self.mail.is_starved(from)
    }
    fn fence(&mut self) {}
    fn ring(&mut self, _from: PeerIndex) {}
    fn write_slots(&mut self, to: PeerIndex, slots: u32, at: u64, len: u64) {
        self.mail.write_slots(to, slots, at, len, &mut self.own);
    }
    fn read_slots(&mut self, from: PeerIndex, slots: u32, at: u64, len: u64) {
        self.mail.read_slots(from, slots, at, len, &mut self.own);
    }
    fn copy(&mut self, copy: &Copy) {
        panic!("{copy:?}: nothing is in reach");
    }
}

const ME: PeerIndex = PeerIndex(0);
const PEER: PeerIndex = PeerIndex(1);

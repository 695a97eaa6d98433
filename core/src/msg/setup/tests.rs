//! Which shapes and tables make a machine, and what a machine keeps as they grow.

extern crate std;

use super::*;
use crate::msg::outcome::{Label, Pattern};
use crate::msg::shape::{LINES_MAX, PEERS_MAX, SLOT_BYTES_MAX};
use crate::msg::{LaneEnd, LaneLine, MessageBytes, NodeLanes, ReceivedMessage};
use core::ptr::NonNull;
use std::vec;
use std::vec::Vec;

const SHAPE: MessageShape =
    MessageShape { peers: 2, lines: 16, slots: 4, slot_bytes: 256, quota: 4, mirror: 3 };

/// The number of entries of each table: those of the shape, except for one table.
#[derive(Clone, Copy)]
struct Lens([usize; 5]);

impl Lens {
    fn of(shape: MessageShape, requests: usize) -> Self {
        let peers = shape.peers as usize;
        Self([peers, requests, shape.unexpected(), shape.log(), shape.mirrored()])
    }

    fn with(mut self, table: usize, len: usize) -> Self {
        self.0[table] = len;
        self
    }

    fn tables(self) -> MessageTables<'static> {
        let [peers, requests, unexpected, log, mirror] = self.0;
        // Any content is allowed.
        let logged = LoggedMessage { open: true, ..LoggedMessage::EMPTY };
        MessageTables {
            peers: Vec::leak(vec![
                MessagePeer { sent: 9, lost: true, ..MessagePeer::EMPTY };
                peers
            ]),
            requests: Vec::leak(vec![
                RequestEntry { generation: 9, ..RequestEntry::EMPTY };
                requests
            ]),
            unexpected: Vec::leak(vec![
                UnexpectedMessage { len: 9, ..UnexpectedMessage::EMPTY };
                unexpected
            ]),
            log: Vec::leak(vec![logged; log]),
            mirror: Vec::leak(vec![MirroredOffer { room: 9, ..MirroredOffer::EMPTY }; mirror]),
        }
    }
}

fn machine(shape: MessageShape, lens: Lens) -> Result<MessageMachine<'static>, SetupError> {
    MessageMachine::new(
        LocalRank(1),
        shape,
        MatchingDesign::TwoCopy,
        Thresholds::DEFAULT,
        lens.tables(),
    )
}

#[test]
fn a_shape_has_its_bounds() {
    let good = [
        SHAPE,
        MessageShape { peers: 1, lines: 8, slots: 1, slot_bytes: 64, quota: 1, mirror: 1 },
        MessageShape {
            peers: PEERS_MAX,
            lines: LINES_MAX,
            slots: 32,
            slot_bytes: SLOT_BYTES_MAX,
            quota: LINES_MAX,
            mirror: LINES_MAX,
        },
    ];
    assert!(good.iter().all(MessageShape::is_valid));
    let bad = [
        MessageShape { peers: 0, ..SHAPE },
        MessageShape { peers: PEERS_MAX + 1, ..SHAPE },
        MessageShape { lines: 4, ..SHAPE },
        MessageShape { lines: 24, ..SHAPE },
        MessageShape { lines: 2 * LINES_MAX, ..SHAPE },
        MessageShape { slots: 0, ..SHAPE },
        MessageShape { slots: 33, ..SHAPE },
        MessageShape { slot_bytes: 32, ..SHAPE },
        MessageShape { slot_bytes: 96, ..SHAPE },
        MessageShape { slot_bytes: 2 * SLOT_BYTES_MAX, ..SHAPE },
        MessageShape { quota: 0, ..SHAPE },
        MessageShape { quota: 3, ..SHAPE },
        MessageShape { quota: 2 * LINES_MAX, ..SHAPE },
        MessageShape { mirror: 0, ..SHAPE },
        MessageShape { mirror: LINES_MAX + 1, ..SHAPE },
    ];
    for shape in bad {
        assert!(!shape.is_valid(), "{shape:?}");
        let refused = machine(shape, Lens([9; 5])).err();
        assert_eq!(refused, Some(SetupError::Shape(shape)));
    }
    assert_eq!((SHAPE.reserve(), MessageShape { lines: 64, ..SHAPE }.reserve()), (4, 16));
    assert_eq!(MessageShape { slots: 32, ..SHAPE }.slot_mask(), !0);
    assert_eq!((SHAPE.slot_mask(), SHAPE.slots_reserved()), (0b1111, 1));
    assert_eq!((SHAPE.unexpected(), SHAPE.log(), SHAPE.mirrored()), (2 * 4 + 16, 16, 6));
}

#[test]
fn a_machine_needs_its_rank_and_each_of_its_tables() {
    let lens = Lens::of(SHAPE, 1);
    assert!(machine(SHAPE, lens).is_ok());
    let alone = MessageShape { peers: 1, ..SHAPE };
    assert_eq!(machine(alone, lens).err(), Some(SetupError::Shape(alone)), "there is no rank 1");
    for table in 0..5 {
        let needed = lens.0[table];
        let refused = machine(SHAPE, lens.with(table, needed - 1)).err();
        assert_eq!(refused, Some(SetupError::Tables { entries: needed - 1, needed }));
        if table != 1 {
            assert!(machine(SHAPE, lens.with(table, needed + 1)).is_ok());
        }
    }
    // The number of requests that a packet can name is the limit.
    assert!(machine(SHAPE, Lens::of(SHAPE, REQUESTS_MAX)).is_ok());
    let refused = machine(SHAPE, Lens::of(SHAPE, REQUESTS_MAX + 1)).err();
    let (entries, needed) = (REQUESTS_MAX + 1, REQUESTS_MAX);
    assert_eq!(refused, Some(SetupError::Tables { entries, needed }));
}

#[test]
fn a_new_machine_ignores_the_old_content_of_its_memory() {
    let machine = machine(SHAPE, Lens::of(SHAPE, 3)).unwrap();
    let tables = &machine.tables;
    assert!(tables.peers.iter().all(|peer| peer.sent == 0 && !peer.lost && !peer.remote));
    assert!(tables.requests.iter().all(|entry| entry.generation == 0));
    assert!(tables.unexpected.iter().all(|message| message.len == 0));
    assert!(tables.log.iter().all(|logged| !logged.open));
    assert!(tables.mirror.iter().all(|offer| offer.room == 0));
    assert_eq!((machine.under_way(), machine.peers(), machine.own()), (0, 2, LocalRank(1)));
    assert!(!machine.is_probed && !machine.has_learned && !machine.holds_board);
    assert!(!machine.wants_poll() && !machine.has_news() && !machine.is_lost(PeerIndex(0)));
}

#[test]
fn thresholds_are_limited_by_packets_and_slots() {
    let mut machine = machine(SHAPE, Lens::of(SHAPE, 3)).unwrap();
    let own = |machine: &MessageMachine<'_>, peer: usize| machine.tables.peers[peer].thresholds;
    // One of four slots is reserved for other messages.
    assert_eq!(own(&machine, 0), Thresholds { eager_max: 3 * 256, ..Thresholds::DEFAULT });
    assert_eq!(own(&machine, 1), own(&machine, 0));
    let to = Thresholds { inline_max: INLINE_BYTES_MAX as u32, eager_max: 100, ..Thresholds::FAR };
    assert_eq!(machine.set_thresholds(PeerIndex(0), to), Ok(()));
    assert_eq!(own(&machine, 0), to);
    let long = Thresholds { inline_max: to.inline_max + 1, ..Thresholds::DEFAULT };
    let refused = Err(SetupError::InlineMax(long.inline_max));
    assert_eq!(machine.set_thresholds(PeerIndex(0), long), refused);
    assert_eq!(own(&machine, 0), to, "the thresholds did not change");
    let lens = Lens::of(SHAPE, 1);
    let refused =
        MessageMachine::new(LocalRank(0), SHAPE, MatchingDesign::TwoCopy, long, lens.tables())
            .err();
    assert_eq!(refused, Some(SetupError::InlineMax(long.inline_max)));
}

#[test]
fn a_peer_is_admitted_while_every_table_has_room_for_it() {
    let larger = MessageShape { peers: 3, ..SHAPE };
    for table in [0, 2, 3, 4] {
        let lens = Lens::of(larger, 2);
        let mut short = machine(SHAPE, lens.with(table, lens.0[table] - 1)).unwrap();
        assert_eq!((short.admit(), short.peers()), (None, 2), "table {table}");
    }
    let mut machine = machine(SHAPE, Lens::of(larger, 2)).unwrap();
    assert_eq!((machine.admit(), machine.peers()), (Some(PeerIndex(2)), 3));
    let far: Vec<bool> = machine.tables.peers.iter().map(|peer| peer.remote).collect();
    assert_eq!(far, [false, false, true]);
    assert_eq!((machine.admit(), machine.peers()), (None, 3));
    machine.grow(Lens::of(MessageShape { peers: 4, ..SHAPE }, 2).tables()).unwrap();
    assert_eq!(machine.admit(), Some(PeerIndex(3)));
    machine.set_remote(PeerIndex(0));
    let far: Vec<bool> = machine.tables.peers.iter().map(|peer| peer.remote).collect();
    assert_eq!(far, [true, false, true, true]);
}

fn bytes(at: &[u8]) -> MessageBytes {
    let (at, len) = (at.as_ptr().expose_provenance() as u64, at.len() as u64);
    MessageBytes { at, len, in_reach: false }
}

/// A rank that sends to itself, before and after it grows.
#[test]
fn a_machine_keeps_its_requests_when_it_grows() {
    let shape = MessageShape { peers: 1, ..SHAPE };
    let lens = Lens::of(shape, 2);
    let tables = lens.tables();
    let new = MessageMachine::new(
        LocalRank(0),
        shape,
        MatchingDesign::TwoCopy,
        Thresholds::DEFAULT,
        tables,
    );
    let mut machine = new.unwrap();
    let memory = Vec::leak(
        (0..shape.memory_size() / size_of::<LaneLine>())
            .map(|_| LaneLine::new())
            .collect::<Vec<_>>(),
    );
    let memory = NonNull::from(memory).cast();
    let ends = Vec::leak(vec![LaneEnd::EMPTY]);
    // SAFETY: zero lines that live for ever; buffers outlive the test.
    let mut lanes = unsafe { NodeLanes::new(LocalRank(0), shape, memory, ends) }.unwrap();
    // SAFETY: the same.
    unsafe { lanes.connect(PeerIndex(0), memory) };
    let pattern = |tag| Pattern { context: 0, source: Some(PeerIndex(0)), tag: Some(tag) };
    let (into, late) = (vec![0; 3], vec![0; 3]);
    let post = machine.receive(&mut lanes, pattern(1), bytes(&into)).unwrap().pending().unwrap();
    let label = |tag| Label { context: 0, tag };
    machine.send(&mut lanes, PeerIndex(0), label(2), bytes(&[4, 5, 6])).unwrap();
    while machine.advance(&mut lanes) {}
    for table in 0..5 {
        let needed = lens.0[table];
        let refused = machine.grow(lens.with(table, needed - 1).tables());
        assert_eq!(refused, Err(SetupError::Tables { entries: needed - 1, needed }));
    }
    let refused = machine.grow(lens.with(1, REQUESTS_MAX + 1).tables());
    let (entries, needed) = (REQUESTS_MAX + 1, REQUESTS_MAX);
    assert_eq!(refused, Err(SetupError::Tables { entries, needed }));
    machine.tables.log[0].open = true;
    machine.tables.mirror[1].room = 77;
    let larger = MessageShape { peers: 2, ..shape };
    machine.grow(Lens::of(larger, 5).tables()).unwrap();
    assert!(machine.tables.log[0].open && machine.tables.mirror[1].room == 77);
    assert!(machine.tables.log[shape.log()..].iter().all(|logged| !logged.open));
    assert!(machine.tables.mirror[shape.mirrored()..].iter().all(|offer| offer.room == 0));
    assert!(machine.tables.peers[1].sent == 0 && !machine.tables.peers[1].lost);
    // The waiting message and the waiting receive are where they were.
    assert!(machine.is_under_way(post));
    let received = |tag| ReceivedMessage { source: PeerIndex(0), tag, len: 3, truncated: false };
    let got = machine.receive(&mut lanes, pattern(2), bytes(&late)).unwrap();
    assert_eq!((got.done(), &late[..]), (Some(received(2)), &[4, 5, 6][..]));
    machine.send(&mut lanes, PeerIndex(0), label(1), bytes(&[7, 8, 9])).unwrap();
    while machine.advance(&mut lanes) {}
    assert_eq!(machine.take(post), Some(Ok(received(1))));
    assert_eq!(into, [7, 8, 9]);
    // All requests are free, the new ones too, and so are all places.
    for _ in 0..5 {
        let begun = machine.receive(&mut lanes, pattern(9), bytes(&late)).unwrap();
        assert!(begun.pending().is_some());
    }
    assert!(machine.receive(&mut lanes, pattern(9), bytes(&late)).is_err());
    let mut places = 0;
    while machine.room.pop(machine.tables.unexpected).is_some() {
        places += 1;
    }
    assert_eq!(places, larger.unexpected());
}

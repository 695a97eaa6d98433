//! The peers of a machine, and its setup.

extern crate std;

use super::alone::{Alone, OTHER, PEER, SHAPE, busy, cell, lanes_at, memory, rank, tables, words};
use crate::am::cell::{CellKind, Defect};
use crate::am::lanes::AmLane;
use crate::am::{
    AmEvent, AmMachine, AmMemory, AmPeer, AmShape, BLOCK_PEERS, CallPayload, DoorbellOrder,
    HandlerId, LaneBlock, SetupError,
};
use crate::completion::Why;
use crate::mem::{PeerIndex, Rank};
use crate::sync::mapped::Ordering;
use crate::time::Instant;
use std::vec;
use std::vec::Vec;

#[test]
fn messages_from_and_to_an_unconnected_peer_wait() {
    let mut alone = Alone::new();
    let memory = memory(SHAPE, 6);
    alone.lanes = memory.lanes;
    alone.machine =
        AmMachine::new(PeerIndex(0), SHAPE, DoorbellOrder::WithCell, memory, tables(3, 4, 6, 2))
            .unwrap();
    assert_eq!((alone.cast(PEER), alone.machine.take_room()), (busy(Why::NoCredit), false));
    alone.arrives(PEER, cell(CellKind::Cast, b"c"));
    assert!(alone.machine.poll().is_none() && !alone.machine.wants_poll());
    alone.machine.connect(OTHER, lanes_at(rank(OTHER)), PeerIndex(0));
    assert!(!alone.machine.wants_poll() && alone.machine.take_room());
    alone.machine.connect(PEER, lanes_at(Rank(9)), OTHER);
    assert!(alone.machine.wants_poll());
    assert_eq!(alone.runs().from, Rank(9), "the rank of the peer's index");
    alone.cast(PEER).unwrap();
    let put = alone.ops()[0];
    let place = SHAPE.cell(AmLane::Request, OTHER, 0) as u64;
    assert_eq!(put.remote, lanes_at(Rank(9)).add(place), "in the lanes of this rank at the peer");
    assert_eq!(alone.machine.own, PeerIndex(0));
}

#[test]
fn peers_of_a_block_have_lanes_and_bells_of_their_own() {
    let mut alone = Alone::new();
    alone.call(OTHER).unwrap();
    let shape = SHAPE.block();
    let mut blocks = Vec::new();
    for count in 1..=2usize {
        let lanes = words(shape.memory_size());
        blocks.push(lanes);
        let peers = Vec::leak(vec![AmPeer::EMPTY; 3 + count * BLOCK_PEERS as usize]);
        // The old content of the tables does not matter.
        peers.iter_mut().for_each(|peer| (peer.lost, peer.sent) = (true, 9));
        let table = Vec::leak((0..count).map(|_| LaneBlock::EMPTY).collect());
        alone.machine.grow(lanes, peers, table).unwrap();
    }
    assert_eq!(alone.machine.peers(), 3 + 2 * BLOCK_PEERS);
    assert_eq!(alone.machine.tables.peers[2].unanswered, 1, "the known peers keep their state");
    for (index, lanes) in blocks.into_iter().enumerate() {
        for within in [0, 1, 63] {
            let peer = PeerIndex(3 + index as u32 * BLOCK_PEERS + within);
            assert_eq!(alone.cast(peer), busy(Why::NoCredit));
            alone.machine.connect(peer, lanes_at(Rank(50 + peer.0)), PeerIndex(5));
            for _ in 0..2 {
                alone.cast(peer).unwrap();
            }
            assert_eq!(alone.cast(peer), busy(Why::NoCredit), "later lanes are shorter");
            alone.drain();
            let at = shape.cell(AmLane::Request, PeerIndex(within), 0) / 8;
            cell(CellKind::Cast, b"c").write(&lanes[at..at + 32], 0, Defect::None);
            let (at, one) = shape.arrival(PeerIndex(within));
            lanes[at / 8].fetch_add(one, Ordering::Relaxed);
            lanes[shape.credit(PeerIndex(within)) / 8].store(2, Ordering::Relaxed);
            let (at, bit) = shape.notice(PeerIndex(within));
            lanes[at / 8].fetch_or(bit, Ordering::Relaxed);
            alone.machine.handle(AmEvent::Rang, Instant::ZERO);
            assert_eq!(alone.runs().from, Rank(50 + peer.0));
            assert_eq!(alone.cast(peer), Ok(()));
            alone.drain();
        }
    }
    assert!(alone.machine.poll().is_none());
}

#[test]
fn a_bad_shape_and_tables_that_do_not_fit_it_are_refused() {
    let new = |rank: u32, shape: AmShape, memory, tables| {
        AmMachine::new(PeerIndex(rank), shape, DoorbellOrder::WithCell, memory, tables).map(drop)
    };
    let good = || memory(SHAPE, 2);
    let fits = || tables(3, 1, 2, 0);
    assert_eq!(new(2, SHAPE, good(), fits()), Ok(()));
    assert_eq!(new(3, SHAPE, good(), fits()), Err(SetupError::Shape(SHAPE)));
    for shape in [
        AmShape { peers: 0, ..SHAPE },
        AmShape { cells: 3, ..SHAPE },
        AmShape { cells: 128, ..SHAPE },
        AmShape { later_cells: 0, ..SHAPE },
        AmShape { later_cells: 128, ..SHAPE },
    ] {
        assert_eq!(new(0, shape, good(), fits()), Err(SetupError::Shape(shape)));
    }
    let needed = SHAPE.memory_size();
    let bytes = needed - 8;
    let short = AmMemory { lanes: words(bytes), ..good() };
    assert_eq!(new(0, SHAPE, short, fits()), Err(SetupError::Memory { bytes, needed }));
    let short = AmMemory { staging: words(504), ..good() };
    let error = SetupError::Memory { bytes: 504, needed: 512 };
    assert_eq!(new(0, SHAPE, short, fits()), Err(error));
    for wrong in [tables(2, 1, 2, 0), tables(4, 1, 2, 0), tables(3, 0, 2, 0), tables(3, 1, 1, 0)] {
        assert_eq!(new(0, SHAPE, good(), wrong), Err(SetupError::Tables));
    }
    // The old content of the tables does not matter.
    let used = fits();
    used.peers.iter_mut().for_each(|peer| peer.lost = true);
    used.calls[0].generation = 7;
    used.slots.iter_mut().for_each(|slot| slot.generation = 7);
    let mut machine =
        AmMachine::new(PeerIndex(0), SHAPE, DoorbellOrder::WithCell, good(), used).unwrap();
    machine.connect(PEER, lanes_at(rank(PEER)), PeerIndex(0));
    let token = machine.call(PEER, HandlerId(1), CallPayload::Inline(b""), None).unwrap();
    assert_eq!((token.to_bits(), machine.poll_op().unwrap().tag.generation()), (0, 0));
    assert_eq!((machine.dropped(), machine.next_deadline()), (0, None));
}

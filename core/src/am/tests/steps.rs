//! Each operation that a machine posts, and what follows its completion.

extern crate std;

use super::alone::{
    Alone, OTHER, PEER, SHAPE, STAGING, busy, cell, kind_and_index, lanes_at, lost, rank,
};
use crate::am::cell::CellKind;
use crate::am::lanes::AmLane;
use crate::am::{AmEvent, AmOutput, AmShape, CallError, DoorbellOrder, NOTICES_MAX};
use crate::completion::Why;
use crate::mem::{AddrError, LocalAddr, PeerIndex};
use crate::op::{Kind, Op};
use crate::time::Instant;
use std::vec::Vec;

#[test]
fn a_cell_is_free_when_its_put_and_its_bell_are_done() {
    for is_put_first in [true, false] {
        let mut alone = Alone::new();
        alone.cast(PEER).unwrap();
        alone.cast(PEER).unwrap();
        let ops = alone.ops();
        assert_eq!(ops.len(), 4);
        for (number, (op, index)) in ops.iter().zip([0, 1, 0, 1]).enumerate() {
            let is_put = op.kind == Kind::Put;
            let (kind, at) = kind_and_index(op);
            assert_eq!((kind, at, op.tag.generation()), (usize::from(!is_put), index, 0));
            if is_put {
                let offset = STAGING.offset + 256 * index as u64;
                assert_eq!(op.local(), LocalAddr { offset, ..STAGING });
                let place = SHAPE.cell(AmLane::Request, PeerIndex(0), index as u32) as u64;
                assert_eq!(op.remote, lanes_at(rank(PEER)).add(place));
                assert_eq!((op.bytes(), op.notify), (40, false));
            } else {
                assert!(number > 0 && op.notify && op.kind == Kind::FetchAdd);
                assert_eq!((op.remote, op.operand()), (lanes_at(rank(PEER)), 1));
            }
        }
        let of = |index, is_put| {
            let wanted =
                move |op: &&Op| kind_and_index(op).1 == index && (op.kind == Kind::Put) == is_put;
            *ops.iter().find(wanted).unwrap()
        };
        alone.machine.take_room();
        alone.completes(&of(1, is_put_first), Ok(0));
        assert_eq!((alone.machine.staged(), alone.machine.take_room()), (2, false));
        alone.completes(&of(1, !is_put_first), Ok(0));
        assert_eq!((alone.machine.staged(), alone.machine.take_room()), (1, true));
        alone.completes(&of(0, is_put_first), Ok(0));
        alone.completes(&of(0, !is_put_first), Ok(0));
        assert_eq!(alone.machine.staged(), 0);
    }
}

#[test]
fn with_bell_after_cell_the_bell_follows_the_completed_put() {
    let mut alone = Alone::with(SHAPE, DoorbellOrder::AfterCell, 4, 6, 2);
    alone.cast(PEER).unwrap();
    let put = alone.op();
    assert_eq!(put.kind, Kind::Put);
    alone.completes(&put, Ok(0));
    alone.completes(&put, Ok(0));
    let bell = alone.op();
    assert_eq!((bell.kind, alone.machine.staged()), (Kind::FetchAdd, 1));
    alone.completes(&bell, Ok(0));
    assert_eq!((alone.machine.staged(), alone.ops().len()), (0, 0));
}

/// A completion belongs to one life of an entry; one that comes late or twice is
/// dropped.
#[test]
fn completions_of_an_earlier_life_change_nothing() {
    let mut alone = Alone::with(SHAPE, DoorbellOrder::WithCell, 4, 2, 2);
    alone.cast(PEER).unwrap();
    let old = alone.ops();
    old.iter().for_each(|op| alone.completes(op, Ok(0)));
    alone.cast(PEER).unwrap();
    alone.cast(OTHER).unwrap();
    assert_eq!(alone.cast(OTHER), busy(Why::NoMemory));
    let new = alone.ops();
    assert_eq!((new[0].tag.generation(), new[1].tag.generation()), (0, 1));
    old.iter().for_each(|op| alone.completes(op, Ok(0)));
    let gone = Err(AddrError::PeerLost { rank: rank(PEER) });
    old.iter().for_each(|op| alone.completes(op, gone));
    assert_eq!(
        (alone.machine.staged(), alone.machine.check_room(PEER, false)),
        (2, busy(Why::NoMemory))
    );
    // The same completion twice does not count as both.
    alone.completes(&new[1], Ok(0));
    alone.completes(&new[1], Ok(0));
    assert_eq!(alone.machine.staged(), 2);
    alone.completes(&new[3], Ok(0));
    assert_eq!(alone.machine.staged(), 1);
    // A completion for an entry that does not exist is dropped, too.
    for kind in 0..4 {
        let tag = crate::tag::Tag::from_bits((kind << 22 | 99) as u64);
        alone.machine.handle(AmEvent::Completed { tag, result: gone }, Instant::ZERO);
    }
    assert_eq!(alone.machine.check_room(PEER, false), Ok(()));
}

#[test]
fn a_failed_operation_loses_its_peer_and_no_other() {
    for which in 0..2 {
        let mut alone = Alone::new();
        let call = alone.call(PEER).unwrap();
        alone.call(OTHER).unwrap();
        let ops = alone.ops();
        let failed = ops.iter().filter(|op| op.remote.rank == rank(PEER)).nth(which).unwrap();
        alone.completes(failed, Err(AddrError::PeerLost { rank: rank(PEER) }));
        match alone.machine.poll() {
            Some(AmOutput::Done { token, result }) => {
                assert_eq!((token, result), (call, Err(CallError::PeerLost { rank: rank(PEER) })));
            }
            other => panic!("{other:?}"),
        }
        assert!(alone.machine.poll().is_none());
        assert_eq!((alone.cast(PEER), alone.cast(OTHER)), (lost(PEER), Ok(())));
        assert_eq!(alone.machine.calls(), 1);
    }
}

#[test]
fn half_a_lane_of_taken_requests_is_returned_with_a_bell() {
    let mut alone = Alone::new();
    for _ in 0..3 {
        alone.arrives(PEER, cell(CellKind::Cast, b"c"));
    }
    alone.runs();
    assert_eq!(alone.ops().len(), 0, "a quarter of the lane is not returned");
    alone.runs();
    let count = alone.op();
    assert_eq!((count.kind, count.operand(), count.notify), (Kind::Swap, 2, false));
    let place = SHAPE.credit(PeerIndex(0)) as u64;
    assert_eq!(count.remote, lanes_at(rank(PEER)).add(place));
    assert_eq!(kind_and_index(&count), (3, 1));
    // One notice at a time; requests taken meanwhile are returned by the next
    // notice.
    alone.runs();
    alone.arrives(PEER, cell(CellKind::Cast, b"c"));
    alone.runs();
    assert_eq!(alone.ops().len(), 0);
    alone.completes(&count, Ok(0));
    let bell = alone.op();
    alone.completes(&count, Ok(0));
    assert_eq!((alone.ops().len(), bell.kind, bell.notify), (0, Kind::FetchOr, true));
    let (at, bit) = SHAPE.notice(PeerIndex(0));
    assert_eq!((bell.remote, bell.operand()), (lanes_at(rank(PEER)).add(at as u64), bit));
    alone.completes(&bell, Ok(0));
    let next = alone.op();
    assert_eq!((next.kind, next.operand()), (Kind::Swap, 4));
    alone.completes(&next, Ok(0));
    let bell = alone.op();
    alone.completes(&bell, Ok(0));
    assert_eq!(alone.ops().len(), 0);
}

#[test]
fn credits_that_a_cell_has_returned_need_no_notice() {
    let mut alone = Alone::new();
    alone.arrives(PEER, cell(CellKind::Cast, b"c"));
    alone.runs();
    alone.cast(PEER).unwrap();
    let put = alone.ops()[0];
    assert_eq!(alone.cell_of(&put, 0).ack, 1);
    alone.arrives(PEER, cell(CellKind::Cast, b"c"));
    alone.runs();
    assert_eq!(alone.ops().len(), 0, "the peer lacks the credit of one request only");
    alone.arrives(PEER, cell(CellKind::Cast, b"c"));
    alone.runs();
    assert_eq!(alone.op().operand(), 3);
}

#[test]
fn a_failed_notice_loses_its_peer() {
    let mut alone = Alone::new();
    for _ in 0..2 {
        alone.arrives(PEER, cell(CellKind::Cast, b"c"));
        alone.runs();
    }
    let count = alone.op();
    alone.completes(&count, Err(AddrError::PeerLost { rank: rank(PEER) }));
    assert_eq!((alone.ops().len(), alone.cast(PEER)), (0, lost(PEER)));
}

#[test]
fn a_lost_rank_gets_no_notice() {
    let mut alone = Alone::new();
    for _ in 0..2 {
        alone.arrives(PEER, cell(CellKind::Cast, b"c"));
        alone.runs();
    }
    alone.machine.handle(AmEvent::Lost(PEER), Instant::ZERO);
    assert_eq!(alone.ops().len(), 0);
}

#[test]
fn a_limited_number_of_notices_is_under_way() {
    let peers = NOTICES_MAX as u32 + 2;
    let shape = AmShape { peers, cells: 1, later_cells: 1 };
    let mut alone = Alone::with(shape, DoorbellOrder::WithCell, 4, 6, 2);
    for peer in 0..peers {
        alone.arrives(PeerIndex(peer), cell(CellKind::Cast, b"c"));
        assert_eq!(alone.runs().from, rank(PeerIndex(peer)));
    }
    let counts = alone.ops();
    assert_eq!(counts.len(), NOTICES_MAX);
    let nth = |peer: usize| rank(PeerIndex(peer as u32));
    assert!(counts.iter().enumerate().all(|(peer, op)| op.remote.rank == nth(peer)));
    alone.completes(&counts[7], Ok(0));
    let next = alone.op();
    assert_eq!((next.kind, next.remote.rank), (Kind::Swap, nth(NOTICES_MAX)));
    alone.completes(&next, Ok(0));
    let next = alone.op();
    assert_eq!((next.kind, next.remote.rank), (Kind::Swap, nth(NOTICES_MAX + 1)));
    alone.completes(&next, Ok(0));
    let bell = alone.op();
    assert_eq!((bell.kind, bell.remote.rank), (Kind::FetchOr, nth(7)));
}

#[test]
fn cells_to_a_lost_rank_are_given_up_at_any_step() {
    for posted in 0..3 {
        let mut alone = Alone::with(SHAPE, DoorbellOrder::WithCell, 4, 2, 2);
        alone.cast(PEER).unwrap();
        let ops: Vec<Op> = (0..posted).map(|_| alone.machine.poll_op().unwrap()).collect();
        alone.machine.handle(AmEvent::Lost(PEER), Instant::ZERO);
        assert_eq!(alone.ops().len(), 0);
        let wanted = usize::from(posted > 0);
        assert_eq!(alone.machine.staged(), wanted, "{posted}: posted operations keep their cell");
        ops.iter().for_each(|op| alone.completes(op, Ok(0)));
        assert_eq!(alone.machine.staged(), 0);
        alone.cast(OTHER).unwrap();
        assert_eq!(alone.drain().len(), 2);
        assert_eq!(alone.machine.staged(), 0);
    }
    // The put is done, and its bell is still to be posted.
    let mut alone = Alone::with(SHAPE, DoorbellOrder::AfterCell, 4, 2, 2);
    alone.cast(PEER).unwrap();
    let put = alone.op();
    alone.machine.handle(AmEvent::Lost(PEER), Instant::ZERO);
    assert_eq!((alone.ops().len(), alone.machine.staged()), (0, 1));
    alone.completes(&put, Ok(0));
    assert_eq!((alone.ops().len(), alone.machine.staged()), (0, 0));
}

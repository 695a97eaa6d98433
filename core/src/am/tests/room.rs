//! Room for requests and replies, and the credits that return it.

extern crate std;

use super::alone::{Alone, OTHER, PEER, SHAPE, busy, call, cell, lanes_at, lost, rank, reply};
use crate::am::cell::{CellKind, Inline, LaneCell};
use crate::am::lanes::AmLane;
use crate::am::{
    AmEvent, AmOutput, CallPayload, DoorbellOrder, HandlerAnswer, HandlerId, SendError,
};
use crate::completion::Why;
use crate::mem::PeerIndex;
use crate::op::{Kind, Op};
use crate::time::Instant;
use std::vec::Vec;

#[test]
fn credits_count_what_the_peer_has_taken_and_no_more_than_was_sent() {
    let mut alone = Alone::new();
    for _ in 0..4 {
        alone.cast(PEER).unwrap();
        alone.drain();
    }
    alone.machine.take_room();
    for wrong in [5, 0, u64::from(u32::MAX)] {
        alone.notices(PEER, wrong);
        assert_eq!((alone.machine.take_room(), alone.cast(PEER)), (false, busy(Why::NoCredit)));
    }
    alone.notices(PEER, 3);
    assert!(alone.machine.take_room());
    alone.notices(PEER, 2);
    assert!(!alone.machine.take_room(), "an older count is ignored");
    for _ in 0..3 {
        alone.cast(PEER).unwrap();
        alone.drain();
    }
    assert_eq!(alone.cast(PEER), busy(Why::NoCredit));
    assert_eq!(alone.cast(OTHER), Ok(()), "each peer has credits of its own");
    // A cell of the peer returns credits, too, up to the number sent.
    alone.machine.take_room();
    let said = LaneCell { ack: 7, ..cell(CellKind::Cast, b"c") };
    alone.arrives(PEER, said);
    alone.runs();
    assert!(alone.machine.take_room());
    for _ in 0..4 {
        alone.cast(PEER).unwrap();
        alone.drain();
    }
    assert_eq!(alone.cast(PEER), busy(Why::NoCredit));
    let said = LaneCell { ack: 11, ..reply(99) };
    alone.arrives(PEER, said);
    assert!(alone.machine.poll().is_none());
    assert_eq!((alone.cast(PEER), alone.machine.dropped()), (Ok(()), 1));
}

#[test]
fn a_call_needs_room_for_its_reply_and_an_entry() {
    let mut alone = Alone::with(SHAPE, DoorbellOrder::WithCell, 5, 6, 2);
    let tokens: Vec<_> = (0..4)
        .map(|_| {
            let token = alone.call(PEER).unwrap();
            alone.drain();
            token
        })
        .collect();
    alone.notices(PEER, 4);
    assert_eq!(alone.call(PEER), busy(Why::NoCredit), "four replies are outstanding");
    assert_eq!(alone.cast(PEER), Ok(()), "a cast has no reply");
    alone.call(OTHER).unwrap();
    assert_eq!(alone.call(OTHER), busy(Why::NoTag));
    assert_eq!(alone.machine.check_room(OTHER, false), Ok(()));
    assert_eq!(alone.machine.calls(), 5);
    alone.machine.take_room();
    alone.arrives(PEER, reply(tokens[2].to_bits()));
    match alone.machine.poll() {
        Some(AmOutput::Done { token, result }) => {
            assert_eq!((token, result), (tokens[2], Ok(Inline::EMPTY)))
        }
        other => panic!("{other:?}"),
    }
    assert!(alone.machine.take_room());
    let next = alone.call(PEER).unwrap();
    assert_eq!((next.index(), next == tokens[2]), (tokens[2].index(), false));
    // A reply that comes a second time belongs to no call.
    alone.arrives(PEER, reply(tokens[2].to_bits()));
    alone.arrives(PEER, reply(77));
    assert!(alone.machine.poll().is_none());
    assert_eq!((alone.machine.dropped(), alone.machine.calls()), (2, 5));
    // It does not end another call either.
    alone.arrives(OTHER, reply(next.to_bits()));
    assert!(alone.machine.poll().is_none());
    assert_eq!(alone.machine.dropped(), 3);
}

#[test]
fn a_staging_cell_is_reserved_for_each_running_handler() {
    let mut alone = Alone::with(SHAPE, DoorbellOrder::WithCell, 4, 2, 2);
    for token in [5, 6, 7] {
        alone.arrives(PEER, call(token));
    }
    let first = alone.runs().reply_to.unwrap();
    alone.cast(OTHER).unwrap();
    assert_eq!(alone.cast(OTHER), busy(Why::NoMemory), "the other cell is reserved for a reply");
    assert!(alone.machine.poll().is_none(), "the next call has no cell for its reply");
    assert!(!alone.machine.wants_poll());
    assert!(!alone.machine.is_landing());
    alone.drain();
    assert!(alone.machine.wants_poll());
    let mut second = alone.runs().reply_to.unwrap();
    assert!(alone.machine.poll().is_none());
    alone.machine.take_room();
    alone.machine.defer(&mut second);
    assert!(alone.machine.take_room() && alone.machine.wants_poll());
    alone.machine.defer(&mut second);
    assert!(!alone.machine.take_room(), "the room is reported once");
    let third = alone.runs().reply_to.unwrap();
    let second = alone.machine.reply(second, &HandlerAnswer::Failed).unwrap_err();
    alone.machine.reply(first, &HandlerAnswer::BadPayload).unwrap();
    alone.machine.reply(third, &HandlerAnswer::Failed).unwrap();
    let puts: Vec<Op> = alone.drain().into_iter().filter(|op| op.kind == Kind::Put).collect();
    assert_eq!(puts.len(), 2);
    for (number, (put, wanted)) in puts.iter().zip([(5, 3), (7, 2)]).enumerate() {
        let cell = alone.cell_of(put, number as u32);
        assert_eq!((cell.token, cell.status, cell.kind), (wanted.0, wanted.1, 4));
        let place = SHAPE.cell(AmLane::Reply, PeerIndex(0), number as u32) as u64;
        assert_eq!(put.remote, lanes_at(rank(PEER)).add(place));
    }
    alone.machine.reply(second, &HandlerAnswer::Failed).unwrap();
    assert_eq!(alone.machine.staged(), 1);
}

#[test]
fn a_reply_to_a_lost_rank_takes_no_cell_and_frees_its_place() {
    let mut alone = Alone::with(SHAPE, DoorbellOrder::WithCell, 4, 2, 2);
    alone.arrives(PEER, call(5));
    alone.arrives(OTHER, call(6));
    alone.arrives(OTHER, call(7));
    let first = alone.runs().reply_to.unwrap();
    let second = alone.runs().reply_to.unwrap();
    assert!(alone.machine.poll().is_none());
    alone.machine.handle(AmEvent::Lost(PEER), Instant::ZERO);
    alone.machine.reply(first, &HandlerAnswer::Failed).unwrap();
    assert_eq!((alone.machine.staged(), alone.ops().len()), (0, 0));
    assert_eq!(alone.runs().from, rank(OTHER), "the next call has a cell for its reply");
    alone.machine.reply(second, &HandlerAnswer::Failed).unwrap();
    assert_eq!(alone.machine.staged(), 1);
}

#[test]
fn cells_of_a_lost_rank_are_dropped() {
    let mut alone = Alone::new();
    alone.arrives(PEER, cell(CellKind::Cast, b"c"));
    let token = alone.call(OTHER).unwrap();
    alone.machine.take_room();
    alone.machine.handle(AmEvent::Lost(PEER), Instant::ZERO);
    assert!(alone.machine.take_room(), "callers that wait for room learn of the loss");
    alone.machine.handle(AmEvent::Lost(PEER), Instant::ZERO);
    alone.machine.handle(AmEvent::Lost(PeerIndex(9)), Instant::ZERO);
    assert!(!alone.machine.take_room(), "the loss is reported once");
    assert!(alone.machine.poll().is_none(), "the cells of the lost rank are dropped");
    alone.arrives(PEER, cell(CellKind::Cast, b"c"));
    assert!(alone.machine.poll().is_none() && !alone.machine.wants_poll());
    alone.arrives(OTHER, reply(token.to_bits()));
    assert!(matches!(alone.machine.poll(), Some(AmOutput::Done { result: Ok(_), .. })));
    assert_eq!(alone.cast(PEER), lost(PEER));
    let nobody = SendError::NoSuchPeer { peer: PeerIndex(3), peers: 3 };
    assert_eq!((alone.cast(PeerIndex(3)), alone.call(PeerIndex(3))), (Err(nobody), Err(nobody)));
}

#[test]
fn cells_of_an_unknown_kind_are_dropped_and_count_as_taken() {
    let mut alone = Alone::new();
    for _ in 0..2 {
        alone.arrives(PEER, LaneCell { kind: 9, ..call(3) });
        assert!(alone.machine.poll().is_none());
    }
    assert_eq!((alone.machine.dropped(), alone.op().operand()), (2, 2));
    assert!(!alone.machine.is_landing());
}

/// A call that has ended by its time limit takes up the room of its reply until that comes.
#[test]
fn a_late_reply_frees_the_room_of_its_call() {
    let mut alone = Alone::with(SHAPE, DoorbellOrder::WithCell, 5, 6, 2);
    let at = Instant::from_ns(5);
    let mut token = None;
    for _ in 0..4 {
        let payload = CallPayload::Inline(b"q");
        token = Some(alone.machine.call(PEER, HandlerId(1), payload, Some(at)).unwrap());
        alone.drain();
    }
    alone.notices(PEER, 4);
    alone.machine.handle(AmEvent::Tick, at);
    for _ in 0..4 {
        assert!(matches!(alone.machine.poll(), Some(AmOutput::Done { .. })));
    }
    alone.machine.take_room();
    assert_eq!(alone.call(PEER), busy(Why::NoCredit));
    alone.arrives(PEER, reply(token.unwrap().to_bits()));
    assert!(alone.machine.poll().is_none());
    assert!(alone.machine.take_room());
    assert!(alone.call(PEER).is_ok());
    assert_eq!(alone.call(PEER), busy(Why::NoCredit));
}

/// No completion comes for cells to a lost rank.
#[test]
fn requests_that_wait_for_a_staging_cell_go_on_after_a_loss() {
    let mut alone = Alone::with(SHAPE, DoorbellOrder::WithCell, 4, 2, 2);
    alone.cast(PEER).unwrap();
    alone.arrives(OTHER, call(5));
    alone.arrives(OTHER, call(6));
    let first = alone.runs().reply_to.unwrap();
    alone.machine.handle(AmEvent::Lost(PEER), Instant::ZERO);
    assert!(alone.machine.poll().is_none() && !alone.machine.wants_poll());
    assert_eq!(alone.ops().len(), 0);
    assert!(alone.machine.wants_poll(), "the cell of the cast is free");
    assert_eq!(alone.runs().reply_to.unwrap().token, 6);
    alone.machine.reply(first, &HandlerAnswer::Failed).unwrap();
}

#[test]
fn more_bells_than_cells_count_as_all_cells() {
    let mut alone = Alone::new();
    alone.rings(PEER, 200);
    assert_eq!(alone.machine.tables.peers[1].due, 8);
    assert!(alone.machine.poll().is_none() && alone.machine.is_landing());
    alone.machine.handle(AmEvent::Tick, Instant::ZERO);
    assert!(!alone.machine.is_landing() && alone.machine.wants_poll());
    alone.arrives(PEER, cell(CellKind::Cast, b"c"));
    alone.runs();
    assert_eq!(alone.machine.tables.peers[1].due, 7);
}

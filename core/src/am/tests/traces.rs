//! Two ranks, one message at a time.

extern crate std;

use super::harness::{Sizes, USER, World, memory, tables};
use crate::am::{
    AmEvent, AmOutput, AmPeer, AmShape, BLOCK_PEERS, CallError, CallPayload, HandlerAnswer,
    HandlerId, INLINE_BYTES_MAX, Inline, LaneBlock, RequestBody, SendError, SetupError,
};
use crate::completion::Why;
use crate::mem::{LocalAddr, PeerIndex, Rank};
use crate::sync::mapped::{AtomicU64, Ordering};
use crate::time::Instant;
use std::vec;
use std::vec::Vec;

const SIZES: Sizes = Sizes { ranks: 2, cells: 4, calls: 8, staging: 8, landings: 1 };

/// A world of two ranks under the name `$world`.
macro_rules! world {
    ($world:ident) => {
        world!($world, SIZES);
    };
    ($world:ident, $sizes:expr) => {
        let memory = memory($sizes);
        let mut tables = tables($sizes);
        let mut $world = World::new($sizes, &memory, &mut tables);
    };
}

/// Rank `$from` calls handler 1 of the other one.
macro_rules! send {
    ($world:ident, $from:literal, $bytes:expr) => {
        send!($world, $from, $bytes, None)
    };
    ($world:ident, $from:literal, $bytes:expr, $deadline:expr) => {
        $world.machines[$from].call(
            PeerIndex(1 - $from),
            HandlerId(1),
            CallPayload::Inline($bytes),
            $deadline,
        )
    };
}

/// The operations of `$from` land and complete, and all ranks look at their
/// bells.
macro_rules! deliver {
    ($world:ident) => {
        for _ in 0..4 {
            for rank in 0..2 {
                $world.post(rank);
            }
            $world.deliver();
            for rank in 0..2 {
                $world.machines[rank].handle(AmEvent::Rang, $world.now);
            }
        }
    };
}

/// The next output of rank `$at` is this.
macro_rules! expect {
    ($world:ident, $at:literal, nothing) => {
        assert!($world.machines[$at].poll().is_none());
    };
    ($world:ident, $at:literal, $pattern:pat => $value:expr) => {
        match $world.machines[$at].poll() {
            Some($pattern) => $value,
            other => panic!("{other:?}"),
        }
    };
}

/// Rank `$at` takes a request with these bytes; returns where to answer.
macro_rules! expect_request {
    ($world:ident, $at:literal, $bytes:expr) => {
        expect!($world, $at, AmOutput::Run(request) => {
            let RequestBody::Inline(body) = request.body else { panic!("{:?}", request.body) };
            assert_eq!((&*body, request.handler), (&$bytes[..], HandlerId(1)));
            request.reply_to
        })
    };
}

fn value(bytes: &[u8]) -> HandlerAnswer {
    HandlerAnswer::Value(Inline::new(bytes).unwrap())
}

#[test]
fn a_call_is_answered() {
    world!(world);
    let call = send!(world, 0, b"ping").unwrap();
    expect!(world, 1, nothing);
    deliver!(world);
    let waiting = expect_request!(world, 1, b"ping").unwrap();
    assert_eq!(waiting.peer(), PeerIndex(0));
    world.machines[1].reply(waiting, &value(b"pong")).unwrap();
    expect!(world, 0, nothing);
    deliver!(world);
    expect!(world, 0, AmOutput::Done { token, result } => {
        assert_eq!((token, &*result.unwrap()), (call, &b"pong"[..]));
    });
    expect!(world, 0, nothing);
    assert_eq!(world.machines[0].calls(), 0);
}

#[test]
fn a_rank_calls_itself_through_its_lanes() {
    world!(world);
    let payload = CallPayload::Inline(b"me");
    world.machines[0].call(PeerIndex(0), HandlerId(1), payload, None).unwrap();
    expect!(world, 0, nothing);
    deliver!(world);
    let waiting = expect_request!(world, 0, b"me").unwrap();
    world.machines[0].reply(waiting, &HandlerAnswer::UnknownHandler).unwrap();
    deliver!(world);
    expect!(world, 0, AmOutput::Done { result, .. } => {
        assert_eq!(result, Err(CallError::UnknownHandler { handler: HandlerId(1) }));
    });
}

#[test]
fn a_full_lane_is_busy_until_half_of_it_was_taken() {
    world!(world);
    let cast = |world: &mut World<'_>| world.machines[0].cast(PeerIndex(1), HandlerId(1), b"c");
    for _ in 0..4 {
        cast(&mut world).unwrap();
    }
    assert_eq!(cast(&mut world), Err(SendError::Busy(Why::NoCredit)));
    deliver!(world);
    world.machines[0].take_room();
    assert!(expect_request!(world, 1, b"c").is_none());
    deliver!(world);
    assert!(!world.machines[0].take_room(), "a quarter of the lane is not returned");
    assert!(expect_request!(world, 1, b"c").is_none());
    deliver!(world);
    assert!(world.machines[0].take_room());
    cast(&mut world).unwrap();
    cast(&mut world).unwrap();
    assert_eq!(cast(&mut world), Err(SendError::Busy(Why::NoCredit)));
}

#[test]
fn both_sides_full_drain_each_other() {
    world!(world);
    for _ in 0..4 {
        send!(world, 0, b"a").unwrap();
        send!(world, 1, b"b").unwrap();
    }
    assert_eq!(send!(world, 0, b"a"), Err(SendError::Busy(Why::NoCredit)));
    deliver!(world);
    for _ in 0..4 {
        let to_a = expect_request!(world, 1, b"a").unwrap();
        let to_b = expect_request!(world, 0, b"b").unwrap();
        world.machines[1].reply(to_a, &value(b"")).unwrap();
        world.machines[0].reply(to_b, &value(b"")).unwrap();
    }
    deliver!(world);
    for _ in 0..4 {
        expect!(world, 0, AmOutput::Done { result: Ok(_), .. } => {});
        expect!(world, 1, AmOutput::Done { result: Ok(_), .. } => {});
    }
    send!(world, 0, b"a").unwrap();
}

#[test]
fn a_long_payload_is_fetched_and_holds_back_what_follows() {
    world!(world);
    for (index, word) in world.user(0).iter().enumerate() {
        word.store(index as u64, Ordering::Relaxed);
    }
    let from = LocalAddr { key: USER, offset: 80 };
    let long = CallPayload::Long { from, bytes: 1000 };
    let call = world.machines[0].call(PeerIndex(1), HandlerId(1), long, None).unwrap();
    world.machines[0].cast(PeerIndex(1), HandlerId(1), b"after").unwrap();
    world.post(0);
    world.deliver();
    world.machines[1].handle(AmEvent::Rang, world.now);
    expect!(world, 1, nothing);
    deliver!(world);
    let (landed, waiting) = expect!(world, 1, AmOutput::Run(request) => match request.body {
        RequestBody::Landed(landed) => (landed, request.reply_to.unwrap()),
        other => panic!("{other:?}"),
    });
    let bytes = world.landing(1, landed.index(), landed.bytes);
    assert_eq!(bytes.len(), 1000);
    assert_eq!(bytes[..8], 10u64.to_le_bytes());
    assert!(expect_request!(world, 1, b"after").is_none());
    world.machines[1].release(landed);
    world.machines[1].reply(waiting, &value(b"got it")).unwrap();
    deliver!(world);
    expect!(world, 0, AmOutput::Done { token, result } => {
        assert_eq!((token, &*result.unwrap()), (call, &b"got it"[..]));
    });
}

#[test]
fn a_payload_that_cannot_be_fetched_is_answered_with_an_error() {
    world!(world);
    let from = LocalAddr { key: USER, offset: 8 * 1020 };
    let long = CallPayload::Long { from, bytes: 1000 };
    world.machines[0].call(PeerIndex(1), HandlerId(1), long, None).unwrap();
    for _ in 0..3 {
        deliver!(world);
        expect!(world, 1, nothing);
    }
    expect!(world, 0, AmOutput::Done { result, .. } => assert_eq!(result, Err(CallError::BadPayload)));
    let too_long = world.machines[0].call(
        PeerIndex(1),
        HandlerId(1),
        CallPayload::Long { from, bytes: 1025 },
        None,
    );
    assert_eq!(too_long, Err(SendError::TooLong { bytes: 1025, bytes_max: 1024 }));
    let refused = world.machines[0].cast(PeerIndex(1), HandlerId(1), &[0; INLINE_BYTES_MAX + 1]);
    assert_eq!(refused, Err(SendError::TooLong { bytes: 225, bytes_max: 224 }));
}

#[test]
fn a_reply_after_the_time_limit_is_dropped() {
    world!(world);
    let deadline = Some(Instant::from_ns(100));
    let call = send!(world, 0, b"slow", deadline).unwrap();
    assert_eq!(world.machines[0].next_deadline(), deadline);
    deliver!(world);
    let waiting = expect_request!(world, 1, b"slow").unwrap();
    world.now = Instant::from_ns(100);
    world.machines[0].handle(AmEvent::Tick, world.now);
    expect!(world, 0, AmOutput::Done { token, result } => {
        assert_eq!((token, result), (call, Err(CallError::Timeout)));
    });
    let second = send!(world, 0, b"next").unwrap();
    assert_ne!(second, call);
    world.machines[1].reply(waiting, &value(b"late")).unwrap();
    deliver!(world);
    expect!(world, 0, nothing);
    assert_eq!(world.machines[0].dropped(), 1);
    let waiting = expect_request!(world, 1, b"next").unwrap();
    world.machines[1].reply(waiting, &value(b"in time")).unwrap();
    deliver!(world);
    expect!(world, 0, AmOutput::Done { token, result } => {
        assert_eq!((token, &*result.unwrap()), (second, &b"in time"[..]));
    });
}

#[test]
fn each_of_several_time_limits_ends_its_call() {
    world!(world);
    let at = Instant::from_ns;
    // The first call to end is neither the first nor the last that was begun.
    let limits = [300, 100, 400, 200];
    let calls = limits.map(|limit| send!(world, 0, b"slow", Some(at(limit))).unwrap());
    deliver!(world);
    for index in [1, 3, 0, 2] {
        let limit = limits[index];
        assert_eq!(world.machines[0].next_deadline(), Some(at(limit)));
        world.machines[0].handle(AmEvent::Tick, at(limit - 1));
        expect!(world, 0, nothing);
        world.machines[0].handle(AmEvent::Tick, at(limit));
        expect!(world, 0, AmOutput::Done { token, result } => {
            assert_eq!((token, result), (calls[index], Err(CallError::Timeout)));
        });
        expect!(world, 0, nothing);
    }
    assert_eq!((world.machines[0].next_deadline(), world.machines[0].calls()), (None, 0));
}

#[test]
fn a_long_payload_is_released_after_the_time_limit() {
    world!(world);
    let long = CallPayload::Long { from: LocalAddr { key: USER, offset: 0 }, bytes: 64 };
    let deadline = Some(Instant::from_ns(5));
    let call = world.machines[0].call(PeerIndex(1), HandlerId(1), long, deadline).unwrap();
    world.now = Instant::from_ns(5);
    world.machines[0].handle(AmEvent::Tick, world.now);
    expect!(world, 0, AmOutput::Done { result: Err(CallError::Timeout), .. } => {});
    expect!(world, 0, nothing);
    assert_eq!(world.machines[0].calls(), 1, "the peer still reads the payload");
    deliver!(world);
    expect!(world, 1, nothing);
    deliver!(world);
    expect!(world, 1, AmOutput::Run(request) => {
        world.machines[1].reply(request.reply_to.unwrap(), &value(b"")).unwrap();
    });
    deliver!(world);
    expect!(world, 0, AmOutput::Released { token } => assert_eq!(token, call));
    assert_eq!(world.machines[0].calls(), 0);
}

#[test]
fn a_rank_that_dies_ends_the_calls_to_it() {
    world!(world);
    let call = send!(world, 0, b"hello").unwrap();
    deliver!(world);
    let waiting = expect_request!(world, 1, b"hello").unwrap();
    let own = send!(world, 1, b"you").unwrap();
    world.machines[0].handle(AmEvent::Lost(PeerIndex(1)), world.now);
    let lost = CallError::PeerLost { rank: Rank(1) };
    expect!(world, 0, AmOutput::Done { token, result } => assert_eq!((token, result), (call, Err(lost))));
    let refused = SendError::PeerLost { peer: PeerIndex(1) };
    assert_eq!(send!(world, 0, b"again"), Err(refused));
    // The requests that the dead rank had sent are dropped.
    world.machines[1].reply(waiting, &value(b"too late")).unwrap();
    let _ = own;
    deliver!(world);
    expect!(world, 0, nothing);
    let nobody = world.machines[0].cast(PeerIndex(2), HandlerId(1), b"");
    assert_eq!(nobody, Err(SendError::NoSuchPeer { peer: PeerIndex(2), peers: 2 }));
}

#[test]
fn a_bell_that_precedes_its_cell_is_kept() {
    world!(world);
    send!(world, 0, b"torn").unwrap();
    assert_eq!(world.post(0), 2);
    // The bell comes first.
    while !world.advance(1) {}
    world.machines[1].handle(AmEvent::Rang, world.now);
    expect!(world, 1, nothing);
    assert!(world.machines[1].is_landing());
    for _ in 0..3 {
        // One word after the other.
        world.advance(0);
        world.machines[1].handle(AmEvent::Tick, world.now);
        expect!(world, 1, nothing);
    }
    world.deliver();
    world.machines[1].handle(AmEvent::Tick, world.now);
    let _unanswered = expect_request!(world, 1, b"torn").unwrap();
    expect!(world, 1, nothing);
    assert!(!world.machines[1].is_landing());
}

#[test]
fn a_deferred_reply_frees_its_staging_cell() {
    let sizes = Sizes { staging: 2, ..SIZES };
    world!(world, sizes);
    send!(world, 0, b"one").unwrap();
    send!(world, 0, b"two").unwrap();
    deliver!(world);
    let mut first = expect_request!(world, 1, b"one").unwrap();
    let mut second = expect_request!(world, 1, b"two").unwrap();
    deliver!(world);
    send!(world, 0, b"three").unwrap();
    deliver!(world);
    expect!(world, 1, nothing);
    world.machines[1].defer(&mut first);
    world.machines[1].defer(&mut second);
    let third = expect_request!(world, 1, b"three").unwrap();
    // Of the two staging cells one is reserved for the third call.
    world.machines[1].reply(first, &value(b"1")).unwrap();
    let second = world.machines[1].reply(second, &value(b"2")).unwrap_err();
    world.machines[1].reply(third, &value(b"3")).unwrap();
    deliver!(world);
    world.machines[1].reply(second, &value(b"2")).unwrap();
    deliver!(world);
    for wanted in [b"1", b"3", b"2"] {
        expect!(world, 0, AmOutput::Done { result, .. } => assert_eq!(&*result.unwrap(), wanted));
    }
}

#[test]
fn cells_for_a_dead_rank_free_their_room() {
    let sizes = Sizes { ranks: 3, staging: 2, ..SIZES };
    world!(world, sizes);
    world.machines[2].call(PeerIndex(0), HandlerId(1), CallPayload::Inline(b"q"), None).unwrap();
    world.post(2);
    world.deliver();
    for _ in 0..2 {
        world.machines[0].cast(PeerIndex(1), HandlerId(1), b"").unwrap();
    }
    world.machines[0].handle(AmEvent::Rang, world.now);
    expect!(world, 0, nothing);
    world.machines[0].handle(AmEvent::Lost(PeerIndex(1)), world.now);
    expect!(world, 0, nothing);
    assert_eq!(world.post(0), 0, "nothing is posted to a dead rank");
    assert!(world.machines[0].wants_poll() && world.machines[0].take_room());
    assert_eq!(expect_request!(world, 0, b"q").unwrap().peer(), PeerIndex(2));
}

/// More peers come by a block of them, and a table of another length is refused.
#[test]
fn a_machine_grows_by_whole_blocks() {
    world!(world);
    let machine = &mut world.machines[0];
    let shape = AmShape { peers: SIZES.ranks, cells: SIZES.cells, later_cells: 1 };
    let needed = shape.block().memory_size();
    let words = |bytes: usize| -> &'static [AtomicU64] {
        Vec::leak((0..bytes / 8).map(|_| AtomicU64::new(0)).collect())
    };
    let wanted = SIZES.ranks as usize + BLOCK_PEERS as usize;
    for (bytes, peers, blocks) in [
        (needed, wanted - 1, 1),
        (needed, wanted + 1, 1),
        (needed, wanted, 0),
        (needed, wanted, 2),
        (needed - 8, wanted, 1),
        (needed, wanted, 1),
    ] {
        let (lanes, is_short) = (words(bytes), bytes < needed);
        let grown = machine.grow(
            lanes,
            Vec::leak(vec![AmPeer::EMPTY; peers]),
            Vec::leak((0..blocks).map(|_| LaneBlock::EMPTY).collect()),
        );
        assert_eq!(
            grown,
            match (is_short, peers == wanted && blocks == 1) {
                (true, _) => Err(SetupError::Memory { bytes, needed }),
                (false, true) => Ok(()),
                (false, false) => Err(SetupError::Tables),
            },
            "{bytes} bytes, {peers} peers, {blocks} blocks"
        );
        assert_eq!(machine.peers() as usize, if grown.is_ok() { wanted } else { 2 });
    }
}

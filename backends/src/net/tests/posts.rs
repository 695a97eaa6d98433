//! Operations on their way down.

use super::fixture::*;
use crate::net::memory::Listing;
use crate::net::wire::{CompletionStatus, RemoteBuffer, WireKey};
use libc::{EAGAIN, ECONNRESET, EINPROGRESS, EOPNOTSUPP};
use tsumugi_core::mem::{Access, AddrError, LocalAddr, Rank, RegionKey, Width};
use tsumugi_core::op::{Kind, Op};

fn word(offset: u64) -> Op {
    Op::get_word(at(5, offset), Width::W8)
}

#[test]
fn a_word_goes_down_and_its_old_value_comes_up() {
    let mut net = Net::new();
    net.knows(PEER, &listing(5));
    let value = 0x8877_6655_4433_2211;
    for (width, offset) in [(Width::W1, 3), (Width::W2, 10), (Width::W4, 20), (Width::W8, 24)] {
        let bytes = width as usize;
        let put = Op::put_word(at(5, offset), width, value).tagged(tag(1));
        assert_eq!(net.post(&[put]), 1);
        let operand = value & u64::MAX >> (64 - 8 * bytes);
        let (context, atomics) = (0, bytes >= 4);
        let wanted = |kind, operand| Call::Word {
            kind,
            operand,
            compare: 0,
            remote: remote(offset),
            context,
            atomics,
        };
        assert_eq!(net.call(), wanted(Kind::PutWord, operand));
        net.done(0);
        assert_eq!(net.poll(), [(1, Ok(0))], "a put has no old value");
        assert_eq!(net.post(&[Op::get_word(at(5, offset), width).tagged(tag(2))]), 1);
        assert!(matches!(net.call(), Call::Word { kind: Kind::GetWord, .. }));
        net.write(0, &value.to_le_bytes()[..bytes]);
        net.done(0);
        assert_eq!(net.poll(), [(2, Ok(operand))], "{width:?}");
    }
    assert_eq!(net.post(&[Op::compare_swap(at(5, 8), 3u32, 4)]), 1);
    let (kind, operand, compare) = (Kind::CompareSwap, 4, 3);
    let swap = Call::Word { kind, operand, compare, remote: remote(8), context: 0, atomics: true };
    assert_eq!(net.call(), swap);
}

#[test]
fn a_result_that_a_device_does_not_write_is_zero() {
    let mut net = Net::new();
    net.knows(PEER, &listing(5));
    net.post(&[word(0)]);
    net.write(0, &[0xff; 8]);
    net.done(0);
    net.poll();
    net.post(&[word(0).tagged(tag(1))]);
    net.done(0);
    assert_eq!(net.poll(), [(1, Ok(0))], "not the result of the previous operation");
}

#[test]
fn words_are_atomics_where_the_device_has_them_and_the_region_is_writable() {
    let atomics = |has: bool, access: Access, width: Width| {
        let mut net = Net::with(|limits| limits.word_atomics = has);
        net.knows(PEER, &Listing { access: access as u32, ..listing(5) });
        net.post(&[Op::get_word(at(5, 0), width)]);
        match net.call() {
            Call::Word { atomics, .. } => atomics,
            other => panic!("{other:?}"),
        }
    };
    assert!(atomics(true, Access::ReadWrite, Width::W4));
    assert!(atomics(true, Access::ReadWrite, Width::W8));
    assert!(!atomics(true, Access::ReadWrite, Width::W2));
    assert!(
        !atomics(true, Access::Read, Width::W8),
        "the device may need write access for an atomic"
    );
    assert!(!atomics(false, Access::ReadWrite, Width::W8));
}

#[test]
fn a_queue_takes_its_depth_of_operations_and_frees_each_place() {
    let mut net = Net::new();
    net.knows(PEER, &listing(5));
    let ops: Vec<Op> = (0..6).map(|at| word(8 * at).tagged(tag(at))).collect();
    assert_eq!(net.post(&ops), DEPTH);
    let contexts: Vec<usize> = net.calls().iter().map(context).collect();
    assert_eq!(contexts, [0, 1, 2, 3]);
    assert_eq!((net.nic.in_flight(), net.post(&ops)), (DEPTH, 0));
    net.done(2);
    net.done(0);
    // An operation that has ended but was not polled still occupies its place.
    let mut none: [tsumugi_core::backend::Completion; 0] = [];
    assert_eq!(net.nic.poll(&net.shared, &mut none), 0);
    assert_eq!((net.nic.in_flight(), net.post(&ops)), (DEPTH, 0));
    let mut one = [tsumugi_core::backend::Completion::EMPTY];
    assert_eq!(net.nic.poll(&net.shared, &mut one), 1);
    assert_eq!((one[0].tag, net.nic.in_flight()), (tag(2), DEPTH - 1));
    assert_eq!(net.poll(), [(0, Ok(0))]);
    assert_eq!(net.post(&ops[4..]), 2);
    let contexts: Vec<usize> = net.calls().iter().map(context).collect();
    assert_eq!(contexts, [0, 2], "the places that were freed");
}

/// The context of a call.
fn context(call: &Call) -> usize {
    match call {
        Call::Word { context, .. } | Call::Get { context, .. } | Call::Put { context, .. } => {
            *context
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_operation_on_a_missing_rank_ends_at_once_and_keeps_its_place_until_polled() {
    let mut net = Net::new();
    let nowhere =
        |rank| Op::get_word(tsumugi_core::mem::RemoteAddr { rank, ..at(5, 0) }, Width::W8);
    let ops = [nowhere(Rank(SIZE)).tagged(tag(3)); 6];
    assert_eq!(net.post(&ops), DEPTH);
    let error = AddrError::NoSuchRank { rank: Rank(SIZE), size: SIZE };
    assert_eq!(net.poll(), [(3, Err(error)); DEPTH]);
    assert_eq!(net.post(&[nowhere(Rank(SIZE - 1))]), 1);
    assert_eq!(net.calls().len(), 1, "the last rank exists");
    assert_eq!(net.poll(), []);
}

#[test]
fn an_operation_for_which_the_wire_has_no_room_is_not_taken() {
    let mut net = Net::new();
    net.knows(PEER, &listing(5));
    net.refuse(&[0, EAGAIN]);
    assert_eq!(net.post(&[word(0), word(8), word(16)]), 1);
    assert_eq!((net.refused(), net.nic.in_flight()), (1, 1));
    assert!(!net.nic.holds(PEER) && net.poll().is_empty());
    assert_eq!(net.refused(), 1, "nothing is posted again");
    assert_eq!(net.post(&[word(8), word(16), word(24), word(32)]), 3);
}

#[test]
fn an_operation_for_which_the_wire_is_not_ready_is_posted_again() {
    let mut net = Net::new();
    net.knows(PEER, &listing(5));
    net.refuse(&[EINPROGRESS, EINPROGRESS]);
    assert_eq!(net.post(&[word(0).tagged(tag(1)), word(8).tagged(tag(2))]), 2);
    assert!(net.nic.holds(PEER) && !net.nic.holds(OTHER));
    net.refuse(&[EINPROGRESS, EINPROGRESS]);
    assert_eq!((net.poll(), net.calls()), (vec![], vec![]));
    assert_eq!(net.refused(), 4, "each is posted once per poll");
    net.poll();
    assert_eq!(net.calls().len(), 2);
    assert!(!net.nic.holds(PEER));
    net.done(0);
    net.done(1);
    assert_eq!(net.poll(), [(1, Ok(0)), (2, Ok(0))]);
}

#[test]
fn a_refusal_ends_the_operation_and_is_recorded() {
    let mut net = Net::new();
    net.knows(PEER, &listing(5));
    net.refuse(&[ECONNRESET, EOPNOTSUPP, libc::ENOSYS]);
    let ops = [word(0).tagged(tag(1)), word(8).tagged(tag(2)), word(16).tagged(tag(3))];
    assert_eq!(net.post(&ops), 3);
    let failure = net.nic.failures.last.unwrap();
    assert_eq!((net.nic.failures.count, failure.code), (3, libc::ENOSYS));
    assert_eq!((failure.peer, failure.kind), (Some(PEER), Some(Kind::GetWord)));
    assert_eq!(failure.provider_code, 0);
    let lost = Err(AddrError::PeerLost { rank: PEER });
    let unsupported = |offset| Err(AddrError::Unsupported { addr: at(5, offset) });
    assert_eq!(net.poll(), [(1, lost), (2, unsupported(8)), (3, unsupported(16))]);
    assert_eq!(net.nic.in_flight(), 0);
}

#[test]
fn a_wrong_operation_fails_before_it_reaches_the_wire() {
    let mut net = Net::new();
    net.knows(PEER, &Listing { access: Access::Read as u32, ..listing(5) });
    net.knows(PEER, &listing(6));
    let own = net.own(64, Access::Local);
    let nothing = LocalAddr { key: RegionKey::new(40, 1), offset: 0 };
    let wrong = [
        (Op::put_word(at(5, 0), Width::W8, 1), AddrError::ReadOnly { addr: at(5, 0) }),
        (Op::put(local(&own, 0), at(5, 0), 8), AddrError::ReadOnly { addr: at(5, 0) }),
        (word(4), AddrError::Unaligned { addr: at(5, 4), align: 8 }),
        (
            Op::get(at(6, 60), local(&own, 0), 8),
            AddrError::OutOfRange { addr: at(6, 60), bytes: 8, region_bytes: Some(64) },
        ),
    ];
    for (op, error) in wrong {
        assert_eq!(net.post(&[op.tagged(tag(9))]), 1);
        assert_eq!(net.poll(), [(9, Err(error))]);
    }
    assert_eq!(net.post(&[Op::get(at(6, 0), nothing, 8)]), 1);
    assert!(matches!(net.poll()[..], [(_, Err(AddrError::StaleKey { .. }))]));
    assert_eq!(net.calls(), []);
    assert_eq!(net.nic.in_flight(), 0);
}

#[test]
fn the_pieces_of_a_transfer_go_one_after_the_other() {
    let mut net = Net::with(|limits| {
        limits.piece_bytes_max = 24;
        limits.inject_bytes = 16;
    });
    net.knows(PEER, &listing(5));
    let own = net.own(64, Access::Local);
    assert_eq!(net.post(&[Op::put(local(&own, 4), at(5, 8), 56).tagged(tag(1))]), 1);
    for (moved, bytes, inject) in [(0u8, 24, false), (24, 24, false), (48, 8, true)] {
        let contents = (4 + moved..4 + moved + bytes).collect();
        let (remote, context) = (remote(8 + u64::from(moved)), 0);
        let put = Call::Put { bytes: contents, remote, context, more: false, inject };
        assert_eq!(net.call(), put);
        net.done(0);
        let ended = if moved == 48 { vec![(1, Ok(0))] } else { vec![] };
        assert_eq!(net.poll(), ended);
    }
    assert_eq!(net.post(&[Op::get(at(5, 8), local(&own, 4), 25)]), 1);
    let get = |bytes, offset| Call::Get { bytes, remote: remote(offset), context: 0, more: false };
    assert_eq!(net.call(), get(24, 8));
    assert_eq!(net.local(0).at, own.base.as_ptr() as usize + 4);
    net.done(0);
    net.poll();
    assert_eq!(net.call(), get(1, 32));
    assert_eq!(net.local(0).at, own.base.as_ptr() as usize + 28);
}

#[test]
fn puts_are_injected_up_to_the_limit_and_an_empty_put_makes_no_request() {
    let mut net = Net::with(|limits| limits.inject_bytes = 16);
    net.knows(PEER, &listing(5));
    let own = net.own(64, Access::Local);
    let injects = |net: &mut Net, bytes| {
        net.post(&[Op::put(local(&own, 0), at(5, 0), bytes)]);
        matches!(net.call(), Call::Put { inject: true, .. })
    };
    assert!(injects(&mut net, 15) && injects(&mut net, 16) && !injects(&mut net, 17));
    assert_eq!(net.post(&[Op::put(local(&own, 0), at(5, 0), 0).tagged(tag(1))]), 1);
    assert_eq!((net.poll(), net.calls()), (vec![(1, Ok(0))], vec![]));
}

#[test]
fn a_piece_without_room_goes_before_later_pieces() {
    let mut net = Net::with(|limits| limits.piece_bytes_max = 8);
    net.knows(PEER, &listing(5));
    let own = net.own(64, Access::Local);
    let put = |offset| Op::put(local(&own, 0), at(5, offset), 16);
    assert_eq!(net.post(&[put(0), put(16)]), 2);
    net.calls();
    net.done(0);
    net.done(1);
    net.refuse(&[EAGAIN]);
    net.poll();
    assert_eq!((net.calls(), net.refused()), (vec![], 1), "the second piece is not tried");
    net.poll();
    let contexts: Vec<usize> = net.calls().iter().map(context).collect();
    assert_eq!(contexts, [0, 1]);
}

/// For each put or get of these, whether the wire learns that a further request of the
/// same call follows.
fn mores(told: bool, ops: impl Fn(LocalAddr) -> Vec<Op>) -> Vec<bool> {
    let mut net = Net::with(|limits| limits.more = told);
    net.knows(PEER, &listing(5));
    let own = net.own(64, Access::Local);
    net.post(&ops(local(&own, 0)));
    let more = |call: &Call| match *call {
        Call::Put { more, .. } => Some(more),
        Call::Get { more, bytes: ..128, .. } => Some(more),
        _ => None,
    };
    net.calls().iter().filter_map(more).collect()
}

#[test]
fn the_wire_knows_whether_another_request_follows() {
    let put = |local, bytes| Op::put(local, at(5, 0), bytes);
    let get = |local| Op::get(at(5, 0), local, 8);
    let four = |local| vec![put(local, 8), get(local), put(local, 1), put(local, 8)];
    assert_eq!(mores(true, four), [true, true, true, false]);
    assert_eq!(mores(false, four), [false; 4]);
    assert_eq!(
        mores(true, |local| vec![put(local, 8), word(0)]),
        [false],
        "a word is posted separately"
    );
    assert_eq!(
        mores(true, |local| vec![put(local, 8), put(local, 0)]),
        [false],
        "a put of 0 bytes makes no request"
    );
    let unknown = |local| vec![put(local, 8), Op::put(local, at(6, 0), 8)];
    assert_eq!(mores(true, unknown), [false], "the second put waits for its region");
    let five = |local| vec![put(local, 8); 5];
    assert_eq!(mores(true, five), [true, true, true, false], "the queue takes four operations");
}

#[test]
fn the_doorbell_is_rung_once_for_a_batch_and_once_for_a_poll() {
    let mut net = Net::new();
    net.knows(PEER, &listing(5));
    let doorbells = |net: &mut Net, act: &mut dyn FnMut(&mut Net)| {
        let before = net.line().doorbells;
        act(net);
        net.line().doorbells - before
    };
    assert_eq!(doorbells(&mut net, &mut |net| assert_eq!(net.post(&[word(0), word(8)]), 2)), 1);
    assert_eq!(doorbells(&mut net, &mut |net| assert_eq!(net.poll(), [])), 1);
    assert_eq!(doorbells(&mut net, &mut |net| assert_eq!(net.send(PEER, b"a"), Ok(()))), 1);
}

#[test]
fn in_one_by_one_mode_one_request_is_under_way() {
    let mut net = Net::with(|limits| limits.one_by_one = true);
    net.knows(PEER, &listing(5));
    let ops = [word(0).tagged(tag(1)), word(8).tagged(tag(2)), word(16).tagged(tag(3))];
    assert_eq!(net.post(&ops), 3, "all are accepted");
    assert!(net.nic.holds(PEER));
    for (turn, end) in [
        CompletionStatus::Done(0),
        CompletionStatus::Again,
        CompletionStatus::Done(0),
        CompletionStatus::Done(0),
    ]
    .into_iter()
    .enumerate()
    {
        let call = net.call();
        assert_eq!(net.poll(), [], "the next request waits for the end of this one");
        assert_eq!((net.calls(), net.send(PEER, b"x")), (vec![], Err(full())));
        net.ends(context(&call), end);
        assert_eq!(net.poll().len(), usize::from(end != CompletionStatus::Again), "{turn}");
    }
    assert_eq!((net.calls(), net.nic.in_flight()), (vec![], 0));
    assert_eq!(net.send(PEER, b"x"), Ok(()));
    let Call::Send { context: packet, .. } = net.call() else { panic!("a packet") };
    assert_eq!(net.post(&[word(0)]), 1);
    assert_eq!(net.calls(), [], "a packet is under way");
    net.done(packet);
    net.poll();
    assert_eq!(net.calls().len(), 1);
}

fn full() -> crate::net::PacketError {
    crate::net::PacketError::Full
}

#[test]
fn a_remote_end_has_the_peers_endpoint_and_the_mapped_key() {
    let mut net = Net::new();
    net.knows(PEER, &listing(5));
    net.knows(OTHER, &Listing { origin: 0x9000, raw: WireKey::of(51), ..listing(5) });
    let other = tsumugi_core::mem::RemoteAddr { rank: OTHER, ..at(5, 16) };
    net.post(&[word(8), Op::get_word(other, Width::W8)]);
    let remotes: Vec<RemoteBuffer> = (net.calls().iter())
        .map(|call| match call {
            Call::Word { remote, .. } => *remote,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(remotes, [remote(8), RemoteBuffer { peer: 102, addr: 0x9010, key: MAPPED + 51 }]);
}

//! Long payloads, which are fetched.

extern crate std;

use super::alone::{
    Alone, LANDING, LANDING_BYTES, OTHER, PEER, SHAPE, cell, kind_and_index, long, rank, reply,
};
use crate::am::cell::CellKind;
use crate::am::{
    AmEvent, AmOutput, CallError, CallPayload, DoorbellOrder, HandlerId, RequestBody, SendError,
};
use crate::mem::{AddrError, LocalAddr, RegionKey, RemoteAddr};
use crate::op::{Kind, Op};
use crate::time::Instant;
use std::vec::Vec;

#[test]
fn a_long_payload_is_fetched_into_a_buffer_of_its_own() {
    let mut alone = Alone::new();
    let key = 0x3004;
    alone.arrives(PEER, long(5, &[key, 80, LANDING_BYTES]));
    alone.arrives(OTHER, long(6, &[key, 96, 1]));
    alone.arrives(PEER, cell(CellKind::Cast, b"after"));
    assert!(alone.machine.poll().is_none());
    let gets = alone.ops();
    let fetch = |op: &Op| (op.kind, op.remote, op.local(), op.bytes(), kind_and_index(op));
    let remote = |rank, offset| RemoteAddr { rank, key: RegionKey::from_bits(key as u32), offset };
    let local = |index: u64| LocalAddr { offset: 128 + index * LANDING_BYTES, ..LANDING };
    assert_eq!(
        fetch(&gets[0]),
        (Kind::Get, remote(rank(PEER), 80), local(0), LANDING_BYTES, (2, 0))
    );
    assert_eq!(fetch(&gets[1]), (Kind::Get, remote(rank(OTHER), 96), local(1), 1, (2, 1)));
    assert_eq!((gets.len(), alone.machine.wants_poll()), (2, false));
    alone.completes(&gets[1], Ok(0));
    alone.completes(&gets[1], Ok(0));
    assert!(alone.machine.wants_poll());
    let second = alone.runs();
    assert_eq!((second.from, second.handler), (rank(OTHER), HandlerId(1)));
    let RequestBody::Landed(second_body) = second.body else { panic!("{:?}", second.body) };
    assert_eq!((second_body.index(), second_body.bytes), (1, 1));
    assert!(alone.machine.poll().is_none(), "the second payload is under way, and its cast waits");
    alone.completes(&gets[0], Ok(0));
    let first = alone.runs();
    assert_eq!((first.from, first.reply_to.unwrap().token), (rank(PEER), 5));
    let RequestBody::Landed(first_body) = first.body else { panic!("{:?}", first.body) };
    assert!(matches!(alone.runs().body, RequestBody::Inline(body) if &*body == b"after"));
    // Both buffers are in use: the next call waits, and so does the cast behind
    // it.
    alone.arrives(OTHER, long(8, &[key, 0, 8]));
    alone.arrives(OTHER, cell(CellKind::Cast, b"c"));
    alone.drain();
    assert!(alone.machine.poll().is_none() && !alone.machine.wants_poll());
    alone.machine.release(first_body);
    assert!(alone.machine.wants_poll());
    assert!(alone.machine.poll().is_none());
    let get = alone.ops().into_iter().find(|op| op.kind == Kind::Get).unwrap();
    assert_eq!((get.local(), get.tag.generation()), (local(0), 1));
    // A completion of the previous get does not complete this one.
    alone.completes(&gets[0], Ok(0));
    assert!(alone.machine.poll().is_none());
    alone.completes(&get, Ok(0));
    assert!(matches!(alone.runs().body, RequestBody::Landed(_)));
    alone.machine.release(second_body);
}

#[test]
fn a_payload_that_cannot_be_fetched_is_answered_and_frees_its_buffer() {
    let mut alone = Alone::with(SHAPE, DoorbellOrder::WithCell, 4, 6, 1);
    let mut number = 0;
    let mut refused = |alone: &mut Alone, token: u64| {
        let ops = alone.drain();
        let puts: Vec<&Op> = ops.iter().filter(|op| op.kind == Kind::Put).collect();
        assert_eq!(puts.len(), 1, "{token}");
        let cell = alone.cell_of(puts[0], number);
        assert_eq!((cell.token, cell.status), (token, 3));
        number += 1;
        assert_eq!(alone.machine.staged(), 0);
    };
    let key = 0x3004;
    let words: [&[u64]; 4] = [&[key, 0, LANDING_BYTES + 1], &[key, 0], &[1 << 32, 0, 8], &[]];
    for (token, words) in words.into_iter().enumerate() {
        alone.arrives(PEER, long(token as u64, words));
        assert!(alone.machine.poll().is_none());
        refused(&mut alone, token as u64);
    }
    for token in 7..9 {
        alone.arrives(PEER, long(token, &[key, 0, 8]));
        alone.arrives(PEER, cell(CellKind::Cast, b"after"));
        assert!(alone.machine.poll().is_none());
        let get = alone.ops().into_iter().find(|op| op.kind == Kind::Get).unwrap();
        alone.completes(&get, Err(AddrError::StaleKey { addr: get.remote }));
        assert!(matches!(alone.runs().body, RequestBody::Inline(_)));
        refused(&mut alone, token);
    }
    // A machine without landing buffers refuses long calls.
    let mut none = Alone::with(SHAPE, DoorbellOrder::WithCell, 4, 6, 0);
    none.arrives(PEER, long(3, &[key, 0, 0]));
    assert!(none.machine.poll().is_none());
    let put = none.ops()[0];
    assert_eq!((none.cell_of(&put, 0).token, none.cell_of(&put, 0).status), (3, 3));
    assert_eq!(
        none.call_long(PEER, None).unwrap_err(),
        SendError::TooLong { bytes: 64, bytes_max: 0 }
    );
}

#[test]
fn a_long_call_carries_the_address_of_its_payload() {
    let mut alone = Alone::new();
    let token = alone.call_long(PEER, None).unwrap();
    let put = alone.ops()[0];
    let cell = alone.cell_of(&put, 0);
    let words: Vec<u64> =
        cell.body.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
    assert_eq!((cell.kind, &words[..], put.bytes()), (3, &[0x2001, 40, 64][..], 56));
    assert_eq!((cell.token, cell.handler), (token.to_bits(), 1));
    let from = LocalAddr { key: RegionKey::from_bits(0x2001), offset: 40 };
    for (bytes, is_good) in [(LANDING_BYTES, true), (LANDING_BYTES + 1, false)] {
        let sent = alone.machine.call(PEER, HandlerId(1), CallPayload::Long { from, bytes }, None);
        assert_eq!(sent.is_ok(), is_good);
    }
}

/// The memory of the payload is in use until the peer has answered, or is lost.
#[test]
fn a_long_call_that_timed_out_is_released_once() {
    let at = Instant::from_ns;
    let ended = |alone: &mut Alone| match alone.machine.poll() {
        Some(AmOutput::Done { token, result: Err(CallError::Timeout) }) => token,
        other => panic!("{other:?}"),
    };
    let released = |alone: &mut Alone| match alone.machine.poll() {
        Some(AmOutput::Released { token }) => token,
        other => panic!("{other:?}"),
    };
    for (is_told, is_lost) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut alone = Alone::new();
        let token = alone.call_long(PEER, Some(at(5))).unwrap();
        let other = alone.call_long(OTHER, Some(at(5))).unwrap();
        alone.machine.handle(AmEvent::Tick, at(5));
        if is_told {
            assert_eq!(ended(&mut alone), token);
            assert_eq!(ended(&mut alone), other);
            assert!(alone.machine.poll().is_none());
        }
        alone.machine.take_room();
        if is_lost {
            alone.machine.handle(AmEvent::Lost(PEER), at(5));
        } else {
            alone.arrives(PEER, reply(token.to_bits()));
        }
        if !is_told && is_lost {
            assert_eq!(ended(&mut alone), token);
            assert_eq!(ended(&mut alone), other);
        }
        if is_told || is_lost {
            assert_eq!(released(&mut alone), token);
            assert!(alone.machine.take_room());
        } else {
            // The end is reported first, and then the reply behind it is found.
            assert_eq!(ended(&mut alone), token);
            assert_eq!(ended(&mut alone), other);
            assert_eq!(released(&mut alone), token);
        }
        assert!(alone.machine.poll().is_none());
        assert_eq!(alone.machine.calls(), 1, "the other call's payload is in use");
        assert_eq!(alone.machine.dropped(), u64::from(!is_lost), "the reply comes too late");
    }
}

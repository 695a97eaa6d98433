//! Completions on their way up.

use super::fixture::*;
use crate::net::immediate::immediate_of;
use crate::net::wire::CompletionStatus;
use libc::{EAGAIN, ECONNRESET, EIO, ENOSYS, EOPNOTSUPP};
use tsumugi_core::mem::{Access, AddrError, Width};
use tsumugi_core::op::{Kind, Op};

fn word(offset: u64) -> Op {
    Op::get_word(at(5, offset), Width::W8)
}

fn lost() -> Result<u64, AddrError> {
    Err(AddrError::PeerLost { rank: PEER })
}

#[test]
fn an_operation_that_failed_for_another_one_is_posted_again() {
    let mut net = Net::new();
    net.knows(PEER, &listing(5));
    net.post(&[word(8).tagged(tag(1))]);
    let first = net.call();
    net.ends(0, CompletionStatus::Again);
    assert_eq!((net.poll(), net.call()), (vec![], first));
    net.done(0);
    assert_eq!(net.poll(), [(1, Ok(0))]);
    assert_eq!((net.poll(), net.calls()), (vec![], vec![]));
}

#[test]
fn an_operation_without_an_answer_loses_its_peer() {
    let mut net = Net::new();
    net.knows(PEER, &listing(5));
    net.post(&[word(8).tagged(tag(1))]);
    net.calls();
    net.ends(0, CompletionStatus::Gone { code: ECONNRESET, provider_code: 4 });
    assert_eq!(net.poll(), [(1, lost())]);
    let failure = net.nic.failures.last.unwrap();
    assert_eq!((failure.peer, failure.kind), (Some(PEER), Some(Kind::GetWord)));
    assert_eq!((failure.code, failure.provider_code), (ECONNRESET, 4));
    assert_eq!((net.calls(), net.nic.in_flight()), (vec![], 0));
}

#[test]
fn an_operation_that_the_device_lacks_is_unsupported() {
    for code in [ENOSYS, EOPNOTSUPP] {
        let mut net = Net::new();
        net.knows(PEER, &listing(5));
        net.post(&[word(8).tagged(tag(1))]);
        net.calls();
        net.ends(0, CompletionStatus::Refused { code, provider_code: 0 });
        let unsupported = Err(AddrError::Unsupported { addr: at(5, 8) });
        assert_eq!(net.poll(), [(1, unsupported)]);
        assert_eq!((net.calls(), net.nic.in_flight()), (vec![], 0));
    }
}

/// A refusal removes the region from the cache and reads the peer's directory again.
#[test]
fn a_refused_operation_reads_the_directory_before_it_ends() {
    let other = tsumugi_core::mem::RemoteAddr { rank: OTHER, ..at(5, 0) };
    for (listed, result) in
        [(Some(listing(5)), lost()), (None, Err(AddrError::StaleKey { addr: at(5, 8) }))]
    {
        let mut net = Net::new();
        net.knows(PEER, &listing(5));
        net.knows(PEER, &listing(6));
        net.knows(OTHER, &listing(5));
        net.post(&[word(8).tagged(tag(1)), word(16).tagged(tag(2))]);
        net.calls();
        net.ends(0, CompletionStatus::Refused { code: EIO, provider_code: 0 });
        assert_eq!(net.poll(), []);
        assert_eq!(net.line().unmapped, [MAPPED + 50], "only the key of this region is unmapped");
        assert!(net.nic.holds(PEER));
        let Call::Get { bytes: 128, context, .. } = net.call() else { panic!("a slot") };
        assert_eq!(context, FIRST_READ);
        assert!(net.poll().is_empty() && net.calls().is_empty(), "the directory is read once");
        // The regions of other ranks, and others of this rank, are still in the cache.
        net.post(&[Op::get_word(at(6, 0), Width::W8), Op::get_word(other, Width::W8)]);
        assert!(net.calls().iter().all(|call| matches!(call, Call::Word { .. })));
        net.answer_read(FIRST_READ, listed.as_ref());
        assert_eq!(net.poll(), [(1, result)]);
        net.done(1);
        assert_eq!(net.poll(), [(2, Ok(0))], "the second operation on the region was done");
    }
}

#[test]
fn a_directory_read_without_an_answer_loses_the_peer() {
    for end in [
        CompletionStatus::Gone { code: ECONNRESET, provider_code: 0 },
        CompletionStatus::Refused { code: EIO, provider_code: 0 },
    ] {
        let mut net = Net::new();
        net.knows(PEER, &listing(5));
        net.post(&[word(8).tagged(tag(1))]);
        net.ends(0, CompletionStatus::Refused { code: EIO, provider_code: 0 });
        assert_eq!(net.poll(), []);
        net.ends(FIRST_READ, end);
        assert_eq!(net.poll(), [(1, lost())]);
        assert_eq!((net.nic.failures.count, net.nic.in_flight()), (2, 0));
        assert_eq!(net.nic.failures.last.unwrap().peer, Some(PEER));
    }
}

#[test]
fn a_directory_read_for_which_there_is_no_room_is_repeated() {
    let mut net = Net::new();
    net.knows(PEER, &listing(5));
    net.post(&[word(8).tagged(tag(1))]);
    net.calls();
    net.refuse(&[EAGAIN]);
    net.ends(0, CompletionStatus::Refused { code: EIO, provider_code: 0 });
    assert_eq!(net.poll(), []);
    net.poll();
    assert!(matches!(net.call(), Call::Get { bytes: 128, .. }));
    // A read that the device returns undone is posted again, too.
    net.ends(FIRST_READ, CompletionStatus::Again);
    assert_eq!(net.poll(), []);
    assert!(matches!(net.call(), Call::Get { bytes: 128, .. }));
    net.answer_read(FIRST_READ, None);
    assert_eq!(net.poll(), [(1, Err(AddrError::StaleKey { addr: at(5, 8) }))]);
}

#[test]
fn completions_come_in_order_and_as_many_as_fit() {
    let mut net = Net::new();
    net.knows(PEER, &listing(5));
    let ops: Vec<Op> = (0..4).map(|at| word(8 * at).tagged(tag(at))).collect();
    net.post(&ops);
    for context in [3, 1, 0, 2] {
        net.done(context);
    }
    let mut two = [tsumugi_core::backend::Completion::EMPTY; 2];
    assert_eq!(net.nic.poll(&net.shared, &mut two), 2);
    assert_eq!(two.map(|done| done.tag), [tag(3), tag(1)]);
    assert_eq!(net.poll(), [(0, Ok(0)), (2, Ok(0))]);
}

/// A notification has 16 bytes behind the header: the region's key, 4 zero bytes, the
/// offset.
fn bell(offset: u64) -> Vec<u8> {
    let mut bytes = JOB.to_le_bytes().to_vec();
    bytes.extend([0, 0, 0, 0, 2, 0, 0, 0]);
    bytes.extend(at(5, 0).key.to_bits().to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend(offset.to_le_bytes());
    bytes
}

#[test]
fn a_notifying_operation_ends_when_its_bell_is_under_way() {
    let mut net = Net::new();
    net.knows(PEER, &listing(5));
    let own = net.own(64, Access::Local);
    let add = Op::atomic(Kind::FetchAdd, at(5, 8), 1u64).notifying().tagged(tag(1));
    let put = Op::put(local(&own, 0), at(5, 16), 8).notifying().tagged(tag(2));
    for (op, offset, old) in [(add, 8, 7), (put, 16, 0)] {
        assert_eq!((net.post(&[op]), net.calls().len()), (1, 1));
        net.write(0, &7u64.to_le_bytes());
        net.done(0);
        assert_eq!(net.poll(), [(op.tag.to_bits(), Ok(old))]);
        let Call::Send { bytes, peer: 101, .. } = net.call() else { panic!("a bell") };
        assert_eq!(bytes, bell(offset));
    }
    // An operation that changes nothing, or does not notify, has no notification.
    for op in [word(8).notifying(), Op::get(at(5, 0), local(&own, 0), 8).notifying(), word(8)] {
        net.post(&[op]);
        net.calls();
        net.done(0);
        assert_eq!((net.poll().len(), net.calls()), (1, vec![]));
    }
    net.post(&[Op::put_word(at(5, 0), Width::W8, 1)]);
    net.calls();
    net.done(0);
    assert_eq!((net.poll().len(), net.calls()), (1, vec![]));
}

#[test]
fn a_bell_for_which_there_is_no_room_is_sent_later() {
    let mut net = Net::new();
    net.knows(PEER, &listing(5));
    net.post(&[Op::atomic(Kind::FetchAdd, at(5, 8), 1u64).notifying().tagged(tag(1))]);
    net.calls();
    net.write(0, &7u64.to_le_bytes());
    net.done(0);
    net.refuse(&[EAGAIN, EAGAIN, EAGAIN]);
    assert_eq!(net.poll(), []);
    assert_eq!(net.poll(), []);
    assert!(net.nic.holds(PEER));
    assert_eq!((net.nic.in_flight(), net.refused()), (1, 3));
    assert_eq!(net.poll(), [(1, Ok(7))], "the old value of the word was kept");
    let Call::Send { bytes, .. } = net.call() else { panic!("a bell") };
    assert_eq!(bytes, bell(8));
    assert_eq!((net.poll(), net.calls()), (vec![], vec![]));
}

#[test]
fn a_put_with_a_number_needs_no_bell() {
    let mut net = Net::with(|limits| {
        limits.rings = true;
        limits.piece_bytes_max = 16;
    });
    net.knows(PEER, &listing(5));
    let own = net.own(64, Access::Local);
    let word = Op::put_word(at(5, 8), Width::W8, 0x0102).notifying();
    net.post(&[word]);
    let number = immediate_of(at(5, 8)).unwrap();
    let bytes = 0x0102u64.to_le_bytes().to_vec();
    assert_eq!(net.call(), Call::Ringing { bytes, remote: remote(8), context: 0, number });
    net.done(0);
    assert_eq!((net.poll().len(), net.calls()), (1, vec![]));
    // The last piece of a put carries the number of the put's start.
    net.post(&[Op::put(local(&own, 0), at(5, 8), 24).notifying()]);
    assert!(matches!(net.call(), Call::Put { .. }));
    net.done(0);
    assert_eq!(net.poll(), []);
    let bytes = (16..24).collect();
    assert_eq!(net.call(), Call::Ringing { bytes, remote: remote(24), context: 0, number });
    net.done(0);
    assert_eq!((net.poll().len(), net.calls()), (1, vec![]));
    // Atomics cannot carry a number, nor can places that fit in none; a put that
    // does not notify carries none.
    net.post(&[Op::put(local(&own, 0), at(5, 8), 8)]);
    assert!(matches!(net.call(), Call::Put { .. }));
    net.done(0);
    assert_eq!((net.poll().len(), net.calls()), (1, vec![]));
    for op in [
        Op::atomic(Kind::FetchAdd, at(5, 8), 1u64).notifying(),
        Op::put(local(&own, 0), at(5, 4), 8).notifying(),
    ] {
        net.post(&[op]);
        assert!(matches!(net.call(), Call::Put { .. } | Call::Word { .. }));
        net.done(0);
        assert_eq!(net.poll().len(), 1);
        assert!(matches!(net.call(), Call::Send { .. }));
    }
}

#[test]
fn a_completion_of_no_operation_is_recorded_as_a_failure() {
    let mut net = Net::new();
    let beyond = FIRST_RECEIVE + PACKETS;
    let ends = [
        (beyond, CompletionStatus::Done(0), EIO),
        (usize::MAX, CompletionStatus::Done(0), EIO),
        (0, CompletionStatus::Immediate(5), EIO),
        (FIRST_SEND, CompletionStatus::Immediate(5), EIO),
        (beyond, CompletionStatus::Refused { code: 71, provider_code: 3 }, 71),
        (beyond, CompletionStatus::Gone { code: 72, provider_code: 0 }, 72),
    ];
    for (count, (context, end, code)) in ends.into_iter().enumerate() {
        net.ends(context, end);
        assert_eq!(net.poll(), []);
        let failures = net.nic.failures;
        let failure = failures.last.unwrap();
        assert_eq!((failures.count, failure.code), (count as u64 + 1, code));
        assert_eq!((failure.peer, failure.kind), (None, None));
    }
    assert_eq!(net.nic.failures.last.unwrap().provider_code, 0);
    net.ends(beyond, CompletionStatus::Again);
    net.poll();
    net.line().broken = Some(73);
    net.poll();
    let failure = net.nic.failures.last.unwrap();
    assert_eq!((net.nic.failures.count, failure.code, failure.provider_code), (7, 73, 0));
}

#[test]
fn a_rail_arms_only_when_it_has_no_work() {
    let mut net = Net::new();
    net.knows(PEER, &listing(5));
    assert!(!net.nic.arm(), "the wire does not sleep");
    net.line().waits = true;
    assert!(net.nic.arm());
    net.refuse(&[libc::EINPROGRESS]);
    net.post(&[word(8)]);
    assert!(!net.nic.arm(), "an operation is to be posted again");
    net.poll();
    assert!(net.nic.arm(), "only the device has work");
    net.done(0);
    let mut none: [tsumugi_core::backend::Completion; 0] = [];
    net.nic.poll(&net.shared, &mut none);
    assert!(!net.nic.arm(), "a completion is to be polled");
    net.poll();
    net.send(PEER, b"a").unwrap();
    assert!(net.nic.arm());
    net.refuse(&[EAGAIN]);
    net.ends(FIRST_SEND + 3, CompletionStatus::Again);
    net.poll();
    assert!(!net.nic.arm(), "a packet is to be sent again");
    net.poll();
    assert!(net.nic.arm());
    net.lands(b"stray");
    net.poll();
    assert!(!net.nic.arm(), "a packet has arrived");
    net.receive();
    assert!(net.nic.arm());
    let context = net.line().receives[0];
    net.ends(context, CompletionStatus::Immediate(1));
    net.poll();
    assert!(!net.nic.arm(), "a number has arrived");
}

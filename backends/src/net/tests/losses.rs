//! Ranks that are found dead.

use super::fixture::*;
use crate::net::PacketError;
use crate::net::memory::Listing;
use crate::net::wire::{CompletionStatus, ShutOut, WireKey};
use libc::{EAGAIN, ECONNRESET, EINPROGRESS};
use tsumugi_core::mem::{Access, AddrError, RemoteAddr, Width};
use tsumugi_core::op::{Kind, Op};
use tsumugi_core::sync::Ordering;

fn word(offset: u64) -> Op {
    Op::get_word(at(5, offset), Width::W8)
}

fn lost() -> Result<u64, AddrError> {
    Err(AddrError::PeerLost { rank: PEER })
}

/// The operation ends at once; the device's completion of it frees its place.
#[test]
fn a_posted_operation_on_a_lost_rank_ends_once() {
    for end in [
        CompletionStatus::Done(0),
        CompletionStatus::Again,
        CompletionStatus::Gone { code: ECONNRESET, provider_code: 0 },
        CompletionStatus::Refused { code: ECONNRESET, provider_code: 0 },
    ] {
        let mut net = Net::new();
        net.knows(PEER, &listing(5));
        net.post(&[word(0).tagged(tag(1))]);
        net.calls();
        net.mark_dead(PEER);
        assert_eq!(net.poll(), [(1, lost())]);
        assert_eq!(net.nic.in_flight(), 1, "the device still has the operation");
        net.ends(0, end);
        assert_eq!((net.poll(), net.calls()), (vec![], vec![]), "{end:?}");
        assert_eq!(net.nic.in_flight(), 0);
        assert_eq!(net.poll(), []);
    }
}

#[test]
fn a_waiting_operation_on_a_lost_rank_ends_and_others_continue() {
    let mut net = Net::sized(8, |_| {});
    net.knows(PEER, &listing(5));
    net.knows(OTHER, &listing(5));
    let other = Op::get_word(RemoteAddr { rank: OTHER, ..at(5, 0) }, Width::W8);
    net.refuse(&[EINPROGRESS, EINPROGRESS]);
    net.post(&[word(0).tagged(tag(1)), other.tagged(tag(2))]);
    net.post(&[Op::get_word(at(6, 0), Width::W8).tagged(tag(3)), other.tagged(tag(4))]);
    let add = Op::atomic(Kind::FetchAdd, at(5, 8), 1u64).notifying();
    net.post(&[add.tagged(tag(5)), word(16).tagged(tag(6))]);
    net.write(4, &7u64.to_le_bytes());
    net.done(4);
    net.ends(5, CompletionStatus::Refused { code: ECONNRESET, provider_code: 0 });
    net.refuse(&[EAGAIN; 6]);
    assert_eq!(net.poll(), []);
    net.line().answers.clear();
    net.calls();
    net.mark_dead(PEER);
    let mut ended = net.poll();
    ended.sort_by_key(|done| done.0);
    assert_eq!(ended, [(1, lost()), (3, lost()), (5, Ok(7)), (6, lost())]);
    assert!(!net.nic.holds(PEER));
    net.done(1);
    net.done(3);
    assert_eq!(net.poll(), [(2, Ok(0)), (4, Ok(0))]);
    assert_eq!((net.nic.in_flight(), net.nic.posted), (0, 0));
}

#[test]
fn a_get_from_a_lost_rank_ends_when_its_buffer_is_free() {
    let mut net = Net::new();
    net.knows(PEER, &listing(5));
    let own = net.own(64, Access::Local);
    let get = Op::get(at(5, 0), local(&own, 0), 8);
    net.post(&[get.tagged(tag(1)), get.tagged(tag(2)), get.tagged(tag(3))]);
    net.mark_dead(PEER);
    assert_eq!(net.poll(), []);
    net.done(0);
    net.ends(1, CompletionStatus::Gone { code: ECONNRESET, provider_code: 0 });
    assert_eq!(net.poll(), [(1, Ok(0)), (2, lost())]);
    net.ends(2, CompletionStatus::Refused { code: ECONNRESET, provider_code: 0 });
    assert_eq!(net.poll(), [(3, lost())]);
    assert_eq!(net.nic.in_flight(), 0);
}

#[test]
fn a_get_from_a_lost_rank_into_kept_memory_ends_at_once() {
    let mut net = Net::new();
    net.knows(PEER, &listing(5));
    let (kept, own) = (net.own(64, Access::Local), net.own(64, Access::Local));
    net.shared.kept.store(kept.key.to_bits(), Ordering::Relaxed);
    let into = |region, bits| Op::get(at(5, 0), local(region, 0), 8).tagged(tag(bits));
    net.post(&[into(&kept, 1), into(&own, 2)]);
    net.mark_dead(PEER);
    assert_eq!(net.poll(), [(1, lost())]);
    net.done(0);
    assert_eq!((net.poll(), net.nic.in_flight()), (vec![], 1));
    net.done(1);
    assert_eq!(net.poll(), [(2, Ok(0))]);
}

#[test]
fn without_kept_memory_no_key_counts_as_kept() {
    let mut net = Net::new();
    net.knows(PEER, &listing(5));
    // A key that names nothing is refused before it could be taken for "none".
    let nothing =
        tsumugi_core::mem::LocalAddr { key: tsumugi_core::mem::RegionKey::from_bits(0), offset: 0 };
    net.post(&[Op::get(at(5, 0), nothing, 8)]);
    assert!(matches!(net.poll()[..], [(_, Err(AddrError::StaleKey { .. }))]));
}

#[test]
fn a_new_operation_on_a_lost_rank_is_refused() {
    let mut net = Net::new();
    net.knows(PEER, &listing(5));
    net.knows(OTHER, &Listing { raw: WireKey::of(60), ..listing(5) });
    net.mark_dead(PEER);
    assert_eq!(net.post(&[word(0).tagged(tag(1))]), 1);
    assert_eq!(net.poll(), [(1, lost())]);
    assert_eq!(net.send(PEER, b"a"), Err(PacketError::Addr(AddrError::PeerLost { rank: PEER })));
    assert_eq!((net.calls(), net.nic.failures.count), (vec![], 0));
    let line = net.line();
    assert_eq!(
        (&line.removed[..], &line.unmapped[..]),
        (&[(101, ShutOut::Rank)][..], &[MAPPED + 50][..])
    );
    drop(line);
    let other = Op::get_word(RemoteAddr { rank: OTHER, ..at(5, 0) }, Width::W8);
    net.post(&[other]);
    assert!(
        matches!(net.call(), Call::Word { .. }),
        "the regions of the other rank are still in the cache"
    );
    assert_eq!(net.send(OTHER, b"a"), Ok(()));
    // A rank that is lost later is recorded, too, and once.
    net.mark_dead(OTHER);
    assert_eq!(net.poll().len(), 1);
    assert_eq!(net.line().removed, [(101, ShutOut::Rank), (102, ShutOut::Rank)]);
}

#[test]
fn a_rank_that_was_never_met_can_be_lost() {
    let mut net = Net::new();
    net.mark_dead(PEER);
    assert_eq!(net.post(&[word(0).tagged(tag(1))]), 1);
    assert_eq!(net.poll(), [(1, lost())]);
    assert_eq!((net.calls(), net.line().removed.clone()), (vec![], vec![]));
    let told = net.nic.notify_dead(&net.shared, PEER, b"a");
    assert_eq!(told, Err(PacketError::Addr(AddrError::PeerLost { rank: PEER })));
}

#[test]
fn tell_lost_sends_where_the_wire_still_can() {
    let refused = Err(PacketError::Addr(AddrError::PeerLost { rank: PEER }));
    for is_open in [true, false] {
        let mut net = Net::new();
        net.line().is_way_open = is_open;
        net.send(PEER, b"a").unwrap();
        net.calls();
        assert_eq!(
            net.nic.notify_dead(&net.shared, PEER, b"b"),
            refused,
            "the peer is not lost yet"
        );
        net.mark_dead(PEER);
        let doorbells = net.line().doorbells;
        let told = net.nic.notify_dead(&net.shared, PEER, b"b");
        assert_eq!(net.line().doorbells, doorbells + 1);
        assert_eq!(net.send(PEER, b"b"), refused);
        if is_open {
            assert_eq!(told, Ok(()));
            let Call::Send { bytes, peer, .. } = net.call() else { panic!("a packet") };
            assert_eq!((&bytes[16..], bytes[12], peer), (&b"b"[..], 1, 101));
        } else {
            assert_eq!((told, net.calls()), (refused, vec![]));
        }
    }
}

/// The requests that the device still has for a lost rank do not keep requests for other
/// ranks from being posted.
#[test]
fn in_one_by_one_mode_a_lost_rank_does_not_delay_other_ranks() {
    let mut net = Net::with(|limits| limits.one_by_one = true);
    net.knows(PEER, &listing(5));
    net.knows(OTHER, &listing(5));
    let other = Op::get_word(RemoteAddr { rank: OTHER, ..at(5, 0) }, Width::W8);
    net.post(&[word(0).tagged(tag(1)), other.tagged(tag(2))]);
    assert_eq!(net.calls().len(), 1);
    net.mark_dead(PEER);
    assert_eq!(net.poll(), [(1, lost())]);
    assert_eq!((net.calls().len(), net.nic.posted), (1, 1));
    net.done(0);
    net.done(1);
    assert_eq!(net.poll(), [(2, Ok(0))]);
    assert_eq!(net.nic.posted, 0);
    // The same with a read of the lost rank's directory.
    let mut net = Net::with(|limits| limits.one_by_one = true);
    net.knows(OTHER, &listing(5));
    net.post(&[word(0).tagged(tag(1)), other.tagged(tag(2))]);
    assert!(matches!(net.call(), Call::Get { .. }));
    net.mark_dead(PEER);
    assert_eq!(net.poll(), [(1, lost())]);
    assert!(matches!(net.call(), Call::Word { .. }));
    net.answer_read(FIRST_READ, None);
    net.done(1);
    assert_eq!((net.poll(), net.nic.posted), (vec![(2, Ok(0))], 0));
    // A directory read for another rank continues, and still counts as posted.
    net.post(&[Op::get_word(RemoteAddr { rank: OTHER, ..at(6, 0) }, Width::W8)]);
    assert!(matches!(net.call(), Call::Get { .. }));
    net.mark_dead(tsumugi_core::mem::Rank(3));
    net.poll();
    assert_eq!(net.nic.posted, 1);
}

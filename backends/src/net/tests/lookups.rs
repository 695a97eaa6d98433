//! Regions that are not known yet.

use super::fixture::*;
use crate::net::memory::{Listing, REGIONS_MAX};
use crate::net::wire::{CompletionStatus, RemoteBuffer, WireKey};
use libc::{EAGAIN, ECONNRESET, EINPROGRESS};
use tsumugi_core::mem::{AddrError, RegionKey, RemoteAddr, Width};
use tsumugi_core::op::Op;

fn word(slot: usize) -> Op {
    Op::get_word(at(slot, 8), Width::W8)
}

fn stale(slot: usize) -> Result<u64, AddrError> {
    Err(AddrError::StaleKey { addr: at(slot, 8) })
}

fn lost() -> Result<u64, AddrError> {
    Err(AddrError::PeerLost { rank: PEER })
}

/// A read of a slot of the peer's directory.
fn read(read: usize, slot: usize) -> Call {
    let addr = origin(PEER) + 128 * slot as u64;
    let remote = RemoteBuffer { peer: 101, addr, key: MAPPED + 1 };
    Call::Get { bytes: 128, remote, context: FIRST_READ + read, more: false }
}

#[test]
fn an_operation_goes_on_when_its_regions_slot_has_come() {
    let mut net = Net::new();
    assert_eq!(net.post(&[word(5).tagged(tag(1))]), 1);
    assert_eq!(net.call(), read(0, 5));
    assert_eq!(net.line().mapped, [(1, origin(PEER))]);
    assert!(net.nic.holds(PEER));
    assert_eq!((net.poll(), net.calls()), (vec![], vec![]));
    net.answer_read(FIRST_READ, Some(&listing(5)));
    assert_eq!(net.poll(), []);
    assert!(matches!(net.call(), Call::Word { remote: to, .. } if to == remote(8)));
    assert_eq!(net.line().mapped[1..], [(50, 0x8000)]);
    net.done(0);
    assert_eq!(net.poll(), [(1, Ok(0))]);
    // The region is in the cache now.
    net.post(&[word(5)]);
    assert!(matches!(net.call(), Call::Word { .. }));
}

#[test]
fn each_read_has_a_place_of_its_own_which_is_used_again() {
    let mut net = Net::new();
    net.post(&[word(5).tagged(tag(1)), word(REGIONS_MAX - 1).tagged(tag(2))]);
    assert_eq!(net.calls(), [read(0, 5), read(1, REGIONS_MAX - 1)]);
    let places = [FIRST_READ, FIRST_READ + 1].map(|context| net.local(context).at);
    assert_eq!(places[1] - places[0], 128);
    net.answer_read(FIRST_READ, None);
    assert_eq!(net.poll(), [(1, stale(5))]);
    net.post(&[word(6).tagged(tag(3))]);
    assert_eq!(net.call(), read(0, 6));
    net.answer_read(FIRST_READ + 1, None);
    assert_eq!(net.poll(), [(2, stale(REGIONS_MAX - 1))]);
    net.answer_read(FIRST_READ, None);
    assert_eq!(net.poll(), [(3, stale(6))]);
    assert_eq!(net.nic.in_flight(), 0);
}

#[test]
fn a_slot_with_another_key_makes_the_key_stale() {
    let newer = Listing { key: RegionKey::new(5, 2), ..listing(5) };
    for wrong in [newer, listing(6)] {
        let mut net = Net::new();
        net.post(&[word(5).tagged(tag(1))]);
        net.answer_read(FIRST_READ, Some(&wrong));
        assert_eq!(net.poll(), [(1, stale(5))]);
        assert_eq!(net.nic.in_flight(), 0);
    }
    // The key that the slot names is in the cache from then on.
    let mut net = Net::new();
    net.post(&[word(5)]);
    net.answer_read(FIRST_READ, Some(&newer));
    net.poll();
    net.calls();
    net.post(&[Op::get_word(RemoteAddr { key: newer.key, ..at(5, 8) }, Width::W8)]);
    assert!(matches!(net.call(), Call::Word { .. }));
}

#[test]
fn a_region_that_replaces_another_unmaps_its_key() {
    let mut net = Net::new();
    net.knows(PEER, &Listing { raw: WireKey::of(40), ..listing(5) });
    let newer = Listing { key: RegionKey::new(5, 2), ..listing(5) };
    net.post(&[Op::get_word(RemoteAddr { key: newer.key, ..at(5, 8) }, Width::W8)]);
    net.answer_read(FIRST_READ, Some(&newer));
    net.poll();
    assert_eq!(net.line().unmapped, [MAPPED + 40]);
}

/// A read ends only those operations that wait for its slot of its rank, and that began
/// to wait before the read was posted.
#[test]
fn a_read_ends_only_the_operations_that_wait_for_it() {
    let mut net = Net::sized(8, |_| {});
    let other = RemoteAddr { rank: OTHER, ..at(5, 8) };
    net.post(&[
        word(5).tagged(tag(1)),
        word(6).tagged(tag(2)),
        Op::get_word(other, Width::W8).tagged(tag(3)),
    ]);
    assert_eq!(net.calls().len(), 3);
    net.post(&[word(5).tagged(tag(4))]);
    assert_eq!(net.calls().len(), 1, "the slot may have changed during the first read");
    net.answer_read(8, None);
    assert_eq!(net.poll(), [(1, stale(5))]);
    net.answer_read(8 + 3, None);
    assert_eq!(net.poll(), [(4, stale(5))]);
    net.answer_read(8 + 2, None);
    assert_eq!(net.poll(), [(3, Err(AddrError::StaleKey { addr: other }))]);
    net.answer_read(8 + 1, None);
    assert_eq!(net.poll(), [(2, stale(6))]);
    assert_eq!(net.calls(), []);
}

#[test]
fn an_operation_that_waits_for_room_is_not_ended_by_a_read() {
    let mut net = Net::new();
    net.knows(PEER, &listing(5));
    net.refuse(&[EINPROGRESS]);
    net.post(&[word(5).tagged(tag(1))]);
    let newer = RemoteAddr { key: RegionKey::new(5, 2), ..at(5, 8) };
    net.refuse(&[0, EINPROGRESS]);
    net.post(&[Op::get_word(newer, Width::W8).tagged(tag(2))]);
    assert_eq!(net.call(), read(0, 5));
    net.answer_read(FIRST_READ, None);
    assert_eq!(net.poll(), [(2, Err(AddrError::StaleKey { addr: newer }))]);
    assert!(net.nic.holds(PEER), "the first operation waits for room alone");
}

#[test]
fn a_seventeenth_slot_is_read_when_a_read_has_ended() {
    let mut net = Net::sized(20, |_| {});
    let ops: Vec<Op> = (1..=17).map(|slot| word(slot).tagged(tag(slot as u64))).collect();
    assert_eq!(net.post(&ops), 17);
    assert_eq!(net.calls().len(), 16);
    assert_eq!((net.poll(), net.calls()), (vec![], vec![]));
    net.answer_read(20 + 3, None);
    assert_eq!(net.poll(), [(4, stale(4))]);
    let Call::Get { remote, context, .. } = net.call() else { panic!("the last slot") };
    assert_eq!((remote.addr, context), (origin(PEER) + 128 * 17, 20 + 3));
}

#[test]
fn a_torn_slot_is_read_again_a_thousand_times() {
    let mut net = Net::new();
    net.post(&[word(5).tagged(tag(1))]);
    for _ in 0..1000 {
        assert_eq!(net.call(), read(0, 5));
        net.write(FIRST_READ, &1u64.to_le_bytes());
        net.done(FIRST_READ);
        assert_eq!(net.poll(), []);
    }
    assert_eq!(net.call(), read(0, 5));
    net.done(FIRST_READ);
    assert_eq!(net.poll(), [(1, stale(5))]);
    assert_eq!((net.poll(), net.calls()), (vec![], vec![]));
}

#[test]
fn a_read_for_which_there_is_no_room_is_posted_by_a_later_poll() {
    for code in [EAGAIN, EINPROGRESS] {
        let mut net = Net::new();
        net.refuse(&[code]);
        assert_eq!(net.post(&[word(5).tagged(tag(1))]), 1);
        assert_eq!((net.calls(), net.nic.failures.count), (vec![], 0));
        net.poll();
        assert_eq!(net.call(), read(0, 5));
        net.answer_read(FIRST_READ, None);
        assert_eq!(net.poll(), [(1, stale(5))]);
    }
}

#[test]
fn a_refused_read_loses_the_peer() {
    let mut net = Net::new();
    net.refuse(&[ECONNRESET]);
    assert_eq!(net.post(&[word(5).tagged(tag(1))]), 1);
    assert_eq!(net.poll(), [(1, lost())]);
    let failure = net.nic.failures.last.unwrap();
    assert_eq!((net.nic.failures.count, failure.peer), (1, Some(PEER)));
    assert_eq!((failure.code, failure.provider_code), (ECONNRESET, 0));
}

#[test]
fn a_key_that_cannot_be_mapped_loses_the_peer() {
    let mut net = Net::new();
    net.post(&[word(5).tagged(tag(1))]);
    net.line().map_refused = Some(libc::ENOMEM);
    net.answer_read(FIRST_READ, Some(&listing(5)));
    assert_eq!(net.poll(), [(1, lost())]);
    let failure = net.nic.failures.last.unwrap();
    assert_eq!((net.nic.failures.count, failure.peer), (1, Some(PEER)));
    assert_eq!((failure.code, failure.provider_code), (libc::ENOMEM, 0));
}

#[test]
fn an_operation_on_a_rank_without_a_card_ends() {
    let mut net = Net::new();
    net.shared.cards = std::sync::OnceLock::new();
    assert_eq!(net.post(&[word(5).tagged(tag(1))]), 1);
    assert_eq!(net.poll(), [(1, lost())]);
    assert_eq!(net.nic.in_flight(), 0);
}

#[test]
fn an_operation_waits_for_a_card_that_was_requested() {
    let mut net = Net::new();
    let known = std::mem::take(&mut net.shared.cards);
    let later: Box<crate::net::CardSource> = Box::new(|_, _| Ok(None));
    assert!(net.shared.cards.set(later).is_ok());
    assert_eq!(net.post(&[word(5).tagged(tag(1))]), 1);
    assert_eq!((net.poll(), net.calls()), (vec![], vec![]));
    assert!(net.nic.holds(PEER));
    net.shared.cards = known;
    net.poll();
    assert_eq!(net.call(), read(0, 5));
}

#[test]
fn in_one_by_one_mode_a_read_is_under_way_alone() {
    let mut net = Net::with(|limits| limits.one_by_one = true);
    net.knows(PEER, &listing(5));
    net.post(&[word(5), word(6).tagged(tag(2))]);
    assert_eq!(net.calls().len(), 1, "the word; no read beside it");
    net.done(0);
    net.poll();
    assert_eq!(net.call(), read(0, 6));
    net.post(&[word(5)]);
    net.poll();
    assert_eq!(net.calls(), [], "no word beside the read");
    net.answer_read(FIRST_READ, None);
    assert_eq!(net.poll(), [(2, stale(6))]);
    assert!(matches!(net.call(), Call::Word { .. }));
    net.done(net.nic.flights.iter().position(|it| it.counted).unwrap());
    assert_eq!(net.poll().len(), 1);
    assert_eq!(net.nic.posted, 0);
}

/// However a read ends, and if its rank is lost, the device has room for the next request.
#[test]
fn in_one_by_one_mode_a_read_that_has_ended_makes_room() {
    let ends = [
        Some(CompletionStatus::Done(0)),
        Some(CompletionStatus::Again),
        Some(CompletionStatus::Gone { code: ECONNRESET, provider_code: 0 }),
        Some(CompletionStatus::Refused { code: ECONNRESET, provider_code: 0 }),
        None,
    ];
    for end in ends {
        let mut net = Net::with(|limits| limits.one_by_one = true);
        net.post(&[word(6).tagged(tag(2))]);
        assert_eq!((net.call(), net.nic.posted), (read(0, 6), 1));
        match end {
            Some(end) => net.ends(FIRST_READ, end),
            None => net.mark_dead(PEER),
        }
        net.poll();
        let is_repeated = end == Some(CompletionStatus::Again);
        assert_eq!(net.nic.posted, usize::from(is_repeated), "{end:?}");
        if is_repeated {
            assert_eq!(net.call(), read(0, 6));
            net.answer_read(FIRST_READ, None);
            assert_eq!(net.poll(), [(2, stale(6))]);
        }
        let other = Op::get_word(RemoteAddr { rank: OTHER, ..at(6, 8) }, Width::W8);
        net.post(&[other]);
        assert!(
            matches!(net.call(), Call::Get { remote, .. } if remote.addr == origin(OTHER) + 6 * 128)
        );
        // The completion that comes after the loss is not counted a second time.
        if end.is_none() {
            net.ends(FIRST_READ, CompletionStatus::Again);
            net.poll();
        }
        assert_eq!(net.nic.posted, 1, "{end:?}");
    }
}

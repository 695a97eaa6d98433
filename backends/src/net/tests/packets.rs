//! Packets on their way to other ranks.

use super::fixture::*;
use crate::net::wire::CompletionStatus;
use crate::net::{CardError, PacketError};
use libc::{EAGAIN, ECONNRESET, EINPROGRESS};
use std::sync::OnceLock;
use tsumugi_core::boot::BootError;
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_core::sync::{AtomicUsize, Ordering};

/// A packet of this rank to another, as it crosses the network.
fn packet(bytes: &[u8]) -> Vec<u8> {
    let mut packet = JOB.to_le_bytes().to_vec();
    packet.extend([0, 0, 0, 0, 1, 0, 0, 0]);
    packet.extend(bytes);
    packet
}

fn lost() -> PacketError {
    PacketError::Addr(AddrError::PeerLost { rank: PEER })
}

#[test]
fn a_packet_keeps_its_buffer_until_it_is_sent() {
    let mut net = Net::new();
    let mut contexts = Vec::new();
    for text in ["a", "bc", "", "def"] {
        assert_eq!(net.send(PEER, text.as_bytes()), Ok(()));
        let Call::Send { bytes, peer, context } = net.call() else { panic!("a packet") };
        assert_eq!((bytes, peer), (packet(text.as_bytes()), 101));
        contexts.push(context);
    }
    contexts.sort_unstable();
    let all: Vec<usize> = (FIRST_SEND..FIRST_RECEIVE).collect();
    assert_eq!(contexts, all, "each packet has a buffer of its own");
    assert_eq!(net.send(PEER, b"g"), Err(PacketError::Full));
    net.done(FIRST_SEND + 1);
    assert_eq!((net.send(PEER, b"g"), net.poll()), (Err(PacketError::Full), vec![]));
    assert_eq!(net.send(PEER, b"g"), Ok(()));
    assert!(matches!(net.call(), Call::Send { context, .. } if context == FIRST_SEND + 1));
    assert_eq!(net.send(PEER, b"h"), Err(PacketError::Full));
}

#[test]
fn a_packet_that_is_too_long_or_has_no_such_rank_is_refused() {
    let mut net = Net::new();
    let max = PACKET_BYTES - 16;
    assert_eq!(net.nic.packet_bytes_max(), max);
    let too_long = PacketError::TooLong { bytes: max + 1, max };
    assert_eq!(net.send(PEER, &vec![1; max + 1]), Err(too_long));
    assert_eq!(net.send(PEER, &vec![1; max]), Ok(()));
    let nobody = AddrError::NoSuchRank { rank: Rank(SIZE), size: SIZE };
    assert_eq!(net.send(Rank(SIZE), b"a"), Err(PacketError::Addr(nobody)));
    assert_eq!(net.send(Rank(SIZE - 1), b"a"), Ok(()));
    assert_eq!(net.calls().len(), 2);
}

#[test]
fn a_packet_that_the_wire_refuses_frees_its_buffer() {
    let mut net = Net::new();
    for _ in 0..=PACKETS {
        net.refuse(&[EAGAIN, EINPROGRESS, ECONNRESET]);
        assert_eq!(net.send(PEER, b"a"), Err(PacketError::Full));
        assert_eq!(net.send(PEER, b"a"), Err(PacketError::Full));
        assert_eq!(net.send(PEER, b"a"), Err(lost()));
    }
    let failures = net.nic.failures;
    assert_eq!((failures.count, failures.last.unwrap().code), (1 + PACKETS as u64, ECONNRESET));
    let failure = failures.last.unwrap();
    assert_eq!((failure.peer, failure.provider_code), (Some(PEER), 0));
    for _ in 0..PACKETS {
        assert_eq!(net.send(PEER, b"a"), Ok(()));
    }
}

/// The memory that a library keeps for a peer that does not receive has a limit.
#[test]
fn after_sixteen_injected_packets_one_waits_for_its_completion() {
    let mut net = Net::with(|limits| limits.inject_packet_bytes = 18);
    for _ in 0..2 {
        for _ in 0..16 {
            assert_eq!(net.send(PEER, b"ab"), Ok(()));
            let injected = Call::Give { bytes: packet(b"ab"), peer: 101 };
            assert_eq!(net.call(), injected);
        }
        assert_eq!(net.send(PEER, b"ab"), Ok(()));
        let Call::Send { context, .. } = net.call() else { panic!("one that completes") };
        net.done(context);
        net.poll();
    }
    // Each peer has a counter of its own, and a refused packet does not count.
    for _ in 0..16 {
        net.refuse(&[EAGAIN]);
        assert_eq!(net.send(OTHER, b"ab"), Err(PacketError::Full));
        assert_eq!(net.send(OTHER, b"ab"), Ok(()));
        assert!(matches!(net.call(), Call::Give { peer: 102, .. }));
    }
    net.refuse(&[ECONNRESET]);
    assert_eq!(net.send(PEER, b"ab"), Err(lost()));
    assert_eq!(net.send(PEER, b"abc"), Ok(()));
    assert!(matches!(net.call(), Call::Send { .. }), "too long to be given away");
}

#[test]
fn a_packet_that_comes_back_unsent_is_sent_again() {
    let mut net = Net::new();
    net.send(PEER, b"ab").unwrap();
    let first = net.call();
    let Call::Send { context, .. } = first else { panic!("a packet") };
    net.ends(context, CompletionStatus::Again);
    net.refuse(&[EAGAIN, EINPROGRESS]);
    net.poll();
    net.poll();
    assert_eq!((net.refused(), net.calls()), (2, vec![]));
    net.poll();
    assert_eq!(net.call(), first);
    net.poll();
    assert_eq!(net.calls(), [], "once");
    for _ in 1..PACKETS {
        assert_eq!(net.send(PEER, b"c"), Ok(()));
    }
    assert_eq!(net.send(PEER, b"c"), Err(PacketError::Full), "its buffer is in use");
    net.done(context);
    net.poll();
    assert_eq!(net.send(PEER, b"c"), Ok(()));
}

#[test]
fn returned_packets_are_sent_again_once_in_a_poll() {
    let mut net = Net::new();
    net.send(PEER, b"ab").unwrap();
    net.send(OTHER, b"cd").unwrap();
    net.calls();
    net.ends(FIRST_SEND + 3, CompletionStatus::Again);
    net.ends(FIRST_SEND + 2, CompletionStatus::Again);
    net.refuse(&[EAGAIN]);
    net.poll();
    let Call::Send { peer: 102, context, .. } = net.call() else { panic!("the other") };
    assert_eq!(context, FIRST_SEND + 2);
    net.poll();
    assert!(matches!(net.call(), Call::Send { peer: 101, .. }));
}

#[test]
fn a_packet_that_cannot_be_sent_again_is_dropped_and_frees_its_buffer() {
    let mut net = Net::new();
    net.send(PEER, b"ab").unwrap();
    net.ends(FIRST_SEND + 3, CompletionStatus::Again);
    net.refuse(&[ECONNRESET]);
    net.poll();
    let failure = net.nic.failures.last.unwrap();
    assert_eq!((net.nic.failures.count, failure.peer), (1, Some(PEER)));
    assert_eq!((failure.code, failure.provider_code), (ECONNRESET, 0));
    for _ in 0..PACKETS {
        assert_eq!(net.send(PEER, b"c"), Ok(()));
    }
    // A returned packet to a lost rank is dropped as well.
    net.ends(FIRST_SEND, CompletionStatus::Again);
    net.mark_dead(PEER);
    net.calls();
    net.poll();
    assert_eq!((net.calls(), net.nic.failures.count), (vec![], 2));
    assert_eq!(net.nic.failures.last.unwrap().code, libc::EHOSTUNREACH);
    assert_eq!(net.send(OTHER, b"c"), Ok(()));
}

#[test]
fn a_packet_that_fails_frees_its_buffer_and_is_recorded() {
    let mut net = Net::new();
    for text in ["a", "b", "c", "d"] {
        net.send(OTHER, text.as_bytes()).unwrap();
    }
    net.ends(FIRST_SEND, CompletionStatus::Gone { code: ECONNRESET, provider_code: 9 });
    net.poll();
    let failure = net.nic.failures.last.unwrap();
    assert_eq!((failure.peer, failure.kind), (Some(OTHER), None));
    assert_eq!((failure.code, failure.provider_code), (ECONNRESET, 9));
    assert_eq!(net.send(PEER, b"e"), Ok(()));
    assert_eq!(net.send(PEER, b"f"), Err(PacketError::Full));
}

/// A rank's card is requested with the first packet to the rank, and again with each
/// packet until the card arrives.
#[test]
fn a_peer_is_added_when_its_card_arrives() {
    let asked = std::sync::Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let mut net = Net::new();
    net.shared.cards = OnceLock::new();
    assert_eq!(net.send(PEER, b"a"), Err(lost()), "there are no cards");
    assert_eq!(net.nic.failures.last.unwrap().code, libc::ENODATA);
    let cards: Box<crate::net::CardSource> = Box::new(move |rank, into| {
        let times = count.fetch_add(1, Ordering::Relaxed);
        let bytes = card(rank.0 as u8).to_bytes();
        into[..bytes.len()].copy_from_slice(&bytes);
        match rank.0 {
            1 if times == 0 => Ok(None),
            1 => Ok(Some(bytes.len())),
            2 => Ok(Some(bytes.len() - 1)),
            _ => Err(BootError::NoCard { rank }),
        }
    });
    assert!(net.shared.cards.set(cards).is_ok());
    assert_eq!(net.send(PEER, b"a"), Err(PacketError::Full), "the card was requested");
    assert_eq!(net.send(PEER, b"a"), Ok(()));
    assert_eq!(net.line().mapped, [(1, origin(PEER))]);
    assert_eq!(net.send(PEER, b"a"), Ok(()));
    assert_eq!(asked.load(Ordering::Relaxed), 2, "the card is kept");
    net.send(OTHER, b"a").unwrap_err();
    let failure = net.nic.failures.last.unwrap();
    assert_eq!((failure.code, failure.peer), (libc::EPROTO, Some(OTHER)));
    assert!(matches!(failure.card, Some(CardError::Length { .. })));
    let rank = Rank(3);
    net.send(rank, b"a").unwrap_err();
    let failure = net.nic.failures.last.unwrap();
    let why = BootError::NoCard { rank };
    assert_eq!((failure.code, failure.card), (libc::ENODATA, Some(CardError::Untold { why })));
    assert_eq!(failure.provider_code, 0);
    // The own rank needs no card.
    assert_eq!(net.send(Rank(0), b"a"), Ok(()));
    assert_eq!(asked.load(Ordering::Relaxed), 4);
}

#[test]
fn a_card_of_excessive_length_is_not_read_beyond_its_buffer() {
    let mut net = Net::new();
    net.shared.cards = OnceLock::new();
    let cards: Box<crate::net::CardSource> = Box::new(|_, _| Ok(Some(usize::MAX)));
    assert!(net.shared.cards.set(cards).is_ok());
    assert_eq!(net.send(PEER, b"a"), Err(lost()));
}

#[test]
fn a_peer_that_the_wire_refuses_is_lost() {
    let mut net = Net::new();
    net.line().insert_refused = Some(libc::ENOMEM);
    assert_eq!(net.send(PEER, b"a"), Err(lost()));
    assert_eq!(net.nic.failures.last.unwrap().code, libc::ENOMEM);
    net.line().insert_refused = None;
    net.line().map_refused = Some(libc::EKEYREJECTED);
    assert_eq!(net.send(PEER, b"a"), Err(lost()));
    assert_eq!(net.nic.failures.last.unwrap().code, libc::EKEYREJECTED);
}

//! Peers that cannot be reached yet.

use super::fixture::*;
use crate::net::PacketError;
use crate::net::wire::CompletionStatus;
use libc::{ECONNREFUSED, EHOSTUNREACH};
use std::time::{Duration, Instant};
use tsumugi_core::mem::{AddrError, RemoteAddr, Width};
use tsumugi_core::op::Op;

fn word() -> Op {
    Op::get_word(at(5, 8), Width::W8)
}

/// Sets the time since the peer was met, in milliseconds.
fn contacted_ms(net: &mut Net, before: u32) {
    let age = net.nic.age();
    net.nic.peers.get_mut(&PEER.0).unwrap().contacted_ms = age.wrapping_sub(before);
}

/// Ends every pause.
fn pass(net: &mut Net) {
    net.nic.backoffs.iter_mut().for_each(|(_, until)| *until = Instant::now());
}

/// Makes every pause longer than a test runs.
fn stay(net: &mut Net) {
    let later = Instant::now() + Duration::from_secs(600);
    net.nic.backoffs.iter_mut().for_each(|(_, until)| *until = later);
}

#[test]
fn a_new_peer_that_refuses_is_tried_again_after_a_pause() {
    let mut net = Net::new();
    net.knows(PEER, &listing(5));
    net.knows(OTHER, &listing(5));
    net.refuse(&[ECONNREFUSED]);
    let begun = Instant::now();
    assert_eq!(net.post(&[word().tagged(tag(1))]), 0, "the peer pauses");
    let (rank, until) = net.nic.backoffs[0];
    assert_eq!((rank, net.nic.backoffs.len(), net.nic.in_flight()), (PEER, 1, 0));
    assert!(until >= begun + Duration::from_millis(20));
    stay(&mut net);
    assert_eq!(net.post(&[word()]), 0);
    assert_eq!(net.send(PEER, b"a"), Err(PacketError::Full));
    assert_eq!(
        (net.refused(), net.calls()),
        (1, vec![]),
        "nothing is posted to a peer that pauses"
    );
    let other = Op::get_word(RemoteAddr { rank: OTHER, ..at(5, 0) }, Width::W8);
    assert_eq!((net.post(&[other]), net.calls().len()), (1, 1), "other peers do not pause");
    pass(&mut net);
    assert_eq!((net.post(&[word()]), net.calls().len()), (1, 1));
    assert_eq!((net.nic.backoffs.len(), net.nic.failures.count), (0, 0));
}

#[test]
fn a_peer_that_was_met_three_seconds_ago_is_not_early() {
    for (before, is_not_yet_reachable) in [(0, true), (2000, true), (3000, false), (60_000, false)]
    {
        let mut net = Net::new();
        net.send(PEER, b"a").unwrap();
        contacted_ms(&mut net, before);
        net.refuse(&[EHOSTUNREACH]);
        let lost = PacketError::Addr(AddrError::PeerLost { rank: PEER });
        let wanted = if is_not_yet_reachable { PacketError::Full } else { lost };
        assert_eq!(net.send(PEER, b"b"), Err(wanted), "after {before} ms");
        assert_eq!(
            (net.nic.backoffs.len() == 1, net.nic.failures.count == 0),
            (is_not_yet_reachable, is_not_yet_reachable)
        );
    }
}

#[test]
fn only_errors_of_a_missing_link_to_a_met_peer_are_early() {
    let mut net = Net::new();
    net.send(PEER, b"a").unwrap();
    for code in [libc::ECONNRESET, libc::ENOMEM] {
        net.refuse(&[code]);
        assert!(matches!(net.send(PEER, b"b"), Err(PacketError::Addr(_))));
    }
    assert!(!net.nic.is_not_yet_reachable(OTHER, ECONNREFUSED), "the peer was never met");
    net.mark_dead(PEER);
    net.poll();
    assert!(!net.nic.is_not_yet_reachable(PEER, ECONNREFUSED), "the peer is lost");
    assert!(net.nic.backoffs.is_empty());
}

#[test]
fn each_peer_has_one_pause_which_begins_anew() {
    let mut net = Net::new();
    net.send(PEER, b"a").unwrap();
    net.send(OTHER, b"a").unwrap();
    assert!(
        net.nic.is_not_yet_reachable(PEER, ECONNREFUSED)
            && net.nic.is_not_yet_reachable(OTHER, ECONNREFUSED)
    );
    let first = net.nic.backoffs[0].1;
    assert!(net.nic.is_not_yet_reachable(PEER, ECONNREFUSED));
    let ranks: Vec<_> = net.nic.backoffs.iter().map(|backoffs| backoffs.0).collect();
    assert_eq!(ranks, [OTHER, PEER]);
    assert!(net.nic.backoffs[1].1 >= first);
    // The pause of one peer ends, and the other's goes on.
    stay(&mut net);
    net.nic.backoffs[0].1 = Instant::now();
    assert!(!net.nic.must_back_off(OTHER) && net.nic.must_back_off(PEER));
    assert_eq!(net.nic.backoffs.len(), 1);
}

#[test]
fn returned_packets_wait_for_the_end_of_the_pause() {
    let mut net = Net::new();
    net.send(PEER, b"a").unwrap();
    net.calls();
    net.ends(FIRST_SEND + 3, CompletionStatus::Again);
    net.refuse(&[ECONNREFUSED]);
    net.poll();
    assert_eq!((net.refused(), net.nic.failures.count), (1, 0));
    stay(&mut net);
    net.poll();
    assert_eq!((net.refused(), net.calls()), (1, vec![]));
    pass(&mut net);
    net.poll();
    assert_eq!(net.calls().len(), 1);
}

#[test]
fn reads_of_a_directory_wait_for_the_end_of_the_pause() {
    let mut net = Net::new();
    net.refuse(&[ECONNREFUSED]);
    assert_eq!(net.post(&[word().tagged(tag(1))]), 1);
    stay(&mut net);
    assert_eq!((net.poll(), net.calls()), (vec![], vec![]));
    assert_eq!((net.refused(), net.nic.failures.count), (1, 0));
    pass(&mut net);
    net.poll();
    assert!(matches!(net.call(), Call::Get { bytes: 128, .. }));
}

/// The age of the NIC endpoint is what decides whether a peer is new.
#[test]
fn the_age_of_a_rail_increases() {
    let net = Net::new();
    while net.nic.age() == 0 {
        std::thread::yield_now();
    }
}

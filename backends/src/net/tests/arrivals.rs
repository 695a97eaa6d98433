//! Arrivals of packets and notifications.

use super::fixture::*;
use crate::net::immediate::immediate_of;
use crate::net::wire::CompletionStatus;
use tsumugi_core::mem::{Access, RegionKey, RemoteAddr};

/// A packet of a peer.
fn packet(kind: u8, bytes: &[u8]) -> Vec<u8> {
    let mut packet = JOB.to_le_bytes().to_vec();
    packet.extend([1, 0, 0, 0, kind, 0, 0, 0]);
    packet.extend(bytes);
    packet
}

fn bell(key: RegionKey, offset: u64) -> Vec<u8> {
    let mut rest = key.to_bits().to_le_bytes().to_vec();
    rest.extend([0; 4]);
    rest.extend(offset.to_le_bytes());
    packet(2, &rest)
}

#[test]
fn a_rail_opens_with_all_of_its_buffers() {
    let mut net = Net::new();
    let mut receives = net.line().receives.clone();
    receives.sort_unstable();
    let all: Vec<usize> = (FIRST_RECEIVE..FIRST_RECEIVE + PACKETS).collect();
    assert_eq!(receives, all);
    let line = net.line();
    let mut places: Vec<usize> = receives.iter().map(|context| line.locals[context].at).collect();
    places.sort_unstable();
    assert!(places.windows(2).all(|pair| pair[1] - pair[0] == PACKET_BYTES), "{places:?}");
    drop(line);
    assert!(!net.nic.packets.needs_receive() && !net.nic.packets.has_arrived());
    assert_eq!(net.receive(), (0, vec![]));
}

#[test]
fn packets_are_delivered_in_the_order_of_their_arrival() {
    let mut net = Net::new();
    let region = net.own(64, Access::ReadWrite);
    net.lands(&packet(1, b"ab"));
    net.lands(&bell(region.key, 8));
    net.lands(&packet(9, b"?"));
    net.poll();
    assert!(net.nic.packets.has_arrived() && net.nic.packets.needs_receive());
    let bell = format!("bell {} 8", region.key.to_bits());
    assert_eq!(net.receive(), (2, vec!["ab of 1".to_owned(), bell]));
    assert_eq!(net.nic.packets.strays, 1);
    assert!(!net.nic.packets.has_arrived());
    assert_eq!(net.receive(), (0, vec![]));
}

/// Buffers are posted again when half of all buffers are used, or when a call finds no
/// arrival.
#[test]
fn used_buffers_are_posted_again_by_halves_or_when_idle() {
    let mut net = Net::new();
    assert_eq!(net.receives(), 4);
    net.lands(&packet(1, b"a"));
    net.poll();
    net.receive();
    assert_eq!((net.receives(), net.nic.packets.needs_receive()), (3, true));
    net.lands(&packet(1, b"b"));
    net.poll();
    assert_eq!(net.receive().0, 1);
    assert_eq!((net.receives(), net.nic.packets.needs_receive()), (4, false));
    net.lands(&packet(1, b"c"));
    net.poll();
    net.receive();
    assert_eq!(net.receive(), (0, vec![]));
    assert_eq!(net.receives(), 4);
}

#[test]
fn a_receive_buffer_that_the_wire_refuses_is_posted_again() {
    let mut net = Net::new();
    net.lands(&packet(1, b"a"));
    net.lands(&packet(1, b"b"));
    net.poll();
    net.line().receives_left = Some(1);
    assert_eq!(net.receive().0, 2);
    assert_eq!((net.receives(), net.nic.packets.needs_receive()), (3, true));
    net.line().receives_left = None;
    net.receive();
    assert_eq!((net.receives(), net.nic.packets.needs_receive()), (4, false));
}

#[test]
fn at_most_eight_packets_are_delivered_in_one_call() {
    let mut net = Net::new();
    let (packets, packet_bytes) = (16, PACKET_BYTES);
    let sizes = crate::net::Sizes { depth: 1, packets, packet_bytes };
    let wire = Script::default();
    let rng = crate::net::SecretRng::new(1);
    net.nic = crate::net::NicEndpoint::open(wire.clone(), sizes, 0, net.nic.limits, rng).unwrap();
    net.wire = wire;
    for text in "abcdefghijk".chars() {
        net.lands(&packet(1, text.to_string().as_bytes()));
    }
    net.poll();
    let (count, texts) = net.receive();
    assert_eq!((count, texts.len(), texts[0].as_str()), (8, 8, "a of 1"));
    assert!(net.nic.packets.has_arrived());
    assert_eq!(net.receive().1, ["i of 1", "j of 1", "k of 1"]);
}

#[test]
fn a_packet_of_excessive_length_is_cut_at_its_buffer() {
    let mut net = Net::new();
    let context = net.line().receives.remove(0);
    net.write(context, &packet(1, &[b'x'; PACKET_BYTES - 16]));
    net.ends(context, CompletionStatus::Done(PACKET_BYTES + 1));
    net.poll();
    let (count, texts) = net.receive();
    assert_eq!((count, texts[0].len()), (1, PACKET_BYTES - 16 + " of 1".len()));
}

#[test]
fn a_buffer_that_was_used_up_without_a_packet_is_posted_again() {
    for end in [CompletionStatus::Again, CompletionStatus::Refused { code: 5, provider_code: 0 }] {
        let mut net = Net::new();
        let context = net.line().receives.remove(0);
        net.ends(context, end);
        net.poll();
        assert!(net.nic.packets.needs_receive() && !net.nic.packets.has_arrived());
        assert_eq!(net.receive(), (0, vec![]));
        assert_eq!((net.receives(), net.nic.packets.strays), (4, 0));
    }
}

#[test]
fn a_put_with_a_number_arrives_as_a_bell_and_returns_its_buffer() {
    let mut net = Net::new();
    let shown = net.own(64, Access::ReadWrite);
    let hidden = net.own(64, Access::Read);
    let rings = |net: &mut Net, number: u32| {
        let context = net.line().receives.remove(0);
        net.ends(context, CompletionStatus::Immediate(number));
        net.poll();
        assert!(net.nic.packets.has_arrived());
        let arrived = net.receive();
        assert!(!net.nic.packets.has_arrived());
        net.receive();
        assert_eq!(net.receives(), PACKETS);
        arrived
    };
    let number =
        |key: RegionKey, offset| immediate_of(RemoteAddr { rank: PEER, key, offset }).unwrap();
    let bell = format!("bell {} 56", shown.key.to_bits());
    assert_eq!(rings(&mut net, number(shown.key, 56)), (1, vec![bell]));
    assert_eq!(net.nic.packets.strays, 0);
    // Offsets beyond the end, regions that peers may only read, and keys of no region.
    let wrong = [number(shown.key, 64), number(hidden.key, 8), number(RegionKey::new(9, 1), 0)];
    for (strays, number) in wrong.into_iter().enumerate() {
        assert_eq!(rings(&mut net, number), (0, vec![]));
        assert_eq!(net.nic.packets.strays, strays as u64 + 1);
    }
}

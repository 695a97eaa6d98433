//! A rank's NIC endpoints together, and an endpoint as its user holds it.

use super::fixture::*;
use crate::net::domain::{NetDomain, Traits};
use crate::net::nic_endpoint::{Limits, NicEndpoint};
use crate::net::wire::{CompletionStatus, ShutOut};
use crate::net::{Arrival, AssembleError, CardError, PacketError, ProbeReport};
use core::ptr::NonNull;
use tsumugi_core::backend::{Completion, Domain, Endpoint};
use tsumugi_core::boot::BootError;
use tsumugi_core::mem::{Access, AddrError, Rank, RegionKey, RegisterError, Width};
use tsumugi_core::op::Op;
use tsumugi_core::sync::Ordering;

fn assemble(
    nics: Vec<NicEndpoint<Script>>,
    change: impl FnOnce(&mut Traits),
) -> Result<NetDomain<Script>, AssembleError> {
    let mut traits = Traits {
        rank: Rank(0),
        size: SIZE,
        job: JOB,
        kind: 3,
        device_atomics: true,
        is_device: false,
        remote_completion: true,
    };
    change(&mut traits);
    NetDomain::assemble(nics, About, ProbeReport { rows: Vec::new() }, traits)
}

/// A domain of two NIC endpoints.
fn pair(change: impl Fn(&mut Limits)) -> (NetDomain<Script>, [Script; 2]) {
    let wires = [Script::default(), Script::default()];
    let nics = (0..2).map(|index| nic(&wires[index], DEPTH, index, &change)).collect();
    let domain = assemble(nics, |_| {}).unwrap();
    domain.find(|rank, into| {
        let mut card = card(rank.0 as u8);
        card.endpoints.push(card.endpoints[0].clone());
        card.endpoints[1].address[0] = 50 + rank.0 as u8;
        let bytes = card.to_bytes();
        into[..bytes.len()].copy_from_slice(&bytes);
        (rank.0 < 3).then_some(bytes.len())
    });
    (domain, wires)
}

fn memory(bytes: usize) -> NonNull<u8> {
    NonNull::new(vec![0; bytes].leak().as_mut_ptr()).unwrap()
}

fn register(
    domain: &NetDomain<Script>,
    bytes: usize,
    access: Access,
) -> Result<tsumugi_core::mem::Region, RegisterError> {
    // SAFETY: leaked, and used as nothing but bytes.
    unsafe { domain.register(memory(bytes), bytes as u64, access) }
}

fn count(wire: &Script) -> (usize, usize) {
    let line = wire.line();
    (line.registered.len(), line.closed.len())
}

#[test]
fn a_domain_reports_the_traits_of_its_rails() {
    let (domain, wires) = pair(|limits| limits.piece_bytes_max = 99);
    let capabilities = domain.capabilities();
    assert_eq!((capabilities.name, capabilities.in_flight_max), ("script", DEPTH));
    assert!(capabilities.device_atomics && capabilities.remote_completion);
    assert!(!capabilities.load_store && !capabilities.in_order);
    assert_eq!(capabilities.inline_bytes_max, 0);
    assert_eq!((domain.rank(), domain.size(), domain.endpoints()), (Rank(0), SIZE, 2));
    assert_eq!((domain.packet_bytes_max(), domain.piece_bytes_max()), (PACKET_BYTES - 16, 99));
    assert!(domain.moves_memory() && !domain.rings() && !domain.pins());
    assert_eq!(format!("{domain:?}"), "script domain (by a script, 2 endpoints)");
    assert_eq!((domain.event(0), domain.event(1)), (None, None));
    wires[1].line().event = Some(9);
    assert_eq!((domain.event(0), domain.event(1)), (None, Some(9)));
    let endpoints = [domain.endpoint(), domain.endpoint()];
    assert_eq!(endpoints.each_ref().map(|it| (it.index(), it.event())), [(0, None), (1, Some(9))]);
    let (other, _) = pair(|limits| {
        (limits.one_by_one, limits.rings, limits.local_mr) = (true, true, true);
    });
    assert!(!other.moves_memory() && other.rings() && other.pins());
}

#[test]
fn words_move_whole_by_devices_and_by_atomics() {
    let words = |word_atomics, is_device| {
        let nic = nic(&Script::default(), 1, 0, |limits| limits.word_atomics = word_atomics);
        let domain = assemble(vec![nic], |traits| traits.is_device = is_device).unwrap();
        assert_eq!(domain.copies_words(), is_device);
        [1, 2, 4, 8].map(|bytes| domain.moves_words(bytes))
    };
    assert_eq!(words(false, false), [true, false, false, false]);
    assert_eq!(words(true, false), [true, false, true, true]);
    assert_eq!(words(false, true), [true; 4]);
}

#[test]
fn a_card_has_all_endpoints_of_the_rank() {
    let (domain, _) = pair(|_| {});
    let mut own = card(0);
    own.endpoints.clear();
    assert!(matches!(domain.check(&own.to_bytes()), Err(CardError::Number { .. })));
    assert_eq!(domain.check(domain.card()), Ok(()));
    assert_eq!(domain.check(&card(1).to_bytes()), Ok(()));
    let other = crate::net::card::EndpointCard { job: 8, ..card(1) };
    assert_eq!(domain.check(&other.to_bytes()), Err(CardError::Job { job: 8 }));
    let read = crate::net::card::EndpointCard::parse(domain.card(), &card(1)).unwrap();
    assert_eq!((read.endpoints.len(), read.mark()), (2, domain.mark()));
    assert_eq!(read.name.as_str(), "script by a script");
}

#[test]
fn a_rail_without_an_address_makes_no_domain() {
    let wire = Script::default();
    wire.line().address_refused = Some(5);
    let refused = assemble(vec![nic(&wire, 1, 0, |_| {})], |_| {}).map(drop);
    assert_eq!(refused, Err(AssembleError::Address(5)));
    assert_eq!(AssembleError::check("pairs", 4, 1, 4), Ok(()));
    let (name, value, min, max) = ("pairs", 5, 1, 4);
    assert_eq!(
        AssembleError::check(name, 5, 1, 4),
        Err(AssembleError::Number { name, value, min, max })
    );
}

#[test]
fn packets_carry_the_job_number_that_was_set_later() {
    let (domain, wires) = pair(|_| {});
    domain.join(77);
    assert_eq!(wires.each_ref().map(|wire| wire.line().job), [Some(77); 2]);
    assert_eq!(domain.try_send(1, Rank(1), b"a"), Ok(()));
    let Some(Call::Send { bytes, peer, .. }) = wires[1].line().calls.pop() else { panic!() };
    assert_eq!((&bytes[..8], peer), (&77u64.to_le_bytes()[..], 151), "endpoint 1 to endpoint 1");
}

#[test]
fn a_shared_region_is_registered_with_every_device_and_a_local_one_with_none() {
    let (domain, wires) = pair(|_| {});
    let shared = register(&domain, 64, Access::Read).unwrap();
    let hidden = register(&domain, 64, Access::Local).unwrap();
    assert_eq!(wires.each_ref().map(count), [(2, 0); 2]);
    assert!(domain.unregister(hidden.key) && domain.unregister(shared.key));
    assert_eq!(wires.each_ref().map(count), [(2, 1); 2]);
    assert!(!domain.unregister(shared.key), "the key is no longer registered");
    // SAFETY: leaked, and used as nothing but bytes.
    let named =
        unsafe { domain.register_as(RegionKey::new(9, 3), memory(64), 64, Access::ReadWrite) };
    assert_eq!(named.unwrap().key, RegionKey::new(9, 3));
    assert_eq!(wires.each_ref().map(count), [(3, 1); 2]);
    // A device that reads the memory by itself needs the registration, too.
    let (domain, wires) = pair(|limits| limits.local_mr = true);
    let hidden = register(&domain, 64, Access::Local).unwrap();
    assert_eq!(wires.each_ref().map(count), [(3, 0); 2]);
    assert!(domain.unregister(hidden.key));
    assert_eq!(wires.each_ref().map(count), [(3, 1); 2]);
}

#[test]
fn a_region_that_one_device_refuses_is_registered_with_none() {
    let (domain, wires) = pair(|_| {});
    wires[1].line().registers_left = Some(0);
    let refused = register(&domain, 64, Access::Read);
    assert!(matches!(refused, Err(RegisterError::OutOfReach { bytes: 64, .. })));
    assert_eq!(wires.each_ref().map(count), [(2, 1), (1, 0)]);
    let [first, second] = [domain.endpoint(), domain.endpoint()];
    assert_eq!((first.failures().count, second.failures().count), (0, 1));
    let failure = second.failures().last.unwrap();
    assert_eq!((failure.peer, failure.code), (Some(Rank(0)), libc::ENOMEM));
    assert_eq!((failure.kind, failure.provider_code), (None, 0));
    let key = RegionKey::new(0, 1);
    assert!(!domain.unregister(key), "the registration was undone");
}

#[test]
fn a_dropped_endpoint_can_be_taken_again() {
    let (domain, _) = pair(|_| {});
    let first = domain.try_endpoint().unwrap();
    let second = domain.try_endpoint().unwrap();
    assert!(domain.try_endpoint().is_none());
    drop(first);
    assert_eq!(domain.try_endpoint().map(|it| it.index()), Some(0));
    drop(second);
    assert!(domain.try_endpoint().is_some());
}

/// The drop of an endpoint waits for the operations in flight, and polls.
#[test]
fn a_dropped_endpoint_has_nothing_in_flight() {
    let (domain, wires) = pair(|_| {});
    assert_eq!(domain.shared.lost_count.load(Ordering::Relaxed), 0);
    let mut endpoint = domain.endpoint();
    assert_eq!(endpoint.in_flight(), 0);
    let word = Op::get_word(at(5, 0), Width::W8);
    assert_eq!(endpoint.post(&[word, word]), 2);
    assert_eq!(endpoint.in_flight(), 2);
    assert!(endpoint.holds(PEER) && !endpoint.holds(OTHER));
    // Slots that are all zeroes. The operations end in different polls, so that one poll
    // is not enough.
    let ends = |context, end| {
        wires[0].line().entries.push_back(crate::net::CompletionEntry { context, end })
    };
    wires[0].line().is_slow = true;
    ends(usize::MAX, CompletionStatus::Again);
    ends(DEPTH, CompletionStatus::Done(0));
    ends(usize::MAX, CompletionStatus::Again);
    ends(DEPTH + 1, CompletionStatus::Done(0));
    let before = wires[0].line().doorbells;
    drop(endpoint);
    assert_eq!(wires[0].line().doorbells - before, 5, "polls, the last of which finds nothing");
    let mut endpoint = domain.endpoint();
    assert_eq!((endpoint.index(), endpoint.in_flight()), (0, 0));
    let mut done = [Completion::EMPTY; 4];
    assert_eq!(endpoint.poll(&mut done), 0);
}

#[test]
fn an_endpoint_posts_and_polls_in_one_turn() {
    let (domain, wires) = pair(|_| {});
    let mut endpoint = domain.endpoint();
    let nowhere =
        Op::get_word(tsumugi_core::mem::RemoteAddr { rank: Rank(9), ..at(5, 0) }, Width::W8);
    let mut done = [Completion::EMPTY; 4];
    assert_eq!(endpoint.turn(&[nowhere, nowhere], &mut done), (2, 2));
    assert!(done[..2].iter().all(|done| done.result.is_err()));
    // Packets that `turn` has polled can be received.
    lands(&wires[0], b"a");
    let mut texts = Vec::new();
    let mut receive = |endpoint: &mut crate::net::NetEndpoint<'_, Script>| {
        texts.clear();
        let count = endpoint.receive(&mut |arrival| match arrival {
            Arrival::Packet { from, bytes } => texts.push((from, bytes.to_vec())),
            other => panic!("{other:?}"),
        });
        assert_eq!(count, texts.len());
        texts.clone()
    };
    assert_eq!(receive(&mut endpoint), []);
    assert_eq!(endpoint.turn(&[], &mut done), (0, 0));
    assert_eq!(receive(&mut endpoint), [(Rank(1), b"a".to_vec())]);
    lands(&wires[0], b"b");
    assert_eq!(receive(&mut endpoint), [], "nothing was polled");
    assert_eq!(endpoint.poll(&mut done), 0);
    assert_eq!(receive(&mut endpoint), [(Rank(1), b"b".to_vec())]);
    assert_eq!(receive(&mut endpoint), []);
    assert_eq!(wires[0].line().receives.len(), PACKETS);
    // While another thread has the NIC endpoint, the endpoint does nothing and promises
    // nothing.
    let nic = domain.try_rail(0).unwrap();
    assert_eq!((endpoint.post(&[nowhere]), endpoint.poll(&mut done)), (0, 0));
    assert_eq!(endpoint.turn(&[nowhere], &mut done), (0, 0));
    assert!(endpoint.holds(PEER) && !endpoint.arm());
    assert_eq!(domain.try_send(0, PEER, b"a"), Err(PacketError::Full));
    assert_eq!(domain.notify_dead(0, PEER, b"a"), Err(PacketError::Full));
    drop(nic);
    assert!(!endpoint.arm() && !domain.arm(0));
    wires[0].line().waits = true;
    assert!(endpoint.arm() && domain.arm(0) && !domain.arm(1));
    assert_eq!(endpoint.with_wire(|wire| wire.line().waits), Some(true));
    assert_eq!(endpoint.try_send(PEER, b"a"), Ok(()));
    assert_eq!(wires[0].line().calls.len(), 1);
}

/// A packet of rank 1 lands in a buffer of the wire.
fn lands(wire: &Script, text: &[u8]) {
    let mut packet = JOB.to_le_bytes().to_vec();
    packet.extend([1, 0, 0, 0, 1, 0, 0, 0]);
    packet.extend(text);
    let mut line = wire.line();
    let context = line.receives.remove(0);
    let at = line.locals[&context].at as *mut u8;
    // SAFETY: a buffer for a packet that the wire has.
    unsafe { at.copy_from_nonoverlapping(packet.as_ptr(), packet.len()) };
    line.entries.push_back(crate::net::CompletionEntry {
        context,
        end: CompletionStatus::Done(packet.len()),
    });
}

#[test]
fn a_struck_rank_is_lost_to_every_endpoint() {
    let (domain, wires) = pair(|_| {});
    let (mut first, mut second) = (domain.endpoint(), domain.endpoint());
    assert_eq!((first.try_send(PEER, b"a"), second.try_send(PEER, b"a")), (Ok(()), Ok(())));
    domain.mark_dead(PEER);
    domain.mark_dead(PEER);
    assert_eq!(domain.shared.lost_count.load(Ordering::Relaxed), 1);
    let mut done = [Completion::EMPTY; 4];
    assert_eq!(first.post(&[]), 0);
    assert_eq!(wires[0].line().removed, [(101, ShutOut::Rank)], "a post drops the peer");
    assert_eq!(second.poll(&mut done), 0);
    assert_eq!(wires[1].line().removed, [(151, ShutOut::Rank)], "a poll drops the peer");
    domain.give_up(OTHER, ShutOut::Host);
    assert_eq!(first.turn(&[], &mut done), (0, 0));
    assert_eq!(wires[0].line().removed[1..], [(102, ShutOut::Host)], "it is met first");
    let lost = PacketError::Addr(AddrError::PeerLost { rank: OTHER });
    assert_eq!(first.try_send(OTHER, b"a"), Err(lost));
}

#[test]
fn tell_lost_works_on_an_endpoint_that_is_not_taken() {
    let (domain, wires) = pair(|_| {});
    wires[1].line().is_way_open = true;
    domain.try_send(1, PEER, b"a").unwrap();
    domain.mark_dead(PEER);
    let max = domain.packet_bytes_max();
    let too_long = PacketError::TooLong { bytes: max + 1, max };
    assert_eq!(domain.notify_dead(1, PEER, &vec![0; max + 1]), Err(too_long));
    assert_eq!(domain.notify_dead(1, PEER, &vec![0; max]), Ok(()));
    assert_eq!(wires[1].line().calls.len(), 2);
    assert!(domain.notify_dead(0, PEER, b"a").is_err(), "endpoint 0 never met the peer");
}

#[test]
fn a_notice_goes_and_comes_beside_the_packets_where_the_wire_can() {
    let (domain, wires) = pair(|_| {});
    wires[0].line().is_way_open = true;
    wires[0].line().notices_sent = Some(vec![]);
    domain.try_send(0, PEER, b"a").unwrap();
    domain.mark_dead(PEER);
    assert_eq!(domain.notify_dead(0, PEER, b"gone"), Ok(()));
    let (mut notice, peer) = wires[0].line().notices_sent.take().unwrap().remove(0);
    assert_eq!((&notice[16..], peer, wires[0].line().calls.len()), (&b"gone"[..], 101, 1));
    let mut into = [0; 8];
    assert_eq!(domain.take_notice(0, &mut into), None);
    // It comes from the peer, and then from another job.
    notice[8] = 1;
    let mut other = notice.clone();
    other[0] ^= 1;
    wires[0].line().notices = [notice.clone(), other, notice].into();
    assert_eq!(domain.take_notice(0, &mut into), Some((PEER, 4)));
    assert_eq!(&into[..4], b"gone");
    assert_eq!(domain.take_notice(0, &mut into[..2]), Some((PEER, 2)), "after a stray");
    assert_eq!(domain.take_notice(0, &mut into), None);
}

#[test]
fn the_first_source_of_cards_is_the_one_that_counts() {
    let (domain, _) = pair(|_| {});
    domain.find_later(|_, _| panic!("only the first call counts"));
    assert_eq!(domain.try_send(0, OTHER, b"a"), Ok(()));
    assert!(domain.try_send(0, Rank(3), b"a").is_err());
    let failure = domain.endpoint().failures().last.unwrap();
    let why = BootError::NoCard { rank: Rank(3) };
    assert_eq!(failure.card, Some(CardError::Untold { why }));
}

#[test]
fn kept_memory_is_recorded_by_its_key() {
    let (domain, _) = pair(|_| {});
    assert_eq!(domain.shared.kept.load(Ordering::Relaxed), 0);
    domain.keep(RegionKey::new(3, 2));
    assert_eq!(domain.shared.kept.load(Ordering::Relaxed), RegionKey::new(3, 2).to_bits());
}

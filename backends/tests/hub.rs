//! The conformance suite of endpoints over the network inside of one process, which needs
//! no library: once without faults, and with the faults of many seeds.

use std::alloc::{Layout, alloc_zeroed};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tsumugi_backends::PACKETS_AT_ONCE;
use tsumugi_backends::ofi::PacketError;
use tsumugi_conformance::endpoint::{self, Fixture};
use tsumugi_core::backend::{Completion, Domain, Endpoint};
use tsumugi_core::boot::{BootError, CARD_BYTES_MAX};
use tsumugi_core::mem::{Access, AddrError, LocalAddr, Rank, Region, RemoteAddr, Width};
use tsumugi_core::op::Op;
use tsumugi_core::sync::{AtomicBool, AtomicU64, Ordering};
use tsumugi_core::tag::Tag;
use tsumugi_test_networks::hub::{FaultPlan, Hub, HubConfig, HubDomain, HubEndpoint};

/// The ranks of a network, all run by this thread.
struct Ranks {
    domains: Vec<HubDomain>,
    tags: AtomicU64,
}

impl Ranks {
    fn open(size: u32, plan: FaultPlan, config: &HubConfig) -> Self {
        Self::on(&Hub::new(plan), size, config)
    }

    fn on(hub: &Hub, size: u32, config: &HubConfig) -> Self {
        let open = |rank| hub.open(config, Rank(rank), size);
        let domains: Vec<HubDomain> = (0..size).map(open).collect();
        let cards: Arc<Vec<_>> =
            Arc::new(domains.iter().map(|domain| domain.card().to_vec()).collect());
        for domain in &domains {
            let cards = cards.clone();
            domain.find(move |rank: Rank, into: &mut [u8; CARD_BYTES_MAX]| {
                let card = cards.get(rank.0 as usize)?;
                into[..card.len()].copy_from_slice(card);
                Some(card.len())
            });
        }
        Self { domains, tags: AtomicU64::new(1) }
    }

    fn memory(&self, rank: Rank, bytes: u64, access: Access) -> Region {
        let layout = Layout::from_size_align(bytes.max(1) as usize, 64).unwrap();
        // SAFETY: not empty; it is never given back.
        let base = NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap();
        // SAFETY: only the domain and the tests access the memory.
        unsafe { self.domains[rank.0 as usize].register(base, bytes, access) }.unwrap()
    }

    fn next_tag(&self) -> Tag {
        Tag::from_bits(self.tags.fetch_add(1, Ordering::Relaxed))
    }
}

/// A network without faults, and one with the faults of the current seed.
struct Sound(Ranks);
struct Faulty(Ranks);

/// The seed of the next fixtures; the suite creates the fixtures itself.
static SEED: AtomicU64 = AtomicU64::new(0);

macro_rules! fixture {
    ($name:ident, $rounds:expr, $plan:expr) => {
        impl Fixture for $name {
            type Domain = HubDomain;
            const ROUNDS: usize = $rounds;

            fn new(ranks: u32) -> Self {
                Self(Ranks::open(ranks, $plan, &HubConfig::default()))
            }

            fn domain(&self) -> &HubDomain {
                &self.0.domains[0]
            }

            fn register(&self, rank: Rank, bytes: u64, access: Access) -> Region {
                self.0.memory(rank, bytes, access)
            }

            fn tag(&self) -> Tag {
                self.0.next_tag()
            }
        }
    };
}

fixture!(Sound, 50, FaultPlan::default());
fixture!(Faulty, 2, FaultPlan::drawn(SEED.load(Ordering::Relaxed)));

tsumugi_conformance::endpoint!(Sound);

#[test]
fn the_conformance_suite_passes_with_faults() {
    let suite: [(&str, fn()); 4] = [
        ("every_post_completes_once", endpoint::every_post_completes_once::<Faulty>),
        ("a_full_queue_takes_fewer", endpoint::a_full_queue_takes_fewer::<Faulty>),
        ("errors_are_completions", endpoint::errors_are_completions::<Faulty>),
        ("transfers_arrive", endpoint::transfers_arrive::<Faulty>),
    ];
    for seed in 0..SEEDS {
        SEED.store(seed, Ordering::Relaxed);
        for (name, promise) in suite {
            let kept = std::panic::catch_unwind(promise);
            assert!(kept.is_ok(), "{name}, seed {seed}: {:?}", FaultPlan::drawn(seed));
        }
    }
}

/// Only operations on a rank wait for that rank's card; a rank without a card is lost.
#[test]
fn a_late_card_delays_only_operations_on_its_rank() {
    let hub = Hub::new(FaultPlan::default());
    let domains: Vec<HubDomain> =
        (0..4).map(|rank| hub.open(&HubConfig::default(), Rank(rank), 4)).collect();
    let cards: Vec<_> = domains.iter().map(|domain| domain.card().to_vec()).collect();
    let is_slow = Arc::new(AtomicBool::new(true));
    let slow = is_slow.clone();
    domains[0].find_later(move |rank, into| match rank.0 {
        2 if slow.load(Ordering::Relaxed) => Ok(None),
        3 if slow.load(Ordering::Relaxed) => Ok(None),
        3 => Err(BootError::Disconnected),
        at => {
            let card = &cards[at as usize];
            into[..card.len()].copy_from_slice(card);
            Ok(Some(card.len()))
        }
    });
    let ranks = Ranks { domains, tags: AtomicU64::new(1) };
    let mut endpoint = ranks.domains[0].endpoint();
    let ops: Vec<Op> = [2, 3, 1]
        .map(|rank| {
            let region = ranks.memory(Rank(rank), 64, Access::ReadWrite);
            let word = RemoteAddr { rank: Rank(rank), key: region.key, offset: 0 };
            Op::get_word(word, Width::W8).tagged(Tag::from_bits(rank.into()))
        })
        .to_vec();
    assert_eq!(endpoint.post(&ops), 3);
    assert_eq!(endpoint.try_send(Rank(2), b"one"), Err(PacketError::Full));
    let poll = |endpoint: &mut HubEndpoint<'_>, wanted: usize| {
        let mut ended = Vec::new();
        for _ in 0..100_000 {
            let mut completions = [Completion::EMPTY; 4];
            let count = endpoint.poll(&mut completions);
            ended.extend(completions[..count].iter().map(|one| (one.tag.to_bits(), one.result)));
            // Peers serve requests when they poll.
            for domain in &ranks.domains[1..] {
                if let Some(mut peer) = domain.try_endpoint() {
                    peer.poll(&mut completions);
                }
            }
            if ended.len() >= wanted {
                return ended;
            }
        }
        panic!("{ended:?}");
    };
    assert_eq!(poll(&mut endpoint, 1), [(1, Ok(0))], "the other two operations wait");
    assert!(!endpoint.arm(), "the endpoint needs another poll");
    is_slow.store(false, Ordering::Relaxed);
    let mut ended = poll(&mut endpoint, 2);
    ended.sort_by_key(|(tag, _)| *tag);
    assert_eq!(ended, [(2, Ok(0)), (3, Err(AddrError::PeerLost { rank: Rank(3) }))]);
    let why = endpoint.failures().last.expect("it has failed").to_string();
    assert!(
        why.contains(
            "its card could not be obtained: the bootstrap connection of this rank is lost"
        ),
        "{why}"
    );
    assert_eq!(endpoint.try_send(Rank(2), b"one"), Ok(()));
    assert!(matches!(endpoint.try_send(Rank(3), b"one"), Err(PacketError::Addr(_))));
}

#[test]
fn a_device_writes_each_word_once() {
    let ranks = Ranks::open(1, FaultPlan::default(), &HubConfig::default());
    let domain = &ranks.domains[0];
    assert!(domain.copies_words() && domain.moves_words(8) && !domain.pins());
}

/// Packets of every rank to every rank, beside puts in pieces: each packet comes once and
/// whole, and the puts land.
#[test]
fn packets_arrive_once_and_whole_beside_puts() {
    for seed in 0..SEEDS {
        let moves_memory = seed % 4 != 3;
        let config = HubConfig { piece_bytes_max: 100, moves_memory, ..HubConfig::default() };
        let ranks = Ranks::open(3, FaultPlan::drawn(seed), &config);
        let mut endpoints: Vec<_> = ranks.domains.iter().map(Domain::endpoint).collect();
        let region = ranks.memory(Rank(1), 4096, Access::ReadWrite);
        let own = ranks.memory(Rank(0), 4096, Access::Local);
        // SAFETY: the fixture's memory, with nothing in flight.
        unsafe { own.base.write_bytes(0xa5, 1000) };
        let remote = RemoteAddr { rank: Rank(1), key: region.key, offset: 8 };
        let put = Op::put(LocalAddr { key: own.key, offset: 0 }, remote, 1000);
        let mut put = Some(put.tagged(ranks.next_tag()));
        let mut to_send: Vec<(usize, u32, u8)> = Vec::new();
        for number in 0..20 {
            let pairs = (0..3).flat_map(|from| (0..3).map(move |to| (from, to)));
            to_send.extend(
                pairs
                    .filter(|(from, to)| *from != *to as usize)
                    .map(|(from, to)| (from, to, number)),
            );
        }
        let came = Mutex::new(vec![[0; 20]; 9]);
        let (mut ended, mut count) = (0, 0);
        for _ in 0..1_000_000 {
            to_send.retain(|(from, to, number)| {
                let bytes = [*from as u8, *number].repeat(1 + usize::from(*number) * 7);
                endpoints[*from].try_send(Rank(*to), &bytes).is_err()
            });
            if let Some(op) = put
                && endpoints[0].post(&[op]) == 1
            {
                put = None;
            }
            for (at, endpoint) in endpoints.iter_mut().enumerate() {
                let mut completions = [Completion::EMPTY; 4];
                let polled = endpoint.poll(&mut completions);
                assert!(completions[..polled].iter().all(|one| one.result == Ok(0)), "seed {seed}");
                ended += polled;
                endpoint.receive(&mut |arrival| {
                    let tsumugi_backends::ofi::Arrival::Packet { from, bytes } = arrival else {
                        panic!("a bell that no rank sent")
                    };
                    let number = bytes[1];
                    let whole = [from.0 as u8, number].repeat(1 + usize::from(number) * 7);
                    assert_eq!(bytes, whole, "seed {seed}");
                    came.lock().unwrap()[from.0 as usize * 3 + at][usize::from(number)] += 1;
                    count += 1;
                });
            }
            if count == 120 && ended == 1 {
                break;
            }
        }
        let came = came.into_inner().unwrap();
        let is_own = |pair: usize| pair / 3 == pair % 3;
        let once = |pair: usize| came[pair].iter().all(|times| *times == i32::from(!is_own(pair)));
        assert!((0..9).all(once) && ended == 1, "seed {seed}: {came:?}, {ended} puts");
        // SAFETY: the fixture's memory, with nothing in flight.
        let landed = unsafe { std::slice::from_raw_parts(region.base.as_ptr().add(8), 1001) };
        assert!(
            landed[..1000].iter().all(|byte| *byte == 0xa5) && landed[1000] == 0,
            "seed {seed}"
        );
    }
}

/// A struck rank ends the operations on it, and no others.
#[test]
fn only_the_struck_rank_is_lost() {
    for seed in 0..SEEDS {
        let config = HubConfig { in_flight_max: 8, ..HubConfig::default() };
        let ranks = Ranks::open(3, FaultPlan::drawn(seed), &config);
        let regions = [1, 2].map(|rank| ranks.memory(Rank(rank), 64, Access::ReadWrite));
        let mut endpoint = ranks.domains[0].endpoint();
        let word = |rank: u32| {
            let key = regions[rank as usize - 1].key;
            Op::get_word(RemoteAddr { rank: Rank(rank), key, offset: 0 }, Width::W8)
        };
        let ops: Vec<Op> = (0..40).map(|at| word(1 + at % 2).tagged(ranks.next_tag())).collect();
        let (mut posted, mut done) = (0, Vec::new());
        for turn in 0..100_000 {
            if turn == seed % 50 {
                ranks.domains[0].mark_dead(Rank(2));
            }
            posted += endpoint.post(&ops[posted..]);
            let mut completions = [Completion::EMPTY; 5];
            let count = endpoint.poll(&mut completions);
            done.extend_from_slice(&completions[..count]);
            if done.len() == ops.len() {
                break;
            }
        }
        assert_eq!(done.len(), ops.len(), "seed {seed}");
        for one in done {
            let rank = ops
                .iter()
                .find(|op| op.tag == one.tag)
                .expect("the operation of the completion")
                .remote
                .rank;
            match one.result {
                Ok(0) => {}
                Err(AddrError::PeerLost { rank: Rank(2) }) if rank == Rank(2) => {}
                other => panic!("seed {seed}, {rank}: {other:?}"),
            }
        }
    }
}

/// A link that comes up later than the ranks makes no rank lost.
#[test]
fn a_peer_whose_link_comes_up_late_is_not_lost() {
    let hub = Hub::new(FaultPlan::default());
    let ranks = Ranks::on(&hub, 2, &HubConfig::default());
    let region = ranks.memory(Rank(1), 64, Access::ReadWrite);
    let mut endpoints: Vec<_> = ranks.domains.iter().map(Domain::endpoint).collect();
    let remote = RemoteAddr { rank: Rank(1), key: region.key, offset: 0 };
    let get = Op::get_word(remote, Width::W8).tagged(ranks.next_tag());
    hub.cut(true);
    let start = Instant::now();
    let (mut is_posted, mut is_sent, mut ended, mut came) = (false, false, Vec::new(), 0);
    while ended.is_empty() || came == 0 {
        is_posted = is_posted || endpoints[0].post(&[get]) == 1;
        is_sent = is_sent || endpoints[0].try_send(Rank(1), b"early") == Ok(());
        let mut completions = [Completion::EMPTY; 4];
        let count = endpoints[0].poll(&mut completions);
        ended.extend_from_slice(&completions[..count]);
        endpoints[1].poll(&mut completions);
        came += endpoints[1].receive(&mut |_| ());
        if start.elapsed() > Duration::from_millis(50) {
            hub.cut(false);
        }
        assert!(start.elapsed() < Duration::from_secs(20), "{ended:?}, {came} packets");
    }
    assert_eq!((ended.len(), ended[0].result, came), (1, Ok(0), 1));
}

/// A receiver that copies packets has room for a limited number.
#[test]
fn packets_are_delivered_a_limited_number_at_a_time() {
    let hub = Hub::new(FaultPlan::default());
    let config = HubConfig { packets: 3 * PACKETS_AT_ONCE, ..HubConfig::default() };
    let ranks = Ranks::on(&hub, 2, &config);
    let mut endpoints: Vec<_> = ranks.domains.iter().map(Domain::endpoint).collect();
    let count = 2 * PACKETS_AT_ONCE + 1;
    let (mut sent, mut came) = (0, Vec::new());
    let start = Instant::now();
    while came.len() < count {
        assert!(start.elapsed() < Duration::from_secs(20), "{sent} sent, {came:?}");
        while sent < count && endpoints[0].try_send(Rank(1), &[sent as u8]) == Ok(()) {
            sent += 1;
        }
        let mut completions = [Completion::EMPTY; 4];
        endpoints[0].poll(&mut completions);
        // Several polls, so that more packets have arrived than one call delivers.
        for _ in 0..count {
            endpoints[1].poll(&mut completions);
        }
        let before = came.len();
        let handed = endpoints[1].receive(&mut |arrival| match arrival {
            tsumugi_backends::ofi::Arrival::Packet { bytes, .. } => came.push(bytes[0]),
            bell => panic!("{bell:?}"),
        });
        assert_eq!(handed, came.len() - before);
        assert!(handed <= PACKETS_AT_ONCE, "{handed}");
    }
    came.sort_unstable();
    assert!(came.iter().copied().eq(0..count as u8), "{came:?}");
}

const SEEDS: u64 = 200;

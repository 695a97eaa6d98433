//! The dynamically connected transport: the conformance tests of endpoints, with peers
//! that do not poll; and the fallback where a card has the transport in part or not at
//! all.

use super::pairs::{Two, ZeroedPages, at, config, word};
use tsumugi_backends::verbs::{DctSupport, VerbsDomain};
use tsumugi_conformance::endpoint::Fixture;
use tsumugi_core::backend::{Completion, Domain, Endpoint};
use tsumugi_core::mem::{Access, AddrError, Rank, Region, RemoteAddr, Width};
use tsumugi_core::op::{Kind, Op};
use tsumugi_core::sync::{AtomicU64, Ordering};
use tsumugi_core::tag::Tag;
use tsumugi_test_networks::verbs::restrict;

/// Ranks that all run in this thread.
struct Ranks {
    domains: Vec<VerbsDomain>,
    tags: AtomicU64,
}

impl Fixture for Ranks {
    type Domain = VerbsDomain;
    const ROUNDS: usize = 50;

    fn new(ranks: u32) -> Self {
        let open = |rank| VerbsDomain::open(&config(4, true), Rank(rank), ranks).unwrap();
        let domains: Vec<_> = (0..ranks).map(open).collect();
        let cards: Vec<_> = domains.iter().map(|domain| domain.card().to_vec()).collect();
        domains[0].find(move |rank, into| {
            let card = cards.get(rank.0 as usize)?;
            into[..card.len()].copy_from_slice(card);
            Some(card.len())
        });
        assert_eq!(domains[0].facts().dct, DctSupport::Used);
        Self { domains, tags: AtomicU64::new(1) }
    }

    fn domain(&self) -> &VerbsDomain {
        &self.domains[0]
    }

    fn register(&self, rank: Rank, bytes: u64, access: Access) -> Region {
        let area = std::mem::ManuallyDrop::new(ZeroedPages::new((bytes as usize).max(1)));
        // SAFETY: never freed, and accessed only through the domain and the tests.
        unsafe { self.domains[rank.0 as usize].register(area.base, bytes, access) }.unwrap()
    }

    fn tag(&self) -> Tag {
        Tag::from_bits(self.tags.fetch_add(1, Ordering::Relaxed))
    }
}

tsumugi_conformance::endpoint!(Ranks);

/// Adds of the first rank to a word of the second one; returns the state of the
/// transport at both.
fn reached(mut two: Two) -> [DctSupport; 2] {
    let far = two.region(1, 64);
    let adds: Vec<Op> =
        (0..9).map(|_| two.tagged(Op::atomic(Kind::FetchAdd, at(&far, 0), 1u64))).collect();
    let [a, b] = &two.domains;
    let mut ends = [a.endpoint(), b.endpoint()];
    assert_eq!(ends[0].post(&adds), adds.len());
    let done = two.wait(&mut ends, adds.len(), |_| ());
    assert!(done.iter().all(|done| done.result.is_ok()), "{done:?}");
    assert_eq!(word(&far, 0), 9);
    [a, b].map(|domain| domain.facts().dct)
}

#[test]
fn dynamic_transport_is_used_only_on_request() {
    assert_eq!(reached(Two::new(false)), [DctSupport::Possible; 2]);
    assert_eq!(reached(Two::new(true)), [DctSupport::Used; 2]);
}

#[test]
fn cards_of_other_drivers_are_reached_by_pairs() {
    restrict(true, None);
    assert_eq!(reached(Two::new(true)), [DctSupport::NoLibrary; 2]);
}

#[test]
fn dynamic_transport_without_all_operations_is_not_used() {
    use tsumugi_backends::verbs::sys::{IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_RDMA_WRITE, IBV_WR_SEND};
    for opcode in [IBV_WR_RDMA_WRITE, IBV_WR_ATOMIC_CMP_AND_SWP] {
        restrict(false, Some(opcode));
        assert_eq!(reached(Two::new(true)), [DctSupport::Refused; 2], "{opcode}");
    }
    // Packets are not probed: a refused packet is an error of its peer.
    restrict(false, Some(IBV_WR_SEND));
    assert_eq!(reached(Two::new(true)), [DctSupport::Used; 2]);
}

#[test]
fn an_error_at_one_peer_does_not_reach_other_peers() {
    let ranks = Ranks::new(4);
    let regions: Vec<Region> =
        (1..4).map(|rank| ranks.register(Rank(rank), 64, Access::ReadWrite)).collect();
    let words: Vec<RemoteAddr> = (1..4)
        .zip(&regions)
        .map(|(rank, region)| RemoteAddr { rank: Rank(rank), ..at(region, 0) })
        .collect();
    let mut end = ranks.domain().endpoint();
    let mut run = |ops: &[Op]| {
        assert_eq!(end.post(ops), ops.len());
        let (mut all, mut some) = (Vec::new(), [Completion::EMPTY; 16]);
        while all.len() < ops.len() {
            let came = end.poll(&mut some);
            all.extend_from_slice(&some[..came]);
        }
        all
    };
    let warm: Vec<Op> =
        words.iter().map(|at| Op::get_word(*at, Width::W8).tagged(ranks.tag())).collect();
    assert!(run(&warm).iter().all(|done| done.result == Ok(0)));
    assert!(ranks.domains[2].unregister(regions[1].key));
    // To each of the three ranks in turn.
    let adds: Vec<Op> = (0..30)
        .map(|round| Op::atomic(Kind::FetchAdd, words[round % 3], 1u64).tagged(ranks.tag()))
        .collect();
    for done in run(&adds) {
        let to = adds.iter().find(|add| add.tag == done.tag).unwrap().remote;
        match to.rank {
            Rank(2) => assert_eq!(done.result, Err(AddrError::StaleKey { addr: to })),
            _ => assert!(done.result.is_ok(), "{done:?}"),
        }
    }
    assert_eq!([word(&regions[0], 0), word(&regions[2], 0)], [10, 10], "each add was done once");
    let counters = end.counters();
    assert_eq!((counters.strays, counters.cm_messages), (0, 0));
    assert!(counters.pairs_broken >= 1);
}

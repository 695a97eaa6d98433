//! The promises of this backend beyond those of every network.

use super::Verbs;
use super::job::{Job, LIMIT, Provider, Setting, copy_card, wait};
use super::particulars::{PEER, at, run};
use std::ptr::NonNull;
use std::time::{Duration, Instant};
use tsumugi_backends::verbs::{Atomics, DctSupport, Facts, VerbsDomain};
use tsumugi_conformance::endpoint::Fixture;
use tsumugi_core::backend::{Completion, Domain, Endpoint};
use tsumugi_core::mem::{Access, AddrError, LocalAddr, Rank, RegionKey, RemoteAddr, Width};
use tsumugi_core::op::{Kind, Op};
use tsumugi_core::tag::Tag;

pub fn the_probe_agrees_with_the_capabilities() {
    let domain = Verbs::open(&Setting::default(), Rank(0), 1);
    println!("{:?}", domain.facts());
    domain.probed().rows.iter().for_each(|row| println!("  {row}"));
    assert!(domain.capabilities().remote_completion);
    assert!(!domain.capabilities().device_atomics, "the device has not every kind and width");
    let Facts { software, dct, .. } = *domain.facts();
    assert!(!software || dct != DctSupport::Possible, "{dct}");
    assert!(domain.probed().works("a sleeping target is served"));
    assert!(domain.probed().works("a stale key is refused"));
    if domain.facts().atomics != Atomics::None {
        assert!(domain.probed().works("fetch-add") && domain.probed().works("compare-swap"));
    }
}

pub fn device_atomics_are_exact_and_all_others_are_unsupported() {
    let job: Job<Verbs> = Job::new(2);
    let region = job.register(PEER, 64, Access::ReadWrite);
    let mut endpoint = job.domain.endpoint();
    let mut go = |op| run(&job, &mut endpoint, op);
    let word = at(&region, 8);
    assert_eq!(go(Op::put_word(word, Width::W8, u64::MAX - 2)), Ok(0));
    assert_eq!(go(Op::atomic(Kind::FetchAdd, word, 5u64)), Ok(u64::MAX - 2));
    assert_eq!(go(Op::compare_swap(word, 2u64, 7)), Ok(2));
    assert_eq!(go(Op::compare_swap(word, 2u64, 8)), Ok(7));
    assert_eq!(go(Op::get_word(word, Width::W8)), Ok(7));
    let unsupported = |addr| Err(AddrError::Unsupported { addr });
    for kind in [Kind::Swap, Kind::FetchAnd, Kind::FetchOr, Kind::FetchXor] {
        assert_eq!(go(Op::atomic(kind, word, 1u64)), unsupported(word), "{kind:?}");
    }
    let half = at(&region, 20);
    assert_eq!(go(Op::atomic(Kind::FetchAdd, half, 1u32)), unsupported(half));
    assert_eq!(go(Op::compare_swap(half, 0u32, 1)), unsupported(half));
    // The unsupported operations broke nothing.
    assert_eq!(job.word(&region, 8), 7);
    assert_eq!(endpoint.counters().pairs_broken, 0);
}

/// The device adds for its own rank as well, whose processor does not touch the word.
pub fn adds_of_all_ranks_to_one_word_are_exact() {
    let job: Job<Verbs> = Job::new(3);
    let region = job.register(PEER, 64, Access::ReadWrite);
    let mut endpoint = job.domain.endpoint();
    let order = format!("add 1 {} 8 500", region.key.to_bits());
    job.peers.lock().unwrap().iter_mut().for_each(|peer| peer.inject_packet(&order));
    for _ in 0..500 {
        let add = Op::atomic(Kind::FetchAdd, at(&region, 8), 1u64);
        assert!(run(&job, &mut endpoint, add).is_ok());
    }
    for peer in job.peers.lock().unwrap().iter_mut() {
        assert_eq!(peer.answer(), "added");
    }
    assert_eq!(job.word(&region, 8), 1500);
}

pub fn a_batch_rings_once() {
    let job: Job<Verbs> = Job::new(2);
    let region = job.register(PEER, 8 * 64, Access::ReadWrite);
    let mut endpoint = job.domain.endpoint();
    let get = Op::get_word(at(&region, 0), Width::W8);
    assert_eq!(run(&job, &mut endpoint, get), Ok(0));
    for batch in [1, 16, 64] {
        let before = endpoint.counters().doorbells;
        let ops: Vec<Op> = (0..batch)
            .map(|slot| Op::put_word(at(&region, slot * 8), Width::W8, slot).tagged(job.tag()))
            .collect();
        assert_eq!(endpoint.post(&ops), batch as usize);
        assert!(wait(&mut endpoint, batch as usize).iter().all(|done| done.result == Ok(0)));
        let doorbells = endpoint.counters().doorbells - before;
        println!("{batch} puts: {doorbells} doorbells");
        assert_eq!(doorbells, 1, "{batch} puts");
    }
}

/// The put carries an immediate number, and no packet follows it.
pub fn a_notifying_put_is_one_request() {
    let job: Job<Verbs> = Job::new(2);
    let region = job.register(PEER, 64, Access::ReadWrite);
    let mut endpoint = job.domain.endpoint();
    assert!(job.domain.rings(), "every device rings");
    let get = Op::get_word(at(&region, 0), Width::W8);
    assert_eq!(run(&job, &mut endpoint, get), Ok(0));
    let before = endpoint.counters().doorbells;
    let put = Op::put_word(at(&region, 16), Width::W8, 7).notifying();
    assert_eq!(run(&job, &mut endpoint, put), Ok(0));
    assert_eq!(endpoint.counters().doorbells - before, 1);
    let (start, bell) = (Instant::now(), format!("bell {} 16", region.key.to_bits()));
    let mut came = String::new();
    while came.is_empty() {
        came = job.order(1, "arrived");
        assert!(start.elapsed() < LIMIT, "no bell");
    }
    assert_eq!((came.trim_end_matches(','), job.word(&region, 16)), (&*bell, 7));
}

/// With `VERBS_LOSSY` the wire loses packets. A device reports once that it has refused a
/// request. If that report is lost, the pair gets no further answer, and it is unknown
/// whether the requests after it were carried out.
pub fn neighbours_of_a_refused_request_are_served() {
    let is_lossy = std::env::var_os("VERBS_LOSSY").is_some();
    let job: Job<Verbs> = Job::new(2);
    let gone = job.register(PEER, 64, Access::ReadWrite);
    let region = job.register(PEER, 64, Access::ReadWrite);
    let mut endpoint = job.domain.endpoint();
    for region in [&gone, &region] {
        let get = Op::get_word(at(region, 0), Width::W8);
        assert_eq!(run(&job, &mut endpoint, get), Ok(0));
    }
    assert_eq!(job.order(1, &format!("unregister {}", gone.key.to_bits())), "true");
    // Each add is done once, whatever becomes of the pair.
    let (mut added, mut unknown) = (0, 0);
    for round in 0..10 {
        let add = || Op::atomic(Kind::FetchAdd, at(&region, 0), 1u64).tagged(job.tag());
        let stale = Op::get_word(at(&gone, 0), Width::W8).tagged(job.tag());
        let mut ops: Vec<Op> = (0..8).map(|_| add()).collect();
        if round == 0 {
            ops.insert(3, stale);
        }
        assert_eq!(endpoint.post(&ops), ops.len());
        for done in wait(&mut endpoint, ops.len()) {
            match done.result {
                Err(AddrError::StaleKey { addr }) if done.tag == stale.tag => {
                    assert_eq!(addr, stale.remote);
                }
                Err(AddrError::PeerLost { rank: PEER }) if is_lossy => {
                    unknown += u64::from(done.tag != stale.tag);
                }
                Ok(_) if done.tag != stale.tag => added += 1,
                _ => panic!("{done:?}"),
            }
        }
    }
    let found = job.word(&region, 0);
    assert!(
        (added..=added + unknown).contains(&found),
        "{added} added and {unknown} unknown make {found}"
    );
    println!("{added} were added, of {unknown} it is not known");
    let counters = endpoint.counters();
    assert_eq!((counters.pairs_broken, counters.strays), (1, 0));
    if unknown == 0 {
        assert_eq!(counters.pairs_made, 2);
        let failure = endpoint.failures().last.unwrap();
        let of = (failure.peer, failure.kind);
        assert_eq!(of, (Some(PEER), Some(Kind::GetWord)), "{failure}");
    }
}

pub fn few_pairs_reach_many_ranks() {
    let ranks = 4;
    let job: Job<Verbs> = Job::with(ranks, |setting| setting.pairs_max = 1);
    let regions: Vec<_> =
        (1..ranks).map(|rank| job.register(Rank(rank), 64, Access::ReadWrite)).collect();
    let mut endpoint = job.domain.endpoint();
    let far = |rank: u32, offset| {
        let key = regions[rank as usize - 1].key;
        RemoteAddr { rank: Rank(rank), key, offset }
    };
    // The ranks one after another, then all at once.
    for round in 0..5 {
        for rank in 1..ranks {
            let add = Op::atomic(Kind::FetchAdd, far(rank, 0), 1u64);
            assert_eq!(run(&job, &mut endpoint, add), Ok(round), "{rank}");
        }
    }
    let ops: Vec<Op> = (0..30)
        .map(|at| Op::atomic(Kind::FetchAdd, far(1 + at % (ranks - 1), 8), 1u64).tagged(job.tag()))
        .collect();
    assert_eq!(endpoint.post(&ops), 30);
    assert!(wait(&mut endpoint, 30).iter().all(|done| done.result.is_ok()));
    for rank in 1..ranks {
        let get = Op::get_word(far(rank, 8), Width::W8);
        assert_eq!(run(&job, &mut endpoint, get), Ok(10), "{rank}");
    }
    let counters = endpoint.counters();
    println!("{counters:?}");
    assert!(counters.pairs_made >= 15 && counters.pairs_made - counters.pairs_closed <= 1);
    assert_eq!(counters.pairs_broken, 0);
}

/// Many more ranks than pairs, all ranks in this process and all active at once.
pub fn a_crowd_is_served_by_few_pairs() {
    let (ranks, pairs_max) = (64, 8);
    let setting = Setting { pairs_max, in_flight_max: 256, ..Setting::default() };
    let domains: Vec<VerbsDomain> =
        (0..ranks).map(|rank| Verbs::open(&setting, Rank(rank), ranks)).collect();
    let cards: Vec<Vec<u8>> = domains.iter().map(|domain| domain.card().to_vec()).collect();
    let words = vec![0u64; 8 * ranks as usize].leak();
    let mut regions = Vec::new();
    for (domain, words) in domains.iter().zip(words.chunks_exact_mut(8)) {
        let cards = cards.clone();
        domain.find(move |rank, into| copy_card(&cards, rank, into));
        let base = NonNull::from(words).cast();
        // SAFETY: leaked, and used as nothing but bytes.
        regions.push(unsafe { domain.register(base, 64, Access::ReadWrite) }.unwrap());
    }
    let mut endpoints: Vec<_> = domains.iter().map(|domain| domain.endpoint()).collect();
    let ops: Vec<Op> = (0..4 * u64::from(ranks))
        .map(|at| {
            let rank = (at * 7 % u64::from(ranks)) as u32;
            let remote =
                RemoteAddr { rank: Rank(rank), key: regions[rank as usize].key, offset: 8 };
            Op::atomic(Kind::FetchAdd, remote, 1u64).tagged(Tag::from_bits(at + 1))
        })
        .collect();
    // Two ranks send to all ranks, so that the targets share their pairs as well.
    assert_eq!(endpoints[0].post(&ops), ops.len());
    assert_eq!(endpoints[1].post(&ops), ops.len());
    let (start, mut done, mut came) = (Instant::now(), [Completion::EMPTY; 16], 0);
    while came < 2 * ops.len() {
        for endpoint in &mut endpoints {
            let count = endpoint.poll(&mut done);
            assert!(done[..count].iter().all(|done| done.result.is_ok()), "{done:?}");
            came += count;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{came} came");
    }
    let mut get = |rank: u32| {
        let remote = RemoteAddr { rank: Rank(rank), key: regions[rank as usize].key, offset: 8 };
        assert_eq!(endpoints[rank as usize].post(&[Op::get_word(remote, Width::W8)]), 1);
        wait(&mut endpoints[rank as usize], 1)[0].result
    };
    // Each of these ranks reaches itself by a pair of its own.
    assert_eq!((get(5), get(ranks - 1)), (Ok(8), Ok(8)));
    for endpoint in &endpoints[..2] {
        let counters = endpoint.counters();
        println!("{counters:?}");
        let alive = counters.pairs_made - counters.pairs_closed;
        assert!(alive <= pairs_max as u64 && counters.pairs_broken == 0, "{counters:?}");
    }
}

pub fn ranks_reach_themselves_and_each_other() {
    let job: Job<Verbs> = Job::new(2);
    let own = job.register(Rank(0), 64, Access::ReadWrite);
    let local = LocalAddr { key: own.key, offset: 32 };
    let mut endpoint = job.domain.endpoint();
    let here = RemoteAddr { rank: Rank(0), key: own.key, offset: 0 };
    assert_eq!(run(&job, &mut endpoint, Op::put_word(here, Width::W8, 5)), Ok(0));
    assert_eq!(run(&job, &mut endpoint, Op::get(here, local, 8)), Ok(0));
    // SAFETY: the job's own memory, with nothing in flight.
    assert_eq!(unsafe { own.base.cast::<u64>().add(4).read_volatile() }, 5);
    let never = RemoteAddr { key: RegionKey::new(9, 1), ..here };
    let stale = Err(AddrError::StaleKey { addr: never });
    assert_eq!(run(&job, &mut endpoint, Op::get_word(never, Width::W8)), stale);
}

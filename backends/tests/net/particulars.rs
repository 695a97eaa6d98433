//! The promises of every network beyond those of the conformance suite.

use super::job::{Job, LIMIT, Provider, Setting, wait};
use std::time::{Duration, Instant};
use tsumugi_backends::ofi::{Arrival, PacketError};
use tsumugi_conformance::endpoint::Fixture;
use tsumugi_core::backend::{Completion, Domain, Endpoint};
use tsumugi_core::mem::{Access, AddrError, LocalAddr, Rank, Region, RegionKey, RemoteAddr, Width};
use tsumugi_core::op::{Kind, Op};

pub const PEER: Rank = Rank(1);

pub fn at(region: &Region, offset: u64) -> RemoteAddr {
    RemoteAddr { rank: PEER, key: region.key, offset }
}

/// Runs one operation to its end.
pub fn run<P: Provider>(
    job: &Job<P>,
    endpoint: &mut impl Endpoint,
    op: Op,
) -> Result<u64, AddrError> {
    let op = op.tagged(job.tag());
    assert_eq!(endpoint.post(&[op]), 1, "{op:?}");
    let done = wait(endpoint, 1);
    assert_eq!(done[0].tag, op.tag);
    done[0].result
}

pub fn words_of_every_width_arrive<P: Provider>() {
    let job: Job<P> = Job::new(2);
    let region = job.register(PEER, 64, Access::ReadWrite);
    let mut endpoint = job.domain.endpoint();
    let value = 0x8877_6655_4433_2211;
    for (width, offset) in [(Width::W1, 3), (Width::W2, 10), (Width::W4, 20), (Width::W8, 24)] {
        let mask = u64::MAX >> (64 - 8 * width as u32);
        let put = Op::put_word(at(&region, offset), width, value);
        assert_eq!(run(&job, &mut endpoint, put), Ok(0));
        let get = Op::get_word(at(&region, offset), width);
        assert_eq!(run(&job, &mut endpoint, get), Ok(value & mask), "{width:?}");
    }
    assert_eq!(job.word(&region, 0), 0x11 << 24);
}

/// A put whose region is not known yet is accepted but not under way, so that a packet
/// that is sent then overtakes the put. `holds` reports this to the sender.
pub fn an_accepted_operation_that_is_not_under_way_is_reported<P: Provider>() {
    let job: Job<P> = Job::new(3);
    let region = job.register(PEER, 64, Access::ReadWrite);
    let mut endpoint = job.domain.endpoint();
    assert!(!endpoint.holds(PEER));
    let put = Op::put_word(at(&region, 8), Width::W8, 7).tagged(job.tag());
    assert_eq!(endpoint.post(&[put]), 1);
    assert!(endpoint.holds(PEER));
    assert!(!endpoint.holds(Rank(2)), "the endpoint has nothing for rank 2");
    assert_eq!(wait(&mut endpoint, 1)[0].result, Ok(0));
    assert!(!endpoint.holds(PEER));
    assert_eq!(job.word(&region, 8), 7);
}

pub fn long_transfers_go_in_pieces<P: Provider>() {
    let bytes = 100_000;
    let job: Job<P> = Job::with(2, |config| config.piece_bytes_max = 4096);
    let peer = job.register(PEER, bytes, Access::ReadWrite);
    let own = job.register(Rank(0), 2 * bytes, Access::Local);
    let mut endpoint = job.domain.endpoint();
    let pattern = |at: u64| (at * 7 + at / 4096) as u8;
    for offset in 0..bytes {
        // SAFETY: the job's own memory, with nothing in flight.
        unsafe { own.base.add(offset as usize).write(pattern(offset)) };
    }
    let (out, back) =
        (LocalAddr { key: own.key, offset: 0 }, LocalAddr { key: own.key, offset: bytes });
    assert_eq!(run(&job, &mut endpoint, Op::put(out, at(&peer, 0), bytes)), Ok(0));
    assert_eq!(run(&job, &mut endpoint, Op::get(at(&peer, 0), back, bytes)), Ok(0));
    for offset in 0..bytes {
        // SAFETY: the same.
        let byte = unsafe { own.base.add((bytes + offset) as usize).read() };
        assert_eq!(byte, pattern(offset), "byte {offset}");
    }
}

pub fn a_completed_put_has_landed<P: Provider>() {
    let job: Job<P> = Job::new(2);
    let region = job.register(PEER, 64, Access::ReadWrite);
    let mut endpoint = job.domain.endpoint();
    assert!(job.domain.capabilities().remote_completion, "promised by these providers");
    for value in 1..=50 {
        let put = Op::put_word(at(&region, 0), Width::W8, value);
        assert_eq!(run(&job, &mut endpoint, put), Ok(0));
        assert_eq!(job.word(&region, 0), value, "what the peer's processor sees");
    }
}

pub fn stale_keys_are_named<P: Provider>() {
    let job: Job<P> = Job::new(2);
    let is_told = P::probed(&job.domain).works("a stale key is refused");
    let old = job.register(PEER, 64, Access::ReadWrite);
    let never = RemoteAddr { key: RegionKey::new(9, 1), ..at(&old, 0) };
    let mut endpoint = job.domain.endpoint();
    let get = |addr| Op::get_word(addr, Width::W8);
    let stale = |addr| Err(AddrError::StaleKey { addr });
    assert_eq!(run(&job, &mut endpoint, get(never)), stale(never));
    // The region ends before the endpoint has read its slot.
    let unseen = job.register(PEER, 64, Access::ReadWrite);
    assert_eq!(job.order(1, &format!("unregister {}", unseen.key.to_bits())), "true");
    assert_eq!(run(&job, &mut endpoint, get(at(&unseen, 0))), stale(at(&unseen, 0)));
    // Operations on another region continue.
    assert_eq!(run(&job, &mut endpoint, get(at(&old, 0))), Ok(0));
    if !is_told {
        println!("{} does not answer to a key that it has seen", P::NAME);
        return;
    }
    // The slot was read before the region ended: the device refuses, the directory says
    // why.
    assert_eq!(job.order(1, &format!("unregister {}", old.key.to_bits())), "true");
    assert_eq!(job.order(1, &format!("unregister {}", old.key.to_bits())), "false");
    assert_eq!(run(&job, &mut endpoint, get(at(&old, 0))), stale(at(&old, 0)));
    // The connection survives.
    let new = job.register(PEER, 64, Access::ReadWrite);
    assert_eq!(run(&job, &mut endpoint, get(at(&new, 0))), Ok(0));
}

pub fn wrong_accesses_are_named<P: Provider>() {
    let job: Job<P> = Job::new(2);
    let readable = job.register(PEER, 64, Access::Read);
    let private = job.register(PEER, 64, Access::Local);
    let mut endpoint = job.domain.endpoint();
    let mut go = |op| run(&job, &mut endpoint, op);
    let (here, hidden) = (at(&readable, 0), at(&private, 0));
    assert_eq!(go(Op::get_word(here, Width::W8)), Ok(0));
    let read_only = Err(AddrError::ReadOnly { addr: here });
    assert_eq!(go(Op::put_word(here, Width::W8, 1)), read_only);
    assert_eq!(go(Op::atomic(Kind::FetchAdd, here, 1u64)), read_only);
    let stale = Err(AddrError::StaleKey { addr: hidden });
    assert_eq!(go(Op::get_word(hidden, Width::W8)), stale);
    let odd = at(&readable, 4);
    let unaligned = Err(AddrError::Unaligned { addr: odd, align: 8 });
    assert_eq!(go(Op::get_word(odd, Width::W8)), unaligned);
    let local = LocalAddr { key: RegionKey::new(3, 1), offset: 0 };
    assert!(matches!(go(Op::get(here, local, 8)), Err(AddrError::StaleKey { .. })));
}

pub fn packets_and_bells_arrive<P: Provider>() {
    let job: Job<P> = Job::new(2);
    let region = job.register(PEER, 64, Access::ReadWrite);
    let mut endpoint = job.domain.endpoint();
    let too_long = PacketError::TooLong { bytes: 4000, max: 496 };
    assert_eq!(endpoint.try_send(PEER, &[0; 4000]), Err(too_long));
    let nobody = AddrError::NoSuchRank { rank: Rank(5), size: 2 };
    assert_eq!(endpoint.try_send(Rank(5), b""), Err(PacketError::Addr(nobody)));
    // More packets than there are buffers on either side.
    let start = Instant::now();
    for number in 0..60 {
        while let Err(error) = endpoint.try_send(PEER, format!("p{number}").as_bytes()) {
            assert_eq!(error, PacketError::Full);
            endpoint.poll(&mut []);
            assert!(start.elapsed() < LIMIT, "packet {number}");
        }
    }
    let ring = Op::atomic(Kind::FetchAdd, at(&region, 16), 3u64).notifying();
    assert_eq!(run(&job, &mut endpoint, ring), Ok(0));
    let bell = format!("bell {} 16", region.key.to_bits());
    let mut all = Vec::new();
    while all.len() < 61 {
        endpoint.poll(&mut []);
        let came = job.order(1, "arrived");
        all.extend(came.split_terminator(',').map(str::to_owned));
        assert!(start.elapsed() < LIMIT, "{all:?}");
    }
    assert!(all.contains(&bell), "{all:?}");
    for number in 0..60 {
        assert!(all.contains(&format!("p{number} of 0")), "{number} of {all:?}");
    }
    // A packet in the other direction.
    while job.order(1, "send 0 hello") != "Ok(())" {
        endpoint.poll(&mut []);
        assert!(start.elapsed() < LIMIT, "the peer could not send");
    }
    let mut heard = false;
    while !heard {
        endpoint.poll(&mut []);
        endpoint.receive(&mut |arrival| {
            heard |= arrival == Arrival::Packet { from: PEER, bytes: b"hello" };
        });
        assert!(start.elapsed() < LIMIT, "no answer");
    }
}

pub fn several_endpoints_work_at_once<P: Provider>() {
    let job: Job<P> = Job::with(2, |config| config.endpoints = 2);
    let region = job.register(PEER, 64, Access::ReadWrite);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let mut endpoint = job.domain.endpoint();
            let (job, region) = (&job, &region);
            scope.spawn(move || {
                for _ in 0..100 {
                    let own = Op::get_word(at(region, 0), Width::W8);
                    assert_eq!(run(job, &mut endpoint, own), Ok(0));
                }
            });
        }
    });
    let (first, second) = (job.domain.endpoint(), job.domain.endpoint());
    assert!(job.domain.try_endpoint().is_none());
    drop(first);
    assert!(job.domain.try_endpoint().is_some());
    drop(second);
}

pub fn a_struck_rank_is_lost_at_once<P: Provider>() {
    let job: Job<P> = Job::new(3);
    let region = job.register(PEER, 64, Access::ReadWrite);
    let other = job.register(Rank(2), 64, Access::ReadWrite);
    let mut endpoint = job.domain.endpoint();
    assert_eq!(run(&job, &mut endpoint, Op::get_word(at(&region, 0), Width::W8)), Ok(0));
    // The peer does not serve what is under way, and is then struck.
    assert_eq!(job.order(1, "sleep 60000"), "asleep");
    let add = Op::atomic(Kind::FetchAdd, at(&region, 0), 1u64).tagged(job.tag());
    assert_eq!(endpoint.post(&[add]), 1);
    job.domain.mark_dead(PEER);
    let lost = Err(AddrError::PeerLost { rank: PEER });
    let ended = wait(&mut endpoint, 1)[0].result;
    // A device may have done the operation before.
    assert!(ended == lost || P::SERVES_SLEEPERS && ended == Ok(0), "{ended:?}");
    assert_eq!(run(&job, &mut endpoint, Op::get_word(at(&region, 0), Width::W8)), lost);
    assert!(endpoint.try_send(PEER, b"").is_err());
    let elsewhere = RemoteAddr { rank: Rank(2), key: other.key, offset: 0 };
    assert_eq!(run(&job, &mut endpoint, Op::get_word(elsewhere, Width::W8)), Ok(0));
}

pub fn a_killed_rank_is_lost<P: Provider>() {
    let job: Job<P> = Job::new(3);
    let region = job.register(PEER, 64, Access::ReadWrite);
    let other = job.register(Rank(2), 64, Access::ReadWrite);
    let mut endpoint = job.domain.endpoint();
    assert_eq!(run(&job, &mut endpoint, Op::get_word(at(&region, 0), Width::W8)), Ok(0));
    // One operation is under way when the peer is killed.
    assert_eq!(job.order(1, "sleep 60000"), "asleep");
    let add = Op::atomic(Kind::FetchAdd, at(&region, 0), 1u64).tagged(job.tag());
    assert_eq!(endpoint.post(&[add]), 1);
    job.kill(1);
    let put = Op::put_word(at(&region, 0), Width::W8, 1).tagged(job.tag());
    // Where the provider does not report the death, a heartbeat does.
    let (start, mut struck) = (Instant::now(), false);
    let (mut done, mut came, mut posted) = ([Completion::EMPTY; 2], 0, 0);
    while came < 2 {
        if posted == 0 {
            // An endpoint in one-by-one mode accepts the put in a later call.
            posted = endpoint.post(&[put]);
        }
        came += endpoint.poll(&mut done[came..]);
        if came < 2 && start.elapsed() > P::NOTICES && !struck {
            job.domain.mark_dead(PEER);
            struck = true;
        }
        assert!(start.elapsed() < LIMIT, "the loss was not reported");
    }
    let lost = Err(AddrError::PeerLost { rank: PEER });
    for done in done {
        let was_done = P::SERVES_SLEEPERS && done.tag == add.tag && done.result == Ok(0);
        assert!(done.result == lost || was_done, "{done:?}");
    }
    assert!(!struck || !P::SERVES_SLEEPERS, "the provider did not report the loss");
    if !struck {
        let last = endpoint.failures().last.unwrap();
        println!("noticed by the provider: {last}");
        assert_eq!(last.peer, Some(PEER), "{last}");
    }
    let elsewhere = RemoteAddr { rank: Rank(2), key: other.key, offset: 0 };
    assert_eq!(run(&job, &mut endpoint, Op::get_word(elsewhere, Width::W8)), Ok(0));
}

pub fn bad_cards_lose_their_rank<P: Provider>() {
    let domain = P::open(&Setting::default(), Rank(0), 4);
    let good = domain.card().to_vec();
    domain.find(move |rank, into| {
        into[..good.len()].copy_from_slice(&good);
        match rank.0 {
            1 => None,
            2 => Some(good.len() - 1),
            _ => {
                into[0] ^= 1;
                Some(good.len())
            }
        }
    });
    let mut endpoint = domain.endpoint();
    for rank in 1..4 {
        let addr = RemoteAddr { rank: Rank(rank), key: RegionKey::new(0, 1), offset: 0 };
        let get = Op::get_word(addr, Width::W8);
        assert_eq!(endpoint.post(&[get]), 1);
        let lost = Err(AddrError::PeerLost { rank: Rank(rank) });
        assert_eq!(wait(&mut endpoint, 1)[0].result, lost);
        assert_eq!(endpoint.failures().last.unwrap().peer, Some(Rank(rank)));
    }
    assert_eq!(endpoint.failures().count, 3);
}

pub fn a_sleeper_is_woken_by_its_completion<P: Provider>() {
    let job: Job<P> = Job::with(2, |config| config.event = true);
    let region = job.register(PEER, 64, Access::ReadWrite);
    let mut endpoint = job.domain.endpoint();
    let Some(fd) = endpoint.event() else {
        assert!(!endpoint.arm());
        println!("{} has nothing to sleep on", P::NAME);
        return;
    };
    let start = Instant::now();
    for _ in 0..20 {
        let get = Op::get_word(at(&region, 0), Width::W8).tagged(job.tag());
        assert_eq!(endpoint.post(&[get]), 1);
        let mut done = [Completion::EMPTY];
        while endpoint.poll(&mut done) == 0 {
            if endpoint.arm() && endpoint.poll(&mut done) == 0 {
                let mut fd = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
                // SAFETY: one descriptor, which the domain keeps open.
                let woken = unsafe { libc::poll(&mut fd, 1, 30_000) };
                assert_eq!(woken, 1, "slept through a completion");
            } else if done[0].tag == get.tag {
                break;
            }
            assert!(start.elapsed() < LIMIT, "no completion");
        }
        assert_eq!(done[0].tag, get.tag);
    }
    // The endpoint stays silent when nothing arrives, once all events are consumed.
    while start.elapsed() < LIMIT {
        let mut fd = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let armed = endpoint.arm() && endpoint.poll(&mut []) == 0;
        // SAFETY: one descriptor, which the domain keeps open.
        if armed && unsafe { libc::poll(&mut fd, 1, 20) } == 0 {
            return;
        }
    }
    panic!("the event never became silent");
}

/// A get that is under way occupies its buffer until the device returns it.
pub fn a_get_from_a_killed_rank_ends<P: Provider>() {
    let job: Job<P> = Job::new(2);
    let region = job.register(PEER, 64, Access::ReadWrite);
    let own = job.register(Rank(0), 64, Access::Local);
    let mut endpoint = job.domain.endpoint();
    assert_eq!(run(&job, &mut endpoint, Op::get_word(at(&region, 0), Width::W8)), Ok(0));
    assert_eq!(job.order(1, "sleep 60000"), "asleep");
    let into = LocalAddr { key: own.key, offset: 0 };
    assert_eq!(endpoint.post(&[Op::get(at(&region, 0), into, 64).tagged(job.tag())]), 1);
    job.kill(1);
    job.domain.mark_dead(PEER);
    let (start, mut done) = (Instant::now(), [Completion::EMPTY]);
    while endpoint.poll(&mut done) == 0 {
        if start.elapsed() > Duration::from_secs(2) {
            println!("{} never gives the buffer back", P::NAME);
            assert_eq!(endpoint.in_flight(), 1);
            return;
        }
    }
    let lost = Err(AddrError::PeerLost { rank: PEER });
    assert!(done[0].result == lost || P::SERVES_SLEEPERS && done[0].result == Ok(0), "{done:?}");
}

//! Faults drawn from a thousand seeds, and the properties that must hold with them; the
//! defects that would break these properties, each caught; and the log of the endpoint.
#![cfg(not(tsumugi_loom))]

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use tsumugi_conformance::Seeded;
use tsumugi_conformance::once::Once;
use tsumugi_core::backend::{
    Completion, Delivery, Domain, Endpoint, Fault, FaultDomain, FaultPlan, Loopback, LoopbackRank,
    Trace, TraceRecord, TraceStage,
};
use tsumugi_core::completion::{Callback, CompletionTable, Ticket};
use tsumugi_core::mem::{Access, AddrError, Rank, Region, RemoteAddr, Width};
use tsumugi_core::op::{Kind, Op};
use tsumugi_core::sim::{Seeds, check};
use tsumugi_core::sync::mutant;
use tsumugi_core::tag::{Tag, TagTable};
use tsumugi_core::time::{Clock, Instant};

/// The seeds that every commit tries anew.
const SEEDS: Seeds = Seeds::new(1000);
/// The seeds that catch each planted defect: always the same.
#[cfg(debug_assertions)]
const PLANTED: std::ops::Range<u64> = 0..1000;
const DEPTH: usize = 16;
type Job = Loopback<'static, 3, 16, DEPTH>;
type Seen = LoopbackRank<'static, 3, 16, DEPTH>;

thread_local! {
    static SEED: Cell<u64> = const { Cell::new(0) };
}

fn job(ranks: u32) -> &'static Job {
    let seed = SEED.get();
    let shuffle = seed.is_multiple_of(3).then_some(seed);
    Box::leak(Box::new(Job::new(ranks).delivering(Delivery { late_polls: 0, shuffle })))
}

fn register(at: &Seen, bytes: u64, access: Access) -> Region {
    #[repr(align(64))]
    #[derive(Clone)]
    struct Line(#[allow(dead_code)] [u8; 64]);
    let lines = vec![Line([0; 64]); (bytes as usize).div_ceil(64).max(1)].leak();
    let base = NonNull::new(lines.as_mut_ptr()).unwrap().cast();
    // SAFETY: leaked, and used as nothing but bytes.
    unsafe { at.register(base, bytes, access) }.unwrap()
}

/// A job of two ranks: the first, which posts, and a word of the second.
fn pair() -> (&'static Seen, Region) {
    let job = job(2);
    (Box::leak(Box::new(job.rank(Rank(0)))), register(&job.rank(Rank(1)), 8, Access::ReadWrite))
}

fn at(region: &Region, offset: u64) -> RemoteAddr {
    RemoteAddr { rank: Rank(1), key: region.key, offset }
}

/// The promises of every endpoint, with faults and the table that corrects them.
mod conformance {
    use super::*;

    struct Faulty {
        job: &'static Job,
        domain: Once<FaultDomain<Seen>>,
        tags: AtomicU64,
    }

    impl tsumugi_conformance::endpoint::Fixture for Faulty {
        type Domain = Once<FaultDomain<Seen>>;

        const ROUNDS: usize = 2;

        fn new(ranks: u32) -> Self {
            let job = job(ranks);
            let domain = FaultDomain::new(job.rank(Rank(0)), FaultPlan::drawn(SEED.get()));
            Self { job, domain: Once::new(domain, || {}), tags: AtomicU64::new(0) }
        }

        fn domain(&self) -> &Self::Domain {
            &self.domain
        }

        fn register(&self, rank: Rank, bytes: u64, access: Access) -> Region {
            super::register(&self.job.rank(rank), bytes, access)
        }

        fn tag(&self) -> Tag {
            Tag::from_bits(self.tags.fetch_add(1, Ordering::Relaxed))
        }
    }

    macro_rules! with_each_seed {
        ($($promise:ident),*) => {$(
            #[test]
            fn $promise() {
                check(SEEDS, |seed| {
                    SEED.set(seed);
                    tsumugi_conformance::endpoint::$promise::<Faulty>();
                });
            }
        )*};
    }

    with_each_seed!(
        every_post_completes_once,
        a_full_queue_takes_fewer,
        errors_are_completions,
        transfers_arrive,
        capabilities_are_kept
    );
}

/// Counts its drops.
struct Counted(&'static Cell<u32>);

// SAFETY: the tests have one thread.
unsafe impl Send for Counted {}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

/// The result of a callback, and the number of its calls.
#[derive(Default)]
struct Called {
    times: Cell<u32>,
    value: Cell<u64>,
}

fn called(data: *mut (), result: Result<u64, AddrError>) {
    // SAFETY: the test keeps it until the end.
    let called = unsafe { &*data.cast::<Called>() };
    called.times.set(called.times.get() + 1);
    called.value.set(result.unwrap());
}

/// Operations that each draw a number of their own from a counter, waited for in three ways.
/// There are half as many tags as places in the queue, so that tags are used again and again.
fn every_operation_ends_once(seed: u64) {
    const OPS: usize = 120;
    const WINDOW: usize = DEPTH / 2;
    SEED.set(seed);
    let (own, region) = pair();
    let mut endpoint: Fault<_> = Fault::new(own.endpoint(), FaultPlan::drawn(seed));
    let table = CompletionTable::<1>::new();
    let operations = table.view();
    let dropped: &'static Cell<u32> = Box::leak(Box::default());
    let callbacks: Vec<Called> = (0..OPS).map(|_| Called::default()).collect();
    let mut tickets: Vec<Ticket<'_, Counted>> = Vec::new();
    let (mut begun, mut ended, mut values) = (0, 0, Vec::new());
    let (mut seeded, mut called_back, mut abandoned) = (Seeded(seed), Vec::new(), 0);
    let mut fresh = 0;
    for _ in 0..100_000 {
        while begun < OPS && begun - fresh < WINDOW {
            let add = Op::atomic(Kind::FetchAdd, at(&region, 0), 1u64);
            if seeded.below(3) == 0 {
                let data = (&raw const callbacks[begun]).cast_mut().cast();
                // SAFETY: one thread, and the data outlive the test.
                let callback = unsafe { Callback::new(called, data) };
                let tag = operations.try_begin_callback(0, callback).expect("a free tag");
                if endpoint.post(&[add.tagged(tag)]) == 0 {
                    assert!(operations.retract_callback(tag));
                    break;
                }
                called_back.push(begun);
            } else {
                let ticket = operations.try_begin(0, Counted(dropped)).ok().expect("a free tag");
                if endpoint.post(&[add.tagged(ticket.tag())]) == 0 {
                    // SAFETY: not taken.
                    std::mem::forget(unsafe { ticket.retract() });
                    break;
                }
                tickets.push(ticket);
            }
            begun += 1;
        }
        let mut came = [Completion::EMPTY; 5];
        let count = endpoint.poll(&mut came);
        for completion in &came[..count] {
            let tag = if mutant("completion_by_position") && !tickets.is_empty() {
                tickets[0].tag()
            } else {
                completion.tag
            };
            fresh += usize::from(operations.complete(tag, completion.result));
        }
        while let Some(done) = tickets.iter().position(Ticket::is_done) {
            let outcome = tickets.swap_remove(done).try_finish().unwrap();
            values.push(outcome.result.unwrap());
            ended += 1;
        }
        if seeded.below(20) == 0 && !tickets.is_empty() {
            // The ticket is dropped: its buffer stays until the operation ends.
            let before = dropped.get();
            let index = seeded.below(tickets.len() as u64) as usize;
            drop(tickets.swap_remove(index));
            assert_eq!(dropped.get(), before, "dropped while the device has it");
            abandoned += 1;
        }
        if begun == OPS && operations.in_flight() == 0 {
            break;
        }
    }
    // Completions that were held back arrive now, and must be ignored.
    for _ in 0..64 {
        let mut late = [Completion::EMPTY; 8];
        let count = endpoint.poll(&mut late);
        for completion in &late[..count] {
            assert!(!operations.complete(completion.tag, completion.result), "{completion:?}");
        }
    }
    assert_eq!((begun, fresh, operations.in_flight()), (OPS, OPS, 0), "each operation ended once");
    assert_eq!(ended + abandoned + called_back.len(), OPS);
    assert_eq!(dropped.get() as usize, ended + abandoned, "each buffer came back once");
    values.extend(called_back.iter().map(|&index| {
        assert_eq!(callbacks[index].times.get(), 1, "callback {index}");
        callbacks[index].value.get()
    }));
    values.sort_unstable();
    values.dedup();
    assert_eq!(values.len() + abandoned, OPS, "each operation has a result of its own");
    assert!(values.iter().all(|value| *value < OPS as u64));
}

#[test]
fn every_operation_ends_once_with_any_faults() {
    check(SEEDS, every_operation_ends_once);
}

/// The same with tags alone: a table of the test holds the waiting operations.
fn tags_alone(seed: u64) {
    const OPS: usize = 100;
    SEED.set(seed);
    let (own, region) = pair();
    let mut endpoint: Fault<_> = Fault::new(own.endpoint(), FaultPlan::drawn(seed));
    let table = TagTable::<1>::new();
    let tags = table.pool();
    let mut holders = [None; 64];
    let (mut begun, mut ended) = (0, 0);
    for _ in 0..100_000 {
        if begun < OPS
            && begun - ended < DEPTH
            && let Some(tag) = tags.try_take(0)
        {
            assert_eq!(holders[tag.index()].replace(tag), None, "{tag:?} has two holders");
            let add = Op::atomic(Kind::FetchAdd, at(&region, 0), 1u64).tagged(tag);
            if endpoint.post(&[add]) == 1 {
                begun += 1;
            } else {
                holders[tag.index()] = None;
                assert!(tags.release(tag));
            }
        }
        let mut came = [Completion::EMPTY; 5];
        let count = endpoint.poll(&mut came);
        for completion in &came[..count] {
            if tags.release(completion.tag) {
                assert_eq!(holders[completion.tag.index()].take(), Some(completion.tag));
                ended += 1;
            }
        }
        if ended == OPS {
            break;
        }
    }
    assert_eq!(ended, OPS);
}

#[test]
fn a_tag_has_one_holder_with_any_faults() {
    check(SEEDS, tags_alone);
}

/// A planted defect must be found by one of the seeds.
#[cfg(debug_assertions)]
fn caught(mutant: &'static str, test: fn(u64)) {
    let found = tsumugi_core::sync::with_mutant(mutant, || {
        PLANTED.into_iter().find(|&seed| catch_unwind(AssertUnwindSafe(|| test(seed))).is_err())
    });
    let seed = found.unwrap_or_else(|| panic!("the mutant {mutant} was not caught"));
    println!("{mutant}: caught by seed {seed:#x}");
}

#[test]
#[cfg(debug_assertions)]
fn a_completion_of_an_earlier_life_is_caught() {
    caught("completion_no_generation", every_operation_ends_once);
}

#[test]
#[cfg(debug_assertions)]
fn completions_taken_in_order_are_caught() {
    caught("completion_by_position", every_operation_ends_once);
}

#[test]
#[cfg(debug_assertions)]
fn a_tag_released_twice_is_caught() {
    caught("tag_release_unchecked", tags_alone);
}

#[test]
fn an_early_put_completes_before_it_lands() {
    let (own, region) = pair();
    let plan = FaultPlan { early: 1000, ..FaultPlan::default() };
    let domain: FaultDomain<_> = FaultDomain::new(*own, plan);
    assert!(!domain.capabilities().remote_completion);
    let mut endpoint = domain.endpoint();
    endpoint.inner().hold(true);
    let tag = Tag::from_bits(7);
    let put = Op::put_word(at(&region, 0), Width::W8, 5).tagged(tag);
    assert_eq!(endpoint.post(&[put]), 1);
    let mut came = [Completion::EMPTY; 4];
    assert_eq!(endpoint.poll(&mut came), 1);
    assert_eq!(came[0], Completion { tag, result: Ok(0) });
    // SAFETY: leaked memory, one thread.
    let word = || unsafe { region.base.cast::<u64>().read_volatile() };
    assert_eq!(word(), 0, "the put has not landed");
    endpoint.inner().hold(false);
    assert_eq!(endpoint.poll(&mut came), 0, "the completion of the put is swallowed");
    assert_eq!((word(), endpoint.faults().early), (5, 1));
}

#[test]
fn a_seed_draws_the_same_faults_each_time() {
    let run = |seed| {
        let (own, region) = pair();
        let mut endpoint: Fault<_> = Fault::new(own.endpoint(), FaultPlan::drawn(seed));
        let mut order = Vec::new();
        for bits in 0..200 {
            let tag = Tag::from_bits(bits);
            endpoint.post(&[Op::get_word(at(&region, 0), Width::W8).tagged(tag)]);
            let mut came = [Completion::EMPTY; 2];
            let count = endpoint.poll(&mut came);
            order.extend(came[..count].iter().map(|completion| completion.tag.to_bits()));
        }
        (order, endpoint.faults())
    };
    assert_eq!(run(11), run(11));
    assert_ne!(run(11), run(12));
}

struct Ticks(AtomicU64);

impl Clock for Ticks {
    fn now(&self) -> Instant {
        Instant::from_ns(self.0.fetch_add(500, Ordering::Relaxed))
    }
}

#[test]
fn a_trace_keeps_the_last_records_and_draws_arrows() {
    let (own, region) = pair();
    let clock = Ticks(AtomicU64::new(1_000));
    let mut records = [TraceRecord::EMPTY; 4];
    let mut endpoint = Trace::new(own.endpoint(), Rank(0), &clock, &mut records[..]);
    for bits in 0..3 {
        let add = Op::atomic(Kind::FetchAdd, at(&region, 0), 1u64).tagged(Tag::from_bits(bits));
        assert_eq!(endpoint.post(&[add]), 1);
        assert_eq!(endpoint.poll(&mut [Completion::EMPTY]), 1);
    }
    let log = endpoint.log();
    assert_eq!((log.iter().len(), log.lost()), (4, 2));
    let seen: Vec<(u64, u64)> =
        log.iter().map(|record| (record.at.as_ns(), record.tag.to_bits())).collect();
    assert_eq!(seen, [(2_000, 1), (2_500, 1), (3_000, 2), (3_500, 2)]);
    assert_eq!(log.iter().last().unwrap().stage, TraceStage::Completed(Ok(2)));
    let mut text = String::new();
    log.write_chrome(&mut text).unwrap();
    for part in [
        r#""name":"FetchAdd","cat":"op","ph":"X","dur":0.001,"ts":2.000,"pid":0,"tid":0"#,
        r#""ph":"s","id":"0.1","ts":2.000"#,
        r#""ph":"f","bp":"e","id":"0.1","ts":2.500,"pid":0,"tid":1"#,
        r#""value":"0x2""#,
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    let balance = |open, close| text.matches(open).count() == text.matches(close).count();
    assert!(balance('{', '}') && balance('[', ']') && text.matches('"').count().is_multiple_of(2));
}

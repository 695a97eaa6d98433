//! The loopback keeps the promises of every backend, and its queue delays and reorders as
//! configured.
#![cfg(not(tsumugi_loom))]

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use tsumugi_core::backend::{Completion, Delivery, Domain, Endpoint, Loopback, LoopbackRank};
use tsumugi_core::completion::{CompletionTable, Ticket};
use tsumugi_core::mem::{Access, Rank, Region, RegionKey, RemoteAddr, Width};
use tsumugi_core::op::{Kind, Op};
use tsumugi_core::tag::Tag;

const RANKS: usize = 3;
const DEPTH: usize = 8;
type Job = Loopback<'static, RANKS, 64, DEPTH>;
type Seen = LoopbackRank<'static, RANKS, 64, DEPTH>;

/// A job whose memory is the test's own, for as long as the test program runs.
struct InProcess {
    job: &'static Job,
    ranks: Vec<Seen>,
    notices: &'static Notices,
    tags: AtomicU64,
}

/// For each rank: the word that a waiter waits for, and the flag that it was notified.
#[derive(Default)]
struct Notices([(AtomicU64, AtomicU64); RANKS]);

impl InProcess {
    fn delivering(ranks: u32, delivery: Delivery) -> Self {
        let notices: &'static Notices = Box::leak(Box::default());
        let notify = Box::leak(Box::new(|addr: RemoteAddr, at: NonNull<u8>| {
            let (word, told) = &notices.0[addr.rank.0 as usize];
            if word.load(Ordering::SeqCst) == at.as_ptr() as u64 {
                told.fetch_add(1, Ordering::SeqCst);
            }
        }));
        let job: &'static Job =
            Box::leak(Box::new(Job::new(ranks).delivering(delivery).notifying(notify)));
        let ranks = (0..ranks).map(|rank| job.rank(Rank(rank))).collect();
        Self { job, ranks, notices, tags: AtomicU64::new(0) }
    }

    fn registered(&self, rank: Rank, bytes: u64, access: Access) -> Region {
        // One line at least, so that the base is aligned like a line.
        #[repr(align(64))]
        #[derive(Clone)]
        struct Line(#[allow(dead_code)] [u8; 64]);
        let lines = vec![Line([0; 64]); (bytes as usize).div_ceil(64).max(1)].leak();
        let base = NonNull::new(lines.as_mut_ptr()).unwrap().cast();
        // SAFETY: leaked, and used as nothing but bytes.
        unsafe { self.ranks[rank.0 as usize].register(base, bytes, access) }.unwrap()
    }
}

mod load_store {
    use super::*;

    impl tsumugi_conformance::load_store::Fixture for InProcess {
        type Memory = Seen;

        fn new(ranks: u32) -> Self {
            Self::delivering(ranks, Delivery::default())
        }

        fn memory(&self, rank: Rank) -> &Seen {
            &self.ranks[rank.0 as usize]
        }

        fn register(&self, rank: Rank, bytes: u64, access: Access) -> Region {
            self.registered(rank, bytes, access)
        }

        fn unregister(&self, rank: Rank, key: RegionKey) -> bool {
            self.ranks[rank.0 as usize].unregister(key)
        }

        fn kill(&self, rank: Rank) {
            self.job.kill(rank);
        }

        fn expect_notice(&self, rank: Rank, region: &Region, offset: u64) {
            let at = region.base.as_ptr() as u64 + offset;
            self.notices.0[rank.0 as usize].0.store(at, Ordering::SeqCst);
        }

        fn has_notice(&self, rank: Rank) -> bool {
            self.notices.0[rank.0 as usize].1.swap(0, Ordering::SeqCst) != 0
        }
    }

    tsumugi_conformance::load_store!(InProcess);
}

/// A fixture that delivers as `$delivery` says.
macro_rules! endpoints {
    ($module:ident, $delivery:expr) => {
        mod $module {
            use super::*;

            struct Queue(InProcess);

            impl tsumugi_conformance::endpoint::Fixture for Queue {
                type Domain = Seen;

                fn new(ranks: u32) -> Self {
                    Self(InProcess::delivering(ranks, $delivery))
                }

                fn domain(&self) -> &Seen {
                    &self.0.ranks[0]
                }

                fn register(&self, rank: Rank, bytes: u64, access: Access) -> Region {
                    self.0.registered(rank, bytes, access)
                }

                fn tag(&self) -> Tag {
                    Tag::from_bits(self.0.tags.fetch_add(1, Ordering::Relaxed))
                }
            }

            tsumugi_conformance::endpoint!(Queue);
        }
    };
}

endpoints!(at_once, Delivery::default());
endpoints!(late, Delivery { late_polls: 3, shuffle: None });
endpoints!(shuffled, Delivery { late_polls: 0, shuffle: Some(1) });
endpoints!(late_and_shuffled, Delivery { late_polls: 2, shuffle: Some(0) });

fn add(region: &Region, operand: u64) -> Op {
    let remote = RemoteAddr { rank: Rank(1), key: region.key, offset: 0 };
    Op::atomic(Kind::FetchAdd, remote, operand)
}

#[test]
fn an_operation_takes_effect_when_it_is_delivered() {
    let job = InProcess::delivering(2, Delivery { late_polls: 2, shuffle: None });
    let region = job.registered(Rank(1), 8, Access::ReadWrite);
    let look = || {
        let remote = RemoteAddr { rank: Rank(1), key: region.key, offset: 0 };
        tsumugi_core::backend::execute(&job.ranks[0], &Op::get_word(remote, Width::W8)).unwrap()
    };
    let (mut endpoint, mut buffer) = (job.ranks[0].endpoint(), [Completion::EMPTY; 4]);
    assert_eq!(endpoint.post(&[add(&region, 5)]), 1);
    assert_eq!((endpoint.poll(&mut buffer), endpoint.poll(&mut buffer), look()), (0, 0, 0));
    endpoint.hold(true);
    assert_eq!((endpoint.poll(&mut buffer), look(), endpoint.in_flight()), (0, 0, 1));
    endpoint.hold(false);
    assert_eq!((endpoint.poll(&mut buffer), look(), endpoint.in_flight()), (1, 5, 0));
    assert!(!endpoint.arm());
}

#[test]
fn a_seed_draws_the_same_order_each_time() {
    let order = |seed| {
        let job = InProcess::delivering(2, Delivery { late_polls: 0, shuffle: Some(seed) });
        let region = job.registered(Rank(1), 8, Access::ReadWrite);
        let ops: [Op; DEPTH] =
            std::array::from_fn(|i| add(&region, 1).tagged(Tag::from_bits(i as u64)));
        let mut endpoint = job.ranks[0].endpoint();
        let mut buffer = [Completion::EMPTY; DEPTH];
        assert_eq!(endpoint.post(&ops), DEPTH);
        assert_eq!(endpoint.poll(&mut buffer), DEPTH);
        buffer.map(|completion| completion.tag.to_bits())
    };
    assert_eq!(order(7), order(7));
    assert!((1..20).any(|seed| !order(seed).is_sorted()), "at least one seed shuffles");
}

#[test]
fn tickets_of_a_shuffled_queue_each_get_their_own_result() {
    let job = InProcess::delivering(2, Delivery { late_polls: 1, shuffle: Some(5) });
    let table = CompletionTable::<1>::new();
    let view = table.view();
    let regions: Vec<Region> =
        (0..DEPTH).map(|_| job.registered(Rank(1), 8, Access::ReadWrite)).collect();
    let mut endpoint = job.ranks[0].endpoint();
    for round in 0..20 {
        let tickets: Vec<Ticket<'_, usize>> =
            (0..DEPTH).map(|index| view.try_begin(0, index).unwrap()).collect();
        for (ticket, region) in tickets.iter().zip(&regions) {
            assert_eq!(endpoint.post(&[add(region, 1).tagged(ticket.tag())]), 1);
        }
        assert_eq!(endpoint.post(&[add(&regions[0], 1)]), 0, "the queue is full");
        let mut buffer = [Completion::EMPTY; 3];
        while endpoint.in_flight() > 0 {
            let count = endpoint.poll(&mut buffer);
            for completion in &buffer[..count] {
                assert!(view.complete(completion.tag, completion.result));
            }
        }
        for (index, ticket) in tickets.into_iter().enumerate() {
            let outcome = ticket.try_finish().unwrap();
            assert_eq!((outcome.result, outcome.buf), (Ok(round), index));
        }
    }
    assert_eq!(view.in_flight(), 0);
}

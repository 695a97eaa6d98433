//! Random schedules of mixes that are too large for an exhaustive exploration: several threads
//! of each kind, several operations each.
//!
//! Every schedule is sequentially consistent, so that loom checks the orderings and this test
//! the order of steps. Each mix must pass, and fail with each of its planted defects.
//!
//! Built only with `--cfg tsumugi_loom --cfg tsumugi_shuttle`: see
//! `ci/shuttle.sh`.
#![cfg(tsumugi_shuttle)]

mod threads;

use shuttle::sync::Arc;
use shuttle::thread;
use std::panic::{AssertUnwindSafe, catch_unwind};
use threads::Threads;
use tsumugi_core::backend::{Completion, Endpoint};
use tsumugi_core::completion::{CompletionTable, Completions};
use tsumugi_core::engine::{Delegate, Port, PortCounts, Work};
use tsumugi_core::mem::{Rank, RegionKey, RemoteAddr, Width};
use tsumugi_core::op::Op;
use tsumugi_core::ring::Mpsc;
use tsumugi_core::signal::{ParkingLot, Until, Waiters};
use tsumugi_core::sync::{AtomicU64, AtomicUsize, Ordering, with_mutant};
use tsumugi_core::tag::TagTable;

/// Schedules of a mix as it is; `TSUMUGI_TEST_SCHEDULES` overrides.
const SCHEDULES: usize = 20_000;
/// Schedules within which a planted defect must be met.
const SCHEDULES_PLANTED: usize = 20_000;

/// Runs `mix` on many schedules, and then until it fails with each mutant.
fn check(mutants: &'static [&'static str], mix: fn()) {
    let schedules = std::env::var("TSUMUGI_TEST_SCHEDULES").ok().and_then(|n| n.parse().ok());
    let schedules = schedules.unwrap_or(SCHEDULES);
    shuttle::check_random(mix, schedules / 2);
    shuttle::check_pct(mix, schedules / 2, 3);
    for mutant in mutants {
        // In another OS thread, so that the data which a failed mix leaves behind stay there.
        let run = std::thread::spawn(move || {
            let run = || with_mutant(mutant, || shuttle::check_random(mix, SCHEDULES_PLANTED));
            catch_unwind(AssertUnwindSafe(run)).is_err()
        });
        assert!(run.join().unwrap(), "the mutant {mutant} was not caught");
    }
}

/// A device that completes operations in reverse order.
struct Stack(Vec<Completion>);

impl Endpoint for Stack {
    fn post(&mut self, ops: &[Op]) -> usize {
        let room = 3usize.saturating_sub(self.0.len()).min(ops.len());
        self.0.extend(ops[..room].iter().map(|op| Completion { tag: op.tag, result: Ok(7) }));
        room
    }

    fn poll(&mut self, completions: &mut [Completion]) -> usize {
        let Some(done) = self.0.pop() else { return 0 };
        completions[0] = done;
        1
    }

    fn arm(&mut self) -> bool {
        true
    }
}

fn get() -> Op {
    let addr = RemoteAddr { rank: Rank(0), key: RegionKey::new(0, 1), offset: 0 };
    Op::get_word(addr, Width::W8)
}

/// Three threads submit through one delegate and sleep; one polls.
fn delegates() {
    struct Parts {
        table: CompletionTable<4>,
        ring: Mpsc<Work, 2>,
        counts: PortCounts,
    }
    let parts: &'static Parts = Box::leak(Box::new(Parts {
        table: CompletionTable::new(),
        ring: Mpsc::new(),
        counts: PortCounts::new(),
    }));
    let port = Port::new(Stack(Vec::new()), parts.table.view(), &parts.counts);
    // SAFETY: no other consumer pops.
    let delegate = Arc::new(unsafe { Delegate::new(port, parts.ring.view()) });
    let table: Completions<'static> = parts.table.view();
    let left = Arc::new(AtomicUsize::new(3));
    let requesters: Vec<_> = (0..3)
        .map(|hint| {
            let (delegate, left) = (delegate.clone(), left.clone());
            thread::spawn(move || {
                for _ in 0..2 {
                    let ticket = table.try_begin(hint, ()).expect("a tag for each");
                    let mut op = get().tagged(ticket.tag());
                    while let Err(back) = delegate.enqueue(op) {
                        op = back;
                        delegate.poll();
                        thread::yield_now();
                    }
                    assert_eq!(ticket.wait(&Threads).result, Ok(7));
                }
                left.fetch_sub(1, Ordering::SeqCst);
            })
        })
        .collect();
    let mut turns = 0;
    while left.load(Ordering::SeqCst) > 0 {
        delegate.poll();
        thread::yield_now();
        turns += 1;
        assert!(turns < 5_000, "an operation was left behind");
    }
    requesters.into_iter().for_each(|requester| requester.join().unwrap());
    assert_eq!(table.in_flight(), 0);
}

#[test]
fn a_delegate_serves_all() {
    check(&["completion_arm_without_look"], delegates);
}

/// Three producers fill a small ring that one consumer empties.
fn producers() {
    let ring = Arc::new(Mpsc::<u64, 4>::new());
    let producers: Vec<_> = (0..3u64)
        .map(|producer| {
            let ring = ring.clone();
            thread::spawn(move || {
                for index in 0..4 {
                    let mut value = producer * 10 + index;
                    while let Err(back) = ring.try_push(value) {
                        value = back;
                        thread::yield_now();
                    }
                }
            })
        })
        .collect();
    // SAFETY: the only consumer.
    let mut consumer = unsafe { ring.view().consumer() };
    let mut next = [0; 3];
    let mut turns = 0;
    while next.iter().sum::<u64>() < 12 {
        if let Some(value) = consumer.try_pop() {
            let (producer, index) = ((value / 10) as usize, value % 10);
            assert_eq!(next[producer], index, "of producer {producer}");
            next[producer] += 1;
        }
        thread::yield_now();
        turns += 1;
        assert!(turns < 5_000, "an element was lost");
    }
    producers.into_iter().for_each(|producer| producer.join().unwrap());
    assert_eq!(consumer.try_pop(), None);
}

#[test]
fn a_ring_keeps_what_three_producers_push() {
    check(&["mpsc_claim_load_store"], producers);
}

/// Four threads take and give back three tags.
fn tags() {
    let table = Arc::new(TagTable::<4>::new());
    let held: Arc<Vec<AtomicUsize>> = Arc::new((0..64).map(|_| AtomicUsize::new(0)).collect());
    // All tags but three are taken.
    for _ in 3..table.pool().len() {
        table.pool().try_take(0).unwrap();
    }
    let threads: Vec<_> = (0..4)
        .map(|hint| {
            let (table, held) = (table.clone(), held.clone());
            thread::spawn(move || {
                for _ in 0..3 {
                    let Some(tag) = table.pool().try_take(hint) else {
                        thread::yield_now();
                        continue;
                    };
                    let holders = held[tag.index()].fetch_add(1, Ordering::SeqCst);
                    assert_eq!(holders, 0, "{tag:?} has two holders");
                    thread::yield_now();
                    held[tag.index()].fetch_sub(1, Ordering::SeqCst);
                    assert!(table.pool().release(tag));
                    assert!(!table.pool().release(tag), "a tag is released once");
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(table.pool().available(), 3);
}

#[test]
fn a_tag_has_one_holder() {
    check(&["tag_take_load_store"], tags);
}

/// Three ULTs wait for two words; two ranks change them; two workers drain.
fn signals() {
    let parking_lot = Arc::new(ParkingLot::new());
    let waiters = Arc::new(Waiters::new());
    let words: Arc<[AtomicU64; 2]> = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
    let left = Arc::new(AtomicUsize::new(3));
    let sleepers: Vec<_> = (0..3)
        .map(|index| {
            let (parking_lot, waiters, words, left) =
                (parking_lot.clone(), waiters.clone(), words.clone(), left.clone());
            thread::spawn(move || {
                let wanted = 1 + index as u64 / 2;
                let word = &words[index % 2];
                let value =
                    waiters.wait(&parking_lot, word, Until::AtLeast(wanted), &Threads).unwrap();
                assert!(value >= wanted);
                left.fetch_sub(1, Ordering::SeqCst);
            })
        })
        .collect();
    let notifiers: Vec<_> = (0..2)
        .map(|index| {
            let (parking_lot, words) = (parking_lot.clone(), words.clone());
            thread::spawn(move || {
                for _ in 0..2 {
                    words[index].fetch_add(1, Ordering::SeqCst);
                    // The workers below never sleep: no bell is needed.
                    let _ = parking_lot.announce((&raw const words[index]) as u64);
                }
            })
        })
        .collect();
    let workers: Vec<_> = (0..2)
        .map(|_| {
            let (parking_lot, waiters, left) = (parking_lot.clone(), waiters.clone(), left.clone());
            thread::spawn(move || {
                let mut turns = 0;
                while left.load(Ordering::SeqCst) > 0 {
                    waiters.drain(&parking_lot);
                    thread::yield_now();
                    turns += 1;
                    assert!(turns < 5_000, "a waiter was not woken");
                }
            })
        })
        .collect();
    for thread in sleepers.into_iter().chain(notifiers).chain(workers) {
        thread.join().unwrap();
    }
}

#[test]
fn every_waiter_of_a_signal_is_woken() {
    check(&["signal_no_second_look"], signals);
}

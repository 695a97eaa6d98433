//! An owner, which works its ring alone, over a device under the control of the test.

use super::super::*;
use super::script::*;
use crate::completion::CompletionTable;
use crate::ring::Mpsc;
use crate::sync::{AtomicU32, Ordering};
use core::time::Duration;
use std::boxed::Box;
use std::vec::Vec;

/// A futex with a scripted sleep of the owner: the script gets the number of
/// earlier sleeps, and returns whether an event has come.
struct Sleeper<F> {
    sleep: F,
    sleeps: AtomicU32,
    wakes: AtomicU32,
}

impl<F: Fn(u32, Option<Duration>) -> bool + Sync> Sleeper<F> {
    fn new(sleep: F) -> Self {
        Self { sleep, sleeps: AtomicU32::new(0), wakes: AtomicU32::new(0) }
    }

    fn seen(&self) -> (u32, u32) {
        (self.sleeps.load(Ordering::SeqCst), self.wakes.load(Ordering::SeqCst))
    }
}

impl<F: Fn(u32, Option<Duration>) -> bool + Sync> Futex for Sleeper<F> {
    fn wait(&self, word: &AtomicU32, expected: u32, limit: Option<Duration>) {
        assert_eq!(
            word.load(Ordering::SeqCst),
            expected,
            "the owner sleeps until the word changes"
        );
        let has_come = (self.sleep)(self.sleeps.fetch_add(1, Ordering::SeqCst), limit);
        assert_eq!(word.load(Ordering::SeqCst) != expected, has_come);
    }

    fn wake(&self, _: &AtomicU32, count: u32) {
        assert_eq!(count, 1, "one thread sleeps on it");
        self.wakes.fetch_add(1, Ordering::SeqCst);
    }
}

/// An owner that may not sleep.
fn never(_: u32, _: Option<Duration>) -> bool {
    panic!("the owner has work");
}

macro_rules! owner {
    ($offload:ident, $owner:ident, $view:ident, $device:expr) => {
        let table = CompletionTable::<2>::new();
        let $view = table.view();
        let ring = Mpsc::<Work, 128>::new();
        let told = PortCounts::new();
        let $offload = Offload::new(ring.view());
        // SAFETY: the only owner.
        let mut $owner = unsafe { $offload.owner(Port::new($device, $view, &told)) };
    };
}

#[test]
fn a_turn_returns_whether_there_was_work() {
    let (device, ends, futex) = (Device::new(0), AtomicU32::new(0), Sleeper::new(never));
    owner!(offload, owner, view, device.clone());
    assert!(!owner.turn());
    offload.enqueue(counted(&view, &ends), &futex).unwrap();
    assert_eq!(offload.backlog(), 1);
    assert!(owner.turn(), "an operation was taken out of the ring");
    assert!(!owner.turn());
    device.script().room = 1;
    assert!(owner.turn(), "the operation was posted");
    assert!(!owner.turn());
    device.end_all();
    assert!(owner.turn(), "the operation has ended");
    assert!(!owner.turn());
    offload.enqueue(counted(&view, &ends), &futex).unwrap();
    assert!(owner.turn(), "taken and posted");
    device.end_all();
    assert!(owner.turn() && !owner.turn());
    assert_eq!((ends.load(Ordering::Relaxed), futex.seen()), (2, (0, 0)));
}

#[test]
fn an_owner_without_room_leaves_operations_in_the_ring() {
    let (device, ends, futex) = (Device::new(0), AtomicU32::new(0), Sleeper::new(never));
    owner!(offload, owner, view, device.clone());
    let ops: Vec<Op> = (0..100).map(|_| counted(&view, &ends)).collect();
    for op in &ops {
        offload.enqueue(*op, &futex).unwrap();
    }
    assert!(owner.turn() && !owner.turn());
    assert_eq!(offload.backlog(), 100 - BATCH_MAX);
    device.script().room = 1;
    assert!(owner.turn());
    let left = offload.backlog();
    assert!((1..100 - BATCH_MAX).contains(&left), "completions are polled in between");
    while owner.turn() {}
    assert_eq!(offload.backlog(), 0);
    assert_eq!(device.indices(), ops.iter().map(|op| op.tag.index()).collect::<Vec<_>>());
}

#[test]
fn a_full_ring_gives_work_back() {
    let (device, futex) = (Device::new(16), Sleeper::new(never));
    owner!(offload, owner, view, device.clone());
    for _ in 0..128 {
        offload.enqueue(get(), &futex).unwrap();
    }
    assert_eq!(offload.enqueue(get(), &futex).unwrap_err().tag, get().tag);
    assert!(offload.push(Work::Op(get()), &futex).is_err());
    assert!(owner.turn());
    assert_eq!(view.in_flight(), 0);
    offload.push(Work::Op(get()), &futex).unwrap();
}

/// The owner spins, yields, and sleeps, in this order and as often as `Idle` says; while an
/// operation is in flight it does not sleep.
#[test]
fn an_owner_sleeps_after_its_spins_and_yields() {
    let (device, ends) = (Device::new(16), AtomicU32::new(0));
    owner!(offload, owner, view, device.clone());
    let (relaxed, polls_then) = (AtomicU32::new(0), AtomicU32::new(0));
    let wakes = AtomicU32::new(0);
    struct Bell<'a>(&'a AtomicU32);
    impl Futex for Bell<'_> {
        fn wait(&self, _: &AtomicU32, _: u32, _: Option<Duration>) {
            unreachable!("callers only wake")
        }
        fn wake(&self, _: &AtomicU32, count: u32) {
            self.0.fetch_add(count, Ordering::SeqCst);
        }
    }
    let op = counted(&view, &ends);
    let polls = || device.script().polls as u32;
    let futex = Sleeper::new(|sleeps, limit| {
        assert_eq!(limit, None);
        let relaxed = relaxed.load(Ordering::SeqCst);
        match sleeps {
            0 => {
                assert_eq!((relaxed, polls()), (3, 2 + 3 + 1));
                offload.enqueue(op, &Bell(&wakes)).unwrap();
            }
            1 => {
                let since = polls() - polls_then.load(Ordering::SeqCst);
                assert_eq!((relaxed, since), (13 + 3, 1 + 2 + 3 + 1));
                polls_then.store(polls(), Ordering::SeqCst);
                offload.stop(&Bell(&wakes));
            }
            _ => panic!("the owner was stopped"),
        }
        assert_eq!(wakes.load(Ordering::SeqCst), sleeps + 1, "the sleeping owner is woken");
        true
    });
    owner.run(Idle { spins: 2, yields: 3 }, &futex, &|| {
        if relaxed.fetch_add(1, Ordering::SeqCst) + 1 == 13 {
            polls_then.store(polls(), Ordering::SeqCst);
            device.end_all();
        }
    });
    assert_eq!((futex.seen(), ends.load(Ordering::Relaxed)), ((2, 0), 1));
    assert_eq!(relaxed.load(Ordering::SeqCst), 16 + 3, "the owner stops instead of sleeping");
    assert_eq!(polls() - polls_then.load(Ordering::SeqCst), 2 + 3 + 1);
}

#[test]
fn an_owner_does_not_sleep_while_it_has_work() {
    let (device, ends, futex) = (Device::new(16), AtomicU32::new(0), Sleeper::new(never));
    owner!(offload, owner, view, device.clone());
    offload.enqueue(counted(&view, &ends), &futex).unwrap();
    owner.sleep(&futex, None);
    assert!(owner.turn());
    owner.sleep(&futex, None);
    device.end_all();
    assert!(owner.turn());
    let limit = Some(Duration::from_millis(5));
    let idle = Sleeper::new(|_, given| {
        assert_eq!(given, limit);
        false
    });
    owner.sleep(&idle, limit);
    owner.sleep(&idle, limit);
    assert_eq!(idle.seen(), (2, 0));
    offload.stop(&futex);
    owner.sleep(&futex, None);
    assert_eq!(futex.seen(), (0, 0));
}

#[test]
fn a_stopped_owner_still_does_the_work_that_is_in_its_ring() {
    static ENDS: AtomicU32 = AtomicU32::new(0);
    let table: &'static _ = Box::leak(Box::new(CompletionTable::<1>::new()));
    let ring: &'static _ = Box::leak(Box::new(Mpsc::<Work, 4>::new()));
    let offload: &'static _ = Box::leak(Box::new(Offload::new(ring.view())));
    let (device, told) = (Device::new(16), PortCounts::new());
    // SAFETY: the only owner.
    let mut owner = unsafe { offload.owner(Port::new(device.clone(), table.view(), &told)) };
    let op = counted(&table.view(), &ENDS);
    let push = move || offload.enqueue(op, &Sleeper::new(never)).unwrap();
    device.script().hook = Some(Box::new(push));
    let futex = Sleeper::new(never);
    offload.stop(&futex);
    owner.run(Idle { spins: 0, yields: 0 }, &futex, &|| device.end_all());
    assert_eq!(ENDS.load(Ordering::Relaxed), 1);
}

//! The engine over queues that are late, out of order and full, and over one that
//! is immediate.

extern crate std;

use super::*;
use crate::backend::{Delivery, Domain, Loopback, Queued};
use crate::completion::CompletionTable;
use crate::mem::{Access, Rank, Region, RemoteAddr, Width};
use crate::op::Kind;
use crate::ring::Mpsc;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::wait::threads::Threads;
use crate::wait::{Reason, Waker};
use core::ptr::NonNull;
use core::time::Duration;
use std::boxed::Box;
use std::thread;
use std::vec::Vec;

mod callers;
mod delegates;
mod owners;
mod ports;
mod script;

type Job = Loopback<'static, 2>;

/// A job of two ranks and 64 words of rank 1's memory.
fn job(delivery: Delivery) -> (&'static Job, Region) {
    let job: &'static Job = Box::leak(Box::new(Loopback::new(2).delivering(delivery)));
    let memory: &'static mut [u64] = Box::leak(Box::new([0u64; 64]));
    let base = NonNull::from(memory).cast();
    // SAFETY: leaked, and used as a region alone.
    let region = unsafe { job.rank(Rank(1)).register(base, 512, Access::ReadWrite) };
    (job, region.unwrap())
}

fn word(region: &Region, index: u64) -> RemoteAddr {
    RemoteAddr { rank: Rank(1), key: region.key, offset: index * 8 }
}

/// An engine of one delegate over rank 0's endpoint.
macro_rules! delegate {
    ($engine:ident, $counts:ident, $endpoint:expr, $ring:expr) => {
        let table = CompletionTable::<1>::new();
        let ring = Mpsc::<Work, $ring>::new();
        let $counts = PortCounts::new();
        let port = Port::new($endpoint, table.view(), &$counts);
        // SAFETY: no other consumer pops from the ring.
        let executors = [Executor::Delegate(unsafe { Delegate::new(port, ring.view()) })];
        let $engine = Engine::new(table.view(), &executors);
        let _ = &$counts;
    };
}

#[test]
fn an_operation_that_ends_in_the_call_needs_no_tag() {
    let (job, region) = job(Delivery::default());
    delegate!(engine, counts, Queued::<_, 4>::new(job.rank(Rank(0))), 2);
    let put = Op::put_word(word(&region, 0), Width::W8, 7);
    assert!(matches!(engine.submit(0, put, "buf"), Ok(Status::Done(done)) if done.buf == "buf"));
    let get = Op::get_word(word(&region, 0), Width::W8);
    assert_eq!(engine.run(0, get, Retry::Yield, &Threads), Ok(7));
    assert_eq!(engine.completions().in_flight(), 0);
    assert_eq!(counts.posted.load(Ordering::Relaxed), 0);
}

#[test]
fn a_posted_operation_ends_in_a_poll() {
    let (job, region) = job(Delivery { late_polls: 2, shuffle: None });
    let rank = job.rank(Rank(0));
    delegate!(engine, counts, rank.endpoint(), 8);
    let put = Op::put_word(word(&region, 1), Width::W8, 9);
    let Ok(Status::Pending(ticket)) = engine.submit(0, put, ()) else { panic!("it ended early") };
    assert!(engine.needs_poll());
    let polls = (1..10).find(|_| engine.poll() == 1).expect("it ends");
    assert!(polls > 1, "the device delivers after several polls");
    assert_eq!(ticket.try_finish().unwrap().result, Ok(0));
    assert!(!engine.needs_poll());
}

#[test]
fn sixteen_operations_ring_one_doorbell() {
    let (job, region) = job(Delivery::default());
    let rank = job.rank(Rank(0));
    delegate!(engine, counts, rank.endpoint(), 8);
    let tickets: Vec<_> = (0..BATCH_MAX as u64)
        .map(|index| {
            let add = Op::atomic(Kind::FetchAdd, word(&region, index), 1u64);
            engine.post(0, add, ()).unwrap()
        })
        .collect();
    assert_eq!(counts.doorbells.load(Ordering::Relaxed), 1);
    assert_eq!(counts.posted.load(Ordering::Relaxed), BATCH_MAX as u64);
    while engine.poll() > 0 {}
    assert!(tickets.into_iter().all(|ticket| ticket.try_finish().unwrap().result == Ok(0)));
}

#[test]
fn an_operation_without_a_free_tag_is_refused() {
    let (job, region) = job(Delivery { late_polls: 1, shuffle: None });
    let rank = job.rank(Rank(0));
    delegate!(engine, counts, rank.endpoint(), 64);
    let get = Op::get_word(word(&region, 0), Width::W8);
    let tickets: Vec<_> = (0..64).map(|_| engine.post(0, get, 5u8).unwrap()).collect();
    let busy = engine.post(0, get, 6u8).unwrap_err();
    assert_eq!((busy.buf, busy.why), (6, Why::NoTag));
    while engine.poll() > 0 || engine.needs_poll() {}
    assert!(tickets.into_iter().all(|ticket| ticket.try_finish().unwrap().buf == 5));
    assert!(engine.post(0, get, ()).is_ok());
}

#[test]
fn a_callback_may_submit() {
    struct Chain {
        engine: *const (),
        post: fn(*const (), Op, *mut ()),
        left: AtomicU32,
        next: Op,
    }
    let (job, region) = job(Delivery { late_polls: 1, shuffle: Some(3) });
    let rank = job.rank(Rank(0));
    delegate!(engine, counts, rank.endpoint(), 8);
    fn again(data: *mut (), result: Result<u64, AddrError>) {
        result.unwrap();
        // SAFETY: the chain outlives the engine's work.
        let chain = unsafe { &*data.cast::<Chain>() };
        if chain.left.fetch_sub(1, Ordering::Relaxed) > 1 {
            (chain.post)(chain.engine, chain.next, data);
        }
    }
    fn post<E: Endpoint>(engine: *const (), op: Op, data: *mut ()) {
        // SAFETY: the engine outlives its callbacks.
        let engine = unsafe { &*engine.cast::<Engine<'_, E>>() };
        // SAFETY: the chain is only touched through atomics.
        engine.post_callback(0, op, unsafe { Callback::new(again, data) }).unwrap();
    }
    fn poster<E: Endpoint>(_: &Engine<'_, E>) -> fn(*const (), Op, *mut ()) {
        post::<E>
    }
    let next = Op::atomic(Kind::FetchAdd, word(&region, 2), 1u64);
    let chain = Chain {
        engine: (&raw const engine).cast(),
        post: poster(&engine),
        left: AtomicU32::new(20),
        next,
    };
    post_first(&chain);
    fn post_first(chain: &Chain) {
        (chain.post)(chain.engine, chain.next, (&raw const *chain).cast_mut().cast());
    }
    while chain.left.load(Ordering::Relaxed) > 0 {
        engine.poll();
    }
    let get = Op::get_word(word(&region, 2), Width::W8);
    let Ok(Status::Pending(ticket)) = engine.submit(0, get, ()) else { panic!("not queued") };
    while !ticket.is_done() {
        engine.poll();
    }
    assert_eq!(ticket.try_finish().unwrap().result, Ok(20));
}

#[test]
fn a_panicking_callback_does_not_stop_other_completions() {
    fn panics(_: *mut (), _: Result<u64, AddrError>) {
        panic!("a callback has had enough");
    }
    let (job, region) = job(Delivery::default());
    let rank = job.rank(Rank(0));
    delegate!(engine, counts, rank.endpoint(), 8);
    let get = Op::get_word(word(&region, 0), Width::W8);
    let first = engine.post(0, get, ()).unwrap();
    // SAFETY: it touches nothing.
    let callback = unsafe { Callback::new(panics, core::ptr::null_mut()) };
    engine.post_callback(0, get, callback).unwrap();
    let last = engine.post(0, get, ()).unwrap();
    let polled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| engine.poll()));
    assert!(polled.is_err() && first.is_done() && !last.is_done());
    engine.poll();
    assert!(last.is_done() && !engine.needs_poll());
    assert_eq!(engine.completions().in_flight(), 2, "only the two tickets are in flight");
}

#[test]
fn threads_share_a_delegate() {
    let (job, region) = job(Delivery { late_polls: 1, shuffle: Some(9) });
    let rank = job.rank(Rank(0));
    delegate!(engine, counts, rank.endpoint(), 4);
    let rounds = 2_000;
    thread::scope(|scope| {
        for thread in 0..4 {
            let (engine, region) = (&engine, &region);
            scope.spawn(move || {
                let add = Op::atomic(Kind::FetchAdd, word(region, 5), 1u64);
                for _ in 0..rounds {
                    let ticket = loop {
                        match engine.post(thread, add, ()) {
                            Ok(ticket) => break ticket,
                            Err(_) => engine.retry(Retry::Yield, &Threads),
                        }
                    };
                    while !ticket.is_done() {
                        engine.poll();
                    }
                    ticket.try_finish().unwrap().result.unwrap();
                }
            });
        }
    });
    // SAFETY: registered memory that no thread changes any more.
    let sum = unsafe { region.base.cast::<u64>().add(5).read() };
    assert_eq!(sum, 4 * rounds);
}

#[test]
fn an_owner_serves_all_callers_and_sleeps_in_between() {
    let (job, region) = job(Delivery::default());
    let table = CompletionTable::<1>::new();
    let ring = Mpsc::<Work, 8>::new();
    let counts = PortCounts::new();
    let offload = Offload::new(ring.view());
    let futex = Words::default();
    thread::scope(|scope| {
        let (offload, futex) = (&offload, &futex);
        let port = Port::new(Queued::<_, 4>::new(job.rank(Rank(0))), table.view(), &counts);
        // SAFETY: the only owner.
        let mut owner = unsafe { offload.owner(port) };
        scope.spawn(move || {
            owner.run(Idle { spins: 10, yields: 2 }, futex, &thread::yield_now);
        });
        let requesters: Vec<_> = (0..3u64)
            .map(|thread| {
                let (region, view) = (&region, table.view());
                scope.spawn(move || {
                    for round in 0..500 {
                        let add = Op::atomic(Kind::FetchAdd, word(region, thread), 1u64);
                        let ticket = loop {
                            if let Ok(ticket) = view.try_begin(thread as usize, ()) {
                                break ticket;
                            }
                            thread::yield_now();
                        };
                        let mut op = add.tagged(ticket.tag());
                        while let Err(back) = offload.enqueue(op, futex) {
                            op = back;
                            thread::yield_now();
                        }
                        assert_eq!(ticket.wait(&Threads).result, Ok(round));
                        if round % 100 == 0 {
                            thread::sleep(Duration::from_millis(2));
                        }
                    }
                })
            })
            .collect();
        requesters.into_iter().for_each(|requester| requester.join().unwrap());
        while futex.waits.load(Ordering::Relaxed) == 0 {
            // The owner has nothing left to do, so it goes to sleep.
            thread::yield_now();
        }
        offload.stop(futex);
    });
    assert_eq!(counts.completed.load(Ordering::Relaxed), 1500);
}

#[test]
fn foreign_calls_are_made_in_turn() {
    unsafe fn count(data: *mut ()) {
        // SAFETY: the count of the test, which waits for it.
        unsafe { &*data.cast::<AtomicU32>() }.fetch_add(1, Ordering::SeqCst);
    }
    let (job, region) = job(Delivery { late_polls: 1, shuffle: None });
    let rank = job.rank(Rank(0));
    delegate!(engine, counts, rank.endpoint(), 4);
    let made = AtomicU32::new(0);
    let data = (&raw const made).cast_mut().cast();
    let get = Op::get_word(word(&region, 0), Width::W8);
    let ticket = engine.post(0, get, ()).unwrap();
    // SAFETY: an atomic that outlives the engine's work.
    engine.call(0, unsafe { DeferredCall::new(count, data) }).unwrap();
    while !ticket.is_done() {
        engine.poll();
    }
    assert_eq!(made.load(Ordering::SeqCst), 1);
}

/// A thread with a scripted sleep: the script must wake it.
struct Scripted<F: Fn(Reason)>(F, AtomicU32);

impl<F: Fn(Reason)> Scripted<F> {
    fn new(script: F) -> Self {
        Self(script, AtomicU32::new(0))
    }
}

// SAFETY: there is one thread, and a sleep returns after the wake, or panics.
unsafe impl<F: Fn(Reason) + Sync> Wait for Scripted<F> {
    unsafe fn sleep(&self, reason: Reason, commit: &mut dyn FnMut(Waker) -> bool) {
        unsafe fn wake(woken: *const ()) {
            // SAFETY: the count of a test, which outlives the sleep.
            unsafe { &*woken.cast::<AtomicU32>() }.fetch_add(1, Ordering::Relaxed);
        }
        let before = self.1.load(Ordering::Relaxed);
        // SAFETY: an atomic that outlives the sleep.
        let stays = commit(unsafe { Waker::new((&raw const self.1).cast(), wake) });
        (self.0)(reason);
        let wakes = self.1.load(Ordering::Relaxed) - before;
        assert_eq!(wakes, u32::from(stays), "of {reason:?}");
    }

    fn yield_now(&self) {}
}

/// Polls until no operation is in flight.
fn poll_all<E: Endpoint>(engine: &Engine<'_, E>) {
    while engine.needs_poll() {
        engine.poll();
    }
}

/// A caller that waits for a tag sleeps until one is free.
#[test]
fn there_is_room_while_a_tag_is_free() {
    let (job, region) = job(Delivery::default());
    let rank = job.rank(Rank(0));
    delegate!(engine, counts, rank.endpoint(), 64);
    let get = Op::get_word(word(&region, 0), Width::W8);
    let mut tickets = Vec::new();
    for posted in 0..64 {
        assert!(engine.has_room(), "{posted} of 64");
        tickets.push(engine.post(0, get, ()).unwrap());
    }
    assert!(!engine.has_room());
    poll_all(&engine);
    tickets.pop().unwrap().try_finish().unwrap();
    assert!(engine.has_room());
}

/// A tag is free when its operation is finished, which is after its completion:
/// the thread that finishes the operation wakes the callers that wait for a tag.
#[test]
fn a_finished_operation_wakes_a_waiter_for_room() {
    let (job, region) = job(Delivery::default());
    let rank = job.rank(Rank(0));
    delegate!(engine, counts, rank.endpoint(), 64);
    let get = Op::get_word(word(&region, 0), Width::W8);
    let others: Vec<_> = (1..64).map(|_| engine.post(0, get, ()).unwrap()).collect();
    let last = engine.post(0, get, ()).unwrap();
    while !last.is_done() {
        engine.poll();
    }
    // A lock, because the thread that waits may be any thread.
    let last = std::sync::Mutex::new(Some(last));
    let waiter = Scripted::new(|reason: Reason| {
        let finished = last.lock().unwrap().take();
        match (reason.what, finished) {
            ("room", Some(ticket)) => {
                engine.wait(ticket, &Threads).unwrap();
            }
            ("completion", None) => poll_all(&engine),
            (what, _) => panic!("it waits for {what}"),
        }
    });
    assert_eq!(engine.run(0, get, Retry::Room, &waiter), Ok(0));
    assert_eq!(others.len(), 63);
}

/// A poll does the same, for operations with callbacks, which no caller finishes.
#[test]
fn a_poll_that_completes_wakes_a_waiter_for_room() {
    fn nothing(_: *mut (), _: Result<u64, AddrError>) {}
    let (job, region) = job(Delivery::default());
    let rank = job.rank(Rank(0));
    delegate!(engine, counts, rank.endpoint(), 64);
    let get = Op::get_word(word(&region, 0), Width::W8);
    for _ in 0..64 {
        // SAFETY: it touches nothing.
        let callback = unsafe { Callback::new(nothing, core::ptr::null_mut()) };
        engine.post_callback(0, get, callback).unwrap();
    }
    let waiter = Scripted::new(|_| poll_all(&engine));
    assert_eq!(engine.run(0, get, Retry::Room, &waiter), Ok(0));
}

#[test]
fn the_first_waiter_for_room_is_woken_first() {
    const WAITERS: usize = 3;
    let (room, order) = (WaiterStack::new(), std::sync::Mutex::new(Vec::new()));
    // Each waiter parks inside the sleep of the previous one; the innermost makes
    // room.
    fn wait(number: usize, room: &WaiterStack, order: &std::sync::Mutex<Vec<usize>>) {
        if number == WAITERS {
            return room.made();
        }
        struct Numbered<'a>(usize, &'a WaiterStack, &'a std::sync::Mutex<Vec<usize>>);
        // SAFETY: there is one thread, which goes on when all were woken.
        unsafe impl Wait for Numbered<'_> {
            unsafe fn sleep(&self, _: Reason, commit: &mut dyn FnMut(Waker) -> bool) {
                unsafe fn wake(data: *const ()) {
                    // SAFETY: the waiter, which sleeps.
                    let woken = unsafe { &*data.cast::<Numbered<'_>>() };
                    woken.2.lock().unwrap().push(woken.0);
                }
                // SAFETY: it outlives the sleep.
                assert!(commit(unsafe { Waker::new((&raw const *self).cast(), wake) }));
                wait(self.0 + 1, self.1, self.2);
            }

            fn yield_now(&self) {}
        }
        room.wait(&Numbered(number, room, order), &|| false);
    }
    wait(0, &room, &order);
    assert_eq!(*order.lock().unwrap(), [0, 1, 2]);
}

#[test]
fn made_room_wakes_a_waiter() {
    let room = WaiterStack::new();
    let free = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let take =
                    || free.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
                while take().is_err() {
                    room.wait(&Threads, &|| free.load(Ordering::SeqCst) > 0);
                }
            });
        }
        for _ in 0..3 {
            thread::sleep(Duration::from_millis(1));
            free.fetch_add(1, Ordering::SeqCst);
            room.made();
        }
    });
    assert_eq!(free.into_inner(), 0);
}

/// A futex of threads: a sleep is a loop of short ones.
#[derive(Default)]
struct Words {
    waits: AtomicU32,
}

impl Futex for Words {
    fn wait(&self, word: &AtomicU32, expected: u32, _: Option<Duration>) {
        self.waits.fetch_add(1, Ordering::Relaxed);
        while word.load(Ordering::SeqCst) == expected {
            thread::sleep(Duration::from_micros(50));
        }
    }

    fn wake(&self, _: &AtomicU32, _: u32) {}
}

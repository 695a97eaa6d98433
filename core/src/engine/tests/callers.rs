//! An engine as its callers see it: callbacks, executors with and without a
//! thread, and the ways to wait for room.

extern crate std;

use super::super::*;
use super::{Scripted, job, word};
use crate::backend::{Completion, Delivery, Domain, Queued};
use crate::completion::CompletionTable;
use crate::mem::{Rank, Width};
use crate::ring::Mpsc;
use crate::sync::{AtomicU32, Ordering};
use crate::wait::{Reason, Waker};
use core::time::Duration;
use std::format;

/// A device whose posts take as many operations as its first field, and that ends none.
struct Slow<'a>(usize, &'a AtomicU32);

impl Endpoint for Slow<'_> {
    fn post(&mut self, ops: &[Op]) -> usize {
        let taken = self.0.min(ops.len());
        self.0 -= taken;
        self.1.fetch_add(taken as u32, Ordering::Relaxed);
        taken
    }

    fn poll(&mut self, _: &mut [Completion]) -> usize {
        0
    }

    fn arm(&mut self) -> bool {
        true
    }
}

fn count(ends: *mut (), _: Result<u64, AddrError>) {
    // SAFETY: the count of a test, which outlives its operations.
    unsafe { &*ends.cast::<AtomicU32>() }.fetch_add(1, Ordering::Relaxed);
}

fn counting(ends: &AtomicU32) -> Callback {
    // SAFETY: an atomic, and the test waits for it.
    unsafe { Callback::new(count, (&raw const *ends).cast_mut().cast()) }
}

#[test]
fn the_callback_of_an_operation_that_ends_in_the_call_is_called_in_it() {
    let (job, region) = job(Delivery::default());
    let (told, ends) = (PortCounts::new(), AtomicU32::new(0));
    let table = CompletionTable::<1>::new();
    let ring = Mpsc::<Work, 2>::new();
    let port = Port::new(Queued::<_, 4>::new(job.rank(Rank(0))), table.view(), &told);
    // SAFETY: no other consumer pops from the ring.
    let executors = [Executor::Delegate(unsafe { Delegate::new(port, ring.view()) })];
    let engine = Engine::new(table.view(), &executors);
    let put = Op::put_word(word(&region, 0), Width::W8, 7);
    engine.submit_callback(0, put, counting(&ends)).unwrap();
    assert_eq!(ends.load(Ordering::Relaxed), 1);
    assert!(!engine.needs_poll() && engine.completions().in_flight() == 0);
    engine.post_callback(0, put, counting(&ends)).unwrap();
    assert_eq!(ends.load(Ordering::Relaxed), 1);
    assert_eq!((engine.poll(), engine.poll()), (1, 0));
    assert_eq!(ends.load(Ordering::Relaxed), 2);
}

#[test]
fn an_operation_that_finds_a_full_ring_leaves_no_trace() {
    let (_, region) = job(Delivery::default());
    let (told, ends, posted) = (PortCounts::new(), AtomicU32::new(0), AtomicU32::new(0));
    let table = CompletionTable::<1>::new();
    let ring = Mpsc::<Work, 2>::new();
    let port = Port::new(Slow(0, &posted), table.view(), &told);
    // SAFETY: no other consumer pops from the ring.
    let executors = [Executor::Delegate(unsafe { Delegate::new(port, ring.view()) })];
    let engine = Engine::new(table.view(), &executors);
    let get = Op::get_word(word(&region, 0), Width::W8);
    for _ in 0..BATCH_MAX + 2 {
        engine.post_callback(0, get, counting(&ends)).unwrap();
    }
    let in_flight = engine.completions().in_flight();
    assert_eq!(in_flight, BATCH_MAX + 2);
    let busy = |why: Result<(), Busy<()>>| why.unwrap_err().why;
    assert_eq!(busy(engine.post_callback(0, get, counting(&ends)).map(drop)), Why::RingFull);
    assert_eq!(busy(engine.submit_callback(0, get, counting(&ends))), Why::RingFull);
    assert_eq!(busy(engine.post(0, get, ()).map(drop)), Why::RingFull);
    assert_eq!(busy(engine.post_now(0, get, ()).map(drop)), Why::RingFull);
    // SAFETY: it is given back.
    assert!(engine.call(0, unsafe { DeferredCall::new(|_| (), core::ptr::null_mut()) }).is_err());
    assert_eq!((engine.completions().in_flight(), ends.load(Ordering::Relaxed)), (in_flight, 0));
    assert_eq!(posted.load(Ordering::Relaxed), 0);
}

/// A futex of an owner that never sleeps.
struct Awake;

impl Futex for Awake {
    fn wait(&self, _: &AtomicU32, _: u32, _: Option<Duration>) {}
    fn wake(&self, _: &AtomicU32, _: u32) {}
}

#[test]
fn an_owner_works_alone_and_any_caller_works_for_a_delegate() {
    let (_, region) = job(Delivery::default());
    let (told, posted) = (PortCounts::new(), AtomicU32::new(0));
    let (told_owner, posted_owner) = (PortCounts::new(), AtomicU32::new(0));
    let table = CompletionTable::<1>::new();
    let (ring, owners) = (Mpsc::<Work, 8>::new(), Mpsc::<Work, 8>::new());
    let port = Port::new(Slow(64, &posted), table.view(), &told);
    // SAFETY: no other consumer pops from the ring.
    let delegate = unsafe { Delegate::new(port, ring.view()) };
    let offload = Executor::Offload(Offload::new(owners.view()), &Awake);
    let executors = [Executor::Delegate(delegate), offload];
    let Executor::Offload(offload, _) = &executors[1] else { unreachable!("made above") };
    let port = Port::new(Slow(64, &posted_owner), table.view(), &told_owner);
    // SAFETY: the only owner.
    let mut owner = unsafe { offload.owner(port) };
    let engine = Engine::new(table.view(), &executors);
    let get = Op::get_word(word(&region, 0), Width::W8);
    let made = AtomicU32::new(0);
    unsafe fn make(made: *mut ()) {
        count(made, Ok(0));
    }
    // The operation of the owner: calls of other threads do not move it.
    let mut tickets = std::vec::Vec::new();
    tickets.push(engine.post(1, get, ()).unwrap());
    tickets.push(engine.post_now(3, get, ()).unwrap());
    let Ok(Status::Pending(ticket)) = engine.submit(5, get, ()) else { panic!("it is queued") };
    tickets.push(ticket);
    // SAFETY: an atomic that outlives the owner's turn.
    engine
        .call(1, unsafe { DeferredCall::new(make, (&raw const made).cast_mut().cast()) })
        .unwrap();
    assert_eq!((owners.view().len(), engine.poll()), (4, 0));
    engine.flush();
    assert!(!engine.needs_poll() && !engine.has_gathered(), "the owner works this ring");
    assert_eq!((owners.view().len(), made.load(Ordering::Relaxed)), (4, 0));
    assert!(owner.turn());
    assert_eq!((posted_owner.load(Ordering::Relaxed), made.load(Ordering::Relaxed)), (3, 1));
    // The operation of the delegate.
    tickets.push(engine.post(0, get, ()).unwrap());
    assert!(engine.has_gathered() && engine.needs_poll());
    assert_eq!(posted.load(Ordering::Relaxed), 0);
    engine.flush();
    assert!(!engine.has_gathered() && engine.needs_poll());
    assert_eq!(posted.load(Ordering::Relaxed), 1);
    tickets.push(engine.post_now(2, get, ()).unwrap());
    assert_eq!((posted.load(Ordering::Relaxed), posted_owner.load(Ordering::Relaxed)), (2, 3));
    // SAFETY: as above.
    engine
        .call(0, unsafe { DeferredCall::new(make, (&raw const made).cast_mut().cast()) })
        .unwrap();
    assert_eq!(made.load(Ordering::Relaxed), 2);
    core::mem::forget(tickets);
}

/// A thread that counts busy reports, yields and sleeps, and whose sleeps end at once.
#[derive(Default)]
struct Told {
    busy: AtomicU32,
    yields: AtomicU32,
    sleeps: AtomicU32,
}

// SAFETY: a sleep ends when it is refused, or panics.
unsafe impl Wait for Told {
    unsafe fn sleep(&self, _: Reason, commit: &mut dyn FnMut(Waker) -> bool) {
        unsafe fn wake(woken: *const ()) {
            // SAFETY: the count of a test, which outlives the sleep.
            unsafe { &*woken.cast::<AtomicU32>() }.fetch_add(1, Ordering::Relaxed);
        }
        let before = self.sleeps.load(Ordering::Relaxed);
        // SAFETY: an atomic that outlives the sleep.
        assert!(commit(unsafe { Waker::new((&raw const self.sleeps).cast(), wake) }));
        assert_eq!(
            self.sleeps.load(Ordering::Relaxed),
            before + 1,
            "there is room: the sleep ends at once"
        );
    }

    fn yield_now(&self) {
        self.yields.fetch_add(1, Ordering::Relaxed);
    }

    fn count(&self, counter: Counter) {
        assert_eq!(counter, Counter::Busy);
        self.busy.fetch_add(1, Ordering::Relaxed);
    }
}

impl Told {
    fn seen(&self) -> [u32; 3] {
        [&self.busy, &self.yields, &self.sleeps].map(|count| count.load(Ordering::Relaxed))
    }
}

#[test]
fn a_caller_without_room_polls_yields_or_sleeps() {
    let (job, region) = job(Delivery::default());
    let table = CompletionTable::<1>::new();
    let ring = Mpsc::<Work, 8>::new();
    let told = PortCounts::new();
    let rank = job.rank(Rank(0));
    let port = Port::new(rank.endpoint(), table.view(), &told);
    // SAFETY: no other consumer pops from the ring.
    let executors = [Executor::Delegate(unsafe { Delegate::new(port, ring.view()) })];
    let engine = Engine::new(table.view(), &executors);
    let get = Op::get_word(word(&region, 0), Width::W8);
    for retry in [Retry::AtOnce, Retry::Yield] {
        let ticket = engine.post(0, get, ()).unwrap();
        let (wait, mut rounds) = (Told::default(), 0);
        while !ticket.is_done() {
            engine.retry(retry, &wait);
            rounds += 1;
            assert!(rounds < 100, "it polls: {retry:?}");
        }
        let yields = if retry == Retry::Yield { rounds } else { 0 };
        assert_eq!(wait.seen(), [rounds, yields, 0], "{retry:?}");
        assert!(ticket.try_finish().is_ok());
    }
    let wait = Told::default();
    engine.retry(Retry::Room, &wait);
    assert_eq!(wait.seen(), [1, 0, 1]);
    assert!(format!("{:?}", engine.room).contains("(0 waiting)"));
}

#[test]
fn a_wait_for_an_operation_that_has_ended_does_not_sleep() {
    let (job, region) = job(Delivery { late_polls: 1, shuffle: None });
    let table = CompletionTable::<1>::new();
    let ring = Mpsc::<Work, 8>::new();
    let told = PortCounts::new();
    let rank = job.rank(Rank(0));
    let port = Port::new(rank.endpoint(), table.view(), &told);
    // SAFETY: no other consumer pops from the ring.
    let executors = [Executor::Delegate(unsafe { Delegate::new(port, ring.view()) })];
    let engine = Engine::new(table.view(), &executors);
    let put = Op::put_word(word(&region, 3), Width::W8, 6);
    let get = Op::get_word(word(&region, 3), Width::W8);
    let never = Scripted::new(|reason: Reason| panic!("it sleeps for {reason:?}"));
    for (op, result) in [(put, 0), (get, 6)] {
        let ticket = engine.post(0, op, ()).unwrap();
        while !ticket.is_done() {
            engine.poll();
        }
        assert_eq!(engine.wait(ticket, &never), Ok(result));
    }
    assert_eq!(engine.completions().in_flight(), 0);
}

#[test]
fn a_room_counts_its_waiters() {
    let room = WaiterStack::new();
    let none = format!("{room:?}");
    assert_eq!(none, "WaiterStack(0 waiting)");
    room.made();
    let waiter = Scripted::new(|_| {
        assert_eq!(format!("{room:?}"), "WaiterStack(1 waiting)");
        room.made();
    });
    room.wait(&waiter, &|| false);
    assert_eq!(format!("{room:?}"), none);
}

/// One operation that ends is enough.
#[test]
fn each_completion_makes_room() {
    let (job, region) = job(Delivery::default());
    let table = CompletionTable::<1>::new();
    let ring = Mpsc::<Work, 8>::new();
    let (told, ends) = (PortCounts::new(), AtomicU32::new(0));
    let rank = job.rank(Rank(0));
    let port = Port::new(rank.endpoint(), table.view(), &told);
    // SAFETY: no other consumer pops from the ring.
    let executors = [Executor::Delegate(unsafe { Delegate::new(port, ring.view()) })];
    let engine = Engine::new(table.view(), &executors);
    let get = Op::get_word(word(&region, 0), Width::W8);
    let held: std::vec::Vec<_> = (0..63).map(|_| engine.post(0, get, ()).unwrap()).collect();
    while engine.needs_poll() {
        engine.poll();
    }
    engine.post_callback(0, get, counting(&ends)).unwrap();
    assert_eq!(engine.post(0, get, ()).unwrap_err().why, Why::NoTag);
    let waiter = Scripted::new(|_| {
        while engine.needs_poll() {
            engine.poll();
        }
    });
    engine.retry(Retry::Room, &waiter);
    assert_eq!((ends.load(Ordering::Relaxed), held.len()), (1, 63));
    assert!(engine.post(0, get, ()).is_ok());
}

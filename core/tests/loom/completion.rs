//! Completion slots: one end for each life, which the waiter sees.
//!
//! Tags reach the completer through a relaxed word: a device orders nothing.

use crate::{Threads, check, retry};
use loom::thread;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::time::Duration;
use tsumugi_core::completion::{Callback, CompletionTable, OnEnd, Ticket};
use tsumugi_core::mem::AddrError;
use tsumugi_core::sync::{AtomicU32, AtomicU64, Ordering};
use tsumugi_core::tag::{Tag, TagPool};

struct Shared {
    table: CompletionTable<1>,
    device: AtomicU64,
    /// The sum that callbacks add to.
    sum: AtomicU32,
}

impl Shared {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            table: CompletionTable::new(),
            device: AtomicU64::new(Tag::NONE.to_bits()),
            sum: AtomicU32::new(0),
        })
    }

    fn post(&self, tag: Tag) {
        self.device.store(tag.to_bits(), Ordering::Relaxed);
    }

    /// Completes a posted operation, if it is visible yet.
    fn poll(&self, result: u64) -> bool {
        let tag = retry(2, || {
            let tag = Tag::from_bits(self.device.load(Ordering::Relaxed));
            (tag != Tag::NONE).then_some(tag)
        });
        tag.is_some_and(|tag| {
            assert!(self.table.view().complete(tag, Ok(result)), "{tag:?} was refused");
            true
        })
    }

    fn adding(self: &Arc<Self>) -> Callback {
        // SAFETY: an atomic of a model, which outlives its threads.
        unsafe { Callback::new(add, (&raw const self.sum).cast_mut().cast()) }
    }

    fn assert_idle(&self) {
        let view = self.table.view();
        assert_eq!(view.in_flight(), 0);
        let all = [(); TagPool::PER_SHARD].map(|()| view.try_begin(0, ()).unwrap());
        for ticket in all {
            // SAFETY: nothing is posted.
            unsafe { ticket.retract() };
        }
    }
}

fn add(data: *mut (), result: Result<u64, AddrError>) {
    // SAFETY: `adding` handed it in.
    let sum = unsafe { &*data.cast::<AtomicU32>() };
    sum.fetch_add(result.unwrap() as u32, Ordering::Relaxed);
}

/// A task that does nothing when woken: the test polls by itself.
struct Idle;

impl Wake for Idle {
    fn wake(self: Arc<Self>) {}
}

/// A task that counts how often it is woken.
#[derive(Default)]
struct Wakes(AtomicU32);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A buffer that counts its end.
#[derive(Debug)]
struct Counted(Arc<AtomicU32>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn finish<B: Send>(ticket: Ticket<'_, B>) -> u64 {
    ticket.try_finish().unwrap_or_else(|ticket| panic!("{ticket:?} is not done")).result.unwrap()
}

#[test]
fn a_poller_sees_the_result() {
    check(&["completion_done_relaxed"], || {
        let shared = Shared::new();
        let ticket = shared.table.view().try_begin(0, 5u64).unwrap();
        let polling = shared.clone();
        shared.post(ticket.tag());
        let poller = thread::spawn(move || polling.poll(9));
        let mut ticket = Some(ticket);
        let outcome = retry(2, || match ticket.take().unwrap().try_finish() {
            Ok(outcome) => Some(outcome),
            Err(back) => {
                ticket = Some(back);
                None
            }
        });
        assert!(poller.join().unwrap());
        let outcome = outcome.unwrap_or_else(|| ticket.unwrap().try_finish().unwrap());
        assert_eq!((outcome.result, outcome.buf), (Ok(9), 5));
        shared.assert_idle();
    });
}

#[test]
fn a_callback_is_whole_and_its_tag_free_before_it_runs() {
    let mutants =
        ["completion_begin_relaxed", "completion_free_before_copy", "completion_stale_trusted"];
    check(&mutants, || {
        let shared = Shared::new();
        let view = shared.table.view();
        let other = view.try_begin(0, ()).unwrap();
        let polling = shared.clone();
        let poller = thread::spawn(move || polling.poll(4));
        shared.post(view.try_begin_callback(0, shared.adding()).unwrap());
        // The tag is taken again as soon as it is free.
        let again = retry(2, || view.try_begin_callback(0, shared.adding()));
        let ended = poller.join().unwrap();
        assert_eq!(shared.sum.load(Ordering::Relaxed), if ended { 4 } else { 0 });
        assert!(again.is_none() || ended);
        drop(other);
    });
}

/// A callback in the slot: adds its own value and the result to the sum.
struct Adds(Arc<Shared>, u32);

impl OnEnd for Adds {
    fn ended(self, result: Result<u64, AddrError>) {
        self.0.sum.fetch_add(self.1 + result.unwrap() as u32, Ordering::Relaxed);
    }
}

#[test]
fn a_callback_in_its_slot_is_taken_out_before_the_tag_is_free() {
    let mutants =
        ["completion_begin_relaxed", "completion_free_before_copy", "completion_stale_trusted"];
    check(&mutants, || {
        let shared = Shared::new();
        let view = shared.table.view();
        let other = view.try_begin(0, ()).unwrap();
        let polling = shared.clone();
        let poller = thread::spawn(move || polling.poll(4));
        shared.post(view.try_begin_owned(0, Adds(shared.clone(), 1)).ok().unwrap());
        // The tag is taken again as soon as it is free.
        let again = retry(2, || view.try_begin_owned(0, Adds(shared.clone(), 9)).ok());
        let ended = poller.join().unwrap();
        assert_eq!(shared.sum.load(Ordering::Relaxed), if ended { 5 } else { 0 });
        assert!(again.is_none() || ended);
        let left = again
            .or_else(|| (!ended).then(|| Tag::from_bits(shared.device.load(Ordering::Relaxed))));
        if let Some(tag) = left {
            // SAFETY: it owns an `Adds`, and no thread completes it any more.
            drop(unsafe { view.retract_owned::<Adds>(tag) });
        }
        drop(other);
    });
}

#[test]
fn a_sleeper_is_woken() {
    check(&["completion_arm_without_look", "completion_done_relaxed"], || {
        let shared = Shared::new();
        let ticket = shared.table.view().try_begin(0, ()).unwrap();
        let (polling, tag) = (shared.clone(), ticket.tag());
        let poller = thread::spawn(move || polling.table.view().complete(tag, Ok(3)));
        assert_eq!(ticket.wait(&Threads).result, Ok(3));
        assert!(poller.join().unwrap());
        shared.assert_idle();
    });
}

#[test]
fn a_sleeper_with_a_limit_wins_or_keeps_its_ticket() {
    check(&["completion_done_relaxed"], || {
        let shared = Shared::new();
        let view = shared.table.view();
        let ticket = view.try_begin(0, Box::new(5)).unwrap();
        let (polling, tag) = (shared.clone(), ticket.tag());
        let poller = thread::spawn(move || polling.table.view().complete(tag, Ok(3)));
        let outcome = match ticket.wait_timeout(&Threads, Duration::ZERO) {
            Ok(outcome) => outcome,
            Err(overdue) => overdue.ticket.wait(&Threads),
        };
        assert_eq!((outcome.result, *outcome.buf), (Ok(3), 5));
        assert!(poller.join().unwrap());
        shared.assert_idle();
    });
}

#[test]
fn a_future_that_is_finished_by_hand_takes_its_waker_along() {
    check(&["completion_waker_taken_late"], || {
        let shared = Shared::new();
        let view = shared.table.view();
        let _other = view.try_begin(0, ()).unwrap();
        let mut ticket = view.try_begin(0, ()).unwrap();
        let (polling, tag) = (shared.clone(), ticket.tag());
        let waker = Arc::new(Idle).into();
        let mut context = Context::from_waker(&waker);
        assert!(Pin::new(&mut ticket).poll(&mut context).is_pending());
        let poller = thread::spawn(move || polling.table.view().complete(tag, Ok(3)));
        loom::thread::yield_now();
        if ticket.is_done() {
            finish(ticket);
            // The next life of the same slot writes its own waker.
            let mut next = view.try_begin(0, ()).unwrap();
            assert!(Pin::new(&mut next).poll(&mut context).is_pending());
            poller.join().unwrap();
            assert!(!next.is_done());
        } else {
            poller.join().unwrap();
            finish(ticket);
        }
    });
}

#[test]
fn a_future_may_be_polled_while_it_ends() {
    check(&["completion_done_relaxed", "completion_window_unwoken"], || {
        let shared = Shared::new();
        let mut ticket = shared.table.view().try_begin(0, ()).unwrap();
        let (polling, tag) = (shared.clone(), ticket.tag());
        let poller = thread::spawn(move || polling.table.view().complete(tag, Ok(3)));
        // Two polls, each by another task: the second poll takes the first task's waker back.
        let mut last = Arc::new(Wakes::default());
        let early = retry(2, || {
            last = Arc::new(Wakes::default());
            let waker = last.clone().into();
            match Pin::new(&mut ticket).poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(outcome) => Some(outcome.result),
                Poll::Pending => None,
            }
        });
        assert!(poller.join().unwrap());
        let wakes = last.0.load(Ordering::Relaxed);
        assert!(early.is_some() || wakes > 0, "the last task that polled was not woken");
        assert_eq!(early.unwrap_or_else(|| Ok(finish(ticket))), Ok(3));
        shared.assert_idle();
    });
}

#[test]
fn a_dropped_ticket_leaves_one_end_for_its_buffer() {
    check(&["completion_abandon_load_store"], || {
        let (shared, ends) = (Shared::new(), Arc::new(AtomicU32::new(0)));
        let mut ticket = shared.table.view().try_begin(0, Counted(ends.clone())).unwrap();
        let (polling, tag) = (shared.clone(), ticket.tag());
        let waker = Arc::new(Idle).into();
        assert!(Pin::new(&mut ticket).poll(&mut Context::from_waker(&waker)).is_pending());
        let poller = thread::spawn(move || polling.table.view().complete(tag, Ok(3)));
        drop(ticket);
        assert!(poller.join().unwrap());
        assert_eq!(ends.load(Ordering::Relaxed), 1);
        shared.assert_idle();
    });
}

#[test]
fn of_two_completions_one_is_taken() {
    check(&["completion_no_generation"], || {
        let shared = Shared::new();
        let view = shared.table.view();
        let ticket = view.try_begin(0, ()).unwrap();
        let tag = ticket.tag();
        let threads = [1, 2].map(|result| {
            let shared = shared.clone();
            thread::spawn(move || shared.table.view().complete(tag, Ok(result)))
        });
        let mut first = Some(ticket);
        let early = retry(2, || match first.take().unwrap().try_finish() {
            Ok(outcome) => outcome.result.ok(),
            Err(back) => {
                first = Some(back);
                None
            }
        });
        // Perhaps the next life of the same slot, while a second completion
        // of the first is still on its way.
        let next = early.map(|_| view.try_begin(0, ()).unwrap());
        let taken = threads.map(|thread| thread.join().unwrap());
        assert!(taken[0] != taken[1], "{taken:?}");
        assert_eq!(early.unwrap_or_else(|| finish(first.unwrap())), if taken[0] { 1 } else { 2 });
        assert!(next.is_none_or(|next| !next.is_done()));
    });
}

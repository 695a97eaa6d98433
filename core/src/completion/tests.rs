extern crate std;

mod waits;

use super::*;
use crate::mem::{AddrError, Rank};
use crate::op::Op;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::tag::Tag;
use crate::wait::threads::Threads;
use core::ptr::NonNull;
use std::boxed::Box;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::thread;
use std::vec::Vec;

const LOST: Result<u64, AddrError> = Err(AddrError::PeerLost { rank: Rank(7) });

#[derive(Default)]
struct Tasks(AtomicU32);

impl Wake for Tasks {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn count(data: *mut (), result: Result<u64, AddrError>) {
    // SAFETY: the tests hand in an `AtomicU64` that outlives the operation.
    let sum = unsafe { &*data.cast::<AtomicU64>() };
    sum.fetch_add(result.unwrap_or(1_000), Ordering::Relaxed);
}

fn counting(sum: &AtomicU64) -> Callback {
    // SAFETY: atomics are touched from any thread; the tests outlive it.
    unsafe { Callback::new(count, (sum as *const AtomicU64).cast_mut().cast()) }
}

#[test]
fn a_poll_sees_the_result_and_gets_the_buffer() {
    let table = CompletionTable::<1>::new();
    let view = table.view();
    let ticket = view.try_begin(0, Box::new(5)).unwrap();
    let tag = ticket.tag();
    assert_eq!(view.in_flight(), 1);
    let ticket = ticket.try_finish().unwrap_err();
    assert!(view.complete(tag, Ok(42)));
    let outcome = ticket.try_finish().unwrap();
    assert_eq!((outcome.result, *outcome.buf), (Ok(42), 5));
    assert_eq!(view.in_flight(), 0);
}

#[test]
fn late_and_duplicate_completions_are_dropped() {
    let table = CompletionTable::<1>::new();
    let view = table.view();
    let ticket = view.try_begin(0, ()).unwrap();
    let old = ticket.tag();
    assert!(view.complete(old, Ok(1)));
    assert!(!view.complete(old, Ok(2)), "a second completion before the first was collected");
    assert_eq!(ticket.try_finish().unwrap().result, Ok(1));
    assert!(!view.complete(old, Ok(3)), "a completion of a free tag");
    let ticket = view.try_begin(0, ()).unwrap();
    assert_eq!(ticket.tag().index(), old.index());
    assert!(!view.complete(old, Ok(4)), "a completion of an earlier life");
    assert!(!ticket.is_done());
    assert!(!view.complete(Tag::NONE, Ok(5)) && !view.complete(Tag::from_bits(9), Ok(6)));
    assert!(view.complete(ticket.tag(), LOST));
    assert_eq!(ticket.try_finish().unwrap().result, LOST);
}

#[test]
fn a_callback_runs_once_and_may_begin_with_the_last_tag() {
    struct Chain<'a> {
        view: Completions<'a>,
        seen: Vec<u64>,
        next: Option<Tag>,
    }
    fn again(data: *mut (), result: Result<u64, AddrError>) {
        // SAFETY: the test's own, on its one thread.
        let chain = unsafe { &mut *data.cast::<Chain<'_>>() };
        chain.seen.push(result.unwrap());
        // SAFETY: the same.
        chain.next = chain.view.try_begin_callback(0, unsafe { Callback::new(again, data) });
    }
    let table = CompletionTable::<1>::new();
    let view = table.view();
    let _others: Vec<_> = (1..view.capacity()).map(|_| view.try_begin(0, ()).unwrap()).collect();
    let mut chain = Chain { view, seen: Vec::new(), next: None };
    again((&raw mut chain).cast(), Ok(0));
    for value in 1..4 {
        let tag = chain.next.take().expect("the tag is free before the callback runs");
        assert!(view.complete(tag, Ok(value)));
        assert!(!view.complete(tag, Ok(99)));
    }
    assert_eq!(chain.seen, [0, 1, 2, 3]);
}

/// A callback in its slot: records the result beside a buffer of its own.
struct Records(Arc<std::sync::Mutex<Vec<u64>>>, Box<u64>, [u64; 4]);

impl OnEnd for Records {
    fn ended(self, result: Result<u64, AddrError>) {
        self.0.lock().unwrap().push(result.unwrap() + *self.1 + self.2[3]);
    }
}

#[test]
fn a_callback_in_its_slot_runs_once_and_with_its_tag_free() {
    let table = CompletionTable::<1>::new();
    let view = table.view();
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let records = |of| Records(seen.clone(), Box::new(of), [5; 4]);
    let tags: Vec<_> =
        (0..64).map(|of| view.try_begin_owned(0, records(of)).ok().unwrap()).collect();
    let Err(back) = view.try_begin_owned(0, records(70)) else { panic!("all tags are taken") };
    assert_eq!(*back.1, 70);
    drop(back);
    for (of, tag) in (0..).zip(&tags[1..]) {
        assert!(view.complete(*tag, Ok(of)) && !view.complete(*tag, Ok(1000)));
    }
    assert!(seen.lock().unwrap().iter().copied().eq((0..63).map(|of| 2 * of + 6)));
    // SAFETY: it was not posted, and owns a `Records`.
    let back = unsafe { view.retract_owned::<Records>(tags[0]) };
    assert_eq!((*back.1, view.in_flight()), (0, 0));
    drop(back);
    assert_eq!(Arc::strong_count(&seen), 1);
}

#[test]
fn a_retracted_operation_leaves_no_trace() {
    let table = CompletionTable::<1>::new();
    let (view, sum) = (table.view(), AtomicU64::new(0));
    let ticket = view.try_begin(0, Box::new(3)).unwrap();
    let old = ticket.tag();
    // SAFETY: nothing was posted.
    assert_eq!(*unsafe { ticket.retract() }, 3);
    assert!(!view.complete(old, Ok(1)), "a completion of a retracted operation");
    let tag = view.try_begin_callback(0, counting(&sum)).unwrap();
    assert!(view.retract_callback(tag) && !view.retract_callback(tag));
    assert!(!view.complete(tag, Ok(1)));
    assert_eq!((sum.load(Ordering::Relaxed), view.in_flight()), (0, 0));
}

#[test]
fn when_all_tags_are_in_flight_everything_comes_back() {
    let table = CompletionTable::<1>::new();
    let (view, sum) = (table.view(), AtomicU64::new(0));
    let mut tickets: Vec<_> = (0..64).map(|n| view.try_begin(0, n).unwrap()).collect();
    assert_eq!(view.try_begin(0, 64).unwrap_err(), 64);
    assert!(view.try_begin_callback(0, counting(&sum)).is_none());
    // Out of order.
    for ticket in tickets.drain(..).rev() {
        view.complete(ticket.tag(), Ok(ticket.tag().index() as u64));
        let outcome = ticket.try_finish().unwrap();
        assert_eq!(outcome.result, Ok(outcome.buf));
    }
    assert_eq!(view.in_flight(), 0);
}

#[test]
fn a_dropped_ticket_parks_its_buffer_until_the_end() {
    let table = CompletionTable::<1>::new();
    let (view, buf) = (table.view(), Arc::new(()));
    let ticket = view.try_begin(0, buf.clone()).unwrap();
    let tag = ticket.tag();
    drop(ticket);
    assert_eq!((Arc::strong_count(&buf), view.in_flight()), (2, 1), "still in flight");
    assert!(view.complete(tag, Ok(0)));
    assert_eq!((Arc::strong_count(&buf), view.in_flight()), (1, 0));
    assert!(!view.complete(tag, Ok(0)));

    let ticket = view.try_begin(0, buf.clone()).unwrap();
    assert!(view.complete(ticket.tag(), Ok(0)));
    drop(ticket);
    assert_eq!((Arc::strong_count(&buf), view.in_flight()), (1, 0), "after the end");
}

#[test]
fn a_future_keeps_the_last_waker_only() {
    let table = CompletionTable::<1>::new();
    let view = table.view();
    let mut ticket = view.try_begin(0, ()).unwrap();
    let tag = ticket.tag();
    let tasks = [Arc::new(Tasks::default()), Arc::new(Tasks::default())];
    for task in &tasks {
        let waker = task.clone().into();
        let mut context = Context::from_waker(&waker);
        assert!(Pin::new(&mut ticket).poll(&mut context).is_pending());
    }
    assert_eq!(Arc::strong_count(&tasks[0]), 1, "the first waker was let go");
    assert!(view.complete(tag, Ok(8)));
    assert_eq!(tasks.each_ref().map(|task| task.0.load(Ordering::SeqCst)), [0, 1]);
    let waker = tasks[1].clone().into();
    match Pin::new(&mut ticket).poll(&mut Context::from_waker(&waker)) {
        Poll::Ready(outcome) => assert_eq!(outcome.result, Ok(8)),
        Poll::Pending => panic!("it has completed"),
    }
    assert_eq!(view.in_flight(), 0);
}

#[test]
fn a_future_polls_again_while_its_operation_ends() {
    let table = CompletionTable::<1>::new();
    let view = table.view();
    let mut ticket = view.try_begin(0, ()).unwrap();
    let tag = ticket.tag();
    assert!(view.slot(tag).claim(tag).is_some(), "another thread is about to end it");
    let task = Arc::new(Tasks::default());
    let waker = task.clone().into();
    assert!(Pin::new(&mut ticket).poll(&mut Context::from_waker(&waker)).is_pending());
    assert_eq!(task.0.load(Ordering::SeqCst), 1, "the task is woken at once");
}

#[test]
fn a_dropped_future_drops_its_waker() {
    let table = CompletionTable::<1>::new();
    let view = table.view();
    let mut ticket = view.try_begin(0, ()).unwrap();
    let tag = ticket.tag();
    let task = Arc::new(Tasks::default());
    let waker = task.clone().into();
    assert!(Pin::new(&mut ticket).poll(&mut Context::from_waker(&waker)).is_pending());
    drop((ticket, waker));
    assert_eq!(Arc::strong_count(&task), 1);
    assert!(view.complete(tag, Ok(0)));
    assert_eq!((task.0.load(Ordering::SeqCst), view.in_flight()), (0, 0));
}

#[test]
fn a_left_ticket_frees_its_tag() {
    let table = CompletionTable::<1>::new();
    let view = table.view();
    for is_done in [false, true] {
        let buffer = Arc::new(());
        let ticket = core::mem::ManuallyDrop::new(view.try_begin(0, buffer.clone()).unwrap());
        if is_done {
            assert!(view.complete(ticket.tag(), Ok(0)));
        }
        // SAFETY: the ticket is neither used from here on nor dropped.
        unsafe { ticket.leave() };
        if !is_done {
            assert!(view.complete(ticket.tag(), Ok(0)));
        }
        assert_eq!((Arc::strong_count(&buffer), view.in_flight()), (1, 0));
    }
}

#[test]
fn a_ticket_can_be_waited_for_after_it_was_polled() {
    let table = CompletionTable::<1>::new();
    let view = table.view();
    let mut ticket = view.try_begin(0, 6u8).unwrap();
    let tag = ticket.tag();
    let waker = Arc::new(Tasks::default()).into();
    assert!(Pin::new(&mut ticket).poll(&mut Context::from_waker(&waker)).is_pending());
    thread::scope(|scope| {
        scope.spawn(|| view.complete(tag, Ok(11)));
        let outcome = ticket.wait(&Threads);
        assert_eq!((outcome.result, outcome.buf), (Ok(11), 6));
    });
}

#[test]
fn sleepers_of_many_operations_are_all_woken() {
    const ROUNDS: u64 = 500;
    let table = CompletionTable::<1>::new();
    let view = table.view();
    let (send, receive) = std::sync::mpsc::channel::<Tag>();
    thread::scope(|scope| {
        for who in 0..2 {
            let send = send.clone();
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let ticket = view.try_begin(who, round).unwrap();
                    send.send(ticket.tag()).unwrap();
                    let outcome = ticket.wait(&Threads);
                    assert_eq!((outcome.result, outcome.buf), (Ok(9), round));
                }
            });
        }
        drop(send);
        for tag in receive {
            assert!(view.complete(tag, Ok(9)), "{tag:?}");
        }
    });
    assert_eq!(view.in_flight(), 0);
}

#[repr(C, align(128))]
struct Block([u8; 4096]);

#[test]
fn a_table_in_given_memory_has_the_requested_number_of_operations() {
    let mut block = Block([0xa5; 4096]);
    assert!(Completions::memory_size(3) <= 4096);
    // SAFETY: the block is large and aligned enough and lives longer.
    let view = unsafe { Completions::init(NonNull::from(&mut block).cast(), 3) }.unwrap();
    let tickets: Vec<_> = (0..3).map(|n| view.try_begin(0, n).unwrap()).collect();
    assert!(view.try_begin(0, 3).is_err());
    for ticket in tickets {
        assert!(view.complete(ticket.tag(), Ok(7)));
        assert_eq!(ticket.try_finish().unwrap().result, Ok(7));
    }
}

#[test]
fn refusals_name_the_missing_resource() {
    use std::string::ToString;
    let addr =
        crate::mem::RemoteAddr { rank: Rank(2), key: crate::mem::RegionKey::new(1, 3), offset: 16 };
    let op = Op::get_word(addr, crate::mem::Width::W8);
    let busy = Busy { op, buf: (), why: Why::NoTag };
    let text = busy.to_string();
    assert!(text.contains("rank 2 region 1.3") && text.contains("tags"), "{text}");
}

//! Destructors and wakers that panic, also with payloads that panic when they are dropped, and
//! destructors that the end of the scheduler cuts off. Each ends where its ULT does.

mod common;

use common::scheduler;
use std::cell::RefCell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use tsumugi_ult::sync::channel;
use tsumugi_ult::{park, scope, spawn, ult_local, yield_now};

/// Panics when it is dropped, with a smaller bomb as the payload.
struct Bomb(u32);

impl Drop for Bomb {
    fn drop(&mut self) {
        if self.0 > 0 {
            panic_any(Bomb(self.0 - 1));
        }
    }
}

/// Sleeps for ever when it is dropped, and counts that.
struct Sleeper(Arc<AtomicUsize>);

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
        loop {
            park();
        }
    }
}

/// A waker that counts, and then panics.
struct Loud(AtomicUsize);

impl Wake for Loud {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
        panic_any(Bomb(2));
    }
}

fn poll<F: Future>(future: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(waker))
}

#[test]
fn a_result_that_panics_when_it_is_dropped_harms_no_one() {
    scheduler(1, 8).run(|| {
        for depth in 0..4 {
            let ended = spawn(move || Bomb(depth));
            while !ended.is_finished() {
                yield_now();
            }
            drop(ended);
            drop(spawn(move || Bomb(depth)));
            yield_now();
            drop(spawn(move || -> () { panic_any(Bomb(depth)) }));
            yield_now();
        }
        assert_eq!(spawn(|| 3).join().unwrap(), 3);
    });
}

#[test]
fn a_local_value_that_panics_when_it_is_dropped_harms_no_one() {
    ult_local! {
        static BOMB: RefCell<Option<Bomb>> = RefCell::new(None);
        static DROPPED: RefCell<Option<Arc<()>>> = RefCell::new(None);
    }
    scheduler(1, 8).run(|| {
        let witness = Arc::new(());
        for depth in 0..4 {
            let held = witness.clone();
            let ult = spawn(move || {
                DROPPED.with(|place| *place.borrow_mut() = Some(held));
                BOMB.with(|place| *place.borrow_mut() = Some(Bomb(depth)));
                depth
            });
            assert_eq!(ult.join().unwrap(), depth);
            assert_eq!(Arc::strong_count(&witness), 1, "the value behind the bomb is dropped");
        }
    });
}

#[test]
fn a_function_that_panics_when_it_is_dropped_does_not_keep_others_from_their_end() {
    for depth in 0..4 {
        let scheduler = scheduler(1, 8);
        let spawner = scheduler.spawner();
        let never: Vec<_> = (0..3)
            .map(|_| {
                let bomb = Bomb(depth);
                spawner.spawn(move || _ = &bomb)
            })
            .collect();
        drop(scheduler);
        for ult in never {
            assert!(ult.join().unwrap_err().is_cancelled());
        }
    }
}

#[test]
fn the_result_of_a_scope_that_panics_when_it_is_dropped_does_not_abort() {
    scheduler(1, 8).run(|| {
        for depth in 0..4 {
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                scope(|scope| {
                    scope.spawn(|| panic!("a ULT"));
                    Bomb(depth)
                })
            }));
            let panic = outcome.map(std::mem::forget).unwrap_err();
            let text = panic.downcast_ref::<&str>().unwrap();
            assert!(text.contains("its handle was not joined"), "{text}");
        }
    });
}

/// The panics of a scope's ULTs are counted by how they end, not by their payload.
#[test]
fn a_joined_panic_with_any_payload_is_the_joiners() {
    scheduler(1, 8).run(|| {
        scope(|scope| {
            let ult = scope.spawn(|| -> () { panic_any(tsumugi_ult::Cancelled) });
            assert!(ult.join().unwrap_err().is_cancelled());
        });
        let outcome =
            catch_unwind(|| scope(|scope| _ = scope.spawn(|| panic_any(tsumugi_ult::Cancelled))));
        assert!(outcome.is_err(), "not joined");
    });
}

#[test]
fn a_ult_can_be_cut_off_in_the_destructor_of_its_result_or_of_its_local_value() {
    ult_local! {
        static SLEEPS: RefCell<Option<Sleeper>> = RefCell::new(None);
    }
    let dropped = Arc::new(AtomicUsize::new(0));
    let (result, local) = (dropped.clone(), dropped.clone());
    let mut scheduler = scheduler(1, 8);
    scheduler.start().unwrap();
    let spawner = scheduler.spawner();
    drop(spawner.spawn(move || Sleeper(result)));
    let has_local = spawner.spawn(|| {
        SLEEPS.with(|place| *place.borrow_mut() = Some(Sleeper(local)));
        String::from("a result that no one gets")
    });
    while dropped.load(Ordering::SeqCst) < 2 {
        std::thread::yield_now();
    }
    drop(scheduler);
    assert!(has_local.join().unwrap_err().is_cancelled());
}

#[test]
fn a_waker_that_panics_does_not_keep_others_from_waking() {
    let loud = Arc::new(Loud(AtomicUsize::new(0)));
    let waker = Waker::from(loud.clone());
    let (sender, receiver) = channel::bounded::<u32>(1);
    let mut futures: Vec<_> = (0..20).map(|_| Box::pin(receiver.recv_async())).collect();
    for future in &mut futures {
        assert!(poll(future.as_mut(), &waker).is_pending());
    }
    drop(sender);
    assert_eq!(loud.0.load(Ordering::SeqCst), 20);
    for future in &mut futures {
        assert!(matches!(poll(future.as_mut(), &waker), Poll::Ready(Err(_))));
    }
}

/// A value that was handed to a ULT that is cut off goes to a future, the waker of which panics.
#[test]
fn a_waker_that_panics_at_the_end_of_a_scheduler_does_not_keep_ults_from_their_end() {
    let loud = Arc::new(Loud(AtomicUsize::new(0)));
    let waker = Waker::from(loud.clone());
    let (sender, receiver) = channel::bounded::<u32>(1);
    let mut future = Box::pin(receiver.recv_async());
    let receives = receiver.clone();
    let (first, last) = scheduler(1, 8).run(|| {
        let begun = Arc::new(AtomicUsize::new(0));
        let begins = begun.clone();
        let first = spawn(move || {
            begins.store(1, Ordering::SeqCst);
            receives.recv()
        });
        // There is one worker, so a ULT that has begun sleeps while this one runs.
        while begun.load(Ordering::SeqCst) < 1 {
            yield_now();
        }
        assert!(poll(future.as_mut(), &waker).is_pending(), "behind the ULT");
        sender.send(7).unwrap();
        // The worker runs the youngest ULTs first, and stops before the woken one's turn.
        let last = (0..1000).map(|_| spawn(|| ())).collect::<Vec<_>>();
        (first, last)
    });
    assert!(first.join().unwrap_err().is_cancelled());
    for ult in last {
        // A few of them have run.
        assert!(ult.join().map_or_else(|panic| panic.is_cancelled(), |()| true));
    }
    assert_eq!(loud.0.load(Ordering::SeqCst), 1);
    assert!(matches!(poll(future.as_mut(), &waker), Poll::Ready(Ok(7))));
}

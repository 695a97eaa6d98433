//! Tests of wakes from other threads, one at a time and several at once.

use super::*;
use crate::sched::batch::Batch;
use crate::sched::outside_scopes::OutsideScope;
use crate::sched::record::WorkerRequests;
use crate::sched::worker::tests::{Bench, task};
use crate::task::Traits;
use tsumugi_core::stats::Counter;
use tsumugi_core::wait::Waker;

/// Returns the waker of a sleeping ULT, as its worker publishes it.
fn waker(slot: TaskSlot) -> Waker {
    // SAFETY: the tests use each waker once.
    unsafe { Waker::new(slot.as_ptr().cast_const().cast(), crate::sched::waker::wake) }
}

/// Runs `f` on a thread that acts as this worker.
fn as_worker<R>(bench: &Bench, worker: usize, f: impl FnOnce() -> R) -> R {
    let before = current::set_worker(&raw const bench.workers[worker]);
    let result = f();
    current::set_worker(before);
    result
}

#[test]
fn a_ult_woken_from_outside_goes_to_its_worker_or_to_all() {
    let bench = Bench::new(2, 0);
    let (shared, handoff) = (&bench.shared, &bench.shared.worker_slots[1].handoff);
    bench.lull(1);
    handoff.open();
    let first = bench.sleeping(1);
    waker(first).wake();
    assert!(!bench.was_rung(), "the worker reads its hand-off slot");
    assert_eq!(handoff.close().map(|batch| batch.first), Some(first));
    let second = bench.sleeping(1);
    waker(second).wake();
    assert!(bench.was_rung() && task(second).is_ready());
    assert_eq!(bench.find(0), Some(second));
    let worker = bench.pinned(1);
    task(worker).set_sleeping();
    bench.lull(1);
    waker(worker).wake();
    assert!(
        bench.was_rung() && !shared.worker_slots[1].pinned.is_empty() && shared.inject.is_empty()
    );
    let urgent = bench.urgent();
    task(urgent).set_sleeping();
    bench.lull(0);
    waker(urgent).wake();
    assert!(
        bench.was_rung() && shared.wanted.has(WorkerRequests::URGENT) && shared.inject.is_empty()
    );
}

#[test]
fn a_post_rings_its_worker_alone() {
    let bench = Bench::new(2, 0);
    bench.lull(0);
    // SAFETY: the ULT is in no queue.
    unsafe { bench.shared.post(1, bench.pinned(1)) };
    assert!(!bench.was_rung());
}

#[test]
fn a_ult_woken_by_its_own_worker_stays_there() {
    let (bench, other) = (Bench::new(1, 0), Bench::new(1, 0));
    let (own, strange) = (bench.sleeping(0), other.sleeping(0));
    as_worker(&bench, 0, || {
        waker(own).wake();
        waker(strange).wake();
    });
    assert!(bench.shared.inject.is_empty() && !bench.shared.worker_slots[0].ready.is_empty());
    assert!(!other.shared.inject.is_empty() && other.shared.worker_slots[0].ready.is_empty());
}

#[test]
fn an_unpark_wakes_a_parked_ult_or_leaves_a_token() {
    // From the ULT's own worker, from another worker, and from a thread that is not a worker.
    for (workers, from) in [(1, Some(0)), (2, Some(0)), (2, None), (1, None)] {
        let bench = Bench::new(workers, 0);
        let shared = &bench.shared;
        shared.parks().claim(if workers == 1 { bench.workers[0].name() } else { 0 });
        let slot = bench.ready();
        let unpark = || {
            // SAFETY: `slot` is a descriptor of this scheduler.
            let unpark = || unsafe { shared.unpark(slot) };
            match from {
                Some(worker) => as_worker(&bench, worker, unpark),
                None => unpark(),
            }
        };
        let name = bench.workers[0].name();
        unpark();
        unpark();
        assert!(!shared.begin_park(task(slot), name), "the ULT has a token");
        task(slot).set_runnable();
        assert!(shared.begin_park(task(slot), name), "the ULT has one token");
        unpark();
        assert!(task(slot).is_ready());
        assert_eq!(bench.find(0), Some(slot));
        assert!(!task(slot).park.take(), "the wake used up the token");
    }
}

#[test]
fn ults_woken_as_a_batch_are_queued_as_a_batch() {
    for from in [Some(0), None] {
        let bench = Bench::new(2, 0);
        let all = [(); 3].map(|()| bench.sleeping(0));
        let (pinned, urgent) = (bench.pinned(1), bench.urgent());
        let mut batch = Batch::new();
        let mut send = || {
            for slot in all.into_iter().chain([pinned, urgent]) {
                batch.wake(waker(slot));
            }
            assert!(
                !bench.shared.worker_slots[1].pinned.is_empty(),
                "the pinned ULT is queued at once"
            );
            assert!(
                bench.shared.inject.is_empty() && bench.shared.worker_slots[0].ready.is_empty()
            );
            bench.lull(1);
            core::mem::replace(&mut batch, Batch::new()).send();
        };
        match from {
            Some(worker) => as_worker(&bench, worker, send),
            None => send(),
        }
        assert!(bench.was_rung());
        bench.shared.idle.sleepers.store(0, Ordering::Relaxed);
        assert_eq!(bench.find(0), Some(urgent));
        let mut found: Vec<_> = (0..3).filter_map(|_| bench.find(0)).collect();
        if from.is_some() {
            // The worker's own queue gives the youngest first.
            found.sort_unstable();
            let mut all = all;
            all.sort_unstable();
            assert_eq!(found, all);
        } else {
            assert_eq!(found, all);
        }
        assert!(all.into_iter().all(|slot| task(slot).is_ready()));
    }
}

#[test]
fn a_batch_of_one_or_of_two_schedulers_is_sent() {
    let (bench, other) = (Bench::new(1, 0), Bench::new(1, 0));
    let mut batch = Batch::new();
    batch.wake(waker(bench.sleeping(0)));
    batch.wake(waker(other.sleeping(0)));
    assert!(
        !bench.shared.inject.is_empty(),
        "the first scheduler's ULTs are sent when another's is added"
    );
    assert!(other.shared.inject.is_empty());
    batch.send();
    assert!(!other.shared.inject.is_empty());
    Batch::new().send();
}

#[test]
fn a_batch_is_counted_at_its_waker() {
    let bench = Bench::new(1, 0);
    let mut batch = Batch::new();
    (0..3).for_each(|_| batch.wake(waker(bench.sleeping(0))));
    as_worker(&bench, 0, || batch.send());
    assert_eq!(bench.shared.counts().next().unwrap()[Counter::Wakes], 3);
}

#[test]
fn a_ring_needs_a_sleeper_and_no_searcher() {
    let bench = Bench::new(2, 0);
    assert_eq!(bench.shared.sleepers(), 0);
    bench.lull(1);
    assert_eq!(bench.shared.sleepers(), 1);
    bench.shared.idle.searching.store(1, Ordering::Relaxed);
    bench.shared.notify_sleepers();
    assert!(!bench.was_rung());
    bench.shared.idle.searching.store(0, Ordering::Relaxed);
    bench.shared.notify_sleepers();
    assert!(bench.was_rung());
}

#[test]
fn every_queue_is_seen_before_a_sleep() {
    let queues: [fn(&Bench); 5] = [
        // SAFETY: each ULT is in no queue, and this thread acts as the owner of
        // every worker slot.
        |bench| unsafe { bench.shared.inject.push(bench.ready().as_ptr()) },
        // SAFETY: the same.
        |bench| unsafe { bench.shared.push_urgent(bench.urgent()) },
        // SAFETY: the same.
        |bench| unsafe { bench.shared.worker_slots[1].ready.push(bench.ready().as_ptr()) },
        // SAFETY: the same.
        |bench| unsafe { bench.shared.worker_slots[1].yielded.push(bench.ready().as_ptr()) },
        // SAFETY: the same.
        |bench| unsafe { bench.shared.worker_slots[1].public_slot.publish(bench.ready().into()) },
    ];
    for queue in queues {
        let bench = Bench::new(2, 0);
        assert!(!bench.shared.has_ready());
        queue(&bench);
        assert!(bench.shared.has_ready());
    }
}

#[test]
fn the_oldest_ult_without_a_stack_is_taken_if_it_can_run() {
    let bench = Bench::new(1, 0);
    let stack_waiters = &bench.shared.stack_waiters;
    let [first, second] = [(); 2].map(|()| bench.new_ult(Traits::default()));
    assert!(stack_waiters.is_empty() && !stack_waiters.is_first(|_| true));
    stack_waiters.push(first);
    stack_waiters.push(second);
    assert!(
        stack_waiters.is_first(|slot| slot == first)
            && !stack_waiters.is_first(|slot| slot == second)
    );
    assert_eq!(stack_waiters.pop(|_| false), None);
    assert!(!stack_waiters.is_empty());
    assert_eq!(stack_waiters.pop(|slot| slot == first), Some(first));
    assert_eq!(stack_waiters.pop(|_| true), Some(second));
    assert!(stack_waiters.is_empty());
    assert_eq!(stack_waiters.pop(|_| true), None);
}

#[test]
fn outside_scopes_leave_in_any_order_and_the_last_lets_the_scheduler_end() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2], [1, 2, 0]] {
        let bench = Bench::new(1, 0);
        let shared = &*bench.shared;
        let outside_scopes = [(); 3].map(|()| OutsideScope::new());
        assert!(!shared.has_outside_scope());
        assert!(!shared.outside_scopes.wait(waker(bench.sleeping(0))), "no outside scope is left");
        // SAFETY: the outside scopes stay until they have left.
        unsafe {
            assert!(shared.enter(&outside_scopes[0]));
            shared.leave(&outside_scopes[0]);
            assert!(!shared.is_stopped(), "the end was not requested");
            assert!(outside_scopes.iter().all(|outside| shared.enter(outside)));
            assert!(shared.has_outside_scope());
            let elsewhere = std::thread::scope(|scope| {
                scope.spawn(|| shared.has_outside_scope()).join().unwrap()
            });
            assert!(!elsewhere, "another thread has no outside scope");
            let waits = bench.sleeping(0);
            assert!(shared.outside_scopes.wait(waker(waits)));
            shared.stop();
            for at in order {
                assert!(!shared.is_stopped() && !task(waits).is_ready());
                shared.leave(&outside_scopes[at]);
            }
            assert!(shared.is_stopped() && task(waits).is_ready());
            assert!(!shared.has_outside_scope());
            assert!(!shared.enter(&outside_scopes[0]), "the scope is too late");
        }
    }
}

#[test]
fn each_ult_of_a_worker_is_an_outside_scope_by_itself() {
    let bench = Bench::new(1, 0);
    let (here, host) = (Bench::new(1, 0), &bench.shared);
    let [first, second] = [here.ready(), here.ready()];
    let outside = OutsideScope::new();
    as_worker(&here, 0, || {
        here.workers[0].set_current(first);
        // SAFETY: the outside scope stays until it has left.
        unsafe { assert!(host.enter(&outside)) };
        assert!(host.has_outside_scope());
        here.workers[0].set_current(second);
        assert!(!host.has_outside_scope());
        // SAFETY: the outside scope has entered.
        unsafe { host.leave(&outside) };
    });
}

#[test]
fn an_outside_scope_can_enter_while_another_keeps_the_scheduler() {
    let bench = Bench::new(1, 0);
    let [first, second] = [(); 2].map(|()| OutsideScope::new());
    // SAFETY: the outside scopes stay until they have left.
    unsafe {
        assert!(bench.shared.enter(&first));
        bench.shared.stop();
        assert!(bench.shared.enter(&second));
        bench.shared.leave(&first);
        assert!(!bench.shared.is_stopped());
        bench.shared.leave(&second);
    }
    assert!(bench.shared.is_stopped());
}

//! Tests of where ULTs are queued, and of which workers are notified.

use super::*;

/// Lays one ULT out on a worker of two, and pushes others beside it, which stay
/// in the deque.
fn pile(bench: &Bench, count: usize) -> (TaskSlot, Vec<TaskSlot>) {
    let (first, second) = (bench.ready(), bench.ready());
    bench.workers[0].push(first);
    bench.workers[0].push(second);
    assert_eq!(
        bench.shared.worker_slots[0].public_slot.seen().map(|batch| batch.first),
        Some(first)
    );
    let mut all = vec![second];
    for slot in bench.several(count - 1) {
        bench.workers[0].push(slot);
        all.push(slot);
    }
    (first, all)
}

#[test]
fn a_push_rings_a_sleeper_unless_another_worker_searches() {
    for searching in [0, 1] {
        let bench = Bench::new(2, 0);
        bench.shared.idle.searching.store(searching, Ordering::Relaxed);
        bench.lull(1);
        bench.workers[0].push(bench.ready());
        assert_eq!(bench.was_rung(), searching == 0, "{searching} search");
    }
}

#[test]
fn a_pushed_ult_is_counted_when_it_is_new() {
    let bench = Bench::new(1, 0);
    let plain = bench.new_ult(Traits::default());
    bench.workers[0].spawned(plain);
    bench.workers[0].spawned_with_traits(bench.pinned(0));
    assert_eq!(bench.counted(0, Counter::Spawned), 2);
    assert_eq!(bench.workers[0].own_count.get(), 1, "the pinned ULT stays here");
}

#[test]
fn the_older_of_two_ults_is_offered_and_a_lone_one_is_not() {
    let bench = Bench::new(2, 0);
    let (first, second) = (bench.ready(), bench.ready());
    bench.workers[0].push(first);
    assert!(!bench.shared.worker_slots[0].public_slot.is_full());
    bench.workers[0].push(second);
    let batch = bench.shared.worker_slots[0].public_slot.seen().unwrap();
    assert!(batch.first == first && !batch.more);
    // The only worker puts nothing out.
    let alone = Bench::new(1, 0);
    alone.workers[0].push(alone.ready());
    alone.workers[0].push(alone.ready());
    assert!(!alone.shared.worker_slots[0].public_slot.is_full());
}

#[test]
fn of_many_ults_a_chain_is_offered_and_taken_whole() {
    let bench = Bench::new(2, 0);
    let (first, all) = pile(&bench, 24);
    assert_eq!(bench.workers[1].take_public(), Some(first));
    bench.workers[0].notify();
    let batch = bench.shared.worker_slots[0].public_slot.seen().unwrap();
    assert!(batch.first == all[0] && batch.more, "an eighth of the queue");
    assert_eq!(bench.workers[1].take_public(), Some(all[0]));
    assert_eq!(bench.counted(1, Counter::Steals), 2);
    assert_eq!(bench.counted(1, Counter::WokenAfar), 0, "the ULTs were ready");
    let ready = &bench.shared.worker_slots[1].ready;
    // SAFETY: this thread acts as the owner of the worker slot.
    let rest: Vec<_> = core::iter::from_fn(|| unsafe { ready.pop() }).collect();
    assert_eq!(rest, [all[2].as_ptr(), all[1].as_ptr()]);
    assert_eq!(bench.workers[1].take_public(), None);
}

/// Also where the worker looks after idle ones at each push, because a system has no barrier
/// on all processors.
#[test]
fn an_offer_stays_until_it_is_taken() {
    let bench = Bench::new(2, 0);
    let (first, _others) = pile(&bench, 24);
    bench.workers[0].serve_idle();
    let letter = bench.shared.worker_slots[0].public_slot.seen().unwrap();
    assert!(letter.first == first && !letter.more);
}

#[test]
fn offered_ults_are_taken_back_youngest_first() {
    let bench = Bench::new(2, 0);
    let (first, all) = pile(&bench, 24);
    let worker_slot = &bench.shared.worker_slots[0];
    assert_eq!(bench.workers[0].take_back(), Some(first), "a single published ULT is taken back");
    // SAFETY: this thread acts as the owner of the worker slot.
    unsafe {
        while let Some(task) = worker_slot.ready.pop() {
            worker_slot.yielded.push(task);
        }
        while let Some(task) = worker_slot.yielded.pop() {
            worker_slot.ready.push(task);
        }
    }
    bench.workers[0].notify();
    assert!(worker_slot.public_slot.seen().unwrap().more);
    // SAFETY: as above.
    while unsafe { worker_slot.ready.pop() }.is_some() {}
    bench.lull(1);
    assert_eq!(bench.workers[0].take_back(), Some(all[2]), "of a chain, the youngest");
    assert!(bench.was_rung(), "the others were in no queue meanwhile");
    assert_eq!(worker_slot.public_slot.seen().map(|batch| batch.first), Some(all[0]));
    // SAFETY: as above.
    assert_eq!(unsafe { worker_slot.ready.pop() }, Some(all[1].as_ptr()));
    bench.shared.worker_slots[0].public_slot.take();
    assert_eq!(bench.workers[0].take_back(), None);
}

#[test]
fn an_offered_ult_is_queued_again_if_the_queue_is_empty() {
    let bench = Bench::new(2, 0);
    let worker = &bench.workers[0];
    let (first, all) = pile(&bench, 1);
    let worker_slot = &bench.shared.worker_slots[0];
    assert!(!worker.queues_again(first), "another ULT is younger");
    // SAFETY: this thread acts as the owner of the worker slot.
    assert_eq!(unsafe { worker_slot.ready.pop() }, Some(all[0].as_ptr()));
    assert!(!worker.queues_again(all[0]), "the ULT is not the published one");
    assert!(worker_slot.public_slot.is_full());
    assert!(worker.queues_again(first));
    assert!(!worker_slot.public_slot.is_full());
    // SAFETY: as above.
    assert_eq!(unsafe { worker_slot.ready.pop() }, Some(first.as_ptr()));
    assert!(!worker.queues_again(first), "the public slot is empty");
}

#[test]
fn the_order_of_a_chain_is_kept_when_it_is_queued_again() {
    let bench = Bench::new(2, 0);
    let (first, all) = pile(&bench, 24);
    let worker_slot = &bench.shared.worker_slots[0];
    assert_eq!(worker_slot.public_slot.take().map(|batch| batch.first), Some(first));
    bench.workers[0].notify();
    // SAFETY: this thread acts as the owner of the worker slot.
    while unsafe { worker_slot.ready.pop() }.is_some() {}
    bench.lull(1);
    assert!(!bench.workers[0].queues_again(all[0]));
    assert!(bench.was_rung());
    // The oldest ULT is published again.
    assert_eq!(worker_slot.public_slot.take().map(|batch| batch.first), Some(all[0]));
    // SAFETY: as above.
    let rest: Vec<_> = core::iter::from_fn(|| unsafe { worker_slot.ready.pop() }).collect();
    assert_eq!(rest, [all[2].as_ptr(), all[1].as_ptr()]);
}

#[test]
fn a_young_ult_is_brought_forward_and_the_others_keep_their_order() {
    let bench = Bench::new(1, 0);
    let all = bench.several(70);
    let worker = &bench.workers[0];
    all.iter().for_each(|slot| worker.push(*slot));
    assert!(!worker.bring_forward(all[70 - 65]), "too far");
    assert!(worker.bring_forward(all[70 - 64]));
    let mut expected = all.clone();
    let wanted = expected.remove(70 - 64);
    expected.push(wanted);
    expected.reverse();
    let ready = &bench.shared.worker_slots[0].ready;
    // SAFETY: this thread acts as the owner of the worker slot.
    let rest: Vec<_> = core::iter::from_fn(|| NonNull::new(unsafe { ready.pop() }?)).collect();
    assert_eq!(rest, expected);
    assert!(!worker.bring_forward(wanted), "the ULT is no longer queued");
}

#[test]
fn an_offered_ult_can_be_brought_forward() {
    let bench = Bench::new(2, 0);
    let (first, all) = pile(&bench, 24);
    let worker_slot = &bench.shared.worker_slots[0];
    assert!(bench.workers[0].bring_forward(first));
    // SAFETY: this thread acts as the owner of the worker slot.
    assert_eq!(unsafe { worker_slot.ready.pop() }, Some(first.as_ptr()));
    let batch = worker_slot.public_slot.seen().unwrap();
    assert!(batch.first == all[0] && batch.more);
    // SAFETY: as above.
    while unsafe { worker_slot.ready.pop() }.is_some() {}
    bench.lull(1);
    assert!(bench.workers[0].bring_forward(all[0]));
    assert!(bench.was_rung());
    // SAFETY: as above.
    let mut rest: Vec<_> = core::iter::from_fn(|| unsafe { worker_slot.ready.pop() }).collect();
    rest.extend(worker_slot.public_slot.take().map(|batch| batch.first.as_ptr()));
    assert_eq!(rest, [all[0].as_ptr(), all[2].as_ptr(), all[1].as_ptr()]);
    assert!(!bench.workers[0].bring_forward(all[0]), "the public slot is empty");
}

#[test]
fn a_worker_knows_whether_it_has_other_ults() {
    let queues: [fn(&Bench); 4] = [
        |bench| bench.workers[0].push(bench.ready()),
        |bench| bench.workers[0].queue_yielded(bench.ready()),
        |bench| bench.workers[0].keep(bench.pinned(0)),
        |bench| {
            let batch = bench.ready().into();
            // SAFETY: this thread acts as the owner of the worker slot.
            unsafe { bench.shared.worker_slots[0].public_slot.publish(batch) }
        },
    ];
    for queue in queues {
        let bench = Bench::new(2, 0);
        assert!(!bench.workers[0].is_busy());
        queue(&bench);
        assert!(bench.workers[0].is_busy());
    }
}

#[test]
fn each_ult_is_routed_to_where_it_may_run() {
    let bench = Bench::new(2, 0);
    let worker = &bench.workers[0];
    bench.lull(1);
    worker.route(bench.pinned(0));
    assert_eq!((worker.own_count.get(), worker.switch_blockers.get()), (1, 2));
    assert!(!bench.was_rung(), "no other worker may run it");
    worker.route(bench.pinned(1));
    assert!(bench.was_rung() && !bench.shared.worker_slots[1].pinned.is_empty());
    bench.lull(1);
    worker.route(bench.urgent());
    assert!(bench.was_rung() && !bench.shared.urgent.is_empty());
    assert!(worker.shared.wanted.has(crate::sched::record::WorkerRequests::URGENT));
    let plain = bench.ready();
    worker.route(plain);
    // SAFETY: this thread acts as the owner of the worker slot.
    assert_eq!(unsafe { bench.shared.worker_slots[0].ready.pop() }, Some(plain.as_ptr()));
}

#[test]
fn a_woken_ult_goes_to_the_worker_on_which_it_slept() {
    let bench = Bench::new(2, 0);
    let worker = &bench.workers[0];
    let worker_slot = &bench.shared.worker_slots[0];
    let wake = |slot| {
        // SAFETY: the ULT's waker does not exist anywhere else.
        unsafe { worker.ready(slot) };
        slot
    };
    let here = wake(bench.sleeping(0));
    // SAFETY: this thread acts as the owner of the worker slot.
    assert_eq!(unsafe { worker_slot.ready.pop() }, Some(here.as_ptr()));
    assert!(task(here).is_ready());
    // The other worker does not spin, so this worker keeps the ULT.
    let busy = wake(bench.sleeping(1));
    // SAFETY: as above.
    assert_eq!(unsafe { worker_slot.ready.pop() }, Some(busy.as_ptr()));
    assert!(task(busy).is_ready());
    bench.shared.worker_slots[1].handoff.open();
    let there = wake(bench.sleeping(1));
    assert_eq!(bench.shared.worker_slots[1].handoff.close().map(|batch| batch.first), Some(there));
    assert!(worker_slot.ready.is_empty());
    bench.shared.worker_slots[0].handoff.open();
    let own = wake(bench.sleeping(0));
    // SAFETY: as above.
    assert_eq!(unsafe { worker_slot.ready.pop() }, Some(own.as_ptr()), "no batch to itself");
    let pinned = bench.pinned(0);
    task(pinned).set_sleeping();
    wake(pinned);
    assert!(task(pinned).is_ready());
    assert_eq!(worker.own_count.get(), 1);
    assert_eq!(bench.counted(0, Counter::Wakes), 5);
}

#[test]
fn the_first_woken_ult_of_a_handover_is_next_and_a_second_is_queued() {
    let bench = Bench::new(1, 0);
    let worker = &bench.workers[0];
    worker.handing_over.set(true);
    let (first, second) = (bench.sleeping(0), bench.sleeping(0));
    // SAFETY: the ULTs' wakers do not exist anywhere else.
    unsafe {
        worker.ready(first);
        worker.ready(second);
    }
    assert_eq!(worker.next.get(), first.as_ptr());
    assert!(task(first).is_ready());
    // SAFETY: this thread acts as the owner of the worker slot.
    assert_eq!(unsafe { bench.shared.worker_slots[0].ready.pop() }, Some(second.as_ptr()));
}

#[test]
fn a_woken_chain_is_queued_with_one_ring() {
    let bench = Bench::new(2, 0);
    let all = [0, 1, 1, 0].map(|worker| bench.sleeping(worker));
    bench.shared.worker_slots[1].handoff.open();
    bench.lull(1);
    // SAFETY: the ULTs' wakers do not exist anywhere else.
    unsafe { bench.workers[0].ready_all(chain(&all).first) };
    assert!(bench.was_rung());
    assert_eq!(bench.counted(0, Counter::Wakes), 4);
    let handoff = &bench.shared.worker_slots[1].handoff;
    assert_eq!(
        handoff.close().map(|batch| batch.first),
        Some(all[1]),
        "the ULT that slept on that worker"
    );
    assert!(!task(all[1]).is_ready(), "the worker that opens the batch marks it ready");
    let worker_slot = &bench.shared.worker_slots[0];
    assert_eq!(worker_slot.public_slot.take().map(|batch| batch.first), Some(all[0]));
    for expected in [all[3], all[2]] {
        // SAFETY: this thread acts as the owner of the worker slot.
        assert_eq!(unsafe { worker_slot.ready.pop() }, Some(expected.as_ptr()));
        assert!(task(expected).is_ready());
    }
}

#[test]
fn a_letter_carries_whether_its_ult_slept() {
    for workers in [1, 2] {
        let bench = Bench::new(workers, 0);
        let worker = &bench.workers[0];
        let sleeper = bench.sleeping(0);
        assert_eq!(worker.accept_batch(sleeper.into()), sleeper);
        assert!(task(sleeper).is_ready());
        worker.accept_batch(bench.ready().into());
        let stolen = u64::from(workers > 1);
        assert_eq!(bench.counted(0, Counter::WokenAfar), 2 - stolen);
        assert_eq!(bench.counted(0, Counter::Steals), stolen);
    }
}

#[test]
fn the_ult_of_a_letter_is_queued() {
    let bench = Bench::new(2, 0);
    let worker = &bench.workers[0];
    let (plain, pinned) = (bench.sleeping(0), bench.pinned(0));
    worker.queue_batch(plain.into());
    // SAFETY: this thread acts as the owner of the worker slot.
    assert_eq!(unsafe { bench.shared.worker_slots[0].ready.pop() }, Some(plain.as_ptr()));
    worker.queue_batch(pinned.into());
    assert_eq!(worker.own_count.get(), 1);
}

#[test]
fn a_pinned_ult_that_yields_stays() {
    let bench = Bench::new(2, 0);
    let pinned = bench.pinned(0);
    bench.workers[0].queue_yielded(pinned);
    assert_eq!(bench.workers[0].own_count.get(), 1);
    assert!(bench.shared.worker_slots[0].yielded.is_empty(), "no thief finds it");
    assert_eq!(bench.find(0), Some(pinned));
}

#[test]
fn a_yielding_ult_rings_if_it_is_not_alone() {
    let beside: [fn(&Bench); 5] = [
        |_| (),
        |bench| bench.workers[0].queue_yielded(bench.ready()),
        // SAFETY: this thread acts as the owner of the worker slot.
        |bench| unsafe { bench.shared.worker_slots[0].ready.push(bench.ready().as_ptr()) },
        |bench| bench.workers[0].keep(bench.pinned(0)),
        // SAFETY: as above.
        |bench| unsafe { bench.shared.worker_slots[0].public_slot.publish(bench.ready().into()) },
    ];
    for (which, others) in beside.into_iter().enumerate() {
        let bench = Bench::new(2, 0);
        others(&bench);
        bench.lull(1);
        let slot = bench.new_ult(Traits::default());
        bench.workers[0].queue_yielded(slot);
        assert!(task(slot).is_ready());
        assert!(!bench.shared.worker_slots[0].yielded.is_empty());
        assert_eq!(bench.was_rung(), which > 0, "beside {which}");
    }
    let bench = Bench::new(2, 0);
    bench.workers[0].queue_yielded(bench.pinned(0));
    bench.workers[0].queue_yielded(bench.urgent());
    assert_eq!(bench.workers[0].own_count.get(), 1, "the pinned ULT stays here");
    assert!(!bench.shared.worker_slots[0].yielded.is_empty(), "an urgent ULT yields to others");
    assert_eq!(bench.counted(0, Counter::Yields), 2);
}

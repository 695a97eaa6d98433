//! Tests of what a worker runs next, and of its fair turns.

use super::*;
use crate::sched::record::WorkerRequests;
use std::time::Duration;

/// Lays ULTs out as one chain, in this order.
fn publish(bench: &Bench, worker: usize, all: &[TaskSlot]) {
    // SAFETY: this thread acts as the owner of the worker slot, and the public slot is empty.
    unsafe { bench.shared.worker_slots[worker].public_slot.publish(chain(all)) };
}

/// Queues a ULT as a thread that is not a worker does, but without a notification.
fn inject(bench: &Bench, slot: TaskSlot) -> TaskSlot {
    // SAFETY: the ULT is in no queue.
    unsafe { bench.shared.inject.push(slot.as_ptr()) };
    slot
}

#[test]
fn each_queue_has_its_place_in_the_order() {
    let bench = Bench::new(1, 0);
    let worker = &bench.workers[0];
    let plain = bench.several(2);
    plain.iter().for_each(|slot| worker.push(*slot));
    let yielded = bench.ready();
    worker.queue_yielded(yielded);
    let kept = bench.pinned(0);
    worker.keep(kept);
    let posted = bench.pinned(0);
    let urgent = bench.urgent();
    // SAFETY: both ULTs are in no queue.
    unsafe {
        bench.shared.post(0, posted);
        bench.shared.push_urgent(urgent);
    }
    let outside = [inject(&bench, bench.ready()), inject(&bench, bench.ready())];
    let joiner = bench.ready();
    worker.set_next(joiner);
    let expected =
        [urgent, joiner, plain[1], plain[0], yielded, kept, posted, outside[0], outside[1]];
    assert_eq!(bench.find_all(0), expected);
    assert_eq!((worker.own_count.get(), worker.switch_blockers.get()), (0, 0));
    assert_eq!(bench.counted(0, Counter::WokenAfar), 3, "the ULTs that other threads queued");
}

#[test]
fn the_next_ult_runs_before_pushed_ones() {
    let bench = Bench::new(1, 0);
    let (joiner, plain) = (bench.ready(), bench.ready());
    bench.workers[0].push(plain);
    bench.workers[0].set_next(joiner);
    assert_eq!(bench.find_all(0), [joiner, plain]);
}

#[test]
fn pinned_and_yielded_ults_take_turns() {
    let bench = Bench::new(1, 0);
    let (own, yielded) = ([bench.pinned(0), bench.pinned(0)], bench.several(2));
    own.iter().for_each(|slot| bench.workers[0].keep(*slot));
    yielded.iter().for_each(|slot| bench.workers[0].queue_yielded(*slot));
    assert_eq!(bench.find_all(0), [yielded[0], own[0], yielded[1], own[1]]);
}

#[test]
fn a_child_runs_before_an_urgent_ult_and_a_fair_turn() {
    let bench = Bench::new(1, 0);
    let (child, urgent) = (bench.new_ult(Traits::default()), bench.urgent());
    bench.workers[0].set_next(child);
    // SAFETY: the ULT is in no queue.
    unsafe { bench.shared.push_urgent(urgent) };
    bench.spend_turn(0);
    assert_eq!(bench.workers[0].find(), Some(child));
    assert_eq!(bench.script.calls(), [""; 0], "the fair turn is postponed");
    assert_eq!(bench.workers[0].find(), Some(urgent));
    assert_eq!(bench.script.calls(), ["poll"]);
    // The same at a turn that is not fair.
    let (child, urgent) = (bench.new_ult(Traits::default()), bench.urgent());
    bench.workers[0].set_next(child);
    // SAFETY: as above.
    unsafe { bench.shared.push_urgent(urgent) };
    assert_eq!(bench.find_all(0), [child, urgent]);
}

#[test]
fn a_joiner_is_queued_when_another_ult_runs_first() {
    let bench = Bench::new(1, 0);
    let (joiner, yielded) = (bench.ready(), bench.ready());
    bench.workers[0].set_next(joiner);
    bench.workers[0].queue_yielded(yielded);
    bench.spend_turn(0);
    assert_eq!(bench.workers[0].find(), Some(yielded));
    assert!(bench.workers[0].next.get().is_null());
    assert!(!bench.shared.worker_slots[0].ready.is_empty(), "a thief can see the joiner");
    assert_eq!(bench.find_all(0), [joiner]);
}

#[test]
fn several_urgent_ults_run_next_and_ring_others() {
    for count in [1, 3] {
        let bench = Bench::new(2, 0);
        let urgent: Vec<_> = (0..count).map(|_| bench.urgent()).collect();
        for slot in &urgent {
            // SAFETY: the ULT is in no queue.
            unsafe { bench.shared.push_urgent(*slot) };
        }
        bench.lull(1);
        assert_eq!(bench.workers[0].find(), Some(urgent[0]));
        assert_eq!(bench.was_rung(), count > 1, "{count}");
        assert_eq!(bench.shared.wanted.has(WorkerRequests::URGENT), count > 1, "{count}");
        bench.shared.idle.sleepers.store(0, Ordering::Relaxed);
        assert_eq!(bench.find_all(0), urgent[1..]);
    }
}

#[test]
fn several_ults_from_outside_ring_others() {
    for count in [1, 3] {
        let bench = Bench::new(2, 0);
        let all: Vec<_> = (0..count).map(|_| inject(&bench, bench.ready())).collect();
        bench.lull(1);
        assert_eq!(bench.workers[0].find(), Some(all[0]));
        assert_eq!(bench.was_rung(), count > 1, "{count}");
        bench.shared.idle.sleepers.store(0, Ordering::Relaxed);
        assert_eq!(bench.find_all(0), all[1..]);
        assert_eq!(bench.counted(0, Counter::WokenAfar), count);
    }
    let bench = Bench::new(1, 0);
    let new = inject(&bench, bench.new_ult(Traits::default()));
    assert_eq!(bench.find(0), Some(new));
    assert_eq!(bench.counted(0, Counter::WokenAfar), 0, "the ULT was never asleep");
}

#[test]
fn a_worker_that_runs_a_pinned_ult_rings_for_a_yielded_one() {
    for others in [false, true] {
        let bench = Bench::new(2, 0);
        let own = bench.pinned(0);
        bench.workers[0].keep(own);
        if others {
            // SAFETY: this thread acts as the owner of the worker slot.
            unsafe { bench.shared.worker_slots[0].yielded.push(bench.ready().as_ptr()) };
        }
        bench.workers[0].own_turn.set(true);
        bench.lull(1);
        assert_eq!(bench.workers[0].find(), Some(own));
        assert_eq!(bench.was_rung(), others);
    }
}

#[test]
fn a_public_slot_is_emptied_without_a_search() {
    let bench = Bench::new(2, 0);
    let all = bench.several(3);
    publish(&bench, 1, &all);
    bench.lull(1);
    assert_eq!(bench.workers[0].find(), Some(all[0]));
    assert_eq!(bench.script.calls(), [""; 0]);
    assert!(bench.was_rung(), "two more ULTs were in the chain");
    let own = bench.ready();
    let bench = Bench::new(2, 0);
    publish(&bench, 0, &[own]);
    assert_eq!(bench.workers[0].find(), Some(own), "the worker's own public slot");
    assert_eq!(bench.script.calls(), [""; 0]);
}

#[test]
fn a_fair_turn_comes_after_a_fixed_number_of_switches() {
    let bench = Bench::new(1, 0);
    bench.several(130).iter().for_each(|slot| bench.workers[0].push(*slot));
    let mut polls = Vec::new();
    for at in 1..=125 {
        assert!(bench.workers[0].find().is_some());
        if bench.script.calls() == ["poll"] {
            polls.push(at);
        }
    }
    assert_eq!(polls, [61, 122]);
    assert_eq!(bench.counted(0, Counter::Polls), 2);
}

#[test]
fn the_hub_adds_the_counts_of_a_turn() {
    let bench = Bench::new(1, 0);
    let worker = &bench.workers[0];
    worker.turn().set(worker.turn().get().yielded());
    worker.push(bench.ready());
    worker.find();
    assert_eq!(bench.shared.worker_slots[0].counters.snapshot()[Counter::Yields], 1);
}

#[test]
fn a_worker_stops_at_its_fair_turn() {
    let bench = Bench::new(1, 0);
    bench.several(3).iter().for_each(|slot| bench.workers[0].push(*slot));
    bench.shared.stop_workers();
    assert!(bench.workers[0].find().is_some());
    bench.spend_turn(0);
    assert_eq!(bench.workers[0].find(), None);
    assert_eq!(bench.script.calls(), [""; 0]);
}

#[test]
fn each_fair_turn_prefers_another_queue() {
    let bench = Bench::new(1, 0);
    let worker = &bench.workers[0];
    let never = Instant::from_ns(u64::MAX);
    let youngest = bench.several(10);
    youngest.iter().for_each(|slot| worker.push(*slot));
    let own = [(); 3].map(|()| bench.pinned(0));
    own.iter().for_each(|slot| worker.keep(*slot));
    let yielded = bench.several(2);
    yielded.iter().for_each(|slot| worker.queue_yielded(*slot));
    let outside = [(); 2].map(|()| inject(&bench, bench.ready()));
    let mut found = Vec::new();
    for _ in 0..8 {
        worker.aged.set(never);
        bench.spend_turn(0);
        found.extend(worker.find());
    }
    let expected =
        [own[0], yielded[0], outside[0], own[1], yielded[1], own[2], outside[1], youngest[9]];
    assert_eq!(found, expected);
    assert_eq!(worker.fair_turns.get(), 8);
}

#[test]
fn some_fair_turns_take_the_oldest_of_the_own_queue() {
    let bench = Bench::new(1, 0);
    let worker = &bench.workers[0];
    let (long_ago, never) = (Instant::ZERO, Instant::from_ns(u64::MAX));
    let all = bench.several(6);
    all.iter().for_each(|slot| worker.push(*slot));
    std::thread::sleep(Duration::from_millis(2));
    let turn = |before, aged| {
        worker.fair_turns.set(before);
        worker.aged.set(aged);
        bench.spend_turn(0);
        worker.find()
    };
    assert_eq!(turn(0, long_ago), Some(all[5]), "the other queues come first every other time");
    assert_eq!(turn(1, never), Some(all[4]), "the oldest is not due");
    assert_eq!(turn(1, long_ago), Some(all[0]));
    assert!(worker.aged.get() == worker.now.get() && worker.now.get() > long_ago);
    assert_eq!(turn(255, never), Some(all[1]), "without a clock, too");
    assert_eq!(turn(257, never), Some(all[3]));
    // The public slot is older than what is queued.
    let bench = Bench::new(2, 0);
    let all = bench.several(3);
    all.iter().for_each(|slot| bench.workers[0].push(*slot));
    bench.workers[0].fair_turns.set(255);
    bench.spend_turn(0);
    assert_eq!(bench.workers[0].find(), Some(all[0]));
}

#[test]
fn a_fair_turn_offers_ults_that_no_push_announced() {
    let bench = Bench::new(2, 0);
    let all = bench.several(3);
    for slot in &all {
        // SAFETY: this thread acts as the owner of the worker slot.
        unsafe { bench.shared.worker_slots[0].ready.push(slot.as_ptr()) };
    }
    bench.spend_turn(0);
    assert_eq!(bench.workers[0].find(), Some(all[2]));
    assert_eq!(
        bench.shared.worker_slots[0].public_slot.seen().map(|batch| batch.first),
        Some(all[0])
    );
}

//! Tests of what a worker takes from other workers.

use super::*;

/// Puts ULTs into another worker's queue, without a notification.
fn fill(
    bench: &Bench,
    queue: fn(&crate::sched::worker_slot::WorkerSlot) -> &crate::deque::WorkDeque<Task>,
) {
    for slot in bench.several(2) {
        // SAFETY: this thread acts as the owner of the worker slot.
        unsafe { queue(&bench.shared.worker_slots[1]).push(slot.as_ptr()) };
    }
}

#[test]
fn both_queues_of_another_worker_are_stolen_from() {
    let bench = Bench::new(3, 0);
    assert_eq!(bench.workers[0].steal(), None);
    fill(&bench, |worker_slot| &worker_slot.ready);
    fill(&bench, |worker_slot| &worker_slot.yielded);
    // SAFETY: this thread acts as the owner of the worker slot.
    unsafe { bench.shared.worker_slots[0].ready.push(bench.ready().as_ptr()) };
    let stolen = (0..8).filter(|_| bench.workers[0].steal().is_some()).count();
    assert_eq!(stolen, 4, "each lone ULT at the second look");
    assert!(!bench.shared.worker_slots[0].ready.is_empty(), "a worker does not steal from itself");
    assert_eq!(bench.counted(0, Counter::Steals), 4);
}

#[test]
fn a_lone_ult_is_left_until_it_was_seen_twice() {
    let bench = Bench::new(2, 0);
    let lone = bench.ready();
    // SAFETY: this thread acts as the owner of the worker slot.
    unsafe { bench.shared.worker_slots[1].ready.push(lone.as_ptr()) };
    assert_eq!(bench.workers[0].steal(), None);
    // The ULT ran meanwhile.
    task(lone).set_runnable();
    assert_eq!(bench.workers[0].steal(), None);
    assert_eq!(bench.workers[0].steal(), Some(lone));
}

#[test]
fn a_thief_keeps_a_part_of_a_long_queue() {
    let bench = Bench::new(2, 0);
    let all = bench.several(24);
    for slot in &all {
        // SAFETY: this thread acts as the owner of the worker slot.
        unsafe { bench.shared.worker_slots[1].yielded.push(slot.as_ptr()) };
    }
    assert_eq!(bench.workers[0].steal(), Some(all[0]));
    let ready = &bench.shared.worker_slots[0].ready;
    // SAFETY: as above.
    let kept: Vec<_> = core::iter::from_fn(|| unsafe { ready.pop() }).collect();
    assert_eq!(kept, [all[2].as_ptr(), all[1].as_ptr()]);
}

#[test]
fn a_thief_is_patient_for_a_while() {
    for (spin, patience) in [(0, 0), (7, 7), (1000, 64)] {
        let bench = Bench::new(2, spin);
        fill(&bench, |worker_slot| &worker_slot.ready);
        let looks = (0..).take_while(|_| bench.workers[0].steal().is_none()).count();
        assert_eq!(looks, patience, "of a worker that spins {spin} rounds");
    }
}

#[test]
fn the_only_worker_does_not_steal() {
    let bench = Bench::new(1, 0);
    // SAFETY: this thread acts as the owner of the worker slot.
    unsafe { bench.shared.worker_slots[0].ready.push(bench.ready().as_ptr()) };
    assert_eq!(bench.workers[0].steal(), None);
}

#[test]
fn a_batch_that_another_worker_leaves_is_taken() {
    let bench = Bench::new(2, 0);
    let handoff = &bench.shared.worker_slots[1].handoff;
    let send = |slot: TaskSlot| {
        handoff.open();
        assert!(handoff.try_send(slot.into()));
        slot
    };
    let plain = send(bench.sleeping(1));
    assert_eq!(bench.workers[0].steal(), Some(plain));
    assert!(task(plain).is_ready() && !handoff.is_full());
    assert_eq!(bench.counted(0, Counter::WokenAfar), 1);
    send(bench.pinned(1));
    assert_eq!(bench.workers[0].steal(), None);
    assert!(
        !bench.shared.worker_slots[1].pinned.is_empty(),
        "the pinned ULT is returned to its worker"
    );
    bench.workers[0].accept_batch(send(bench.ready()).into());
}

#[test]
fn the_offers_of_all_other_workers_are_searched() {
    let bench = Bench::new(3, 0);
    for worker in [1, 2, 1] {
        let slot = bench.ready();
        // SAFETY: this thread acts as the owner of the worker slot, and the public slot is empty.
        unsafe { bench.shared.worker_slots[worker].public_slot.publish(slot.into()) };
        assert_eq!(bench.workers[0].take_public(), Some(slot));
        assert_eq!(bench.workers[0].take_public(), None);
    }
    // SAFETY: as above.
    unsafe { bench.shared.worker_slots[1].public_slot.publish(bench.ready().into()) };
    assert_eq!(bench.workers[1].take_public(), None, "a worker does not take its own public slot");
    for worker in [2, 0] {
        assert!(bench.workers[worker].take_public().is_some());
        // SAFETY: as above.
        unsafe { bench.shared.worker_slots[1].public_slot.publish(bench.ready().into()) };
    }
}

//! Tests of direct switches, on the only worker.

use super::*;
use crate::bias::InsideMark;
use crate::stack::StackHead;
use tsumugi_core::wait::Reason;

/// Makes a bench of one worker, which owns the bias of the park words, and the
/// ULT that runs on it.
fn bench() -> (Bench, TaskSlot) {
    bench_with(Traits::default())
}

fn bench_with(traits: Traits) -> (Bench, TaskSlot) {
    let bench = Bench::new(1, 0);
    bench.shared.parks().claim(name(&bench));
    let slot = begun(&bench, traits);
    bench.workers[0].set_current(slot);
    (bench, slot)
}

/// Returns the worker's name as the owner of a bias, where fences cost nothing.
fn name(bench: &Bench) -> usize {
    ptr::from_ref(&bench.shared.worker_slots[0]).addr()
}

/// Makes a ULT that is on a stack, and may run.
fn begun(bench: &Bench, traits: Traits) -> TaskSlot {
    let slot = bench.new_ult(traits);
    // SAFETY: the ULT is the test's.
    let head = unsafe { bench.workers[0].stack_of(task(slot)) }.unwrap();
    head.set_reason(&Reason::new("test"));
    task(slot).set_runnable();
    slot
}

fn usual(bench: &Bench) -> TaskSlot {
    begun(bench, Traits::default())
}

fn head<'a>(slot: TaskSlot) -> &'a StackHead {
    // SAFETY: the ULT is the test's, and on a stack.
    unsafe { task(slot).head() }.unwrap()
}

fn yielded(bench: &Bench, slot: TaskSlot) {
    // SAFETY: this thread acts as the owner of the worker slot.
    unsafe { bench.shared.worker_slots[0].yielded.push(slot.as_ptr()) };
}

fn push(bench: &Bench, slot: TaskSlot) {
    // SAFETY: as above.
    unsafe { bench.shared.worker_slots[0].ready.push(slot.as_ptr()) };
}

fn pop(bench: &Bench) -> Option<TaskSlot> {
    // SAFETY: as above.
    NonNull::new(unsafe { bench.shared.worker_slots[0].ready.pop() }?)
}

/// Runs `f` on a thread that acts as the worker.
fn as_worker<R>(bench: &Bench, f: impl FnOnce() -> R) -> R {
    let before = current::set_worker(&raw const bench.workers[0]);
    let result = f();
    current::set_worker(before);
    result
}

/// Returns the reasons against a direct switch, which hold whatever is queued.
fn switch_blockers() -> [fn(&Bench); 4] {
    [
        |bench| bench.workers[0].block_direct_switches(),
        |bench| bench.spend_turn(0),
        // SAFETY: the ULT is in no queue.
        |bench| unsafe { bench.shared.push_urgent(bench.urgent()) },
        |bench| bench.workers[0].keep(bench.pinned(0)),
    ]
}

/// The owner is seen inside until it leaves; a worker that is not the owner goes out
/// again at once.
#[test]
fn the_owner_of_the_park_words_is_seen_inside() {
    for is_owner in [true, false] {
        let bench = Bench::new(1, 0);
        bench.shared.parks().claim(if is_owner { name(&bench) } else { 0 });
        let worker_slot = &bench.shared.worker_slots[0];
        let inside = worker_slot.place.parks.inside();
        let spent = inside.get().less(SWITCH);
        assert!(!inside.has_owner());
        assert_eq!(worker_slot.has_parks(spent), is_owner);
        assert_eq!(inside.has_owner(), is_owner);
        inside.leave_with(spent);
        assert!(!inside.has_owner());
    }
}

#[test]
fn a_yield_switches_to_the_oldest_yielded_ult() {
    let (bench, slot) = bench();
    let worker = &bench.workers[0];
    let others = [usual(&bench), usual(&bench)];
    others.iter().for_each(|other| yielded(&bench, *other));
    assert_eq!(worker.let_run(slot), Some(others[0]));
    assert_eq!(worker.current(), Some(others[0]));
    assert_eq!(worker.let_run(others[0]), Some(others[1]));
    assert_eq!(worker.let_run(others[1]), Some(slot));
    assert_eq!(bench.counted(0, Counter::Yields), 3);
    // A ULT that was pushed comes before those that yielded, and only the hub
    // takes it.
    push(&bench, usual(&bench));
    assert_eq!(worker.let_run(slot), None);
    assert_eq!(worker.current(), Some(slot));
    assert_eq!(bench.counted(0, Counter::Yields), 3);
}

#[test]
fn a_yield_leaves_special_cases_to_the_hub() {
    for block_direct_switches in switch_blockers() {
        let (bench, slot) = bench();
        yielded(&bench, usual(&bench));
        block_direct_switches(&bench);
        assert_eq!(bench.workers[0].let_run(slot), None);
        assert_eq!(bench.workers[0].current(), Some(slot));
    }
    let (bench, slot) = bench();
    yielded(&bench, bench.new_ult(Traits::default()));
    assert_eq!(bench.workers[0].let_run(slot), None, "a new one needs a stack");
    let (bench, slot) = bench_with(Traits { worker: Some(0), ..Traits::default() });
    yielded(&bench, usual(&bench));
    assert_eq!(bench.workers[0].let_run(slot), None, "the ULT is queued elsewhere");
}

#[test]
fn a_lone_ult_continues_until_its_turn_is_over() {
    let (bench, slot) = bench();
    for _ in 0..60 {
        assert_eq!(bench.workers[0].let_run(slot), Some(slot));
    }
    assert_eq!(bench.workers[0].let_run(slot), None);
    assert!(!bench.workers[0].is_alone());
}

#[test]
fn a_ult_is_alone_if_every_queue_is_empty() {
    let queues: [fn(&Bench); 7] = [
        |bench| yielded(bench, usual(bench)),
        |bench| push(bench, usual(bench)),
        |bench| bench.workers[0].keep(bench.pinned(0)),
        // SAFETY: each ULT is in no queue, and this thread acts as the owner of
        // the worker slot.
        |bench| unsafe { bench.shared.worker_slots[0].pinned.push(bench.pinned(0).as_ptr()) },
        // SAFETY: the same.
        |bench| unsafe { bench.shared.urgent.push(bench.urgent().as_ptr()) },
        // SAFETY: the same.
        |bench| unsafe { bench.shared.inject.push(bench.ready().as_ptr()) },
        // SAFETY: the same.
        |bench| unsafe { bench.shared.worker_slots[0].public_slot.publish(bench.ready().into()) },
    ];
    for queue in queues {
        let (bench, _) = bench();
        assert!(bench.workers[0].is_alone());
        queue(&bench);
        let before = bench.workers[0].turn().get();
        assert!(!bench.workers[0].is_alone());
        assert!(!before.less(SWITCH).leaves(0) || bench.workers[0].turn().get().leaves(SWITCH));
    }
}

#[test]
fn a_park_switches_to_the_youngest_ult_and_ends_by_an_unpark() {
    let (bench, slot) = bench();
    let worker = &bench.workers[0];
    let others = [usual(&bench), usual(&bench)];
    others.iter().for_each(|other| push(&bench, *other));
    worker.now.set(Instant::from_ns(77));
    assert_eq!(worker.let_park(slot), Some(others[1]));
    assert_eq!(worker.current(), Some(others[1]));
    assert_eq!(head(slot).since.load(Ordering::Relaxed), 77);
    assert!(task(slot).park.has_sleeper() && !worker.turn().has_owner());
    assert_eq!(bench.counted(0, Counter::Parks), 1);
    // SAFETY: `slot` is a descriptor of this scheduler.
    unsafe { assert!(worker.unpark_alone(&bench.shared, slot)) };
    assert!(!worker.turn().has_owner());
    assert_eq!(bench.counted(0, Counter::Wakes), 1);
    assert_eq!(worker.let_park(others[1]), Some(slot), "the ULT was the youngest");
    // SAFETY: as above.
    unsafe { assert!(worker.unpark_alone(&bench.shared, slot), "the ULT runs") };
    assert_eq!(bench.counted(0, Counter::Wakes), 1);
    assert_eq!(worker.let_park(slot), Some(slot), "the ULT has a token");
    assert_eq!(worker.current(), Some(slot));
    assert!(!worker.turn().has_owner());
    assert_eq!(pop(&bench), Some(others[0]), "the other ULT still waits");
    assert_eq!(bench.counted(0, Counter::Parks), 2);
}

#[test]
fn a_park_without_a_token_leaves_special_cases_to_the_hub() {
    for block_direct_switches in switch_blockers() {
        for token in [false, true] {
            let (bench, slot) = bench();
            let other = usual(&bench);
            push(&bench, other);
            if token {
                // SAFETY: `slot` is a descriptor of this scheduler.
                unsafe { bench.workers[0].unpark_alone(&bench.shared, slot) };
            }
            block_direct_switches(&bench);
            assert_eq!(bench.workers[0].let_park(slot), token.then_some(slot));
            assert!(!bench.workers[0].turn().has_owner());
            assert_eq!(pop(&bench), Some(other));
        }
    }
    for token in [false, true] {
        let (bench, slot) = bench();
        if token {
            // SAFETY: as above.
            unsafe { bench.workers[0].unpark_alone(&bench.shared, slot) };
        }
        assert_eq!(bench.workers[0].let_park(slot), token.then_some(slot), "nothing is queued");
        assert!(!bench.workers[0].turn().has_owner());
        push(&bench, bench.new_ult(Traits::default()));
        assert_eq!(bench.workers[0].let_park(slot), None, "a new one needs a stack");
        assert!(pop(&bench).is_some() && !bench.workers[0].turn().has_owner());
    }
}

#[test]
fn shared_park_words_are_left_to_the_hub() {
    let (bench, slot) = bench();
    push(&bench, usual(&bench));
    bench.shared.parks().end_and_wait();
    let worker = &bench.workers[0];
    // SAFETY: `slot` is a descriptor of this scheduler.
    unsafe { assert!(!worker.unpark_alone(&bench.shared, slot)) };
    assert_eq!(worker.let_park(slot), None);
    assert!(!worker.turn().has_owner() && pop(&bench).is_some());
}

#[test]
fn a_pinned_or_urgent_ult_is_routed_when_it_is_unparked() {
    for traits in [
        Traits { worker: Some(0), ..Traits::default() },
        Traits { urgent: true, ..Traits::default() },
    ] {
        let (bench, slot) = bench_with(traits);
        assert!(bench.shared.begin_park(task(slot), name(&bench)));
        // SAFETY: `slot` is a descriptor of this scheduler.
        unsafe { assert!(bench.workers[0].unpark_alone(&bench.shared, slot)) };
        assert!(pop(&bench).is_none());
        assert_eq!(bench.workers[0].own_count.get() == 1, !traits.urgent);
        assert_eq!(bench.shared.urgent.is_empty(), !traits.urgent);
    }
}

#[test]
fn a_sleep_switches_to_the_youngest_ult() {
    let (bench, slot) = bench();
    let worker = &bench.workers[0];
    let other = usual(&bench);
    push(&bench, other);
    worker.now.set(Instant::from_ns(77));
    let mut commit = |_| {
        assert_eq!(worker.current(), None, "no ULT is current inside the commit");
        true
    };
    assert!(
        matches!(worker.let_sleep(slot, &mut commit), SleepOutcome::Pass(next) if next == other)
    );
    assert_eq!(worker.current(), Some(other));
    assert_eq!(task(slot).state(), Some(crate::task::UltState::Sleeping));
    assert_eq!(head(slot).since.load(Ordering::Relaxed), 77);
    assert_eq!(bench.counted(0, Counter::Parks), 1);
    assert!(pop(&bench).is_none());
}

#[test]
fn a_ult_whose_commit_refuses_continues() {
    let (bench, slot) = bench();
    push(&bench, usual(&bench));
    assert!(matches!(bench.workers[0].let_sleep(slot, &mut |_| false), SleepOutcome::On));
    assert!(task(slot).is_ready() && bench.workers[0].current() == Some(slot));
    assert!(pop(&bench).is_some());
}

#[test]
fn a_ult_that_is_woken_in_its_commit_continues() {
    let (bench, slot) = bench();
    let mut commit = |waker: Waker| {
        waker.wake();
        true
    };
    let way = as_worker(&bench, || bench.workers[0].let_sleep(slot, &mut commit));
    assert!(matches!(way, SleepOutcome::On));
    assert!(task(slot).is_ready() && bench.workers[0].current() == Some(slot));
    assert!(pop(&bench).is_none());
}

#[test]
fn a_sleep_without_a_usual_successor_leaves_to_the_hub() {
    let queues: [fn(&Bench); 2] = [|_| (), |bench| push(bench, bench.new_ult(Traits::default()))];
    for queue in queues {
        let (bench, slot) = bench();
        queue(&bench);
        assert!(matches!(bench.workers[0].let_sleep(slot, &mut |_| true), SleepOutcome::Leave));
        assert_eq!(bench.workers[0].current(), Some(slot), "the ULT that leaves is current");
    }
    // The same if a ULT that must run before has come meanwhile.
    for come in [switch_blockers()[0], switch_blockers()[2]] {
        let (bench, slot) = bench();
        push(&bench, usual(&bench));
        let mut commit = |_| {
            come(&bench);
            true
        };
        assert!(matches!(bench.workers[0].let_sleep(slot, &mut commit), SleepOutcome::Leave));
        assert!(pop(&bench).is_some());
    }
}

#[test]
fn a_sleep_asks_the_hub_where_a_direct_switch_is_forbidden() {
    for block_direct_switches in switch_blockers() {
        let (bench, slot) = bench();
        push(&bench, usual(&bench));
        block_direct_switches(&bench);
        let mut commit = |_| panic!("the hub calls the commit");
        assert!(matches!(bench.workers[0].let_sleep(slot, &mut commit), SleepOutcome::Ask));
        assert!(task(slot).is_ready() && bench.workers[0].current() == Some(slot));
        assert_eq!(bench.counted(0, Counter::Parks), 0);
    }
}

//! Tests of the hub when a ULT has left, and of children that a joiner runs itself.

use super::*;
use crate::stack::Stack;
use crate::task::{Joiner, UltState};

/// Makes a ULT that is on a stack, and may run.
fn begun(bench: &Bench) -> (TaskSlot, &StackHead) {
    let slot = bench.new_ult(Traits::default());
    // SAFETY: the ULT is the test's.
    let head = unsafe { bench.workers[0].stack_of(task(slot)) }.unwrap();
    task(slot).set_runnable();
    (slot, head)
}

/// Makes a child that was just spawned on the first worker, and the ULT that runs
/// there.
fn child_and_joiner(bench: &Bench, child: Traits) -> (TaskSlot, TaskSlot) {
    let (joiner, _) = begun(bench);
    bench.workers[0].set_current(joiner);
    let child = bench.new_ult(child);
    bench.workers[0].push(child);
    (child, joiner)
}

fn claim(bench: &Bench, child: TaskSlot) -> Option<ClaimMode> {
    // SAFETY: the test has the handle; it suspends nothing.
    unsafe { bench.workers[0].claim(child) }
}

#[test]
fn a_park_records_its_worker_and_its_time() {
    for token in [false, true] {
        let bench = Bench::new(2, 0);
        let worker = &bench.workers[0];
        let (slot, head) = begun(&bench);
        task(slot).set_last(1);
        worker.now.set(Instant::from_ns(77));
        if token {
            // SAFETY: `slot` is a descriptor of this scheduler.
            unsafe { bench.shared.unpark(slot) };
        }
        assert_eq!(worker.park(slot, head), !token);
        assert_eq!(task(slot).last(), 0);
        assert_eq!(head.since.load(Ordering::Relaxed), 77);
        let state = if token { UltState::Ready } else { UltState::Sleeping };
        assert_eq!(task(slot).state(), Some(state));
        assert_eq!(bench.counted(0, Counter::Parks), 1);
    }
}

#[test]
fn a_sleep_records_its_worker_and_its_time() {
    let bench = Bench::new(2, 0);
    let (slot, head) = begun(&bench);
    task(slot).set_last(1);
    bench.workers[0].now.set(Instant::from_ns(78));
    bench.workers[0].put_to_sleep(slot, head);
    assert_eq!((task(slot).last(), head.since.load(Ordering::Relaxed)), (0, 78));
    assert_eq!(task(slot).state(), Some(UltState::Sleeping));
}

#[test]
fn the_stack_of_an_ended_ult_is_reused() {
    let bench = Bench::new(1, 0);
    let (slot, head) = begun(&bench);
    let head = ptr::from_ref(head);
    bench.workers[0].finish(slot);
    assert_eq!(task(slot).state(), Some(UltState::Done), "the handle still exists");
    let (_, again) = begun(&bench);
    assert!(ptr::eq(again, head));
}

#[test]
fn the_end_of_a_detached_ult_frees_it() {
    let bench = Bench::new(1, 0);
    let (slot, _) = begun(&bench);
    assert!(!task(slot).detach());
    // SAFETY: the closure does not run on a stack of its own.
    unsafe { Task::live(slot.as_ptr().cast_const().cast()) };
    bench.workers[0].finish(slot);
    assert_eq!(task(slot).state(), None);
    assert_eq!(bench.workers[0].slot(), slot);
}

/// The handle may be dropped after the ULT has run and before the worker notes its end.
#[test]
fn the_result_of_a_ult_that_is_detached_late_is_dropped() {
    for detached_before in [false, true] {
        let bench = Bench::new(1, 0);
        let result = Arc::new(());
        let kept = Arc::downgrade(&result);
        let slot = bench.new_ult(Traits::default());
        // SAFETY: the ULT has not begun, and its closure owns nothing.
        unsafe { task(slot).fill(move || result) };
        // SAFETY: the ULT is the test's.
        unsafe { bench.workers[0].stack_of(task(slot)) }.unwrap();
        task(slot).set_runnable();
        if detached_before {
            assert!(!task(slot).detach());
        }
        // SAFETY: the closure does not run on a stack of its own.
        unsafe { Task::live(slot.as_ptr().cast_const().cast()) };
        assert_eq!(kept.strong_count(), usize::from(!detached_before));
        if !detached_before {
            assert!(!task(slot).detach());
        }
        bench.workers[0].finish(slot);
        assert_eq!((kept.strong_count(), task(slot).state()), (0, None));
    }
}

#[test]
fn the_end_of_a_joined_ult_makes_its_joiner_next() {
    let bench = Bench::new(1, 0);
    let worker = &bench.workers[0];
    let (slot, _) = begun(&bench);
    let (joiner, node) = (bench.sleeping(0), Joiner::new());
    // SAFETY: the waker is used once, and the node stays.
    unsafe { assert!(task(slot).join(&node, Waker::new(joiner.as_ptr().cast(), wake))) };
    let before = current::set_worker(worker);
    worker.finish(slot);
    current::set_worker(before);
    assert_eq!(worker.next.get(), joiner.as_ptr());
    assert!(!worker.handing_over.get(), "other ULTs that are woken are pushed");
    assert!(task(joiner).is_ready());
}

#[test]
fn the_youngest_child_is_run_by_its_joiner() {
    let bench = Bench::new(1, 0);
    let (child, joiner) = child_and_joiner(&bench, Traits::default());
    assert!(matches!(claim(&bench, child), Some(ClaimMode::Call(host)) if host == joiner));
    assert!(bench.shared.worker_slots[0].ready.is_empty());
    assert!(claim(&bench, child).is_none(), "the child is in no queue");
    // A child below another ULT in the deque stays where it is.
    bench.workers[0].push(child);
    bench.workers[0].push(bench.ready());
    assert!(claim(&bench, child).is_none());
}

#[test]
fn an_offered_child_is_run_by_its_joiner_if_the_queue_is_empty() {
    let bench = Bench::new(2, 0);
    let (child, joiner) = child_and_joiner(&bench, Traits::default());
    let younger = bench.ready();
    bench.workers[0].push(younger);
    assert!(claim(&bench, child).is_none());
    // SAFETY: this thread acts as the owner of the worker slot.
    unsafe { bench.shared.worker_slots[0].ready.pop() };
    assert!(matches!(claim(&bench, child), Some(ClaimMode::Call(host)) if host == joiner));
    assert!(!bench.shared.worker_slots[0].public_slot.is_full());
}

#[test]
fn a_joiner_without_room_lends_its_place_but_not_its_stack() {
    let large = Bench::new(1, 0).shared.stacks.class(256 << 10).unwrap();
    let all = [
        (Traits::default(), Traits::default(), usize::MAX),
        (Traits { worker: Some(0), ..Traits::default() }, Traits::default(), 0),
        (Traits::default(), Traits { class: large, ..Traits::default() }, 0),
    ];
    for (host, traits, inline_bytes) in all {
        let bench = Bench::with_inline(1, inline_bytes);
        let joiner = bench.new_ult(host);
        // SAFETY: the ULT is the test's.
        unsafe { bench.workers[0].stack_of(task(joiner)) }.unwrap();
        bench.workers[0].set_current(joiner);
        let child = bench.new_ult(traits);
        bench.workers[0].push(child);
        let claimed = claim(&bench, child);
        let Some(ClaimMode::Switch(by, head)) = claimed else { panic!("{inline_bytes}") };
        // SAFETY: the ULT is the test's.
        assert!(by == joiner && ptr::eq(head.as_ptr(), unsafe { task(child).head() }.unwrap()));
    }
}

#[test]
fn a_child_for_which_there_is_no_stack_waits() {
    let bench = Bench::with_inline(1, usize::MAX);
    let (child, _) = child_and_joiner(&bench, Traits::default());
    let all: Vec<_> = core::iter::from_fn(|| {
        // SAFETY: the ULT is a test's, and no worker runs it.
        unsafe { bench.workers[0].stack_of(task(bench.new_ult(Traits::default()))) }
    })
    .collect();
    assert!(claim(&bench, child).is_none());
    assert!(!bench.shared.stack_waiters.is_empty());
    // SAFETY: the ULT is not used any more.
    bench.workers[0].put_stack(unsafe { Stack::from_head(NonNull::from(all[0])) });
    assert!(bench.shared.stack_waiters.is_empty());
    assert_eq!(bench.find(0), Some(child));
}

#[test]
fn a_child_is_left_to_the_hub_at_fair_turns_and_in_special_cases() {
    let bench = Bench::new(1, 0);
    let (child, _) = child_and_joiner(&bench, Traits::default());
    let mut claims = 0;
    while claim(&bench, child).is_some() {
        claims += 1;
        bench.workers[0].push(child);
    }
    assert_eq!(claims, 4 * 61 - 1);
    let against: [fn(&Bench, TaskSlot); 2] = [
        |_, child| task(child).set_runnable(),
        // SAFETY: the ULT is in no queue.
        |bench, _| unsafe { bench.shared.push_urgent(bench.urgent()) },
    ];
    for act in against {
        let bench = Bench::new(1, 0);
        let (child, _) = child_and_joiner(&bench, Traits::default());
        act(&bench, child);
        assert!(claim(&bench, child).is_none());
        assert!(!bench.shared.worker_slots[0].ready.is_empty());
    }
    let bench = Bench::new(1, 0);
    let keeps_fp = Traits { keeps_fp: true, ..Traits::default() };
    let (child, _) = child_and_joiner(&bench, keeps_fp);
    assert!(claim(&bench, child).is_none(), "only the hub saves control words");
    bench.workers[0].take_current();
    let child = bench.new_ult(Traits::default());
    bench.workers[0].push(child);
    assert!(claim(&bench, child).is_none(), "no ULT runs");
}

#[test]
fn after_a_task_no_ult_is_current() {
    let bench = Bench::new(1, 0);
    let worker = &bench.workers[0];
    assert_eq!(worker.current(), None);
    let slot = bench.ready();
    worker.set_current(slot);
    assert!(bench.shared.runs(task(slot)) && !bench.shared.runs(task(bench.ready())));
    assert_eq!(worker.take_current(), Some(slot));
    assert_eq!((worker.current(), worker.take_current()), (None, None));
}

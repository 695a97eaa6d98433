//! Tests of how a worker searches, sleeps, and goes on.

use super::*;
use crate::futex::SystemFutex;
use crate::sched::record::WorkerRequests;
use tsumugi_core::sync::AtomicBool;

/// Runs `at` in the `wanted`th call of that name, and stops the workers `polls`
/// polls after the search began. Returns what the first worker found.
fn find_after(
    bench: &Bench,
    (call, wanted): (&'static str, usize),
    polls: usize,
    mut at: impl FnMut() -> bool,
) -> Option<TaskSlot> {
    let (mut seen, mut polled) = (0, 0);
    let step = |what| {
        polled += usize::from(what == "poll");
        if polled > polls {
            bench.shared.stop_workers();
        }
        seen += usize::from(what == call);
        what == call && seen == wanted && at()
    };
    bench.find_with(0, step)
}

/// Runs `f`, and meanwhile wakes any worker that sleeps, after it has called
/// `on_sleep`.
fn with_ringer<R>(bench: &Bench, f: impl FnOnce() -> R) -> R {
    let (shared, has_slept) = (&bench.shared, &bench.script.has_slept);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Acquire) {
                if has_slept.load(Ordering::Acquire) {
                    shared.bells.ring_all(&SystemFutex);
                }
                std::thread::yield_now();
            }
        });
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f));
        is_over.store(true, Ordering::Release);
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Puts a ULT into a place.
type Put = fn(&Bench, TaskSlot);

/// Returns all places where a ULT may appear while a worker searches.
fn places() -> [(&'static str, Put); 8] {
    [
        ("hand-off slot", |bench, slot| {
            assert!(bench.shared.worker_slots[0].handoff.try_send(slot.into()));
        }),
        ("another's public slot", |bench, slot| {
            // SAFETY: this thread acts as the owner of the worker slot, and the public slot is
            // empty.
            unsafe { bench.shared.worker_slots[1].public_slot.publish(slot.into()) }
        }),
        ("another's queue", |bench, slot| {
            bench.workers[0].lonely[1][0].set((slot.as_ptr().addr(), task(slot).stamp()));
            // SAFETY: as above.
            unsafe { bench.shared.worker_slots[1].ready.push(slot.as_ptr()) }
        }),
        ("another's yielded", |bench, slot| {
            bench.workers[0].lonely[1][1].set((slot.as_ptr().addr(), task(slot).stamp()));
            // SAFETY: as above.
            unsafe { bench.shared.worker_slots[1].yielded.push(slot.as_ptr()) }
        }),
        // SAFETY: the ULT is in no queue.
        ("posted", |bench, slot| unsafe {
            bench.shared.worker_slots[0].pinned.push(slot.as_ptr())
        }),
        // SAFETY: as above.
        ("from outside", |bench, slot| unsafe { bench.shared.inject.push(slot.as_ptr()) }),
        // SAFETY: as above.
        ("urgent", |bench, slot| unsafe { bench.shared.push_urgent(slot) }),
        ("waiters for a stack", |bench, slot| bench.shared.stack_waiters.push(slot)),
    ]
}

#[test]
fn a_searcher_finds_a_ult_in_any_place() {
    for (place, put) in places() {
        for moved in [false, true] {
            let bench = Bench::new(2, 0);
            let slot = bench.ready();
            let found = find_after(&bench, ("poll", 1), 1, || {
                put(&bench, slot);
                moved
            });
            assert_eq!(found, Some(slot), "{place}");
            assert_eq!(bench.script.calls(), ["idle", "poll", "busy"], "{place}");
            assert_eq!(bench.shared.idle.searching.load(Ordering::Relaxed), 0, "{place}");
            assert!(!bench.shared.worker_slots[0].handoff.is_open(), "{place}");
            assert_eq!(bench.counted(0, Counter::Polls), 1);
        }
    }
}

#[test]
fn a_worker_about_to_sleep_sees_a_new_ult() {
    for (place, put) in places().into_iter().skip(1) {
        let bench = Bench::new(2, 0);
        let slot = bench.ready();
        let find = || {
            find_after(&bench, ("sleep", 1), 20, || {
                put(&bench, slot);
                false
            })
        };
        assert_eq!(with_ringer(&bench, find), Some(slot), "{place}");
        assert_eq!(bench.counted(0, Counter::Sleeps), 0, "{place}");
        let calls = bench.script.calls();
        assert_eq!(calls.iter().filter(|call| **call == "sleep").count(), 1, "{place}");
        assert_eq!(calls.iter().filter(|call| **call == "wake").count(), 1, "{place}");
        assert_eq!(bench.shared.bells.asleep(), 0, "{place}");
    }
}

#[test]
fn a_worker_about_to_sleep_stays_for_a_poll_or_a_stop() {
    for stops in [false, true] {
        let bench = Bench::new(2, 0);
        let mut asked = 0;
        let step = |call| {
            if stops && call == "sleep" || call == "wake" {
                bench.shared.stop_workers();
            }
            asked += usize::from(call == "has_work");
            call == "has_work"
        };
        let found = with_ringer(&bench, || bench.find_with(0, step));
        assert_eq!((found, asked), (None, usize::from(!stops)));
        assert_eq!(bench.counted(0, Counter::Sleeps), 0);
        assert_eq!(bench.shared.idle.searching.load(Ordering::Relaxed), 0);
        assert_eq!(bench.shared.idle.sleepers.load(Ordering::Relaxed), 0);
    }
}

#[test]
fn a_batch_before_a_sleep_is_taken() {
    for poll in 1..8 {
        let bench = Bench::new(2, 0);
        let slot = bench.sleeping(0);
        bench.workers[0].now.set(Instant::ZERO);
        let send = || {
            assert!(bench.shared.worker_slots[0].handoff.try_send(slot.into()));
            false
        };
        let found = with_ringer(&bench, || find_after(&bench, ("poll", poll), 20, send));
        assert_eq!(found, Some(slot), "at poll {poll}");
        // Only the ULT of the last polls comes after the sleep.
        let slept = bench.script.calls().contains(&"sleep");
        assert_eq!(slept, poll > 5, "at poll {poll}");
        let looked = bench.workers[0].now.get() > Instant::ZERO;
        assert_eq!(looked, poll >= 5, "whether the clock was read, at poll {poll}");
    }
}

#[test]
fn a_sleeper_is_not_a_searcher_and_reads_no_mail() {
    let bench = Bench::new(2, 0);
    let counts = || {
        let idle = &bench.shared.idle;
        let handoff = bench.shared.worker_slots[0].handoff.is_open();
        let counts = (&idle.searching, &idle.sleepers);
        let counts = (counts.0.load(Ordering::Relaxed), counts.1.load(Ordering::Relaxed));
        (counts, bench.shared.bells.asleep(), handoff)
    };
    let mut seen = Vec::new();
    let step = |call| {
        match call {
            "sleep" | "wake" => seen.push(counts()),
            "poll" if !seen.is_empty() => {
                seen.push(counts());
                bench.shared.stop_workers();
            }
            _ => (),
        }
        false
    };
    let found = with_ringer(&bench, || bench.find_with(0, step));
    assert_eq!(found, None);
    let asleep = ((0, 1), 1, false);
    assert_eq!(seen[0], asleep);
    assert_eq!(seen[1], ((0, 1), 0, false), "the bell is silent");
    assert_eq!(seen[2], ((1, 0), 0, true));
    assert_eq!(counts(), ((0, 0), 0, false), "the worker has stopped");
    assert_eq!(bench.counted(0, Counter::Sleeps), 1);
    assert!(bench.counted(0, Counter::IdleNs) > 0);
}

#[test]
fn only_a_long_search_is_counted() {
    for (spin, uncounted) in [(0, 0), (3, 3), (100, 8)] {
        let bench = Bench::new(2, spin);
        let mut seen = Vec::new();
        let step = |call| {
            if call == "poll" {
                seen.push(bench.shared.idle.searching.load(Ordering::Relaxed));
                // Soon enough, so that the worker does not sleep.
                if seen.len() == spin.min(8) as usize + 4 {
                    bench.shared.stop_workers();
                }
            }
            false
        };
        assert_eq!(bench.find_with(0, step), None);
        assert_eq!(seen.iter().filter(|count| **count == 0).count(), uncounted, "{seen:?}");
        assert_eq!(seen.iter().max(), Some(&1), "once");
        assert_eq!(bench.shared.idle.searching.load(Ordering::Relaxed), 0);
    }
}

#[test]
fn a_worker_sleeps_when_its_rounds_are_over() {
    for (spin, rests) in [(0, true), (20, true), (20, false)] {
        let bench = Bench::new(2, spin);
        bench.script.is_long.set(!rests);
        let mut polls = 0;
        let step = |call| {
            polls += u32::from(call == "poll");
            if call == "sleep" {
                bench.shared.stop_workers();
            }
            false
        };
        assert_eq!(bench.find_with(0, step), None);
        assert_eq!(polls, spin + 5);
    }
}

#[test]
fn a_leaving_searcher_rings_for_remaining_work_if_no_other_searches() {
    for (searching, more, rung) in [(0, true, true), (1, true, false), (0, false, false)] {
        let bench = Bench::new(2, 0);
        let step = || {
            bench.shared.idle.searching.fetch_add(searching, Ordering::Relaxed);
            bench.lull(1);
            let slots = [bench.ready(), bench.ready()];
            for slot in &slots[..if more { 2 } else { 1 }] {
                // SAFETY: the ULT is in no queue.
                unsafe { bench.shared.inject.push(slot.as_ptr()) };
            }
            false
        };
        assert!(find_after(&bench, ("poll", 1), 1, step).is_some());
        assert_eq!(bench.was_rung(), rung, "{searching} others, more: {more}");
        assert_eq!(bench.shared.idle.searching.load(Ordering::Relaxed), searching);
    }
}

#[test]
fn a_short_search_rings_for_the_rest_of_its_chain() {
    let bench = Bench::new(2, 100);
    let all = bench.several(3);
    let batch = chain(&all);
    let found = find_after(&bench, ("poll", 1), 1, || {
        bench.lull(1);
        bench.shared.worker_slots[0].handoff.try_send(batch)
    });
    assert_eq!(found, Some(all[0]));
    assert!(bench.was_rung());
    assert_eq!(bench.shared.idle.searching.load(Ordering::Relaxed), 0);
}

#[test]
fn a_batch_that_arrives_beside_a_found_ult_is_queued() {
    let bench = Bench::new(2, 0);
    let (found, sent) = (bench.ready(), bench.sleeping(0));
    let step = |call| {
        if call == "poll" {
            // SAFETY: the ULT is in no queue.
            unsafe { bench.shared.inject.push(found.as_ptr()) };
        }
        if call == "busy" {
            assert!(bench.shared.worker_slots[0].handoff.try_send(sent.into()));
        }
        false
    };
    assert_eq!(bench.find_with(0, step), Some(found));
    assert_eq!(bench.find(0), Some(sent));
    assert!(task(sent).is_ready());
}

#[test]
fn a_searcher_accepts_a_batch_after_an_intercepted_one() {
    let bench = Bench::new(2, 0);
    let (first, second) = (bench.sleeping(0), bench.sleeping(0));
    let mut polls = 0;
    let step = |call| {
        polls += usize::from(call == "poll");
        match (call, polls) {
            ("poll", 1) => {
                assert!(bench.shared.worker_slots[0].handoff.try_send(first.into()));
                assert_eq!(bench.workers[1].steal(), Some(first));
            }
            ("poll", 2) => assert!(bench.shared.worker_slots[0].handoff.try_send(second.into())),
            _ => (),
        }
        false
    };
    assert_eq!(bench.find_with(0, step), Some(second));
}

#[test]
fn a_returned_stack_goes_to_a_ult_that_waits_for_it() {
    let bench = Bench::new(2, 0);
    let worker = &bench.workers[0];
    let stacks: Vec<_> = core::iter::from_fn(|| {
        // SAFETY: the ULT is a test's, and no worker runs it.
        unsafe { worker.stack_of(task(bench.new_ult(Traits::default()))) }
    })
    .collect();
    let waiting = [bench.new_ult(Traits::default()), bench.new_ult(Traits::default())];
    bench.lull(1);
    worker.wait_for_stack(waiting[0]);
    assert!(bench.was_rung(), "another worker may have stacks");
    worker.wait_for_stack(waiting[1]);
    assert_eq!(worker.resume_stack_waiter(), None);
    // SAFETY: the ULT is not used any more.
    worker.put_stack(unsafe { crate::stack::Stack::from_head(NonNull::from(stacks[0])) });
    assert_eq!(bench.find(0), Some(waiting[0]));
    assert_eq!(worker.resume_stack_waiter(), Some(waiting[1]), "the stack is still free");
    assert_eq!(worker.resume_stack_waiter(), None);
}

#[test]
fn a_pinned_ult_gets_a_stack_on_its_worker() {
    let bench = Bench::new(2, 0);
    let other = bench.pinned(1);
    bench.shared.stack_waiters.push(other);
    assert_eq!(bench.workers[0].resume_stack_waiter(), None);
    assert!(!bench.shared.worker_slots[1].pinned.is_empty());
    let own = bench.pinned(0);
    bench.shared.stack_waiters.push(own);
    assert_eq!(bench.workers[0].resume_stack_waiter(), Some(own));
    assert!(bench.shared.stack_waiters.is_empty());
    assert!(!bench.shared.wanted.has(WorkerRequests::URGENT));
}

//! Tests of alarms, of the clock, and of the worker that watches it.

use super::*;
use crate::sched::worker::tests::{Bench, task};
use crate::slab::TaskSlot;
use std::cell::RefCell;
use std::time::Duration;
use tsumugi_core::stats::Counter;
use tsumugi_core::wait::Race;

/// The sleeps of a bench's ULTs, each with its alarm.
#[expect(clippy::vec_box, reason = "armed, they stay where they are")]
struct Sleeps<'a> {
    bench: &'a Bench,
    slots: Vec<TaskSlot>,
    races: Vec<Box<Race>>,
    alarms: Vec<Box<Alarm>>,
}

impl<'a> Sleeps<'a> {
    fn new(bench: &'a Bench) -> Self {
        Self { bench, slots: Vec::new(), races: Vec::new(), alarms: Vec::new() }
    }

    /// Prepares a sleep. Its limit is in nanoseconds from the clock's zero.
    fn add(&mut self, deadline: Option<u64>, cancellable: bool) -> usize {
        let (slot, race) = (self.bench.sleeping(1), Box::new(Race::new()));
        let alarm = Alarm::new(&race, task(slot), deadline.map(Instant::from_ns), cancellable);
        self.slots.push(slot);
        self.races.push(race);
        self.alarms.push(Box::new(alarm));
        self.slots.len() - 1
    }

    fn arm(&mut self, which: usize, busy: bool) {
        // SAFETY: the boxes stay until the test has ended.
        unsafe { self.bench.shared.arm(&raw mut *self.alarms[which], busy) };
    }

    fn disarm(&mut self, which: usize) {
        // SAFETY: the alarm was armed by the test.
        unsafe { self.bench.shared.disarm(&raw mut *self.alarms[which]) };
    }

    fn add_armed(&mut self, deadline: u64) -> usize {
        let which = self.add(Some(deadline), false);
        self.arm(which, false);
        which
    }

    fn ended(&self, which: usize) -> Option<Interrupted> {
        self.races[which].interrupted()
    }
}

/// A time that does not pass during a test.
const FAR: u64 = u64::MAX / 2;

#[test]
fn the_earliest_deadline_is_known_and_progress_learns_of_the_first_and_last_timer() {
    let bench = Bench::new(2, 0);
    let alarms = &bench.shared.alarms;
    let mut sleeps = Sleeps::new(&bench);
    assert_eq!(alarms.next(), None);
    let late = sleeps.add_armed(FAR + 2);
    let early = sleeps.add_armed(FAR);
    sleeps.add_armed(FAR + 1);
    assert_eq!(alarms.next(), Some(Instant::from_ns(FAR)));
    assert_eq!((bench.shared.timers(), bench.script.calls()), (3, vec!["timers"]));
    sleeps.disarm(early);
    assert_eq!(alarms.next(), Some(Instant::from_ns(FAR + 1)));
    sleeps.disarm(late);
    assert_eq!(bench.script.calls(), [""; 0]);
    sleeps.disarm(2);
    assert_eq!((bench.shared.timers(), bench.script.calls()), (0, vec!["no timers"]));
    assert_eq!(alarms.next(), None);
    // Disarms once more when there is no timer.
    sleeps.disarm(2);
    assert_eq!(bench.script.calls(), [""; 0]);
    // A sleep without a limit has no timer.
    let unlimited = sleeps.add(None, true);
    sleeps.arm(unlimited, true);
    assert_eq!((bench.shared.timers(), alarms.next()), (0, None));
    sleeps.disarm(unlimited);
    assert_eq!(bench.script.calls(), [""; 0]);
}

#[test]
fn one_worker_watches_the_clock() {
    let bench = Bench::new(2, 0);
    let alarms = &bench.shared.alarms;
    let mut sleeps = Sleeps::new(&bench);
    assert_eq!((alarms.keep(0), alarms.keeper()), (None, None));
    sleeps.add_armed(FAR);
    assert_eq!(alarms.keep(1), Some(Instant::from_ns(FAR)));
    assert_eq!(alarms.keeper(), Some(1));
    assert_eq!((alarms.keep(0), alarms.keeper()), (None, Some(1)));
    alarms.unkeep();
    assert_eq!(alarms.keeper(), None);
    assert_eq!(alarms.keep(0), Some(Instant::from_ns(FAR)));
    assert_eq!(alarms.keeper(), Some(0));
}

#[test]
fn the_keeper_is_rung_for_an_earlier_deadline_only() {
    let bench = Bench::new(2, 0);
    let mut sleeps = Sleeps::new(&bench);
    sleeps.add_armed(FAR);
    bench.shared.alarms.keep(1);
    bench.lull(1);
    sleeps.add_armed(FAR + 1);
    assert!(!bench.was_rung());
    sleeps.add_armed(FAR - 1);
    assert!(bench.was_rung());
}

#[test]
fn without_a_keeper_a_busy_worker_rings_a_sleeper() {
    for busy in [false, true] {
        let bench = Bench::new(2, 0);
        let mut sleeps = Sleeps::new(&bench);
        bench.lull(1);
        let which = sleeps.add(Some(FAR), false);
        sleeps.arm(which, busy);
        assert_eq!(bench.was_rung(), busy);
    }
}

#[test]
fn a_searcher_that_leaves_rings_a_new_keeper() {
    for (armed, kept, rung) in [(true, false, true), (true, true, false), (false, false, false)] {
        let bench = Bench::new(2, 0);
        let mut sleeps = Sleeps::new(&bench);
        if armed {
            sleeps.add_armed(FAR);
        }
        if kept {
            bench.shared.alarms.keep(1);
        }
        bench.lull(1);
        // SAFETY: the ULT is in no queue.
        let come = || unsafe { bench.shared.inject.push(bench.ready().as_ptr()) };
        let mut polls = 0;
        let step = |call| {
            polls += usize::from(call == "poll");
            if call == "poll" && polls == 1 {
                come();
            }
            false
        };
        assert!(bench.find_with(0, step).is_some());
        assert_eq!(bench.was_rung(), rung, "armed: {armed}, kept: {kept}");
    }
}

#[test]
fn all_due_timers_fire_and_the_earliest_runs_first() {
    unsafe fn note(place: *const ()) {
        // SAFETY: the descriptor is the test's.
        let (order, which) = unsafe { &*place.cast::<(*const RefCell<Vec<usize>>, usize)>() };
        // SAFETY: as above.
        unsafe { &**order }.borrow_mut().push(*which);
    }
    let bench = Bench::new(2, 0);
    let order: RefCell<Vec<usize>> = RefCell::default();
    let places: Vec<_> = (0..40usize).map(|which| (&raw const order, which)).collect();
    let mut sleeps = Sleeps::new(&bench);
    for (which, place) in places.iter().enumerate() {
        sleeps.add_armed(100 + which as u64);
        // SAFETY: the places stay, and each waker is used once.
        unsafe {
            let waker = Waker::new(ptr::from_ref(place).cast(), note);
            assert!(sleeps.races[which].fall_asleep(waker));
        }
    }
    let shared = &bench.shared;
    assert!(!shared.fire(Instant::from_ns(99)));
    assert_eq!(order.take(), []);
    assert!(shared.fire(Instant::from_ns(102)));
    assert_eq!(order.take(), [2, 1, 0], "the last timer fires first");
    assert_eq!(sleeps.ended(2), Some(Interrupted::TimedOut));
    assert_eq!((sleeps.ended(3), shared.timers()), (None, 37));
    assert!(shared.fire(Instant::from_ns(138)));
    let mut rest = order.take();
    rest.sort_unstable();
    assert_eq!(rest, (3..39).collect::<Vec<_>>(), "all other timers fire, however many there are");
    assert_eq!((shared.timers(), shared.alarms.next()), (1, Some(Instant::from_ns(139))));
    assert!(!shared.fire(Instant::from_ns(138)));
    bench.script.calls();
    assert!(shared.fire(Instant::from_ns(139)));
    assert_eq!((bench.script.calls(), shared.alarms.next()), (vec!["no timers"], None));
    // A sleep that has not begun yet is interrupted, and counts as fired.
    let awake = sleeps.add_armed(200);
    assert!(shared.fire(Instant::from_ns(200)));
    assert_eq!(sleeps.ended(awake), Some(Interrupted::TimedOut));
}

#[test]
fn a_cancelled_sleep_is_interrupted_if_it_is_cancellable() {
    let bench = Bench::new(2, 0);
    let mut sleeps = Sleeps::new(&bench);
    for cancellable in [false, true] {
        // A cancellation during the sleep, and one before it.
        let which = sleeps.add(None, cancellable);
        sleeps.arm(which, false);
        let sleeper = task(sleeps.slots[which]);
        bench.shared.cancel(sleeper);
        assert!(sleeper.is_cancelled());
        let expected = cancellable.then_some(Interrupted::Cancelled);
        assert_eq!(sleeps.ended(which), expected);
        let before = sleeps.add(Some(FAR), cancellable);
        task(sleeps.slots[before]).set_cancelled();
        sleeps.arm(before, false);
        assert_eq!(sleeps.ended(before), expected);
        // After the end of the sleep a cancellation does not interrupt it.
        let after = sleeps.add(None, cancellable);
        sleeps.arm(after, false);
        // SAFETY: no lock is needed, because no other thread accesses the task.
        unsafe { assert_eq!(task(sleeps.slots[after]).sleeper().is_null(), !cancellable) };
        sleeps.disarm(after);
        bench.shared.cancel(task(sleeps.slots[after]));
        assert_eq!(sleeps.ended(after), None);
        let uncalled = sleeps.add(Some(FAR), cancellable);
        sleeps.arm(uncalled, false);
        assert_eq!(sleeps.ended(uncalled), None);
    }
}

#[test]
fn a_ult_that_is_cancelled_in_its_sleep_is_woken() {
    let bench = Bench::new(2, 0);
    let mut sleeps = Sleeps::new(&bench);
    let which = sleeps.add(None, true);
    sleeps.arm(which, false);
    let slot = sleeps.slots[which];
    unsafe fn wake(slot: *const ()) {
        let slot = ptr::NonNull::new(slot.cast_mut().cast()).unwrap();
        // SAFETY: the ULT is the test's, and it sleeps.
        unsafe { SchedulerShared::wake_from_outside(slot) };
    }
    // SAFETY: the waker is used once.
    unsafe { sleeps.races[which].fall_asleep(Waker::new(slot.as_ptr().cast_const().cast(), wake)) };
    bench.shared.cancel(task(slot));
    assert_eq!(bench.find(0), Some(slot));
}

#[test]
fn searches_and_fair_turns_read_the_clock() {
    let bench = Bench::new(1, 0);
    let mut sleeps = Sleeps::new(&bench);
    let which = sleeps.add_armed(1);
    assert_eq!(bench.find(0), None);
    assert_eq!(sleeps.ended(which), Some(Interrupted::TimedOut));
    let bench = Bench::new(1, 0);
    let mut sleeps = Sleeps::new(&bench);
    let which = sleeps.add_armed(1);
    // SAFETY: this thread acts as the owner of the worker slot.
    (0..61)
        .for_each(|_| unsafe { bench.shared.worker_slots[0].ready.push(bench.ready().as_ptr()) });
    (0..61).for_each(|_| assert!(bench.find(0).is_some()));
    assert_eq!(sleeps.ended(which), Some(Interrupted::TimedOut));
}

#[test]
fn a_sleeper_is_the_keeper_while_it_sleeps() {
    let bench = Bench::new(2, 0);
    let alarms = &bench.shared.alarms;
    let mut sleeps = Sleeps::new(&bench);
    let mut seen = Vec::new();
    let step = |call| {
        match call {
            "sleep" => {
                seen.push(alarms.keeper());
                let soon = bench.shared.now() + Duration::from_millis(5);
                sleeps.add_armed(soon.as_ns());
            }
            "has_work" => seen.push(alarms.keeper()),
            "wake" => {
                seen.push(alarms.keeper());
                bench.shared.stop_workers();
            }
            _ => (),
        }
        false
    };
    assert_eq!(bench.find_with(0, step), None);
    assert_eq!(seen.first(), Some(&None));
    assert_eq!(seen.last(), Some(&None), "the worker is awake");
    assert!(seen.len() == 2 || seen[1] == Some(0), "{seen:?}");
}

#[test]
fn no_worker_sleeps_beyond_a_deadline() {
    let bench = Bench::new(2, 0);
    let mut sleeps = Sleeps::new(&bench);
    let step = |call| {
        match call {
            "sleep" => _ = sleeps.add_armed(1),
            "wake" => bench.shared.stop_workers(),
            _ => (),
        }
        false
    };
    assert_eq!(bench.find_with(0, step), None);
    assert_eq!(bench.shared.counts().next().unwrap()[Counter::Sleeps], 0);
}

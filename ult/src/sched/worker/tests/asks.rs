//! Tests of the requests of ULTs to their worker, of the events that it records,
//! and of the rules that it checks.

use super::*;
use crate::check::{SuspensionCheck, SuspensionRecord};
use crate::local::Locals;
use crate::sched::record::{EventKind, Events, WORDS, WorkerRequests};
use crate::stack::Class;
use crate::task::UltState;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use tsumugi_core::sync::AtomicU64;
use tsumugi_core::wait::Reason;

/// Makes a ULT that runs on the first worker.
fn running(bench: &Bench, traits: Traits) -> (TaskSlot, &StackHead) {
    let slot = bench.new_ult(traits);
    // SAFETY: the ULT is the test's.
    let head = unsafe { bench.workers[0].stack_of(task(slot)) }.unwrap();
    task(slot).set_runnable();
    bench.workers[0].set_current(slot);
    (slot, head)
}

/// Makes the first worker do what the ULT requests.
fn serve(
    bench: &Bench,
    (slot, head): (TaskSlot, &StackHead),
    mut request: SuspendRequest,
) -> Served {
    // SAFETY: the request is on this frame.
    unsafe { bench.workers[0].serve(slot, head, &raw mut request) }
}

#[test]
fn a_ult_that_asks_for_sleep_sleeps_unless_its_commit_refuses() {
    for agrees in [false, true] {
        let bench = Bench::new(2, 0);
        let ult = running(&bench, Traits::default());
        task(ult.0).set_last(1);
        let mut commit = |_| {
            assert_eq!(task(ult.0).state(), Some(UltState::Sleeping));
            agrees
        };
        let commit: &mut dyn FnMut(Waker) -> bool = &mut commit;
        // SAFETY: this only makes the lifetime longer; the closure is called at
        // once.
        let commit = unsafe {
            core::mem::transmute::<
                *mut dyn FnMut(Waker) -> bool,
                *mut (dyn FnMut(Waker) -> bool + 'static),
            >(commit)
        };
        let served = serve(&bench, ult, SuspendRequest::Sleep(commit));
        assert_eq!(matches!(served, Served::Gone), agrees);
        assert_eq!(matches!(served, Served::Stays), !agrees);
        assert_eq!(task(ult.0).is_ready(), !agrees);
        assert_eq!(task(ult.0).last(), 0);
        assert_eq!(bench.counted(0, Counter::Parks), 1);
    }
}

#[test]
fn a_ult_that_asks_for_the_os_stack_comes_back() {
    let bench = Bench::new(1, 0);
    let ult = running(&bench, Traits::default());
    let mut ran = || ();
    let served = serve(&bench, ult, SuspendRequest::OnOsStack(&raw mut ran));
    assert!(matches!(served, Served::Stays) && bench.workers[0].comes_back.get());
}

#[test]
fn a_ult_that_lets_its_child_run_first_is_queued_where_it_may_run() {
    let all = [
        Traits::default(),
        Traits { worker: Some(0), ..Traits::default() },
        Traits { urgent: true, ..Traits::default() },
    ];
    for traits in all {
        let bench = Bench::new(1, 0);
        let ult = running(&bench, traits);
        let child = bench.new_ult(Traits::default());
        let served = serve(&bench, ult, SuspendRequest::RunFirst(child));
        assert!(matches!(served, Served::Gone) && task(ult.0).is_ready());
        assert_eq!(bench.workers[0].next.get(), child.as_ptr());
        assert_eq!(bench.workers[0].own_count.get() == 1, traits.worker.is_some());
        assert_eq!(bench.shared.urgent.is_empty(), !traits.urgent);
        let plain = traits.worker.is_none() && !traits.urgent;
        assert_eq!(bench.shared.worker_slots[0].ready.is_empty(), !plain);
    }
}

#[test]
fn a_worker_reports_its_run_and_returns_its_caches() {
    for workers in [1, 2] {
        let bench = Bench::new(workers, 0);
        let worker = &bench.workers[0];
        let (slot, _) = running(&bench, Traits::default());
        // SAFETY: the descriptors are not used any more.
        unsafe {
            worker.put_stack(task(slot).unbind());
            worker.release(slot);
        }
        bench.shared.stop_workers();
        worker.run();
        assert_eq!(bench.script.calls(), ["start", "idle", "busy"]);
        assert!(current::worker().is_none());
        assert_eq!(bench.shared.slab.take_shared(bench.shared.home()), slot);
        assert!(bench.shared.stacks.has_spare(Class::default(), &WorkerCache::new()));
        assert_eq!(bench.shared.parks().is_of(worker.name()), workers == 1);
        assert_eq!(bench.shared.parks().is_shared(), workers == 2);
    }
}

#[test]
fn events_are_recorded_while_a_trace_is_taken() {
    let bench = Bench::new(2, 0);
    let worker = &bench.workers[0];
    let word = || [const { AtomicU64::new(0) }; WORDS];
    let events =
        Events { head: AtomicU64::new(0), slots: core::iter::repeat_with(word).take(64).collect() };
    bench.shared.worker_slots[0]
        .notes
        .events
        .store((&raw const events).cast_mut(), Ordering::Release);
    let pushed = bench.ready();
    // Nothing is recorded here.
    worker.spawned(bench.ready());
    assert_eq!(bench.find(0).map(|slot| task(slot).is_ready()), Some(true));
    bench.shared.wanted.0.store(WorkerRequests::TRACE, Ordering::Relaxed);
    worker.spawned(pushed);
    assert_eq!(bench.find(0), Some(pushed));
    for slot in [bench.ready(), bench.new_ult(Traits::default())] {
        // SAFETY: the ULT is in no queue.
        unsafe { bench.shared.inject.push(slot.as_ptr()) };
        assert_eq!(bench.find(0), Some(slot));
    }
    // SAFETY: as above.
    unsafe { bench.shared.push_urgent(bench.urgent()) };
    assert!(bench.find(0).is_some());
    worker.accept_batch(bench.sleeping(0).into());
    worker.accept_batch(bench.ready().into());
    // SAFETY: this thread acts as the owner of the worker slot.
    bench.several(2).iter().for_each(|slot| unsafe {
        bench.shared.worker_slots[1].ready.push(slot.as_ptr());
    });
    assert!(worker.steal().is_some());
    // SAFETY: the ULTs' wakers do not exist anywhere else.
    unsafe {
        worker.ready(bench.sleeping(0));
        worker.ready_all(chain(&[bench.sleeping(0)]).first);
    }
    let head = events.head.load(Ordering::Relaxed);
    let seen: Vec<_> = (0..head)
        .map(|at| {
            let words = events.slot(at).each_ref().map(|word| word.load(Ordering::Relaxed));
            (words[3] & 0xff, words[3] >> 8)
        })
        .collect();
    let (spawn, wake) = ("spawn".len() as u64, "wake".len() as u64);
    let come = EventKind::Come as u64;
    let steal = EventKind::Steal as u64;
    let expected = [
        (EventKind::Spawn as u64, 0),
        (come, wake),
        (come, spawn),
        (come, wake),
        (come, wake),
        (steal, 0),
        (steal, 0),
        (EventKind::Wake as u64, 0),
        (EventKind::Wake as u64, 0),
    ];
    assert_eq!(seen, expected);
    bench.shared.wanted.0.store(WorkerRequests::CHECK, Ordering::Relaxed);
    worker.spawned(bench.ready());
    assert_eq!(
        events.head.load(Ordering::Relaxed),
        head,
        "the requested events do not include this one"
    );
    bench.shared.worker_slots[0].notes.events.store(ptr::null_mut(), Ordering::Release);
}

/// Runs `f` while this thread unwinds.
fn while_panicking(f: impl FnMut()) {
    struct Late<F: FnMut()>(F);
    impl<F: FnMut()> Drop for Late<F> {
        fn drop(&mut self) {
            (self.0)();
        }
    }
    let unwinding = || {
        let _late = Late(f);
        resume_unwind(Box::new(()))
    };
    let _: Result<(), _> = catch_unwind(AssertUnwindSafe(unwinding));
}

#[test]
fn a_worker_notes_whether_its_thread_panics_before_a_ult_runs() {
    let all = [
        (SuspensionCheck::Off, false, false),
        (SuspensionCheck::Panic, false, true),
        (SuspensionCheck::Panic, true, false),
    ];
    for (check, comes_back, expected) in all {
        let bench = Bench::checked(1, check);
        let worker = &bench.workers[0];
        worker.comes_back.set(comes_back);
        while_panicking(|| worker.note_panics());
        assert_eq!(worker.panics.get(), expected, "{check:?}");
        assert!(!worker.comes_back.get(), "the flag is cleared");
        worker.note_panics();
        assert!(!worker.panics.get());
    }
}

#[test]
fn a_ult_that_comes_back_is_unchanged_with_and_without_a_trace() {
    for looks in [false, true] {
        let bench = Bench::checked(1, SuspensionCheck::Panic);
        let (worker, slot) = (&bench.workers[0], bench.new_ult(Traits::default()));
        if looks {
            bench.shared.wanted.0.store(WorkerRequests::TRACE, Ordering::Relaxed);
        }
        worker.comes_back.set(true);
        while_panicking(|| worker.execute(slot));
        assert_eq!(task(slot).state(), Some(UltState::Done));
        assert!(!worker.panics.get(), "looks: {looks}");
    }
}

#[test]
fn a_suspension_is_checked_where_the_configuration_says_so() {
    for (check, looks) in [(SuspensionCheck::Off, false), (SuspensionCheck::Panic, true)] {
        let bench = Bench::checked(1, check);
        let worker = &bench.workers[0];
        let (slot, _) = running(&bench, Traits::default());
        let home = task(slot).locals.with_mut(|locals| locals);
        // SAFETY: the home is the test's own.
        let record = unsafe { SuspensionRecord::of(home) };
        let here = Location::caller();
        let told = |number, what| {
            let found = record.ends(number);
            assert_eq!(found, looks.then_some((here, what)), "{check:?}");
        };
        let first = record.begins(here);
        worker.look_first(slot, "test");
        told(first, "test");
        let second = record.begins(here);
        let child = bench.new_ult(Traits::default());
        worker.look_at_join(slot, child);
        told(second, "join");
        let aside = record.begins(here);
        bench.shared.wanted.0.store(WorkerRequests::CHECK, Ordering::Relaxed);
        worker.look_aside(slot, "aside");
        let looked = record.ends(aside).is_some();
        assert_eq!(
            looked,
            cfg!(not(debug_assertions)),
            "look_aside looks where the usual path does not"
        );
        bench.shared.wanted.0.store(0, Ordering::Relaxed);
        let third = record.begins(here);
        let ended = bench.new_ult(Traits::default());
        task(ended).end();
        worker.look_at_join(slot, ended);
        assert_eq!(record.ends(third), None, "no suspension");
        drop(record);
        // SAFETY: as above.
        unsafe { Locals::drop_all(home) };
    }
}

/// Where a suspension begins is the fast path's, which looks in builds with debug
/// assertions only; in other builds the slow paths look.
#[test]
fn each_suspension_on_a_slow_path_was_looked_at() {
    let bench = Bench::checked(1, SuspensionCheck::Panic);
    let worker = &bench.workers[0];
    let (slot, head) = running(&bench, Traits::default());
    head.set_reason(&Reason::new("sleep"));
    bench.shared.wanted.0.store(WorkerRequests::CHECK, Ordering::Relaxed);
    let mut never = |_: Waker| panic!("the hub puts it to sleep");
    let ways: [(&str, &mut dyn FnMut()); 3] = [
        ("yield", &mut || assert_eq!(worker.let_run(slot), Some(slot))),
        ("park", &mut || assert_eq!(worker.let_park(slot), None)),
        ("sleep", &mut || assert!(matches!(worker.let_sleep(slot, &mut never), SleepOutcome::Ask))),
    ];
    let home = task(slot).locals.with_mut(|locals| locals);
    // SAFETY: the home is the test's own.
    let record = unsafe { SuspensionRecord::of(home) };
    let here = Location::caller();
    for (what, suspend) in ways {
        let guard = record.begins(here);
        suspend();
        assert_eq!(record.ends(guard), Some((here, what)));
    }
    drop(record);
    // SAFETY: as above.
    unsafe { Locals::drop_all(home) };
}

/// Another process runs this test once more, so that its standard error can be read.
#[test]
fn a_report_names_the_ult_and_its_suspension() {
    const TELLS: &str = "TSUMUGI_TEST_TELLS";
    if std::env::var_os(TELLS).is_some() {
        return tell_all();
    }
    let name = "sched::worker::tests::asks::a_report_names_the_ult_and_its_suspension";
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name])
        .env(TELLS, "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<_> = said.lines().filter(|line| line.starts_with("tsumugi: ")).collect();
    let [unwinds, guarded, nameless] = lines[..] else { panic!("{said}") };
    assert_eq!(unwinds, "tsumugi: ULT 0 (odd) suspends (late) while it unwinds from a panic");
    let under = "tsumugi: ULT 0 (odd) suspends (test) under the NoSuspend made at ";
    assert!(guarded.starts_with(under), "{guarded}");
    assert!(nameless.starts_with("tsumugi: ULT 1 suspends (test) under"), "{nameless}");
}

/// Writes three lines: a repeated report, and a panic that began before, are not
/// reported.
fn tell_all() {
    let bench = Bench::checked(1, SuspensionCheck::Report);
    let worker = &bench.workers[0];
    for name in [Some("odd".into()), None] {
        let (slot, _) = running(&bench, Traits::default());
        // SAFETY: the ULT is the test's.
        unsafe { task(slot).adorn(name, Traits::default()) };
        while_panicking(|| {
            worker.panics.set(true);
            worker.look_first(slot, "inside");
            worker.panics.set(false);
            worker.look_first(slot, "late");
            assert!(worker.panics.get());
        });
        worker.look_first(slot, "nothing");
        assert!(!worker.panics.get());
        let home = task(slot).locals.with_mut(|locals| locals);
        // SAFETY: the home is the test's own.
        unsafe { SuspensionRecord::of(home) }.begins(Location::caller());
        worker.look_first(slot, "test");
        worker.look_first(slot, "test");
        // SAFETY: as above; the ULT is not used any more.
        unsafe {
            Locals::drop_all(home);
            worker.put_stack(task(slot).unbind());
            bench.shared.slab.put_shared(slot);
        }
        // The ULT of the next round has another descriptor.
        bench.ready();
    }
}

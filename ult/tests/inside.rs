//! Inspection: dumps with backtraces, the watchdog, reports on a signal, and traces.

mod common;

use common::scheduler;
use serde_json::Value;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tsumugi_core::stats::Counter;
use tsumugi_core::wait::{Reason, Wait, Waker};
use tsumugi_ult::inside::{Recording, Stuck};
use tsumugi_ult::sync::{Mutex, Semaphore, channel};
use tsumugi_ult::{Builder, Here, UltState, park, spawn, unparker, yield_now};

const PATIENCE: Duration = Duration::from_secs(10);
/// A name that has to be quoted in a file.
const ODD: &str = "it's \"odd\", \\ and\ntwo lines";

/// The place where one ULT sleeps. A dump shows a ULT as asleep when it is about to sleep, but a
/// ULT that is woken here has slept.
#[derive(Default)]
struct Bed(std::sync::Mutex<Option<Waker>>);

impl Bed {
    fn sleep(&self) {
        let mut publish = |waker| {
            *self.0.lock().unwrap() = Some(waker);
            true
        };
        // SAFETY: `wake` takes the waker out once.
        unsafe { Here.sleep(Reason::new("bed"), &mut publish) };
    }

    /// Waits until the ULT is asleep, and wakes it.
    fn wake(&self) {
        loop {
            if let Some(waker) = self.0.lock().unwrap().take() {
                return waker.wake();
            }
            std::thread::yield_now();
        }
    }
}

#[inline(never)]
fn waits_here_for_room(room: &Semaphore) -> u64 {
    room.acquire(1);
    std::hint::black_box(1)
}

#[test]
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(tsumugi_asan)))]
fn a_dump_shows_sleepers_with_their_backtraces() {
    for workers in [1, 2] {
        let mut scheduler = scheduler(workers, 32);
        scheduler.start().unwrap();
        let spawner = scheduler.spawner();
        let room = Arc::new(Semaphore::new(0));
        let sleepers: Vec<_> = (0..4)
            .map(|n| {
                let room = room.clone();
                let builder = Builder::new().name(format!("sleeper {n}"));
                let ult = builder.try_spawn_on(&spawner, move || waits_here_for_room(&room));
                ult.map_err(|_| "ended").unwrap()
            })
            .collect();
        let asleep = || {
            let mut count = 0;
            spawner.dump(&mut |ult| count += (ult.state == UltState::Sleeping) as usize);
            count
        };
        while asleep() < 4 {
            std::thread::yield_now();
        }
        for _ in 0..3 {
            let mut shown = Vec::new();
            let whole =
                spawner.inspect(PATIENCE, &mut |ult, backtrace| shown.push((ult, backtrace)));
            assert!(whole, "all workers paused");
            assert_eq!(shown.len(), 4);
            for (ult, backtrace) in shown {
                assert!(ult.name.unwrap().starts_with("sleeper "));
                assert_eq!(ult.reason.unwrap().what, "semaphore");
                let backtrace = backtrace.expect("the ULT sleeps");
                assert!(backtrace.contains("waits_here_for_room"), "{backtrace}");
                assert!(!backtrace.contains("walk_from"), "{backtrace}");
                // The backtrace ends at the root of the ULT, not on a worker's stack.
                assert!(!backtrace.contains("Worker::execute"), "{backtrace}");
            }
        }
        // The sleepers are unharmed.
        room.release(4);
        assert_eq!(sleepers.into_iter().map(|one| one.join().unwrap()).sum::<u64>(), 4);
    }
}

#[test]
fn an_inspection_does_not_wait_for_a_worker_that_does_not_pause() {
    let mut scheduler = scheduler(2, 8);
    scheduler.start().unwrap();
    let spawner = scheduler.spawner();
    let (stop, started) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let hog = {
        let (stop, started) = (stop.clone(), started.clone());
        spawner.spawn(move || {
            started.store(true, Ordering::Release);
            while !stop.load(Ordering::Acquire) {
                std::hint::spin_loop();
            }
        })
    };
    while !started.load(Ordering::Acquire) {
        std::thread::yield_now();
    }
    let mut shown = Vec::new();
    let patience = Duration::from_millis(10);
    assert!(!spawner.inspect(patience, &mut |ult, backtrace| shown.push((ult, backtrace))));
    assert_eq!(shown.len(), 1);
    assert_eq!((shown[0].0.state, &shown[0].1), (UltState::Running, &None));
    assert_eq!(spawner.spawn(|| 3).join().unwrap(), 3, "the other worker continues");
    stop.store(true, Ordering::Release);
    hog.join().unwrap();
    assert!(
        spawner.inspect(PATIENCE, &mut |_, _| ())
            || cfg!(not(all(target_arch = "x86_64", target_os = "linux", not(tsumugi_asan))))
    );
}

#[test]
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(tsumugi_asan)))]
fn a_worker_that_is_never_idle_pauses_for_an_inspection() {
    let mut scheduler = scheduler(1, 8);
    scheduler.start().unwrap();
    let spawner = scheduler.spawner();
    let stop = Arc::new(AtomicBool::new(false));
    let busy = [(); 2].map(|()| {
        let stop = stop.clone();
        spawner.spawn(move || {
            while !stop.load(Ordering::Acquire) {
                yield_now();
            }
        })
    });
    assert!(spawner.inspect(PATIENCE, &mut |_, _| ()), "at a fair turn");
    stop.store(true, Ordering::Release);
    busy.into_iter().for_each(|one| one.join().unwrap());
}

#[test]
fn a_ult_can_inspect_its_own_scheduler() {
    let scheduler = scheduler(2, 16);
    let spawner = scheduler.spawner();
    let text = scheduler.run(move || {
        let me = unparker();
        let sleeper = Builder::new().name("parked").spawn(move || {
            me.unpark();
            park();
        });
        park();
        let mut seen = false;
        while !seen {
            spawner.dump(&mut |ult| {
                seen |= ult.name.as_deref() == Some("parked") && ult.state == UltState::Sleeping;
            });
            yield_now();
        }
        let text = spawner.report(PATIENCE);
        drop(sleeper);
        text
    });
    assert!(text.starts_with("worker 0: spawned "), "{text}");
    assert!(text.contains("\"main\" Running"), "{text}");
    assert!(text.contains("\"parked\" Sleeping: park, for "), "{text}");
}

/// With one worker, ULTs switch directly to the next one.
#[test]
fn a_dump_shows_the_ults_of_the_only_worker() {
    let scheduler = scheduler(1, 16);
    let spawner = scheduler.spawner();
    scheduler.run(move || {
        let before = spawner.counts();
        let named = |name: &str| Builder::new().name(name);
        let yields = named("yields").spawn(|| (0..10).for_each(|_| yield_now()));
        let parker = Arc::new(Mutex::new(None));
        let left = parker.clone();
        let parks = named("parks").spawn(move || {
            *left.lock() = Some(unparker());
            (0..3).for_each(|_| park());
        });
        let shown = || {
            let mut shown = Vec::new();
            spawner.dump(&mut |ult| {
                let what = ult.reason.map(|reason| reason.what);
                shown.push((ult.name.unwrap_or_default(), ult.state, what));
            });
            shown.sort_unstable_by(|one, other| one.0.cmp(&other.0));
            shown
        };
        yield_now();
        yield_now();
        let (main, other) = ("main".to_owned(), "yields".to_owned());
        let parked = ("parks".to_owned(), UltState::Sleeping, Some("park"));
        let expected = [(main, UltState::Running, None), parked, (other, UltState::Ready, None)];
        assert_eq!(shown(), expected);
        let parker = parker.lock().take().unwrap();
        (0..3).for_each(|_| {
            parker.unpark();
            assert_eq!(shown()[1].1, UltState::Ready);
            yield_now();
        });
        parks.join().unwrap();
        yields.join().unwrap();
        let counts = spawner.counts() - before;
        assert_eq!(counts[Counter::Wakes], counts[Counter::Parks], "{counts:?}");
        assert!(counts[Counter::Yields] >= 10 && counts[Counter::Parks] >= 3, "{counts:?}");
    });
}

#[test]
fn the_watchdog_names_a_ult_that_keeps_its_worker() {
    let mut scheduler = scheduler(1, 8);
    scheduler.start().unwrap();
    let spawner = scheduler.spawner();
    let (sender, receiver) = channel::unbounded();
    let limit = Duration::from_millis(20);
    let told = Arc::new(AtomicBool::new(false));
    let tells = told.clone();
    let tell = move |stuck: Stuck| {
        let is_hog = stuck.name.as_deref() == Some("hog");
        sender.send(stuck).unwrap();
        tells.fetch_or(is_hog, Ordering::Release);
    };
    let watchdog = spawner.watch(limit, tell).unwrap();
    assert!(spawner.watch(limit, |_| ()).is_err(), "a watchdog exists already");
    let polite = spawner.spawn(move || {
        let start = Instant::now();
        while start.elapsed() < limit * 3 {
            yield_now();
        }
    });
    polite.join().unwrap();
    let hog = Builder::new().name("hog").try_spawn_on(&spawner, move || {
        // Until the watchdog has reported it, and for as long again.
        let start = Instant::now();
        while !told.load(Ordering::Acquire) && start.elapsed() < PATIENCE {
            std::hint::spin_loop();
        }
        let start = Instant::now();
        while start.elapsed() < limit * 5 {
            std::hint::spin_loop();
        }
    });
    hog.map_err(|_| "ended").unwrap().join().unwrap();
    drop(watchdog);
    let stuck: Vec<_> = receiver.iter().collect();
    let hogs: Vec<_> = stuck.iter().filter(|stuck| stuck.name.as_deref() == Some("hog")).collect();
    assert_eq!(hogs.len(), 1, "once: {stuck:?}");
    assert!(hogs[0].running >= limit && hogs[0].worker == 0);
    assert!(hogs[0].to_string().contains("\"hog\" has run on worker 0 for"), "{}", hogs[0]);
}

#[test]
fn a_signal_requests_a_report() {
    let mut scheduler = scheduler(1, 8);
    scheduler.start().unwrap();
    let spawner = scheduler.spawner();
    let (sender, receiver) = channel::unbounded();
    let on = spawner.report_on(libc::SIGUSR2, move |text| sender.send(text).unwrap()).unwrap();
    assert!(spawner.report_on(libc::SIGUSR1, |_| ()).is_err(), "a process has one report signal");
    for _ in 0..2 {
        // SAFETY: it is handled.
        assert_eq!(unsafe { libc::kill(libc::getpid(), libc::SIGUSR2) }, 0);
        let text = receiver.recv_timeout(PATIENCE).unwrap();
        assert!(text.starts_with("worker 0: "), "{text}");
    }
    drop(on);
    let again = spawner.report_on(libc::SIGUSR2, |_| ()).unwrap();
    drop(again);
}

#[test]
fn a_trace_names_ended_ults_and_those_from_outside() {
    let mut scheduler = scheduler(1, 8);
    scheduler.start().unwrap();
    let spawner = scheduler.spawner();
    let builders = [Builder::new(), Builder::new().pin(0), Builder::new().urgent(true)];
    for builder in builders {
        let recording = spawner.trace(1000).unwrap();
        let bed = Arc::new(Bed::default());
        let its = bed.clone();
        let brief = builder.name("brief").try_spawn_on(&spawner, move || its.sleep());
        bed.wake();
        brief.map_err(|_| "ended").unwrap().join().unwrap();
        // Its place now belongs to another ULT, which has no name.
        spawner.spawn(|| ()).join().unwrap();
        let mut text = Vec::new();
        recording.stop().write_chrome(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        for line in ["\"spawn from outside: brief\"", "\"wake from outside: brief\""] {
            assert_eq!(text.matches(line).count(), 1, "{line} in {text}");
        }
        assert_eq!(text.matches("\"name\":\"brief\"").count(), 2, "{text}");
    }
    // A ULT that ends while no trace is recorded is not named.
    drop(spawner.trace(16).unwrap());
    let early = Builder::new().name("early").try_spawn_on(&spawner, || ());
    early.map_err(|_| "ended").unwrap().join().unwrap();
    let recording = spawner.trace(16).unwrap();
    spawner.spawn(|| ()).join().unwrap();
    let mut text = Vec::new();
    recording.stop().write_chrome(&mut text).unwrap();
    assert!(!String::from_utf8(text).unwrap().contains("early"));
}

#[test]
fn a_trace_of_more_events_than_there_can_be_is_refused() {
    let scheduler = scheduler(1, 8);
    let spawner = scheduler.spawner();
    for events in [Recording::MAX_EVENTS + 1, 1 << 50, usize::MAX / 32, usize::MAX] {
        let refused = catch_unwind(AssertUnwindSafe(|| spawner.trace(events))).unwrap_err();
        assert_eq!(
            refused.downcast_ref::<String>().unwrap(),
            &format!("trace: {events} events of each worker, but at most 16777216")
        );
    }
    for events in [0, 1] {
        assert!(spawner.trace(events).is_some());
    }
}

#[test]
fn a_trace_shows_runs_and_wakes() {
    let scheduler = scheduler(2, 64);
    let spawner = scheduler.spawner();
    let trace = scheduler.run(move || {
        let recording = spawner.trace(1 << 16).unwrap();
        assert!(spawner.trace(1).is_none(), "one trace at a time");
        let end = Arc::new(Semaphore::new(0));
        let until = end.clone();
        let odd = Builder::new().name(ODD).spawn(move || until.acquire(1));
        let lock = Arc::new(Mutex::new(0));
        let held = lock.lock();
        let all: Vec<_> = (0..10)
            .map(|_| {
                let lock = lock.clone();
                spawn(move || {
                    let mut count = lock.lock();
                    yield_now();
                    *count += 1;
                })
            })
            .collect();
        // Each of them finds the lock taken, and sleeps.
        let mut asleep = 0;
        while asleep < 11 {
            yield_now();
            asleep = 0;
            spawner.dump(&mut |ult| asleep += (ult.state == UltState::Sleeping) as usize);
        }
        drop(held);
        all.into_iter().for_each(|one| one.join().unwrap());
        let trace = recording.stop();
        assert!(spawner.trace(16).is_some(), "another trace can be taken");
        end.release(1);
        odd.join().unwrap();
        trace
    });
    assert_eq!(trace.lost(), 0, "of {trace:?}");
    let mut text = Vec::new();
    trace.write_chrome(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let events = file["traceEvents"].as_array().unwrap();
    let having = |key: &str, what: &dyn Fn(&str) -> bool| -> Vec<&Value> {
        let is_it = |event: &&Value| event[key].as_str().is_some_and(what);
        events.iter().filter(is_it).collect()
    };
    let bars = having("ph", &|phase| phase == "X");
    assert!(bars.len() >= 20, "each ULT ran at least twice:\n{text}");
    assert!(bars.iter().all(|bar| bar["ts"].is_f64() && bar["dur"].is_f64()), "{text}");
    let left = |how: &str| bars.iter().filter(|bar| bar["args"]["left"] == how).count();
    assert!(left("mutex") >= 10, "{text}");
    assert_eq!(left("end"), 10, "{text}");
    assert_eq!(having("name", &|name| name.starts_with("spawn ")).len(), 11, "{text}");
    assert!(!having("name", &|name| name == ODD).is_empty(), "{text}");
    // Each arrow that arrives has left before.
    let (from, to) = (having("ph", &|phase| phase == "s"), having("ph", &|phase| phase == "f"));
    // One of the ULTs that looked asleep may have been about to sleep, and was let in.
    assert!(to.len() >= 20, "an arrow from the spawner and from the waker of each ULT:\n{text}");
    for end in to {
        let start = from.iter().find(|start| start["id"] == end["id"]);
        let start = start.unwrap_or_else(|| panic!("{end} comes from nowhere"));
        assert!(start["ts"].as_f64() <= end["ts"].as_f64(), "{start} {end}");
    }
}

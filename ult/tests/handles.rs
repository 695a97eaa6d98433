//! The information that a scheduler and its handles give about themselves.

mod common;

use common::{config, scheduler};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use tsumugi_core::stats::Counter;
use tsumugi_core::wait::DoorbellSet;
use tsumugi_ult::{
    Builder, Config, Guards, Limit, Scheduler, StackArea, StartError, UltState, id, in_callback,
    park_within, spawn, unparker, yield_now,
};

#[test]
fn a_scheduler_is_started_once() {
    let mut scheduler = scheduler(2, 8);
    assert!(!scheduler.is_started(), "one worker is still to come");
    scheduler.start().unwrap();
    assert!(scheduler.is_started());
    scheduler.start().unwrap();
    assert_eq!(format!("{scheduler:?}"), "Scheduler(2 workers)");
    let refused = catch_unwind(AssertUnwindSafe(|| scheduler.run(|| ())));
    let message = refused.unwrap_err();
    let message = message.downcast_ref::<&str>().unwrap();
    assert!(message.contains("runs already"), "{message}");
}

#[test]
fn there_can_be_as_many_workers_as_bells() {
    for workers in [0, DoorbellSet::WORKERS_MAX + 1] {
        let refused = Scheduler::new(config(workers, 1)).unwrap_err();
        assert!(matches!(refused, StartError::Workers(n) if n == workers), "{refused}");
    }
}

#[test]
fn defaults_of_the_configuration_are_as_documented() {
    let config = Config::new(StackArea::map(64 << 20).unwrap());
    assert_eq!((config.stack_bytes, config.main_stack_bytes), (65_536, 8_388_608));
    assert_eq!((config.inline_bytes, config.spin), (32_768, 100));
    assert_eq!(config.guards, Guards::Pages(8192));
}

#[test]
fn a_handle_knows_its_scheduler() {
    let other = scheduler(1, 4);
    let other = other.spawner();
    let scheduler = scheduler(2, 8);
    let spawner = scheduler.spawner();
    assert!(spawner.stacks_max() >= 8);
    assert_eq!((spawner.worker(), id()), (None, None));
    let early = spawner.now();
    scheduler.run(|| {
        assert!(spawner.worker().is_some_and(|worker| worker < 2));
        assert_eq!(other.worker(), None, "the ULT belongs to another scheduler");
        let on = |worker| {
            let spawner = spawner.clone();
            let pinned = Builder::new().pin(worker).spawn(move || spawner.worker());
            pinned.join().unwrap()
        };
        assert_eq!([on(0), on(1)], [Some(0), Some(1)]);
        let child = spawn(id);
        let name = child.id();
        assert_eq!(child.join().unwrap(), Some(name));
        assert_ne!(id(), Some(name));
        let limited = spawn(|| park_within(Limit::after(Duration::from_secs(3600)).or_cancelled()));
        while spawner.timers() == 0 {
            yield_now();
        }
        assert_eq!((spawner.timers(), other.timers()), (1, 0));
        limited.cancel();
        assert!(limited.join().unwrap().is_err());
        assert_eq!(spawner.timers(), 0);
        assert!(spawner.now() > early && !in_callback());
    });
    assert_eq!(spawner.worker(), None, "this thread is no longer a worker");
    assert_eq!(spawner.counts()[Counter::Spawned], 4);
}

#[test]
fn a_dump_distinguishes_running_waiting_and_ended_ults() {
    let scheduler = scheduler(1, 8);
    let spawner = scheduler.spawner();
    scheduler.run(|| {
        let done = spawn(|| ());
        yield_now();
        assert!(done.is_finished());
        let ready = spawn(yield_now);
        yield_now();
        let new = spawn(|| ());
        let mut seen = Vec::new();
        spawner.dump(&mut |ult| seen.push((ult.id, ult.state)));
        let state = |id| seen.iter().find(|one| one.0 == id).map(|one| one.1);
        assert_eq!(state(id().unwrap()), Some(UltState::Running));
        assert_eq!(state(done.id()), Some(UltState::Done));
        assert_eq!(state(ready.id()), Some(UltState::Ready));
        assert_eq!(state(new.id()), Some(UltState::New));
        assert_eq!(seen.len(), 4, "no free descriptor is shown");
        ready.join().unwrap();
        new.join().unwrap();
    });
}

#[test]
fn no_handle_keeps_or_needs_an_ended_scheduler() {
    let progress = Arc::new(tsumugi_ult::NoProgress);
    let config = config(1, 8).progress(progress.clone());
    let mut scheduler = Scheduler::new(config).unwrap();
    scheduler.start().unwrap();
    let spawner = scheduler.spawner();
    let (done, waker) = (spawner.spawn(|| 7), spawner.spawn(unparker).join().unwrap());
    while !done.is_finished() {
        std::thread::yield_now();
    }
    drop(scheduler);
    waker.unpark();
    spawner.ring();
    assert!(spawner.try_spawn(|| ()).is_err());
    assert_eq!(done.join().unwrap(), 7);
    drop((waker, spawner));
    assert_eq!(Arc::strong_count(&progress), 1);
}

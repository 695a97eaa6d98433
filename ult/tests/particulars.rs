//! The options of a ULT: pinned, urgent, cancellable, scoped, with values of its own.

mod common;

use common::scheduler;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tsumugi_ult::sync::{Condvar, Mutex, Semaphore, channel};
use tsumugi_ult::{
    Builder, Interrupted, Limit, SpawnError, id, is_cancelled, park, park_within, scope, sleep,
    sleep_within, spawn, spawn_future, ult_local, unparker, yield_now, yield_to,
};

fn caught(f: impl FnOnce()) -> Result<(), Box<dyn std::any::Any + Send>> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(f))
}

fn thread() -> std::thread::ThreadId {
    std::thread::current().id()
}

#[test]
fn a_pinned_ult_stays_where_it_is() {
    scheduler(2, 64).run(|| {
        let pinned: Vec<_> = (0..16)
            .map(|n| {
                Builder::new().pin(n % 2).spawn(move || {
                    let home = thread();
                    for round in 0..100 {
                        match round % 3 {
                            0 => yield_now(),
                            1 if round % 20 == 1 => sleep(Duration::from_micros(50)),
                            _ => spawn(|| ()).join().unwrap(),
                        }
                        assert_eq!(thread(), home);
                    }
                    (n % 2, home)
                })
            })
            .collect();
        let homes: Vec<_> = pinned.into_iter().map(|one| one.join().unwrap()).collect();
        for (worker, home) in &homes {
            assert_eq!(*home, homes[*worker].1, "all ULTs pinned to worker {worker}");
        }
        assert_ne!(homes[0].1, homes[1].1);
    });
}

#[test]
fn a_pinned_ult_that_waits_for_a_stack_waits_for_its_worker_too() {
    // The only stack is always in the cache of the worker that used it last.
    for stacks in [1, 3] {
        scheduler(2, stacks).run(|| {
            let all: Vec<_> = (0..40)
                .map(|n| {
                    Builder::new().pin(n % 2).spawn(move || {
                        let begun = thread();
                        yield_now();
                        assert_eq!(thread(), begun);
                        (n % 2, begun)
                    })
                })
                .collect();
            let homes: Vec<_> = all.into_iter().map(|one| one.join().unwrap()).collect();
            assert!(homes.iter().all(|(worker, home)| *home == homes[*worker].1), "{homes:?}");
        });
    }
}

#[test]
fn a_pinned_ult_is_woken_from_outside() {
    let mut scheduler = scheduler(2, 8);
    scheduler.start().unwrap();
    let spawner = scheduler.spawner();
    for worker in [0, 1, 0, 1] {
        let (sender, receiver) = channel::bounded(1);
        let ult = Builder::new().pin(worker).try_spawn_on(&spawner, move || {
            sender.send(unparker()).unwrap();
            park();
        });
        receiver.recv().unwrap().unpark();
        ult.map_err(|_| "ended").unwrap().join().unwrap();
    }
    let refused = caught(|| {
        let _ = Builder::new().pin(2).try_spawn_on(&spawner, || ());
    });
    let message = refused.unwrap_err();
    assert_eq!(
        message.downcast_ref::<String>().unwrap(),
        "worker 2 does not exist: the scheduler has 2 workers"
    );
}

#[test]
fn a_ult_has_the_requested_stack_size() {
    scheduler(1, 64).run(|| {
        // More than an ordinary stack has.
        let large = Builder::new().stack_bytes(512 << 10).spawn(|| {
            let bytes = std::hint::black_box([7u8; 128 << 10]);
            bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>()
        });
        assert_eq!(large.join().unwrap(), 7 * (128 << 10));
        let bytes = usize::MAX;
        assert_eq!(Builder::new().stack_bytes(bytes).check(None), Err(SpawnError::Stack { bytes }));
    });
}

#[test]
fn urgent_ults_go_first() {
    let scheduler = scheduler(1, 64);
    let spawner = scheduler.spawner();
    let order = scheduler.run(|| {
        let order = Arc::new(Mutex::new(Vec::new()));
        let note = |name: &'static str| {
            let order = order.clone();
            move || order.lock().push(name)
        };
        let urgent = Builder::new().urgent(true).spawn(note("urgent"));
        let all: Vec<_> = (0..5).map(|_| spawn(note("plain"))).collect();
        let outside = std::thread::spawn({
            let note = note("from outside");
            move || Builder::new().urgent(true).try_spawn_on(&spawner, note).is_ok()
        });
        assert!(outside.join().unwrap());
        urgent.join().unwrap();
        all.into_iter().for_each(|one| one.join().unwrap());
        order.lock().clone()
    });
    assert_eq!(order[..2], ["urgent", "from outside"]);
}

#[test]
fn a_yield_to_a_ult_runs_that_ult() {
    scheduler(1, 64).run(|| {
        let ran = Arc::new(AtomicUsize::new(0));
        let all: Vec<_> = (0..10)
            .map(|_| {
                let ran = ran.clone();
                spawn(move || ran.fetch_add(1, Ordering::Relaxed))
            })
            .collect();
        assert!(yield_to(&all[3]));
        assert!(all[3].is_finished());
        let first: Vec<_> = all.into_iter().map(|one| one.join().unwrap()).collect();
        assert_eq!(first[3], 0);
        let done = spawn(|| ());
        yield_now();
        assert!(!yield_to(&done), "the ULT has ended");
    });
}

#[test]
fn a_cancelled_ult_gives_up_when_it_looks() {
    for workers in [1, 2] {
        scheduler(workers, 16).run(|| {
            let polite = spawn(|| {
                let mut rounds = 0u64;
                while !is_cancelled() {
                    rounds += 1;
                    yield_now();
                }
                rounds
            });
            yield_now();
            polite.cancel();
            polite.join().unwrap();

            // Each of these waits for an event that never comes.
            let lock = Arc::new(Mutex::new(()));
            let held = lock.lock();
            let waits: [Box<dyn FnOnce() -> Interrupted + Send>; 6] = [
                Box::new(|| sleep_within(Limit::CANCELLABLE)),
                Box::new(|| park_within(Limit::CANCELLABLE).unwrap_err()),
                Box::new(|| Semaphore::new(0).acquire_within(1, Limit::CANCELLABLE).unwrap_err()),
                Box::new({
                    let lock = lock.clone();
                    move || lock.lock_within(Limit::CANCELLABLE).map(drop).unwrap_err()
                }),
                Box::new(|| {
                    let mutex = Mutex::new(());
                    let limit = Limit::after(Duration::from_secs(30)).or_cancelled();
                    Condvar::new().wait_within(&mut mutex.lock(), limit).unwrap_err()
                }),
                Box::new(|| {
                    let child = spawn(park);
                    child.join_within(Limit::CANCELLABLE).map(drop).unwrap_err().1
                }),
            ];
            let waiting: Vec<_> = waits.into_iter().map(spawn).collect();
            for ult in &waiting {
                yield_now();
                // Some are cancelled before they sleep, some in their sleep.
                ult.cancel();
            }
            for ult in waiting {
                assert_eq!(ult.join().unwrap(), Interrupted::Cancelled);
            }
            drop(held);
            assert!(lock.try_lock().is_some());

            let calm = spawn(|| sleep(Duration::from_millis(5)));
            yield_now();
            calm.cancel();
            calm.join().unwrap();
            assert!(!is_cancelled(), "main was not cancelled");
        });
    }
}

#[test]
fn scoped_ults_borrow_and_end_before_the_scope() {
    for workers in [1, 2] {
        scheduler(workers, 128).run(|| {
            let mut numbers = vec![0u64; 100];
            let sum: u64 = scope(|scope| {
                let handles: Vec<_> = numbers
                    .iter_mut()
                    .enumerate()
                    .map(|(n, place)| {
                        scope.spawn(move || {
                            yield_now();
                            *place = n as u64;
                            &*place
                        })
                    })
                    .collect();
                handles.into_iter().map(|one| *one.join().unwrap()).sum()
            });
            assert_eq!(sum, 4950);
            let ended = AtomicUsize::new(0);
            scope(|scope| {
                for _ in 0..8 {
                    // No ULT joins these, and each starts another one.
                    let ended = &ended;
                    let _ = scope.spawn(move || {
                        scope.spawn(move || {
                            yield_now();
                            ended.fetch_add(1, Ordering::Relaxed)
                        });
                    });
                }
            });
            assert_eq!(ended.load(Ordering::Relaxed), 8);
            // Joined by another ULT, while the scope ends.
            scope(|scope| {
                let slow = scope.spawn(|| sleep(Duration::from_millis(2)));
                scope.spawn(move || slow.join().unwrap());
            });
        });
    }
}

#[test]
fn a_scope_panics_if_one_of_its_ults_did() {
    scheduler(1, 16).run(|| {
        let silent = || -> () { std::panic::resume_unwind(Box::new("why")) };
        let caught = caught(|| {
            scope(|scope| {
                scope.spawn(silent);
            })
        });
        let message = caught.unwrap_err();
        assert_eq!(
            *message.downcast_ref::<&str>().unwrap(),
            "a ULT of the scope panicked, and its handle was not joined"
        );
        let panic = scope(|scope| {
            let handle = scope.spawn(silent);
            handle.join().unwrap_err()
        });
        assert_eq!(panic.message().unwrap(), "why", "a joined panic is not one of the scope");
    });
}

#[test]
fn a_thread_can_open_a_scope_on_a_scheduler() {
    let mut scheduler = scheduler(2, 16);
    scheduler.start().unwrap();
    let words = ["a", "b", "c"];
    let spawner = scheduler.spawner();
    let joined = spawner.scope(|scope| {
        let all: Vec<_> = words.iter().map(|word| scope.spawn(move || (*word, id()))).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(joined.iter().zip(words).all(|((word, id), wanted)| *word == wanted && id.is_some()));
}

ult_local! {
    static VISITS: Cell<u32> = Cell::new(0);
    static WITNESS: Cell<Option<Witness>> = Cell::new(None);
}

struct Witness(Arc<AtomicUsize>);

impl Drop for Witness {
    fn drop(&mut self) {
        // A destructor may use other values, and suspend.
        yield_now();
        VISITS.with(|visits| self.0.fetch_add(1 + visits.get() as usize, Ordering::Relaxed));
    }
}

#[test]
fn local_values_stay_with_their_ult() {
    VISITS.with(|visits| visits.set(1000));
    let drops = Arc::new(AtomicUsize::new(0));
    scheduler(2, 64).run(|| {
        let all: Vec<_> = (1..=8)
            .map(|n| {
                let drops = drops.clone();
                spawn(move || {
                    WITNESS.with(|witness| witness.set(Some(Witness(drops))));
                    for round in 0..200 {
                        VISITS.with(|visits| {
                            let before = visits.get();
                            assert_eq!(before, round * n);
                            yield_now();
                            visits.set(before + n);
                        });
                    }
                })
            })
            .collect();
        all.into_iter().for_each(|one| one.join().unwrap());
        assert_eq!(VISITS.with(Cell::get), 0, "main is a ULT of its own");
    });
    // The counts, being younger, were dropped first, and made again.
    assert_eq!(drops.load(Ordering::Relaxed), 8);
    assert_eq!(VISITS.with(Cell::get), 1000, "this thread has values of its own");
}

#[test]
fn a_future_runs_as_a_ult() {
    scheduler(2, 16).run(|| {
        let (sender, receiver) = channel::bounded(1);
        let sum = spawn_future(async move {
            let mut sum = 0;
            while let Ok(n) = receiver.recv_async().await {
                sum += n;
            }
            sum
        });
        (0..10).for_each(|n| sender.send(n).unwrap());
        drop(sender);
        assert_eq!(sum.join().unwrap(), 45);
    });
}

#[test]
#[cfg(target_arch = "x86_64")]
fn control_words_are_kept_on_request() {
    fn rounding() -> u32 {
        let mut word = 0u32;
        // SAFETY: it writes the word.
        unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut word) };
        word & 0x6000
    }
    fn round(mode: u32) {
        let word = 0x1f80u32 | mode;
        // SAFETY: all exceptions stay masked.
        unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const word) };
    }
    scheduler(1, 8).run(|| {
        let modes: Vec<_> = [0x2000, 0x4000, 0x6000]
            .map(|mode| {
                Builder::new().keep_fp_control(true).spawn(move || {
                    assert_eq!(rounding(), 0, "a new ULT has the words of its worker");
                    round(mode);
                    (0..20).all(|_| {
                        yield_now();
                        rounding() == mode
                    })
                })
            })
            .into_iter()
            .collect();
        for _ in 0..30 {
            yield_now();
            assert_eq!(rounding(), 0, "other ULTs have other words");
        }
        assert!(modes.into_iter().all(|one| one.join().unwrap()));
        assert_eq!(rounding(), 0);
    });
}

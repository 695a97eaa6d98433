//! Sleeping, waking and fairness.

mod common;

use common::scheduler;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tsumugi_core::wait::{Reason, Wait, Waker};
use tsumugi_ult::sync::{Barrier, Condvar, Mutex};
use tsumugi_ult::{Here, block_on, id, park, spawn, unparker, yield_now};

#[test]
fn ten_thousand_ults_meet_at_a_barrier() {
    const ULTS: usize = 10_000;
    for workers in [1, 2] {
        let leaders = scheduler(workers, ULTS).run(|| {
            let barrier = Arc::new(Barrier::new(ULTS));
            let handles: Vec<_> = (0..ULTS)
                .map(|_| {
                    let barrier = barrier.clone();
                    spawn(move || (0..3).filter(|_| barrier.wait()).count())
                })
                .collect();
            handles.into_iter().map(|handle| handle.join().unwrap()).sum::<usize>()
        });
        assert_eq!(leaders, 3, "{workers} workers");
    }
}

#[test]
fn one_token_is_kept() {
    scheduler(1, 8).run(|| {
        let me = unparker();
        me.unpark();
        me.unpark();
        park();
        let parked = spawn(move || {
            park();
            me.unpark();
        });
        // A new ULT may have the descriptor of an earlier one, but not that one's token.
        let it = spawn(unparker).join().unwrap();
        it.unpark();
        yield_now();
        assert!(!parked.is_finished());
        drop(parked);
    });
    // The same on this thread.
    unparker().unpark();
    park();
}

#[test]
fn threads_wake_many_ults() {
    const ROUNDS: usize = 2000;
    for workers in [1, 2] {
        let woken = scheduler(workers, 64).run(|| {
            let ults: Vec<_> = (0..4)
                .map(|_| {
                    let (sent, got) = std::sync::mpsc::sync_channel(1);
                    let rounds = Arc::new(AtomicUsize::new(0));
                    let seen = rounds.clone();
                    let ult = spawn(move || {
                        sent.send(unparker()).unwrap();
                        for round in 1..=ROUNDS {
                            while seen.load(Ordering::Acquire) < round {
                                park();
                            }
                        }
                        ROUNDS
                    });
                    let thread = std::thread::spawn(move || {
                        let ult = got.recv().unwrap();
                        for _ in 0..ROUNDS {
                            rounds.fetch_add(1, Ordering::AcqRel);
                            ult.unpark();
                        }
                    });
                    (ult, thread)
                })
                .collect();
            ults.into_iter()
                .map(|(ult, thread)| {
                    let rounds = ult.join().unwrap();
                    thread.join().unwrap();
                    rounds
                })
                .sum::<usize>()
        });
        assert_eq!(woken, 4 * ROUNDS);
    }
}

#[test]
fn no_ult_starves_behind_a_yielder_or_a_ping_pong() {
    scheduler(1, 32).run(|| {
        let stop = Arc::new(AtomicBool::new(false));
        let until = |stop: &Arc<AtomicBool>| {
            let stop = stop.clone();
            move || stop.load(Ordering::Acquire)
        };
        // Two ULTs that wake each other for ever, always the youngest in the deque.
        let (mutex, condvar) = (Arc::new(Mutex::new(0u64)), Arc::new(Condvar::new()));
        let oldest = {
            let stop = stop.clone();
            spawn(move || stop.store(true, Ordering::Release))
        };
        let pair: Vec<_> = (0..2)
            .map(|side| {
                let (mutex, condvar, done) = (mutex.clone(), condvar.clone(), until(&stop));
                spawn(move || {
                    while !done() {
                        let mut turn = mutex.lock();
                        condvar.wait_while(&mut turn, |turn| *turn % 2 != side && !done());
                        *turn += 1;
                        drop(turn);
                        condvar.notify_all();
                    }
                })
            })
            .collect();
        // And a ULT that only yields.
        let done = until(&stop);
        while !done() {
            yield_now();
        }
        oldest.join().unwrap();
        for half in pair {
            condvar.notify_all();
            half.join().unwrap();
        }
    });
}

#[test]
fn a_yielding_ult_lets_new_and_outside_ults_run() {
    let scheduler = scheduler(1, 8);
    let spawner = scheduler.spawner();
    scheduler.run(move || {
        let new = spawn(|| ());
        while !new.is_finished() {
            yield_now();
        }
        let outside = std::thread::spawn(move || spawner.spawn(|| ()).join().unwrap());
        while !outside.is_finished() {
            yield_now();
        }
    });
}

#[test]
fn a_ult_keeps_its_identity_on_any_worker() {
    scheduler(2, 16).run(|| {
        let all: Vec<_> = (0..6)
            .map(|_| {
                spawn(|| {
                    // One function, many suspensions: a value that a compiler kept across them
                    // would belong to another thread.
                    let mine = id();
                    for _ in 0..20_000 {
                        yield_now();
                        assert_eq!(id(), mine);
                    }
                })
            })
            .collect();
        all.into_iter().for_each(|one| one.join().unwrap());
    });
}

#[test]
fn a_mutex_excludes_ults_and_threads() {
    const EACH: usize = 5000;
    let mut scheduler = scheduler(2, 16);
    scheduler.start().unwrap();
    let count = Arc::new(Mutex::new(0usize));
    let work = |count: &Arc<Mutex<usize>>| {
        let count = count.clone();
        move || {
            for n in 0..EACH {
                let mut guard = count.lock();
                let seen = *guard;
                if n % 64 == 0 {
                    yield_now();
                }
                *guard = seen + 1;
            }
        }
    };
    let ults: Vec<_> = (0..4).map(|_| scheduler.spawner().spawn(work(&count))).collect();
    let thread = std::thread::spawn(work(&count));
    ults.into_iter().for_each(|ult| ult.join().unwrap());
    thread.join().unwrap();
    assert_eq!(*count.lock(), 5 * EACH);
    assert!(count.try_lock().is_some());
}

#[test]
fn a_condvar_works_between_ult_and_thread() {
    let mut scheduler = scheduler(1, 8);
    scheduler.start().unwrap();
    let state = Arc::new((Mutex::new(0u32), Condvar::new()));
    let play = |side: u32, state: Arc<(Mutex<u32>, Condvar)>| {
        move || {
            for _ in 0..300 {
                let mut turn = state.0.lock();
                state.1.wait_while(&mut turn, |turn| *turn % 2 != side);
                *turn += 1;
                drop(turn);
                state.1.notify_one();
            }
        }
    };
    let ult = scheduler.spawner().spawn(play(0, state.clone()));
    play(1, state.clone())();
    ult.join().unwrap();
    assert_eq!(*state.0.lock(), 600);
}

#[test]
fn ults_and_threads_wait_for_futures() {
    async fn twice() -> u32 {
        let mut polls = 0;
        std::future::poll_fn(|context| {
            polls += 1;
            if polls > 1 {
                return std::task::Poll::Ready(polls);
            }
            let waker = context.waker().clone();
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(2));
                waker.wake_by_ref();
                // Late, when its ULT has ended.
                std::thread::sleep(Duration::from_millis(5));
                waker.wake();
            });
            std::task::Poll::Pending
        })
        .await
    }
    assert!(block_on(twice()) >= 2);
    assert!(scheduler(1, 8).run(|| spawn(|| block_on(twice())).join().unwrap()) >= 2);
    std::thread::sleep(Duration::from_millis(10));
}

#[test]
fn a_refused_commit_continues_at_once() {
    let early = || {
        let mut calls = 0;
        let mut refuse = |_: Waker| {
            calls += 1;
            false
        };
        // A wake inside the commit is not lost either.
        let mut wake = |waker: Waker| {
            waker.wake();
            true
        };
        // SAFETY: the one drops its waker, the other has used it.
        unsafe {
            Here.sleep(Reason::new("test"), &mut refuse);
            Here.sleep(Reason::new("test"), &mut wake);
        }
        calls
    };
    assert_eq!(early(), 1);
    assert_eq!(scheduler(2, 4).run(early), 1);
}

#[test]
fn a_callback_that_blocks_panics_with_a_message() {
    let all = || {
        let limit = Duration::from_millis(1);
        let blocked = |what: &str, call: &(dyn Fn() + Sync)| {
            let callback = || tsumugi_ult::callback(call);
            let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(callback));
            let payload = refused.unwrap_err();
            let message = payload.downcast_ref::<String>().unwrap();
            assert!(message.contains(&format!("must not block (here: {what})")), "{message}");
            assert!(!tsumugi_ult::in_callback());
        };
        blocked("park", &park);
        blocked("park", &|| _ = tsumugi_ult::park_timeout(limit));
        blocked("sleep", &|| tsumugi_ult::sleep(limit));
        // SAFETY: the closure keeps no waker.
        let sleep = || unsafe { Here.sleep(Reason::new("test"), &mut |_| false) };
        blocked("test", &sleep);
        blocked("test", &|| tsumugi_ult::assert_may_block("test"));
        blocked("park", &|| tsumugi_ult::callback(park));
        tsumugi_ult::assert_may_block("test");
    };
    all();
    scheduler(1, 4).run(all);
    scheduler(2, 4).run(all);
}

/// The ULT on whose stack a callback runs is unchanged after it.
#[test]
fn a_callback_leaves_its_ult_as_it_was() {
    scheduler(1, 8).run(|| {
        let own = tsumugi_ult::id();
        let child = tsumugi_ult::callback(|| {
            assert_eq!(tsumugi_ult::id(), None);
            tsumugi_ult::yield_now();
            spawn(|| 7)
        });
        assert_eq!(tsumugi_ult::id(), own);
        tsumugi_ult::yield_now();
        assert_eq!(child.join().unwrap(), 7);
        assert_eq!(tsumugi_ult::id(), own);
    });
}

/// Each look at all queues comes when the oldest ULT of the worker's own queue is due.
#[test]
fn a_ult_from_outside_runs_beside_computing_ults() {
    let scheduler = scheduler(1, 16);
    let spawner = scheduler.spawner();
    scheduler.run(move || {
        let came = Arc::new(AtomicBool::new(false));
        let its = came.clone();
        let from_outside = move || spawner.spawn(move || its.store(true, Ordering::SeqCst));
        let outsider = std::thread::spawn(from_outside).join().unwrap();
        let mut rounds = 0;
        while !came.load(Ordering::SeqCst) {
            assert!(rounds < 10_000, "the ULT from outside never runs");
            rounds += 1;
            let compute = || {
                let begin = Instant::now();
                while begin.elapsed() < Duration::from_micros(30) {
                    std::hint::spin_loop();
                }
            };
            spawn(compute).join().unwrap();
        }
        outsider.join().unwrap();
    });
}

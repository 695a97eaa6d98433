//! Jobs and tasks of foreign schedulers block on operations, or await them: those of a
//! pool of OS threads with one core, and those of tokio.
//!
//! The pool has one core, and its jobs wait for each other: a wait without a call of the
//! pool's `park` never ends.

#[path = "../../../examples/pool/pool.rs"]
mod pool;

use pool::Pool;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tsumugi::ult::sync::{Condvar, Mutex, channel};
use tsumugi::ult::{self, Interrupted, Registration, Unparker};
use tsumugi::{Config, Error, Path, Rank, Runtime, Signal, Until};
use tsumugi_core::time::Clock;
use tsumugi_core::wait::ForeignWait;

/// A pool with one core, which is registered until the value is dropped.
struct Known {
    pool: &'static Pool,
    _registration: Registration,
}

impl Deref for Known {
    type Target = &'static Pool;

    fn deref(&self) -> &&'static Pool {
        &self.pool
    }
}

fn pool() -> Known {
    let pool: &'static Pool = Box::leak(Box::new(Pool::new(1)));
    loop {
        // There are more tests than places for schedulers.
        match ult::register(pool) {
            Ok(_registration) => return Known { pool, _registration },
            Err(_) => std::thread::yield_now(),
        }
    }
}

/// A job of a pool, which sleeps through `ult::Here`.
struct Job;

impl tsumugi_conformance::sleep::Fixture for Job {
    type Wait = ult::Here;

    fn run(body: impl FnOnce(&ult::Here) + Send + 'static) {
        pool().spawn(|| body(&ult::Here)).join().unwrap();
    }
}

/// A job of a pool, which sleeps without `ult`, as an engine on core alone does.
struct BareJob;

struct SinceStart(Instant);

impl Clock for SinceStart {
    fn now(&self) -> tsumugi_core::time::Instant {
        tsumugi_core::time::Instant::from_ns(self.0.elapsed().as_nanos() as u64)
    }
}

impl tsumugi_conformance::sleep::Fixture for BareJob {
    type Wait = ForeignWait<'static>;

    fn run(body: impl FnOnce(&ForeignWait<'static>) + Send + 'static) {
        let pool: &'static Pool = Box::leak(Box::new(Pool::new(1)));
        let clock: &'static SinceStart = Box::leak(Box::new(SinceStart(Instant::now())));
        pool.spawn(move || body(&ForeignWait::new(pool, clock))).join().unwrap();
    }
}

mod job {
    tsumugi_conformance::sleep!(super::Job);
}

mod bare_job {
    tsumugi_conformance::sleep!(super::BareJob);
}

#[test]
fn jobs_of_a_pool_block_on_operations() {
    let pool = pool();
    for path in [Path::Direct, Path::Delegate, Path::Offload] {
        let ranks = Config::default().path(path).run_ranks(2, |rt: &Runtime| {
            let words = rt.share::<u64>(2)?;
            let (peer, own) = (Rank(1 - rt.rank().0), rt.rank());
            let jobs: Vec<_> = (0..8)
                .map(|_| {
                    let (rt, theirs) = (rt.clone(), words.at(peer, 0));
                    let signal = words.at(own, 1);
                    pool.spawn(move || {
                        rt.fetch_add(theirs, 1)?;
                        rt.get(theirs)?;
                        // Waits until the other rank has seen the additions of all jobs.
                        rt.wait_until(signal, Until::AtLeast(1)).map_err(Error::from)
                    })
                })
                .collect();
            while rt.get(words.at(own, 0))? < 8 {
                ult::yield_now();
            }
            rt.signal(words.at(peer, 1), Signal::Set(1))?;
            for job in jobs {
                // A yield, because this thread is the rank's only worker and must not sleep.
                while !job.is_finished() {
                    ult::yield_now();
                }
                assert_eq!(job.join().expect("no job panics")?, 1, "{path:?}");
            }
            rt.barrier()
        });
        ranks.unwrap_or_else(|error: Error| panic!("{path:?}: {error}"));
    }
    assert!(pool.lent() > 0, "no job lent its core, so no job waited");
}

#[test]
fn jobs_of_a_pool_wait_for_each_other() {
    let pool = pool();
    let shared = Arc::new((Mutex::new(0), Condvar::new()));
    let turns: Vec<_> = (0..10)
        .map(|n| {
            let shared = shared.clone();
            pool.spawn(move || {
                let mut turn = shared.0.lock();
                shared.1.wait_while(&mut turn, |turn| *turn != 9 - n);
                *turn += 1;
                shared.1.notify_all();
            })
        })
        .collect();
    turns.into_iter().for_each(|job| job.join().unwrap());
    assert_eq!(*shared.0.lock(), 10);
    // A channel without room: each send waits for its receive.
    let (sender, receiver) = channel::bounded::<u32>(0);
    let sends = pool.spawn(move || (0..100).for_each(|n| sender.send(n).expect("received")));
    let receives = pool.spawn(move || receiver.iter().sum::<u32>());
    sends.join().unwrap();
    assert_eq!(receives.join().unwrap(), 4950);
}

#[test]
fn each_job_has_a_park_token_of_its_own() {
    let pool = pool();
    let (sender, receiver) = channel::bounded::<Unparker>(2);
    let jobs: Vec<_> = (0..2)
        .map(|_| {
            let sender = sender.clone();
            pool.spawn(move || {
                sender.send(ult::unparker()).expect("received");
                ult::park();
            })
        })
        .collect();
    let (first, second) = (receiver.recv().unwrap(), receiver.recv().unwrap());
    second.unpark();
    while !jobs.iter().any(|job| job.is_finished()) {
        std::thread::yield_now();
    }
    assert!(!jobs.iter().all(|job| job.is_finished()), "one token woke two jobs");
    first.unpark();
    jobs.into_iter().for_each(|job| job.join().unwrap());
    // A token that comes before the park is kept, although its unparker is gone.
    pool.spawn(|| {
        let own = ult::unparker();
        own.unpark();
        drop(own);
        ult::park();
        // Without a token, the park ends at its time limit.
        let limit = Duration::from_millis(5);
        assert_eq!(ult::park_within(limit), Err(Interrupted::TimedOut));
    })
    .join()
    .unwrap();
}

#[test]
fn jobs_of_a_pool_sleep_and_block_on_futures() {
    let pool = pool();
    let sleeps: Vec<_> = (0..4)
        .map(|_| {
            pool.spawn(|| {
                let start = Instant::now();
                ult::sleep(Duration::from_millis(10));
                start.elapsed()
            })
        })
        .collect();
    for sleep in sleeps {
        let slept = sleep.join().unwrap();
        assert!(slept >= Duration::from_millis(10), "{slept:?} is too short");
    }
    let (sender, receiver) = channel::bounded::<u32>(0);
    let waits = pool.spawn(move || ult::block_on(receiver.recv_async()));
    pool.spawn(move || sender.send(7).expect("received")).join().unwrap();
    assert_eq!(waits.join().unwrap(), Ok(7));
}

#[test]
fn a_dropped_registration_frees_its_place() {
    let pool: &'static Pool = Box::leak(Box::new(Pool::new(1)));
    for _ in 0..100 {
        // Other tests may have all places for a moment.
        drop(ult::register(pool));
    }
    drop(self::pool());
}

/// The rank's only worker is in tokio's `block_on` and runs no ULT: the task that awaits
/// an operation makes the operation progress.
#[test]
fn tokio_tasks_await_operations_without_a_worker() {
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()
        .expect("tokio starts");
    for path in [Path::Direct, Path::Delegate, Path::Offload] {
        let config = Config::default().path(path).workers(1);
        let done = config.run_ranks(2, |rt: &Runtime| {
            let words = rt.share::<u64>(64)?;
            let peer = Rank(1 - rt.rank().0);
            let tasks: Vec<_> = (0..64)
                .map(|n| {
                    let (rt, at) = (rt.clone(), words.at(peer, n));
                    tokio.spawn(async move {
                        let mut buf = rt.buffer::<u64>(1)?;
                        buf[0] = n as u64;
                        let put = rt.ops().put_buffer(at, buf).await;
                        put.result?;
                        tokio::time::sleep(Duration::from_micros(100)).await;
                        let got = rt.ops().get_buffer(at, put.buf).await;
                        got.result?;
                        Ok::<u64, Error>(got.buf[0])
                    })
                })
                .collect();
            let sum = tokio.block_on(async {
                let mut sum = 0;
                for task in tasks {
                    sum += task.await.expect("no task panics")?;
                }
                Ok::<u64, Error>(sum)
            });
            rt.barrier()?;
            sum
        });
        assert_eq!(done.unwrap(), [2016, 2016], "{path:?}");
    }
}

#[test]
fn a_blocking_thread_of_tokio_waits_for_operations() {
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()
        .expect("tokio starts");
    for path in [Path::Direct, Path::Delegate, Path::Offload] {
        let done = Config::default().path(path).workers(1).run(|rt| {
            let words = rt.share::<u64>(2)?;
            let (at, signal) = (words.own().at(0), words.own().at(1));
            let has_answered = Arc::new(AtomicBool::new(false));
            let (theirs, answered) = (rt.clone(), has_answered.clone());
            let blocks = tokio.spawn_blocking(move || {
                theirs.put(at, 5)?;
                let value = theirs.get(at)?;
                theirs.wait_until(signal, Until::AtLeast(1))?;
                answered.store(true, Ordering::Release);
                Ok::<u64, Error>(value)
            });
            ult::sleep(Duration::from_millis(1));
            assert!(!has_answered.load(Ordering::Acquire), "the task did not wait for the signal");
            rt.signal(signal, Signal::Set(1))?;
            // A ULT blocks on a future of tokio.
            ult::block_on(blocks).expect("no task panics")
        });
        assert_eq!(done.unwrap(), 5, "{path:?}");
    }
}

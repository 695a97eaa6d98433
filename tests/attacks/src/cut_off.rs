//! ULTs that are cut off by the end of their scheduler while they wait: a lock, a permit
//! or a message that is handed to such a ULT goes to the next waiter, and what the ULT
//! occupies (a tag, a place in a queue) is free again.

use crate::Attack;
use crate::ults::scheduler;
use std::panic::catch_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use tsumugi::lock::{LockKind, LockMode, SharedLock};
use tsumugi::{Error, Path, Rank};
use tsumugi_ult::sync::{Barrier, Condvar, Flag, Mutex, Once, RwLock, Semaphore, channel};
use tsumugi_ult::{Config, Scheduler, StackArea, UltState, spawn, yield_now};

pub const ALL: &[Attack] = &[
    ("lock_handed_to_a_cut_off_ult", lock_handed_to_a_cut_off_ult),
    ("share_handed_to_a_cut_off_ult", share_handed_to_a_cut_off_ult),
    ("permit_handed_to_a_cut_off_ult", permit_handed_to_a_cut_off_ult),
    ("value_handed_to_a_cut_off_ult", value_handed_to_a_cut_off_ult),
    ("notification_handed_to_a_cut_off_ult", notification_handed_to_a_cut_off_ult),
    ("turn_handed_to_a_cut_off_ult", turn_handed_to_a_cut_off_ult),
    ("ults_cut_off_after_a_hand_over", ults_cut_off_after_a_hand_over),
    ("barrier_of_a_cut_off_ult", barrier_of_a_cut_off_ult),
    ("flag_of_a_cut_off_ult", flag_of_a_cut_off_ult),
    ("message_for_a_cut_off_ult", message_for_a_cut_off_ult),
    ("message_for_a_cut_off_ult_that_polled", message_for_a_cut_off_ult_that_polled),
    ("tags_of_cut_off_ults", tags_of_cut_off_ults),
    ("room_behind_cut_off_ults", room_behind_cut_off_ults),
    ("shared_lock_for_a_cut_off_ult", shared_lock_for_a_cut_off_ult),
    ("shared_lock_with_operations_of_cut_off_ults", shared_lock_with_operations_of_cut_off_ults),
    ("shared_lock_for_many_cut_off_ults", shared_lock_for_many_cut_off_ults),
];

/// Runs `waits` on `count` ULTs, and cuts them off once all sleep.
fn cut_off(count: usize, waits: impl Fn() + Clone + Send + 'static) {
    let scheduler = scheduler(1);
    let spawner = scheduler.spawner();
    (0..count).for_each(|_| drop(spawner.spawn(waits.clone())));
    let asleep = || {
        let mut asleep = 0;
        spawner.dump(&mut |ult| asleep += usize::from(ult.state == UltState::Sleeping));
        asleep
    };
    while asleep() < count {
        std::thread::yield_now();
    }
    // A dump shows a ULT as sleeping shortly before it sleeps. The end of the scheduler
    // lets the worker finish that step.
    drop(scheduler);
}

fn lock_handed_to_a_cut_off_ult() {
    static LOCK: Mutex<()> = Mutex::new(());
    let held = LOCK.lock();
    cut_off(3, || drop(LOCK.lock()));
    drop(held);
    drop(LOCK.lock());
}

fn share_handed_to_a_cut_off_ult() {
    static LOCK: RwLock<()> = RwLock::new(());
    let held = LOCK.write();
    cut_off(2, || drop(LOCK.read()));
    cut_off(2, || drop(LOCK.write()));
    drop(held);
    drop(LOCK.read());
    // A reader that waits behind a cut-off writer gets the lock.
    let held = LOCK.read();
    let scheduler = scheduler(1);
    let spawner = scheduler.spawner();
    drop(spawner.spawn(|| drop(LOCK.write())));
    while LOCK.try_read().is_some() {
        std::thread::yield_now();
    }
    let behind = std::thread::spawn(|| drop(LOCK.read()));
    drop(scheduler);
    behind.join().unwrap();
    drop(held);
}

fn permit_handed_to_a_cut_off_ult() {
    static PERMITS: Semaphore = Semaphore::new(0);
    cut_off(3, || PERMITS.acquire(2));
    PERMITS.release(2);
    PERMITS.acquire(2);
}

fn value_handed_to_a_cut_off_ult() {
    let (send, receive) = channel::bounded::<u32>(0);
    let theirs = receive.clone();
    cut_off(3, move || {
        let _ = theirs.recv();
    });
    let sending = std::thread::spawn(move || send.send(7));
    assert_eq!(receive.recv(), Ok(7));
    assert_eq!(sending.join().unwrap(), Ok(()));
}

fn notification_handed_to_a_cut_off_ult() {
    static STEP: Mutex<u32> = Mutex::new(0);
    static CHANGED: Condvar = Condvar::new();
    cut_off(3, || CHANGED.wait(&mut STEP.lock()));
    let waiting = std::thread::spawn(|| {
        let mut step = STEP.lock();
        *step = 1;
        CHANGED.wait_while(&mut step, |step| *step < 2);
    });
    // When this thread gets the mutex and reads 1, the other thread waits, in the queue
    // behind the ULTs that were cut off.
    loop {
        let mut step = STEP.lock();
        if *step == 1 {
            *step = 2;
            break;
        }
        drop(step);
        std::thread::yield_now();
    }
    CHANGED.notify_one();
    waiting.join().unwrap();
}

fn turn_handed_to_a_cut_off_ult() {
    static ONCE: Once = Once::new();
    let caught = catch_unwind(|| {
        ONCE.call(|| {
            cut_off(2, || ONCE.call(|| {}));
            panic!("the initializer fails");
        });
    });
    assert!(caught.is_err());
    let mut is_mine = false;
    ONCE.call(|| is_mine = true);
    assert!(is_mine);
}

/// A message that arrives after its receiver was cut off goes to the next receive.
fn message_for_a_cut_off_ult() {
    let ended = tsumugi::run_ranks(2, |rt| {
        let comm = rt.comm();
        for len in [1, 64, 100_000] {
            if rt.rank() == Rank(1) {
                comm.recv::<u8>(Rank(0), 1, &mut [0])?;
                comm.send(Rank(0), 7, &vec![7u64; len])?;
            } else {
                let theirs = comm.clone();
                cut_off(3, move || {
                    let _ = theirs.recv(Rank(1), 7, &mut vec![0u64; len]);
                });
                comm.send(Rank(1), 1, &[1u8])?;
                let mut words = vec![0u64; len];
                comm.recv(Rank(1), 7, &mut words)?;
                assert!(words.iter().all(|word| *word == 7));
            }
        }
        rt.barrier()
    });
    ended.expect("both ranks end");
}

/// The same as `message_for_a_cut_off_ult` with receivers that have begun, of which one
/// polls and does not sleep.
fn message_for_a_cut_off_ult_that_polled() {
    let config = tsumugi::Config::default().workers(1).spin(1 << 28);
    let ended = config.run_ranks(2, |rt| {
        let comm = rt.comm();
        for len in [1, 64, 100_000] {
            if rt.rank() == Rank(1) {
                comm.recv::<u8>(Rank(0), 1, &mut [0])?;
                comm.send(Rank(0), 7, &vec![7u64; len])?;
            } else {
                let theirs = comm.clone();
                let begun = Arc::new(AtomicU32::new(0));
                let begins = begun.clone();
                let scheduler = scheduler(1);
                // One of the two polls, and the other one sleeps.
                for _ in 0..2 {
                    let (theirs, begins) = (theirs.clone(), begins.clone());
                    drop(scheduler.spawner().spawn(move || {
                        begins.fetch_add(1, Ordering::Release);
                        let _ = theirs.recv(Rank(1), 7, &mut vec![0u64; len]);
                    }));
                }
                while begun.load(Ordering::Acquire) < 2 {
                    std::thread::yield_now();
                }
                drop(scheduler);
                comm.send(Rank(1), 1, &[1u8])?;
                let mut words = vec![0u64; len];
                comm.recv(Rank(1), 7, &mut words)?;
                assert!(words.iter().all(|word| *word == 7));
            }
        }
        rt.barrier()
    });
    ended.expect("both ranks end");
}

/// Each operation in progress has a tag. The ULTs that are cut off have more operations
/// than there are tags.
fn tags_of_cut_off_ults() {
    let config = tsumugi::Config::default().path(Path::Offload);
    let ended = config.run_ranks(1, |rt| {
        let word = rt.share::<u64>(1)?.at(Rank(0), 0);
        for _ in 0..30 {
            let scheduler = scheduler(1);
            let begun = Arc::new(AtomicU32::new(0));
            for _ in 0..60 {
                let (theirs, begins) = (rt.clone(), begun.clone());
                drop(scheduler.spawner().spawn(move || {
                    while theirs.fetch_add(word, 1).is_ok() {
                        begins.fetch_add(1, Ordering::Relaxed);
                    }
                }));
            }
            while begun.load(Ordering::Relaxed) < 60 {
                std::thread::yield_now();
            }
            drop(scheduler);
        }
        assert!(rt.get(word)? >= 30 * 60);
        rt.barrier()
    });
    ended.expect("the rank ends");
}

/// After ULTs that wait for a shared lock were cut off, the other ULTs of their rank and
/// the other ranks still get the lock.
fn shared_lock_for_a_cut_off_ult() {
    let ended = tsumugi::run_ranks(2, |rt| {
        for kind in [LockKind::Mutex, LockKind::Readers, LockKind::Neutral, LockKind::Writers] {
            let lock = rt.share_lock(Rank(0), kind)?;
            if rt.rank() == Rank(1) {
                let held = lock.write()?;
                let theirs = lock.clone();
                cut_off(3, move || drop(theirs.write()));
                let theirs = lock.clone();
                cut_off(3, move || drop(theirs.read()));
                let theirs = lock.clone();
                let long = Duration::from_secs(1000);
                cut_off(3, move || drop(theirs.lock_timeout(LockMode::Exclusive, long)));
                held.release()?;
                drop(lock.write()?);
            }
            rt.barrier()?;
            drop(lock.write()?);
            drop(lock.read()?);
            rt.barrier()?;
        }
        rt.barrier()
    });
    ended.expect("both ranks end");
}

/// Operations on a lock's words go through a queue, so some of them are in progress when
/// their ULTs are cut off. The lock is free afterwards.
fn shared_lock_with_operations_of_cut_off_ults() {
    for path in [Path::Delegate, Path::Offload] {
        let config = tsumugi::Config::default().workers(1).path(path);
        let ended = config.run_ranks(2, |rt| -> Result<(), Error> {
            for kind in [LockKind::Mutex, LockKind::Readers, LockKind::Neutral, LockKind::Writers] {
                let lock = rt.share_lock(Rank(0), kind)?;
                for round in 0..ROUNDS {
                    if rt.rank() == Rank(1) {
                        cut_off_at_work(&lock, round);
                    }
                    drop(lock.write()?);
                    drop(lock.read()?);
                    rt.barrier()?;
                }
            }
            rt.barrier()
        });
        ended.expect("both ranks end");
    }
}

/// Cuts off four ULTs that take and release the lock all the time.
fn cut_off_at_work(lock: &SharedLock, round: u32) {
    let scheduler = scheduler(1);
    let spawner = scheduler.spawner();
    let taken = Arc::new(AtomicU32::new(0));
    for index in 0..4 {
        let (lock, taken) = (lock.clone(), taken.clone());
        drop(spawner.spawn(move || {
            for turn in index.. {
                let limit = Duration::from_micros(300);
                drop(match turn % 4 {
                    0 => lock.write().map(Some),
                    1 => lock.read().map(Some),
                    2 => lock.lock_timeout(LockMode::Exclusive, limit),
                    _ => lock.try_lock(LockMode::Shared),
                });
                taken.fetch_add(1, Ordering::Relaxed);
                yield_now();
            }
        }));
    }
    while taken.load(Ordering::Relaxed) < 4 + round * 3 {
        tsumugi::ult::yield_now();
    }
    drop(scheduler);
}

/// More ULTs wait for the lock than the rank has queue nodes. Those without a node wait
/// for one, and are counted by the lock already.
fn shared_lock_for_many_cut_off_ults() {
    let ended = tsumugi::run_ranks(2, |rt| -> Result<(), Error> {
        for kind in [LockKind::Mutex, LockKind::Readers, LockKind::Neutral, LockKind::Writers] {
            let lock = rt.share_lock(Rank(0), kind)?;
            if rt.rank() == Rank(1) {
                let held = lock.write()?;
                let theirs = lock.clone();
                cut_off(300, move || drop(theirs.read()));
                held.release()?;
                drop(lock.write()?);
            }
            rt.barrier()?;
            drop(lock.write()?);
            rt.barrier()?;
        }
        rt.barrier()
    });
    ended.expect("both ranks end");
}

/// Free room for messages goes to a waiter that can use it, even if many cut-off ULTs
/// wait in front of it.
fn room_behind_cut_off_ults() {
    let opened = AtomicBool::new(false);
    let opened = &*Box::leak(Box::new(opened));
    let ended = tsumugi::run_ranks(2, |rt| {
        rt.handler(2, |_| {
            while !opened.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            [0u8; 0]
        });
        rt.barrier()?;
        if rt.rank() == Rank(0) {
            let its = rt.clone();
            cut_off(400, move || while its.cast(Rank(1), 2, &[0; 8]).is_ok() {});
            let its = rt.clone();
            let calls = std::thread::spawn(move || its.call(Rank(1), 2, &[]));
            // In most runs the call waits behind the cut-off ULTs by then.
            std::thread::sleep(Duration::from_millis(50));
            opened.store(true, Ordering::Release);
            // A yield instead of `join`, so that this rank's worker goes on.
            while !calls.is_finished() {
                tsumugi::ult::yield_now();
            }
            calls.join().unwrap()?;
        }
        rt.barrier()
    });
    ended.expect("both ranks end");
}

/// A ULT that was handed a lock, a permit or a value and is cut off before it runs
/// again: the next waiter gets it.
fn ults_cut_off_after_a_hand_over() {
    static LOCK: Mutex<()> = Mutex::new(());
    cut_off_ready(|| LOCK.lock(), || drop(LOCK.lock()), drop);
    drop(LOCK.lock());

    static SHARED: RwLock<()> = RwLock::new(());
    cut_off_ready(|| SHARED.write(), || drop(SHARED.write()), drop);
    drop(SHARED.write());

    static PERMITS: Semaphore = Semaphore::new(0);
    cut_off_ready(|| (), || PERMITS.acquire(2), |()| PERMITS.release(2));
    PERMITS.acquire(2);

    let (send, receive) = channel::bounded::<u32>(1);
    let theirs = receive.clone();
    let waits = move || {
        let _ = theirs.recv();
    };
    cut_off_ready(|| (), waits, move |()| send.send(7).expect("there is room"));
    assert_eq!(receive.recv(), Ok(7));
}

/// Runs `waits` on two ULTs of one worker, then `hand`, and ends the scheduler
/// before the ULT that `hand` wakes has run.
fn cut_off_ready<T>(
    take: impl FnOnce() -> T + Send,
    waits: impl Fn() + Clone + Send + 'static,
    hand: impl FnOnce(T) + Send,
) {
    let stacks = StackArea::map(64 << 20).expect("addresses");
    let config = Config::new(stacks).workers(1).main_stack_bytes(256 << 10);
    let ran_on = Arc::new(AtomicBool::new(false));
    let runs_on = ran_on.clone();
    Scheduler::new(config).expect("a scheduler").run(move || {
        let taken = take();
        let begun = Arc::new(AtomicU32::new(0));
        for _ in 0..2 {
            let (begins, waits, runs_on) = (begun.clone(), waits.clone(), runs_on.clone());
            drop(spawn(move || {
                begins.fetch_add(1, Ordering::Relaxed);
                waits();
                runs_on.store(true, Ordering::Relaxed);
            }));
        }
        // There is one worker, so a ULT that has begun sleeps while this one runs.
        while begun.load(Ordering::Relaxed) < 2 {
            yield_now();
        }
        hand(taken);
        // The worker runs the youngest ULTs first, and stops before the woken one's turn.
        (0..1000).for_each(|_| drop(spawn(|| {})));
    });
    assert!(!ran_on.load(Ordering::Relaxed), "the ULT ran before it was cut off");
}

fn barrier_of_a_cut_off_ult() {
    let barrier = Arc::new(Barrier::new(2));
    let theirs = barrier.clone();
    cut_off(1, move || {
        theirs.wait();
    });
    assert_eq!(barrier.arrived(), 0);
    let both = barrier.clone();
    let other = std::thread::spawn(move || both.wait());
    assert_ne!(barrier.wait(), other.join().unwrap());
}

fn flag_of_a_cut_off_ult() {
    static FLAG: Flag = Flag::new();
    cut_off(1, || FLAG.wait());
    let waiting = std::thread::spawn(|| FLAG.wait());
    FLAG.raise();
    waiting.join().unwrap();
}

const ROUNDS: u32 = 12;

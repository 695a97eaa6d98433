//! A program without std, with libc's start and allocator: one worker, stacks in a
//! static, and a clock that only moves when there is nothing to run.
#![no_std]
#![no_main]

extern crate alloc;

mod system;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::{Cell, UnsafeCell};
use core::ffi::c_int;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use tsumugi_core::time::{Clock, Instant};
use tsumugi_ult::sync::{Barrier, Condvar, Mutex, OnceCell, RwLock, Semaphore, WaitGroup, channel};
use tsumugi_ult::{
    Builder, Config, Host, Interrupted, Limit, Scheduler, StackArea, StartError,
    block_on, is_cancelled, park, park_timeout, scope, set_host, sleep, sleep_within, spawn,
    spawn_future, ult_local, unparker, yield_now,
};

/// The memory of all stacks.
#[repr(align(4096))]
struct Stacks(UnsafeCell<[u8; STACKS_BYTES]>);

// SAFETY: one scheduler at a time uses the memory.
unsafe impl Sync for Stacks {}

/// A clock whose time passes only while no ULT runs.
struct Simulated(AtomicU64);

impl Clock for Simulated {
    fn now(&self) -> Instant {
        Instant::from_ns(self.0.load(Ordering::Relaxed))
    }
}

impl Host for Simulated {
    fn idle(&self, limit: Option<Duration>) {
        let limit = limit.expect("all ULTs sleep, and no time limit ends it");
        self.0.fetch_add(limit.as_nanos() as u64, Ordering::Relaxed);
    }
}

#[unsafe(no_mangle)]
extern "C" fn main(_: c_int, _: *const *const u8) -> c_int {
    set_host(&HOST);
    for case in CASES {
        scheduler().run(case.1);
        system::say(case.0);
        system::say("\n");
    }
    // The join of a ULT that was cut off fails; a scheduler with two workers is refused.
    let cut_off = scheduler().run(|| {
        let child = spawn(park);
        yield_now();
        child
    });
    assert!(cut_off.join().unwrap_err().is_cancelled());
    let refused = Scheduler::new(config().workers(2)).err();
    assert!(matches!(refused, Some(StartError::Thread(1, _))));
    system::say("all is well\n");
    0
}

const CASES: [(&str, fn()); 8] = [
    ("values come back", values_come_back),
    ("parked ULTs are unparked", the_parked_are_unparked),
    ("locks exclude and hand over", locks_exclude_and_hand_over),
    ("channels carry in order", channels_carry_in_order),
    ("sleepers wake in the order of their limits", sleepers_wake_in_order),
    ("scopes lend", scopes_lend),
    ("futures are waited for", futures_are_waited_for),
    ("each ULT has values of its own", each_has_its_own),
];

fn values_come_back() {
    let all: Vec<_> = (0..1000u64)
        .map(|n| {
            spawn(move || {
                yield_now();
                n + 1
            })
        })
        .collect();
    let sum: u64 = all.into_iter().map(|ult| ult.join().unwrap()).sum();
    assert_eq!(sum, 1000 * 1001 / 2);
    let large = Builder::new().name("large").stack_bytes(64 << 10).spawn(|| [7u8; 20_000]);
    assert_eq!(large.join().unwrap(), [7; 20_000]);
}

fn the_parked_are_unparked() {
    let main = unparker();
    let child = spawn(move || {
        for _ in 0..100 {
            park();
            main.unpark();
        }
        unparker()
    });
    let child_unparker = {
        let (sender, receiver) = channel::bounded(1);
        let asked = spawn(move || {
            sender.send(unparker()).expect("received");
            park();
        });
        let asked_unparker = receiver.recv().unwrap();
        asked_unparker.unpark();
        asked.join().unwrap();
        asked_unparker
    };
    // An unpark of a ULT that has ended has no effect.
    child_unparker.unpark();
    drop(child);
    assert!(!park_timeout(Duration::from_millis(1)), "no ULT unparks this one");
}

fn locks_exclude_and_hand_over() {
    let shared = Arc::new((Mutex::new(0u64), Condvar::new(), Semaphore::new(2), RwLock::new(0u64)));
    let all: Vec<_> = (0..100)
        .rev()
        .map(|mine| {
            let shared = shared.clone();
            spawn(move || {
                let (turn, changed, permits, writes) = &*shared;
                permits.acquire(1);
                yield_now();
                permits.release(1);
                *writes.write() += 1;
                let mut now = turn.lock();
                changed.wait_while(&mut now, |now| *now != mine);
                *now += 1;
                changed.notify_all();
            })
        })
        .collect();
    all.into_iter().for_each(|ult| ult.join().unwrap());
    assert_eq!((*shared.0.lock(), *shared.3.read()), (100, 100));
    let (once, group) = (Arc::new(OnceCell::new()), WaitGroup::new());
    let barrier = Arc::new(Barrier::new(5));
    for n in 0..5u64 {
        let (once, group, barrier) = (once.clone(), group.clone(), barrier.clone());
        spawn(move || {
            barrier.wait();
            once.get_or_init(|| n);
            drop(group);
        });
    }
    group.wait();
    assert!(once.get().is_some());
}

fn channels_carry_in_order() {
    for capacity in [0, 1, 10] {
        let (sender, receiver) = channel::bounded(capacity);
        let sends = spawn(move || (0..1000u64).for_each(|n| sender.send(n).expect("received")));
        assert!(receiver.iter().eq(0..1000));
        sends.join().unwrap();
    }
}

fn sleepers_wake_in_order() {
    let start = HOST.now();
    let (sender, receiver) = channel::unbounded();
    for ms in [30, 10, 20] {
        let sender = sender.clone();
        spawn(move || {
            sleep(Duration::from_millis(ms));
            sender.send(ms).expect("received");
        });
    }
    drop(sender);
    assert!(receiver.iter().eq([10, 20, 30]));
    assert_eq!(HOST.now() - start, Duration::from_millis(30), "the time is the host's");
    let sleeper = spawn(|| (sleep_within(Limit::CANCELLABLE), is_cancelled()));
    yield_now();
    sleeper.cancel();
    assert_eq!(sleeper.join().unwrap(), (Interrupted::Cancelled, true));
}

fn scopes_lend() {
    let mut parts = [0u64; 10];
    scope(|scope| {
        for (n, part) in parts.iter_mut().enumerate() {
            scope.spawn(move || *part = n as u64);
        }
    });
    assert_eq!(parts.iter().sum::<u64>(), 45);
}

fn futures_are_waited_for() {
    let (sender, receiver) = channel::bounded::<u64>(0);
    let receives = spawn_future(async move { receiver.recv_async().await });
    block_on(async { sender.send_async(5).await }).expect("received");
    assert_eq!(receives.join().unwrap(), Ok(5));
}

fn each_has_its_own() {
    ult_local! {
        static OWN: Cell<u64> = Cell::new(1);
    }
    let all: Vec<_> = (0..10u64)
        .map(|n| {
            spawn(move || {
                OWN.with(|own| own.set(own.get() + n));
                yield_now();
                OWN.with(Cell::get)
            })
        })
        .collect();
    let values = all.into_iter().map(|ult| ult.join().unwrap());
    assert!(values.eq(1..11));
    assert_eq!(OWN.with(Cell::get), 1);
}

fn scheduler() -> Scheduler {
    Scheduler::new(config()).expect("a scheduler")
}

fn config() -> Config {
    let base = NonNull::new(STACKS.0.get().cast()).expect("the address of a static");
    // SAFETY: there is one scheduler at a time, and after the one that abandons a ULT no
    // scheduler runs.
    let area = unsafe { StackArea::from_raw(base, STACKS_BYTES) }.expect("an aligned area");
    Config::new(area).stack_bytes(32 << 10).main_stack_bytes(256 << 10)
}

static HOST: Simulated = Simulated(AtomicU64::new(0));
static STACKS: Stacks = Stacks(UnsafeCell::new([0; STACKS_BYTES]));
const STACKS_BYTES: usize = 64 << 20;

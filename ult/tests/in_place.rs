//! The state that is private to a child which runs in the place of its joiner, and the state of its
//! joiner: on the joiner's stack, on a stack of its own, and either.

mod common;

use common::config;
use std::cell::{Cell, RefCell};
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tsumugi_core::stats::Counter;
use tsumugi_ult::sync::Semaphore;
use tsumugi_ult::{
    Builder, Order, Scheduler, Spawner, id, is_cancelled, park, sleep, spawn, ult_local, unparker,
    yield_now,
};

/// Runs `main` with children on their joiners' stacks, and then never so.
fn each_way(workers: usize, main: impl Fn(Spawner) + Send + Copy) {
    for inline_bytes in [0, usize::MAX] {
        let config = config(workers, 64);
        let scheduler = Scheduler::new(config.inline_bytes(inline_bytes)).unwrap();
        let spawner = scheduler.spawner();
        scheduler.run(move || main(spawner));
    }
}

fn thread() -> std::thread::ThreadId {
    std::thread::current().id()
}

/// A limit for events that are certain to happen.
const PATIENCE: Duration = Duration::from_secs(5);

struct Counted(Cell<u32>, RefCell<Option<Arc<AtomicUsize>>>);

impl Drop for Counted {
    fn drop(&mut self) {
        if let Some(dropped) = &*self.1.borrow() {
            // It runs as the ULT to which it belonged, and a destructor may wait.
            dropped.store(id().unwrap().slot as usize + 1, Ordering::Relaxed);
            yield_now();
        }
    }
}

ult_local! {
    static OWN: Counted = Counted(Cell::new(0), RefCell::new(None));
}

#[test]
fn a_child_has_values_of_its_own_and_drops_them() {
    each_way(2, |_| {
        OWN.with(|own| own.0.set(7));
        for _ in 0..100 {
            let dropped = Arc::new(AtomicUsize::new(0));
            let witness = dropped.clone();
            let child = spawn(move || {
                OWN.with(|own| {
                    assert_eq!(own.0.get(), 0, "the value of another ULT");
                    own.0.set(9);
                    own.1.replace(Some(witness));
                });
                id().unwrap().slot as usize
            });
            let slot = child.join().unwrap();
            assert_eq!(dropped.load(Ordering::Relaxed), slot + 1, "dropped by the child itself");
            assert_eq!(OWN.with(|own| own.0.get()), 7, "the joiner's own");
        }
    });
}

/// Joins a child that joins a child, and so on: the number of children that ran on their joiners'
/// stacks, and of those elsewhere. Each uses half of the promised bytes, because frames are large
/// in builds that are not optimised.
fn chain(depth: usize, joiner: usize) -> (usize, usize) {
    let mut room = MaybeUninit::<[u8; PROMISED / 2]>::uninit();
    let bytes = std::hint::black_box(room.as_mut_ptr().cast::<u8>());
    // SAFETY: the first byte of the array.
    unsafe { bytes.write_volatile(depth as u8) };
    let at = bytes.addr();
    let below = (1..48 << 10).contains(&joiner.saturating_sub(at));
    let (mut inside, mut elsewhere) = (0, 0);
    if depth > 0 {
        let child = move || chain(depth - 1, at);
        (inside, elsewhere) = spawn(child).join().unwrap();
    }
    // SAFETY: as above.
    assert_eq!(unsafe { bytes.read_volatile() }, depth as u8, "overwritten");
    if below { (inside + 1, elsewhere) } else { (inside, elsewhere + 1) }
}

/// The minimum that is left of a stack for a child: two of [`chain`] find it on one of 64 KiB.
const PROMISED: usize = 32 << 10;

#[test]
#[cfg_attr(tsumugi_asan, ignore = "frames are larger")]
fn a_child_finds_the_promised_stack() {
    for workers in [1, 2] {
        let config = config(workers, 64).inline_bytes(PROMISED);
        let (inside, elsewhere) = Scheduler::new(config).unwrap().run(|| chain(40, 0));
        // Another worker may take each child.
        assert!(inside > 0 || workers > 1, "all {elsewhere} children on stacks of their own");
        assert!(elsewhere > 1, "{inside} on their joiners' stacks");
    }
}

#[test]
fn a_cancel_of_a_child_does_not_reach_its_joiner() {
    each_way(1, |_| {
        let parent = spawn(|| {
            let child = spawn(is_cancelled);
            assert!(!child.join().unwrap(), "the joiner is not cancelled");
            is_cancelled()
        });
        parent.cancel();
        assert!(parent.join().unwrap());
        let child = spawn(is_cancelled);
        child.cancel();
        assert!(child.join().unwrap());
        assert!(!is_cancelled());
    });
}

#[test]
fn a_pinned_joiner_stays_however_its_children_move() {
    each_way(2, |_| {
        let pinned: Vec<_> = (0..8)
            .map(|n| {
                let order = if n % 4 < 2 { Order::HelpFirst } else { Order::ChildFirst };
                Builder::new().pin(n % 2).spawn(move || {
                    let home = thread();
                    for round in 0..200 {
                        let child = Builder::new().order(order).spawn(move || {
                            if round % 50 == 0 {
                                sleep(Duration::from_micros(50));
                            }
                            spawn(yield_now).join().unwrap();
                        });
                        child.join().unwrap();
                        assert_eq!(thread(), home);
                    }
                })
            })
            .collect();
        pinned.into_iter().for_each(|one| one.join().unwrap());
    });
}

#[test]
fn a_pinned_joiner_stays_when_its_child_is_stolen() {
    each_way(2, |_| {
        let joiner = Builder::new().pin(0).spawn(|| {
            let home = thread();
            let moved = Arc::new(AtomicUsize::new(0));
            let seen = moved.clone();
            // Keeps the worker busy, so that the child can only continue elsewhere.
            let busy = Builder::new().pin(0).spawn(move || {
                let start = Instant::now();
                while seen.load(Ordering::Acquire) == 0 && start.elapsed() < PATIENCE {
                    // Wakes the other worker.
                    drop(spawn(|| ()));
                    let turn = Instant::now();
                    while turn.elapsed() < Duration::from_micros(200) {
                        std::hint::spin_loop();
                    }
                }
            });
            let child = spawn(move || {
                while thread() == home && moved.load(Ordering::Relaxed) == 0 {
                    yield_now();
                }
                moved.store(1, Ordering::Release);
            });
            child.join().unwrap();
            assert_eq!(thread(), home);
            busy.join().unwrap();
        });
        joiner.join().unwrap();
    });
}

#[test]
fn a_pinned_or_urgent_child_runs_where_it_must() {
    each_way(2, |_| {
        for order in [Order::HelpFirst, Order::ChildFirst] {
            let homes: Vec<_> = (0..20)
                .map(|n| Builder::new().order(order).pin(n % 2).spawn(thread).join().unwrap())
                .collect();
            assert!(homes.iter().skip(2).zip(&homes).all(|(later, home)| later == home));
            assert_ne!(homes[0], homes[1]);
            assert_eq!(Builder::new().order(order).urgent(true).spawn(|| 3).join().unwrap(), 3);
        }
    });
}

#[test]
fn no_ult_is_lost_between_a_handover_and_a_child_that_runs_first() {
    each_way(1, |_| {
        // Each end hands over to a joiner, each spawn puts a child before it, and now and then the
        // hub looks elsewhere in between.
        let all: Vec<_> = (0..30)
            .map(|_| {
                spawn(|| {
                    for _ in 0..100 {
                        let waiter = Builder::new().order(Order::ChildFirst).spawn(|| {
                            let child = spawn(yield_now);
                            yield_now();
                            child.join().unwrap();
                        });
                        yield_now();
                        waiter.join().unwrap();
                    }
                })
            })
            .collect();
        all.into_iter().for_each(|one| one.join().unwrap());
    });
}

#[test]
fn a_child_that_sleeps_is_woken_as_itself() {
    each_way(2, |_| {
        for _ in 0..100 {
            let (sender, receiver) = tsumugi_ult::sync::channel::bounded(1);
            let child = spawn(move || {
                sender.send(unparker()).unwrap();
                park();
                id()
            });
            let waker = spawn(move || receiver.recv().unwrap().unpark());
            let child_id = child.id();
            assert_eq!(child.join().unwrap(), Some(child_id));
            waker.join().unwrap();
        }
    });
}

#[test]
fn a_dump_shows_a_joiner_that_waits_for_a_child_which_left_its_place() {
    let config = config(1, 8).inline_bytes(usize::MAX);
    let scheduler = Scheduler::new(config).unwrap();
    let spawner = scheduler.spawner();
    scheduler.run(move || {
        let room = Arc::new(Semaphore::new(0));
        let inside = room.clone();
        let joiner = spawn(move || spawn(move || inside.acquire(1)).join().unwrap());
        let shown = || {
            let mut shown = Vec::new();
            spawner.dump(&mut |ult| shown.extend(ult.reason.map(|why| (ult.id, why.what))));
            shown
        };
        while !shown().iter().any(|(_, what)| *what == "semaphore") {
            yield_now();
        }
        assert!(shown().contains(&(joiner.id(), "join")), "{:?}", shown());
        assert_eq!(spawner.counts()[Counter::Parks], 2, "the child and its joiner have parked");
        room.release(1);
        joiner.join().unwrap();
    });
}

#[cfg(target_arch = "x86_64")]
#[test]
fn control_words_are_private_to_joiner_and_child() {
    fn rounding() -> u32 {
        let mut word = 0u32;
        // SAFETY: writes the word.
        unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut word, options(nostack)) };
        word >> 13 & 3
    }
    fn round(mode: u32) {
        let mut word = 0u32;
        // SAFETY: writes the word, and reads it with a valid mode.
        unsafe {
            std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut word, options(nostack));
            word = word & !(3 << 13) | mode << 13;
            std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const word, options(nostack));
        }
    }
    each_way(1, |_| {
        let keeper = Builder::new().keep_fp_control(true).spawn(|| {
            round(1);
            assert_eq!(spawn(rounding).join().unwrap(), 0, "the joiner's words are its own");
            assert_eq!(rounding(), 1);
        });
        keeper.join().unwrap();
        let keeper = Builder::new().keep_fp_control(true).spawn(|| round(2));
        keeper.join().unwrap();
        assert_eq!(rounding(), 0, "the child's words are its own");
    });
}

#[test]
fn a_trace_shows_children_that_are_joined_at_once() {
    each_way(1, |spawner| {
        let recording = spawner.trace(4096).unwrap();
        for _ in 0..100 {
            spawn(|| ()).join().unwrap();
        }
        let trace = recording.stop();
        // Started, run and ended.
        assert!(trace.len() >= 300, "{} events", trace.len());
    });
}

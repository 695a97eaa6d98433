//! The rows on tsumugi's ULTs.

use crate::System;
use crate::apart::{Apart, NAP, middle_wake, pause, wait_for};
use crate::asleep::{Growth, STACK_BYTES};
use crate::fork::{self, Board, Fork};
use crate::inbox::{Inbox, time};
use crate::uts::{Node, T1_NODES};
use std::hint::black_box;
use std::sync::Arc;
use std::thread;
use std::time::Instant;
use tsumugi_core::sync::{AtomicU64, CachePadded, Ordering};
use tsumugi_ult::sync::{Barrier, Condvar, Mutex};
use tsumugi_ult::{
    Config, Guards, JoinHandle, Scheduler, StackArea, park, spawn, unparker, yield_now,
};

/// The ULTs of tsumugi, for the workloads of `fork`.
#[derive(Debug)]
pub struct Ults;

impl Fork for Ults {
    type Handle<T: Send + 'static> = JoinHandle<T>;

    #[inline(always)]
    fn spawn<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        spawn(f)
    }

    #[inline(always)]
    fn join<T: Send + 'static>(handle: JoinHandle<T>) -> T {
        handle.join().unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
    }
}

/// The ULTs of tsumugi, as a system.
pub const SYSTEM: System = System { name: "tsumugi", serve, elsewhere: &[] };

fn serve(inbox: Inbox) {
    match inbox.row() {
        "wake_sleeping" => wake_sleeping(&inbox),
        "bytes_per_ult" => asleep(&inbox),
        row => {
            let stacks = StackArea::map(StackArea::bytes_for(40_000, 64 << 10, 8 << 20));
            let mut config = Config::new(stacks.expect("addresses for 40,000 stacks"));
            config.workers = inbox.workers();
            if matches!(row, "create_join" | "fib_no_inline") {
                // Every child has a stack of its own.
                config.inline_bytes = usize::MAX;
            }
            let scheduler = Scheduler::new(config).expect("a scheduler starts");
            scheduler.run(move || inbox.serve(|row| batch(row, inbox.tree())));
        }
    }
}

/// Runs one batch of a row on the calling ULT.
pub fn batch(row: &str, tree: Node) -> Option<f64> {
    match row {
        "yield2" => time(20_000, || yielders(2, 10_000)),
        "yield1000" => time(50_000, || yielders(1000, 50)),
        "create_join" | "create_join_inline" => time(5_000, || {
            for _ in 0..5_000 {
                Ults::join(spawn(|| ()));
            }
        }),
        "fib" | "fib_no_inline" => time(fork::fib_children(fork::FIB), || {
            black_box(fork::fib::<Ults>(black_box(fork::FIB)));
        }),
        "park_same" => park_same(5_000),
        "wake_spinning" => wake_spinning(200),
        "mutex" => {
            let mutex = Mutex::new(0u64);
            time(10_000, || {
                for _ in 0..10_000 {
                    *mutex.lock() += 1;
                }
            })
        }
        "condvar" => condvar(2_000),
        "uts" => time(T1_NODES, || assert_eq!(fork::tree::<Ults>(tree), T1_NODES)),
        "nqueens" => time(fork::QUEENS_CHILDREN, || {
            assert_eq!(fork::queens::<Ults>(Board::new(fork::QUEENS)), fork::QUEENS_WAYS);
        }),
        _ => None,
    }
}

/// Times the wake of a ULT on a sleeping worker, from an OS thread, until the
/// ULT's first instruction. A batch is one wake.
fn wake_sleeping(inbox: &Inbox) {
    let stacks = StackArea::map(StackArea::bytes_for(16, 64 << 10, 8 << 20));
    let config = Config::new(stacks.expect("a few addresses")).workers(1);
    let mut scheduler = Scheduler::new(config).expect("a scheduler starts");
    Apart::new().on_second(|| scheduler.start().expect("a thread for its worker"));
    let spawner = scheduler.spawner();
    inbox.serve(|_| {
        let (send, sleeper) = std::sync::mpsc::channel();
        let ult = spawner.spawn(move || {
            send.send(unparker()).expect("the receiver waits for the unparker");
            park();
            Instant::now()
        });
        let sleeper = sleeper.recv().expect("the sleeper sends its unparker");
        thread::sleep(NAP);
        let start = Instant::now();
        sleeper.unpark();
        let woken = ult.join().expect("the sleeper does not panic");
        Some(woken.saturating_duration_since(start).as_nanos() as f64)
    });
}

/// Measures as many ULTs as the row requires. They are on the smallest stacks
/// that a program of such ULTs would have, and without guard pages, because a
/// process may not have that many mappings.
fn asleep(inbox: &Inbox) {
    let ults = inbox.sleepers();
    let stacks = StackArea::map(StackArea::bytes_for(ults, STACK_BYTES, 1 << 20));
    let config = Config::new(stacks.expect("addresses for the stacks"))
        .workers(1)
        .stack_bytes(STACK_BYTES)
        .main_stack_bytes(1 << 20)
        .guards(Guards::Canaries);
    let scheduler = Scheduler::new(config).expect("a scheduler starts");
    scheduler.run(|| {
        while inbox.next() {
            let barrier = Arc::new(Barrier::new(ults + 1));
            let mut sleepers = Vec::with_capacity(ults);
            let growth = Growth::begin();
            while sleepers.len() < ults {
                for _ in 0..SLEEPERS_NEW.min(ults - sleepers.len()) {
                    let barrier = barrier.clone();
                    sleepers.push(spawn(move || barrier.wait()));
                }
                while barrier.arrived() < sleepers.len() {
                    yield_now();
                }
            }
            let asleep = growth.asleep(ults);
            barrier.wait();
            for sleeper in sleepers {
                sleeper.join().expect("the sleeper does not panic");
            }
            inbox.answer(&asleep.woken());
        }
    });
}

fn yielders(ults: usize, times: usize) {
    let yielder = move || {
        for _ in 0..times {
            yield_now();
        }
    };
    let all: Vec<_> = (0..ults).map(|_| spawn(yielder)).collect();
    all.into_iter().for_each(Ults::join);
}

/// Times two ULTs that wake each other, one way.
fn park_same(rounds: u64) -> Option<f64> {
    let main = unparker();
    let sent = Arc::new(Mutex::new(None));
    let slot = sent.clone();
    let other = spawn(move || {
        *slot.lock() = Some(unparker());
        main.unpark();
        for _ in 0..rounds {
            park();
            main.unpark();
        }
    });
    park();
    let partner = sent.lock().take().expect("the other ULT left its unparker");
    let ns = time(2 * rounds, || {
        for _ in 0..rounds {
            partner.unpark();
            park();
        }
    });
    Ults::join(other);
    ns
}

/// Times the wake of a ULT on the other worker, which spins because it has no
/// work, until the ULT has written to a word: a wake, and the trip of the answer.
fn wake_spinning(rounds: u64) -> Option<f64> {
    let said = Arc::new(CachePadded::new(AtomicU64::new(0)));
    let sent = Arc::new(Mutex::new(None));
    let (word, slot) = (said.clone(), sent.clone());
    let other = spawn(move || {
        *slot.lock() = Some(unparker());
        for round in 1..=rounds {
            // Release: pairs with the Acquire of the waker.
            word.store(round, Ordering::Release);
            park();
        }
    });
    // The other worker takes the ULT; this one never leaves its worker.
    wait_for(&said, 1);
    let partner = loop {
        if let Some(partner) = sent.try_lock().and_then(|mut sent| sent.take()) {
            break partner;
        }
    };
    let mut samples = Vec::with_capacity(rounds as usize);
    for round in 2..=rounds {
        pause();
        let start = Instant::now();
        partner.unpark();
        wait_for(&said, round);
        samples.push(start.elapsed().as_nanos() as f64);
    }
    partner.unpark();
    Ults::join(other);
    Some(middle_wake(samples))
}

/// Times two ULTs that hand a turn to each other, one way.
fn condvar(rounds: u64) -> Option<f64> {
    let state = Arc::new((Mutex::new(0usize), Condvar::new()));
    let play = |side: usize| {
        let state = state.clone();
        move || {
            for _ in 0..rounds {
                let mut turn = state.0.lock();
                state.1.wait_while(&mut turn, |turn| *turn % 2 != side);
                *turn += 1;
                state.1.notify_one();
            }
        }
    };
    time(2 * rounds, || {
        let other = spawn(play(1));
        play(0)();
        Ults::join(other);
    })
}

/// So many ULTs are new at a time, so that no queue grows.
const SLEEPERS_NEW: usize = 128;

//! What switches, spawns and wakes cost on this machine.
//!
//! `cargo run --release -p tsumugi-ult --example measure [workers]`: the minimum
//! and median of 31 short repetitions each, in nanoseconds.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;
use tsumugi_ult::sync::{Barrier, Condvar, Mutex};
use tsumugi_ult::{Config, Scheduler, StackArea, park, spawn, unparker, yield_now};

fn main() {
    let workers = std::env::args().nth(1).map_or(1, |arg| arg.parse().expect("a number"));
    let stacks = StackArea::map(StackArea::bytes_for(100_000, 64 << 10, 8 << 20)).unwrap();
    let config = Config { workers, ..Config::new(stacks) };
    Scheduler::new(config).unwrap().run(|| {
        row("yield, 2 ULTs", 20_000, || yielders(2, 10_000));
        row("yield, 1000 ULTs", 100_000, || yielders(1000, 100));
        row("create + join", 10_000, || {
            for _ in 0..10_000 {
                spawn(|| ()).join().unwrap();
            }
        });
        row("64 created, then joined", 6_400, || {
            for _ in 0..100 {
                let all: [_; 64] = std::array::from_fn(|_| spawn(|| ()));
                all.into_iter().for_each(|one| one.join().unwrap());
            }
        });
        row("fib(20), a ULT per call", 10_945, || {
            black_box(fib(20));
        });
        row("park + unpark, one way", 20_000, || ping_pong(10_000));
        let mutex = Mutex::new(0);
        row("mutex, uncontended", 10_000, || {
            for _ in 0..10_000 {
                *mutex.lock() += 1;
            }
        });
        row("condvar hand-over, one way", 4_000, || hand_over(2_000));
        asleep(100_000);
    });
}

/// Prints what one of `steps` costs.
fn row(name: &str, steps: u64, mut work: impl FnMut()) {
    let mut times: Vec<_> = (0..31)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed().as_nanos() as f64 / steps as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("{name:30} {:8.1} {:8.1}", times[0], times[times.len() / 2]);
}

fn yielders(ults: usize, times: usize) {
    let all: Vec<_> = (0..ults)
        .map(|_| {
            spawn(move || {
                for _ in 0..times {
                    yield_now();
                }
            })
        })
        .collect();
    all.into_iter().for_each(|one| one.join().unwrap());
}

fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let left = spawn(move || fib(n - 1));
    let right = fib(n - 2);
    left.join().unwrap() + right
}

fn ping_pong(rounds: usize) {
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
    let partner = sent.lock().take().unwrap();
    for _ in 0..rounds {
        partner.unpark();
        park();
    }
    other.join().unwrap();
}

/// What a sleeping ULT takes, its page tables included.
fn asleep(ults: usize) {
    let (before, start) = (resident_kib(), Instant::now());
    let barrier = Arc::new(Barrier::new(ults + 1));
    let all: Vec<_> = (0..ults)
        .map(|_| {
            let barrier = barrier.clone();
            spawn(move || barrier.wait())
        })
        .collect();
    while barrier.arrived() < ults {
        yield_now();
    }
    let each_ns = start.elapsed().as_nanos() as f64 / ults as f64;
    let each_bytes = (resident_kib() - before) as f64 * 1024.0 / ults as f64;
    let start = Instant::now();
    barrier.wait();
    let leaders = all.into_iter().filter_map(|one| one.join().ok()).filter(|leads| *leads).count();
    assert_eq!(leaders, 0, "main came last");
    let wake_ns = start.elapsed().as_nanos() as f64 / ults as f64;
    println!(
        "{ults} asleep: {each_bytes:.0} bytes each; {each_ns:.0} ns to create, {wake_ns:.0} ns to wake and join"
    );
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    field("VmRSS") + field("VmPTE")
}

fn hand_over(rounds: usize) {
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
    let other = spawn(play(1));
    play(0)();
    other.join().unwrap();
}

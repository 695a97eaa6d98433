//! A row's work and nothing else, so often that its instructions can be
//! counted: `count ROW BATCHES`, on one worker. Prints how many operations that
//! was. `ci/instructions.sh` runs it.

use std::hint::black_box;
use std::sync::Arc;
use tsumugi_ult::sync::{Condvar, Mutex};
use tsumugi_ult::{Config, Scheduler, StackArea, park, spawn, unparker, yield_now};

fn main() {
    let mut args = std::env::args().skip(1);
    let (row, batches) = (args.next(), args.next().and_then(|batches| batches.parse().ok()));
    let (Some(row), Some(batches)) = (row, batches) else {
        eprintln!("count ROW BATCHES");
        std::process::exit(2);
    };
    let stacks = StackArea::map(StackArea::bytes_for(2000, 64 << 10, 8 << 20));
    let mut config = Config::new(stacks.expect("addresses for the stacks"));
    config.workers = 1;
    if matches!(row.as_str(), "create_join" | "fib_no_inline") {
        config.inline_bytes = usize::MAX;
    }
    let scheduler = Scheduler::new(config).expect("a scheduler starts");
    let operations: u64 = scheduler.run(move || (0..batches).map(|_: u32| batch(&row)).sum());
    println!("{operations}");
}

/// One batch of a row; how many operations that is.
fn batch(row: &str) -> u64 {
    match row {
        "yield2" => {
            let yields = || (0..TIMES).for_each(|_| yield_now());
            let other = spawn(yields);
            yields();
            other.join().expect("it only yields");
            2 * TIMES
        }
        "create_join" | "create_join_inline" => {
            (0..TIMES).for_each(|_| spawn(|| ()).join().expect("it does nothing"));
            TIMES
        }
        "create_64_join_64" => {
            let all: [_; 64] = std::array::from_fn(|_| spawn(|| ()));
            all.into_iter().for_each(|one| one.join().expect("it does nothing"));
            64
        }
        "fib" | "fib_no_inline" => {
            black_box(fib(black_box(FIB)));
            FIB_CHILDREN
        }
        "park_same" => park_same(),
        "mutex" => {
            let mutex = Mutex::new(0);
            (0..TIMES).for_each(|_| *mutex.lock() += 1);
            TIMES
        }
        "condvar" => hand_over(),
        _ => {
            eprintln!("count: {row}: no such row");
            std::process::exit(2);
        }
    }
}

fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let left = spawn(move || fib(n - 1));
    let right = fib(n - 2);
    left.join().expect("it only adds") + right
}

/// Two ULTs that wake each other; one way.
fn park_same() -> u64 {
    let main = unparker();
    let sent = Arc::new(Mutex::new(None));
    let slot = sent.clone();
    let other = spawn(move || {
        *slot.lock() = Some(unparker());
        main.unpark();
        for _ in 0..TIMES {
            park();
            main.unpark();
        }
    });
    park();
    let partner = sent.lock().take().expect("it left its unparker");
    for _ in 0..TIMES {
        partner.unpark();
        park();
    }
    other.join().expect("it only parks");
    2 * TIMES
}

/// Two ULTs that hand a turn over; one way.
fn hand_over() -> u64 {
    let state = Arc::new((Mutex::new(0), Condvar::new()));
    let play = |side| {
        let state = state.clone();
        move || {
            for _ in 0..TIMES {
                let mut turn = state.0.lock();
                state.1.wait_while(&mut turn, |turn| *turn % 2 != side);
                *turn += 1;
                state.1.notify_one();
            }
        }
    };
    let other = spawn(play(1));
    play(0)();
    other.join().expect("it only waits");
    2 * TIMES
}

const TIMES: u64 = 10_000;
const FIB: u64 = 20;
/// Children of `fib(20)`: the 21st number, less one.
const FIB_CHILDREN: u64 = 10_945;

//! may: stackful coroutines over an event loop.

use may::coroutine::{self, JoinHandle, park, yield_now};
use may::sync::{Condvar, Mutex};
use std::hint::black_box;
use std::sync::Arc;
use std::thread;
use std::time::Instant;
use tsumugi_bench_ult::apart::{Apart, NAP};
use tsumugi_bench_ult::asleep::Growth;
use tsumugi_bench_ult::fork::{self, Board, Fork};
use tsumugi_bench_ult::inbox::time;
use tsumugi_bench_ult::uts::{Node, T1_NODES};
use tsumugi_bench_ult::{Inbox, System};
use tsumugi_core::sync::{AtomicU64, Ordering};

pub const SYSTEM: System = System { name: "may", serve, elsewhere: &[] };

struct Coroutines;

impl Fork for Coroutines {
    type Handle<T: Send + 'static> = JoinHandle<T>;

    #[inline(always)]
    fn spawn<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        may::go!(f)
    }

    #[inline(always)]
    fn join<T: Send + 'static>(handle: JoinHandle<T>) -> T {
        handle.join().expect("the coroutine does not panic")
    }
}

fn serve(inbox: Inbox) {
    // In words: 64 KiB for work, what tsumugi has; 16 KiB for sleep.
    let stack = if inbox.row() == "bytes_per_ult" { 0x800 } else { 0x2000 };
    may::config().set_workers(inbox.workers()).set_stack_size(stack);
    if inbox.row() == "wake_sleeping" {
        Apart::new().on_second(|| Coroutines::join(may::go!(|| ())));
        return inbox.serve(|_| Some(wake_sleeping()));
    }
    let main = may::go!(move || {
        if inbox.row() != "bytes_per_ult" {
            return inbox.serve(|row| batch(row, inbox.tree()));
        }
        inbox.serve_parts(|| asleep(inbox.sleepers()));
    });
    // It ends when nobody asks any more.
    let _ = main.join();
}

/// From an OS thread, to the first instruction of the coroutine.
fn wake_sleeping() -> f64 {
    let sleeper = may::go!(|| {
        park();
        Instant::now()
    });
    thread::sleep(NAP);
    let start = Instant::now();
    sleeper.coroutine().unpark();
    let woken = Coroutines::join(sleeper);
    woken.saturating_duration_since(start).as_nanos() as f64
}

fn asleep(coroutines: usize) -> [f64; 3] {
    let arrived = Arc::new(AtomicU64::new(0));
    let mut all = Vec::with_capacity(coroutines);
    let growth = Growth::begin();
    while all.len() < coroutines {
        for _ in 0..128.min(coroutines - all.len()) {
            let arrived = arrived.clone();
            all.push(may::go!(move || {
                arrived.fetch_add(1, Ordering::Relaxed);
                park();
            }));
        }
        while arrived.load(Ordering::Relaxed) < all.len() as u64 {
            yield_now();
        }
    }
    let asleep = growth.asleep(coroutines);
    all.iter().for_each(|one| one.coroutine().unpark());
    all.into_iter().for_each(Coroutines::join);
    asleep.woken()
}

fn batch(row: &'static str, tree: Node) -> Option<f64> {
    match row {
        "yield2" => time(20_000, || yielders(2, 10_000)),
        "yield1000" => time(10_000, || yielders(1000, 10)),
        "create_join" => time(500, || {
            for _ in 0..500 {
                may::go!(|| ()).join().expect("the coroutine does not panic");
            }
        }),
        "park_same" => park_same(2_000),
        "mutex" => {
            let mutex = Mutex::new(0u64);
            time(10_000, || {
                for _ in 0..10_000 {
                    *mutex.lock().expect("the lock is not poisoned") += 1;
                }
            })
        }
        "condvar" => condvar(1_000),
        // A child takes many times what the others' do.
        "fib" | "fib_no_inline" => time(fork::fib_children(14), || {
            black_box(fork::fib::<Coroutines>(black_box(14)));
        }),
        "uts" => time(T1_NODES, || {
            assert_eq!(fork::tree::<Coroutines>(tree), T1_NODES);
        }),
        "nqueens" => time(fork::QUEENS_CHILDREN, || {
            assert_eq!(fork::queens::<Coroutines>(Board::new(fork::QUEENS)), fork::QUEENS_WAYS);
        }),
        _ => None,
    }
}

fn yielders(coroutines: usize, times: usize) {
    let yielder = move || {
        for _ in 0..times {
            yield_now();
        }
    };
    let all: Vec<_> = (0..coroutines).map(|_| may::go!(yielder)).collect();
    all.into_iter().for_each(|one| one.join().expect("the coroutine does not panic"));
}

fn park_same(rounds: u64) -> Option<f64> {
    let main = coroutine::current();
    let other = may::go!(move || {
        for _ in 0..rounds {
            park();
            main.unpark();
        }
    });
    let partner = other.coroutine().clone();
    yield_now();
    let ns = time(2 * rounds, || {
        for _ in 0..rounds {
            partner.unpark();
            park();
        }
    });
    other.join().expect("the coroutine does not panic");
    ns
}

fn condvar(rounds: u64) -> Option<f64> {
    let state = Arc::new((Mutex::new(0usize), Condvar::new()));
    let play = |side: usize| {
        let state = state.clone();
        move || {
            for _ in 0..rounds {
                let mut turn = state.0.lock().expect("the lock is not poisoned");
                while *turn % 2 != side {
                    turn = state.1.wait(turn).expect("the lock is not poisoned");
                }
                *turn += 1;
                state.1.notify_one();
            }
        }
    };
    time(2 * rounds, || {
        let other = may::go!(play(1));
        play(0)();
        other.join().expect("the coroutine does not panic");
    })
}

//! cmpth: stackful threads, child first.

use cmpth::traits::stackful::*;
use cmpth::{
    DefaultStackfulOnlyTaskSystem as System, McsCondvar, McsMutex, Resumable,
    ScopedStackfulTaskSystem, ScopedTaskSystem, StackfulBuilder, StackfulInitSystem,
    StackfulResumable, SuspendableSystem,
};
use std::hint::black_box;
use std::sync::Arc;
use tsumugi_bench_ult::Inbox;
use tsumugi_bench_ult::asleep::Growth;
use tsumugi_bench_ult::fork::{self, Board, Fork};
use tsumugi_bench_ult::inbox::time;
use tsumugi_bench_ult::uts::{Node, T1_NODES};
use tsumugi_core::sync::{AtomicU64, Ordering};

pub const SYSTEM: tsumugi_bench_ult::System =
    tsumugi_bench_ult::System { name: "cmpth", serve, elsewhere: &[] };

struct Threads;

impl Fork for Threads {
    type Handle<T: Send + 'static> = <System as SpawnableStackfulTaskSystem>::JoinHandle<T>;

    #[inline(always)]
    fn spawn<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> Self::Handle<T> {
        System::spawn(f)
    }

    #[inline(always)]
    fn join<T: Send + 'static>(handle: Self::Handle<T>) -> T {
        handle.join().expect("the thread does not panic")
    }
}

fn serve(inbox: Inbox) {
    let workers = inbox.workers();
    match inbox.row() {
        "create_join_inline" | "fib" => {
            ScopedTaskSystem::builder().workers(workers).run(move || inbox.serve(scoped));
        }
        "bytes_per_ult" => System::builder().workers(workers).run(move || {
            inbox.serve_parts(|| asleep(inbox.sleepers()));
        }),
        _ => System::builder()
            .workers(workers)
            .run(move || inbox.serve(|row| batch(row, inbox.tree()))),
    }
}

/// Both sides as calls unless one is stolen.
fn scoped(row: &str) -> Option<f64> {
    fn fib<S: ScopedStackfulTaskSystem>(n: u64) -> u64 {
        if n < 2 {
            return n;
        }
        let (left, right) = S::parallel_call(move || fib::<S>(n - 1), move || fib::<S>(n - 2));
        left + right
    }
    match row {
        "create_join_inline" => time(5_000, || {
            for _ in 0..5_000 {
                black_box(ScopedTaskSystem::parallel_call(|| (), || ()));
            }
        }),
        _ => time(fork::fib_children(fork::FIB), || {
            black_box(fib::<ScopedTaskSystem>(black_box(fork::FIB)));
        }),
    }
}

fn asleep(threads: usize) -> [f64; 3] {
    let gate = Arc::new((McsMutex::<System, bool>::new(false), McsCondvar::<System>::new()));
    let arrived = Arc::new(AtomicU64::new(0));
    let mut all = Vec::with_capacity(threads);
    let growth = Growth::begin();
    for _ in 0..threads {
        let (gate, arrived) = (gate.clone(), arrived.clone());
        // The child runs first, until it sleeps.
        all.push(Threads::spawn(move || {
            let mut open = gate.0.lock();
            arrived.fetch_add(1, Ordering::Relaxed);
            while !*open {
                open = gate.1.wait(open);
            }
        }));
    }
    assert_eq!(arrived.load(Ordering::Relaxed), threads as u64);
    let asleep = growth.asleep(threads);
    *gate.0.lock() = true;
    gate.1.notify_all();
    all.into_iter().for_each(Threads::join);
    asleep.woken()
}

fn batch(row: &str, tree: Node) -> Option<f64> {
    match row {
        "yield2" => time(20_000, || yielders(2, 10_000)),
        "yield1000" => time(50_000, || yielders(1000, 50)),
        "create_join" => time(5_000, || {
            for _ in 0..5_000 {
                Threads::join(Threads::spawn(|| ()));
            }
        }),
        "fib_no_inline" => time(fork::fib_children(fork::FIB), || {
            black_box(fork::fib::<Threads>(black_box(fork::FIB)));
        }),
        "mutex" => {
            let mutex = <System as StackfulSyncSystem>::Mutex::new(0u64);
            time(10_000, || {
                for _ in 0..10_000 {
                    *mutex.lock() += 1;
                }
            })
        }
        "uts" => time(T1_NODES, || assert_eq!(fork::tree::<Threads>(tree), T1_NODES)),
        "park_same" => park_same(5_000),
        "condvar" => condvar(2_000),
        "nqueens" => time(fork::QUEENS_CHILDREN, || {
            assert_eq!(fork::queens::<Threads>(Board::new(fork::QUEENS)), fork::QUEENS_WAYS);
        }),
        _ => None,
    }
}

fn yielders(threads: usize, times: usize) {
    let yielder = move || {
        for _ in 0..times {
            System::yield_now();
        }
    };
    let all: Vec<_> = (0..threads).map(|_| Threads::spawn(yielder)).collect();
    all.into_iter().for_each(Threads::join);
}

type Slot = <System as SuspendableSystem>::SuspendedThread;

/// Two threads that wake each other; one way.
fn park_same(rounds: u64) -> Option<f64> {
    let slots: Arc<[Slot; 2]> = Arc::default();
    let theirs = slots.clone();
    // The child runs first, until it is parked.
    let other = Threads::spawn(move || {
        for _ in 0..rounds {
            theirs[1].wait_with(|| ());
            theirs[0].notify();
        }
    });
    let ns = time(2 * rounds, || {
        for _ in 0..rounds {
            slots[0].wait_with(|| slots[1].notify());
        }
    });
    Threads::join(other);
    ns
}

fn condvar(rounds: u64) -> Option<f64> {
    let state = Arc::new((McsMutex::<System, usize>::new(0), McsCondvar::<System>::new()));
    let play = |side: usize| {
        let state = state.clone();
        move || {
            for _ in 0..rounds {
                let mut turn = state.0.lock();
                while *turn % 2 != side {
                    turn = state.1.wait(turn);
                }
                *turn += 1;
                state.1.notify_one();
            }
        }
    };
    time(2 * rounds, || {
        let other = Threads::spawn(play(1));
        play(0)();
        Threads::join(other);
    })
}

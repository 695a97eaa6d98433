//! cmpth: stackful threads, child first.

use cmpth::DefaultStackfulOnlyTaskSystem as System;
use cmpth::traits::stackful::*;
use std::hint::black_box;
use tsumugi_bench_ult::Server;
use tsumugi_bench_ult::fork::{self, Board, Fork};
use tsumugi_bench_ult::server::time;
use tsumugi_bench_ult::uts::Node;

pub const ROWS: &[&str] =
    &["yield2", "yield1000", "create_join", "fib_no_inline", "fib", "mutex", "uts", "nqueens"];

struct Threads;

impl Fork for Threads {
    type Handle<T: Send + 'static> = <System as SpawnableStackfulTaskSystem>::JoinHandle<T>;

    #[inline(always)]
    fn spawn<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> Self::Handle<T> {
        System::spawn(f)
    }

    #[inline(always)]
    fn join<T: Send + 'static>(handle: Self::Handle<T>) -> T {
        handle.join().expect("it does not panic")
    }
}

pub fn server(workers: usize, tree: Node) -> Server {
    Server::start("cmpth", workers, move |inbox| {
        System::builder().workers(workers).run(move || inbox.serve(|row| batch(row, tree)));
    })
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
        "fib" | "fib_no_inline" => time(fork::fib_children(fork::FIB), || {
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
        "uts" => {
            let start = std::time::Instant::now();
            let nodes = fork::tree::<Threads>(tree);
            Some(start.elapsed().as_nanos() as f64 / nodes as f64)
        }
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

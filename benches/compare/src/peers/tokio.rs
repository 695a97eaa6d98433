//! tokio: stackless tasks.

use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::sync::Arc;
use std::thread;
use std::time::Instant;
use tokio::sync::{Mutex, Notify, Semaphore};
use tokio::task::{JoinHandle, yield_now};
use tsumugi_bench_ult::apart::{Apart, NAP};
use tsumugi_bench_ult::asleep::Growth;
use tsumugi_bench_ult::fork::{self, Board};
use tsumugi_bench_ult::inbox::NO_SUCH_THING;
use tsumugi_bench_ult::uts::{Node, T1_NODES};
use tsumugi_bench_ult::{Inbox, System};
use tsumugi_core::sync::{AtomicU64, Ordering};

pub const SYSTEM: System = System { name: "tokio", serve, elsewhere: &[] };

fn serve(inbox: Inbox) {
    let build = || {
        let workers = inbox.workers();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(workers).build();
        runtime.expect("a runtime starts")
    };
    if inbox.row() == "wake_sleeping" {
        let runtime = Apart::new().on_second(build);
        return inbox.serve(|_| Some(wake_sleeping(&runtime)));
    }
    let runtime = build();
    // On a worker, where spawning is cheapest.
    let main = runtime.spawn(main(inbox));
    runtime.block_on(main).expect("the task does not panic");
}

async fn main(inbox: Inbox) {
    while inbox.next() {
        if inbox.row() == "bytes_per_ult" {
            inbox.answer(&asleep(inbox.sleepers()).await);
            continue;
        }
        match batch(inbox.row(), inbox.tree()).await {
            Some(ns) => inbox.answer(&[ns]),
            None => return inbox.refuse(NO_SUCH_THING),
        }
    }
}

/// From an OS thread, to the first instruction of the task.
fn wake_sleeping(runtime: &tokio::runtime::Runtime) -> f64 {
    let bell = Arc::new(Notify::new());
    let heard = bell.clone();
    let task = runtime.spawn(async move {
        heard.notified().await;
        Instant::now()
    });
    thread::sleep(NAP);
    let start = Instant::now();
    bell.notify_one();
    let woken = runtime.block_on(task).expect("the task does not panic");
    woken.saturating_duration_since(start).as_nanos() as f64
}

async fn asleep(tasks: usize) -> [f64; 3] {
    let (bell, arrived) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicU64::new(0)));
    let mut all = Vec::with_capacity(tasks);
    let growth = Growth::begin();
    while all.len() < tasks {
        for _ in 0..128.min(tasks - all.len()) {
            let (bell, arrived) = (bell.clone(), arrived.clone());
            all.push(tokio::spawn(async move {
                arrived.fetch_add(1, Ordering::Relaxed);
                let _permit = bell.acquire().await;
            }));
        }
        while arrived.load(Ordering::Relaxed) < all.len() as u64 {
            yield_now().await;
        }
    }
    let asleep = growth.asleep(tasks);
    bell.add_permits(tasks);
    for one in all {
        one.await.expect("the task does not panic");
    }
    asleep.woken()
}

async fn batch(row: &str, root: Node) -> Option<f64> {
    let start = Instant::now();
    let ops = match row {
        "yield2" => yielders(2, 5_000).await,
        "yield1000" => yielders(1000, 20).await,
        "create_join" => {
            for _ in 0..2_000 {
                tokio::spawn(async {}).await.expect("the task does not panic");
            }
            2_000
        }
        "fib" | "fib_no_inline" => {
            black_box(fib(black_box(16)).await);
            fork::fib_children(16)
        }
        "park_same" => park_same(2_000).await,
        "mutex" => {
            let mutex = Mutex::new(0u64);
            for _ in 0..10_000 {
                *mutex.lock().await += 1;
            }
            10_000
        }
        "uts" => {
            let nodes = tree(root).await;
            assert_eq!(nodes, T1_NODES);
            nodes
        }
        "nqueens" => {
            assert_eq!(queens(Board::new(fork::QUEENS)).await, fork::QUEENS_WAYS);
            fork::QUEENS_CHILDREN
        }
        _ => return None,
    };
    Some(start.elapsed().as_nanos() as f64 / ops as f64)
}

async fn yielders(tasks: u64, times: u64) -> u64 {
    let yielder = move || async move {
        for _ in 0..times {
            yield_now().await;
        }
    };
    let all: Vec<_> = (0..tasks).map(|_| tokio::spawn(yielder())).collect();
    for one in all {
        one.await.expect("the task does not panic");
    }
    tasks * times
}

fn fib(n: u64) -> Pin<Box<dyn Future<Output = u64> + Send>> {
    Box::pin(async move {
        if n < 2 {
            return n;
        }
        let left = tokio::spawn(fib(n - 1));
        let right = fib(n - 2).await;
        left.await.expect("the task does not panic") + right
    })
}

fn tree(node: Node) -> Pin<Box<dyn Future<Output = u64> + Send>> {
    Box::pin(async move {
        let children = (0..node.children()).map(|number| tokio::spawn(tree(node.child(number))));
        sum(children.collect()).await + 1
    })
}

fn queens(board: Board) -> Pin<Box<dyn Future<Output = u64> + Send>> {
    Box::pin(async move {
        if board.is_full() {
            return 1;
        }
        sum(board.next().map(|next| tokio::spawn(queens(next))).collect()).await
    })
}

async fn sum(children: Vec<JoinHandle<u64>>) -> u64 {
    let mut sum = 0;
    for child in children {
        sum += child.await.expect("the task does not panic");
    }
    sum
}

async fn park_same(rounds: u64) -> u64 {
    let (ping, pong) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (heard, answer) = (ping.clone(), pong.clone());
    let other = tokio::spawn(async move {
        for _ in 0..rounds {
            heard.notified().await;
            answer.notify_one();
        }
    });
    for _ in 0..rounds {
        ping.notify_one();
        pong.notified().await;
    }
    other.await.expect("the task does not panic");
    2 * rounds
}

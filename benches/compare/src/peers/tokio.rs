//! tokio: stackless tasks.

use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{Mutex, Notify};
use tokio::task::yield_now;
use tsumugi_bench_ult::{Inbox, Server, fork};

pub const ROWS: &[&str] =
    &["yield2", "yield1000", "create_join", "fib_no_inline", "park_same", "mutex"];

pub fn server(workers: usize) -> Server {
    Server::start("tokio", workers, move |inbox| {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(workers).build();
        let runtime = runtime.expect("a runtime");
        // On a worker, where spawning is cheapest.
        let main = runtime.spawn(serve(inbox));
        runtime.block_on(main).expect("it does not panic");
    })
}

async fn serve(inbox: Inbox) {
    while let Some(row) = inbox.next() {
        inbox.answer(batch(row).await);
    }
}

async fn batch(row: &str) -> Option<f64> {
    let start = Instant::now();
    let ops = match row {
        "yield2" => yielders(2, 5_000).await,
        "yield1000" => yielders(1000, 20).await,
        "create_join" => {
            for _ in 0..2_000 {
                tokio::spawn(async {}).await.expect("it does nothing");
            }
            2_000
        }
        "fib_no_inline" => {
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
        one.await.expect("it only yields");
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
        left.await.expect("it only adds") + right
    })
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
    other.await.expect("it only answers");
    2 * rounds
}

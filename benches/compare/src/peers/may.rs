//! may: stackful coroutines over an event loop.

use may::coroutine::{self, park, yield_now};
use may::sync::{Condvar, Mutex};
use std::sync::Arc;
use tsumugi_bench_ult::Server;
use tsumugi_bench_ult::server::time;

pub const ROWS: &[&str] = &["yield2", "yield1000", "create_join", "park_same", "mutex", "condvar"];

pub fn server() -> Server {
    Server::start("may", 1, |inbox| {
        may::config().set_workers(1).set_stack_size(0x2000);
        let main = may::go!(move || inbox.serve(batch));
        // It ends when nobody asks any more.
        let _ = main.join();
    })
}

fn batch(row: &'static str) -> Option<f64> {
    match row {
        "yield2" => time(20_000, || yielders(2, 10_000)),
        "yield1000" => time(10_000, || yielders(1000, 10)),
        "create_join" => time(500, || {
            for _ in 0..500 {
                may::go!(|| ()).join().expect("it does nothing");
            }
        }),
        "park_same" => park_same(2_000),
        "mutex" => {
            let mutex = Mutex::new(0u64);
            time(10_000, || {
                for _ in 0..10_000 {
                    *mutex.lock().expect("not poisoned") += 1;
                }
            })
        }
        "condvar" => condvar(1_000),
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
    all.into_iter().for_each(|one| one.join().expect("it only yields"));
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
    other.join().expect("it only parks");
    ns
}

fn condvar(rounds: u64) -> Option<f64> {
    let state = Arc::new((Mutex::new(0usize), Condvar::new()));
    let play = |side: usize| {
        let state = state.clone();
        move || {
            for _ in 0..rounds {
                let mut turn = state.0.lock().expect("not poisoned");
                while *turn % 2 != side {
                    turn = state.1.wait(turn).expect("not poisoned");
                }
                *turn += 1;
                state.1.notify_one();
            }
        }
    };
    time(2 * rounds, || {
        let other = may::go!(play(1));
        play(0)();
        other.join().expect("it only plays");
    })
}

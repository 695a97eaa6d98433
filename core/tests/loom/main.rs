//! Model checks of data that threads share without a lock.
//!
//! Each model is run as it is, and must pass in every execution that loom
//! finds within its preemption bound; then with one defect planted at a time
//! (`tsumugi_core::sync::mutant`), and must fail. A failure by running out of
//! branches does not count: it shows a loop without end, not the defect.
//!
//! Built only with `--cfg tsumugi_loom`: see `ci/loom.sh`.
//!
//! The limits of loom:
//! - its `SeqCst` loads and stores are acquire and release; `sync::edge` puts
//!   a fence where the code relies on more, and leaving that fence out is the
//!   mutant. That an access there is weakened cannot be told apart from it.
//! - a load never returns a value from the future, and a failed exchange
//!   reads the newest value.
#![cfg(all(tsumugi_loom, not(tsumugi_shuttle)))]

mod board;
mod node_barrier;
mod completion;
mod engine;
mod foreign;
mod lane;
mod race;
mod region;
mod ring;
mod row;
mod signal;
mod split;
mod tag;
mod wait;
#[path = "../threads/mod.rs"]
mod threads;

use loom::sync::{Condvar, Mutex};
use std::env;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use threads::Threads;
use tsumugi_core::sync::{AtomicU32, Ordering, with_mutant};
use tsumugi_core::wait::Futex;

/// Explores `body`, which must pass, and then fail with each of `mutants`.
///
/// A mutant runs in a process of its own, this test program again: a model that has failed
/// unwinds its suspended threads, whose destructors then find no model any more and abort.
fn check(mutants: &[&'static str], body: impl Fn() + Send + Sync + 'static) {
    if let Ok(planted) = env::var(PLANTED) {
        let mutant = mutants.iter().find(|mutant| ***mutant == *planted);
        with_mutant(mutant.expect("a mutant of this model"), || explore(body));
        return;
    }
    let executions = explore(body);
    assert!(executions > 5, "{executions} executions: the model explores nothing");
    let test = thread::current().name().expect("libtest names its threads").to_owned();
    println!("{test}: {executions} executions");
    for mutant in mutants {
        let run = Command::new(env::current_exe().unwrap())
            .args(["--exact", &test, "--nocapture"])
            .env(PLANTED, mutant)
            .env("RUST_BACKTRACE", "0")
            .output()
            .unwrap();
        let text = [run.stdout, run.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        assert!(text.contains("running 1 test"), "{test} was not found:\n{text}");
        assert!(!run.status.success(), "the mutant {mutant} was not caught");
        assert!(!text.contains("maximum number of branches"), "{mutant}:\n{text}");
    }
}

/// Returns how many executions there were: a harness that polls without
/// yielding explores one, and passes every mutant.
fn explore(body: impl Fn() + Send + Sync + 'static) -> usize {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = model.preemption_bound.or(Some(2));
    let executions = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = executions.clone();
    model.check(move || {
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        body();
    });
    executions.load(std::sync::atomic::Ordering::Relaxed)
}

/// The variable that names the mutant to the process that must fail.
const PLANTED: &str = "TSUMUGI_TEST_LOOM_MUTANT";

/// Tries `attempt` up to `times` times, letting other threads run in between.
fn retry<T>(times: usize, mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
    for _ in 0..times {
        if let Some(value) = attempt() {
            return Some(value);
        }
        loom::thread::yield_now();
    }
    None
}

/// The kernel's wait on a word: it compares and goes to sleep under a lock.
struct Kernel {
    queue: Mutex<()>,
    bell: Condvar,
}

impl Kernel {
    fn new() -> Self {
        Self { queue: Mutex::new(()), bell: Condvar::new() }
    }
}

impl Futex for Kernel {
    fn wait(&self, word: &AtomicU32, expected: u32, _: Option<Duration>) {
        let queue = self.queue.lock().unwrap();
        if word.load(Ordering::SeqCst) == expected {
            drop(self.bell.wait(queue).unwrap());
        }
    }

    fn wake(&self, _: &AtomicU32, _: u32) {
        let _queue = self.queue.lock().unwrap();
        self.bell.notify_all();
    }
}

//! Every interleaving of two threads and a few steps, within two preemptions: of the queues alone,
//! and of the whole scheduler with its real switches.
//!
//! `RUSTFLAGS="--cfg tsumugi_loom" LOOM_MAX_PREEMPTIONS=2 cargo test -p
//! tsumugi-ult --release --target-dir target/loom --test loom`
//!
//! Each model is run as it is, and then with each of its planted mutants,
//! which it must catch.
#![cfg(all(tsumugi_loom, not(tsumugi_shuttle)))]

#[path = "../model/mod.rs"]
mod model;
mod flag;
mod outside_scopes;
mod queue;
mod sync;
mod worker;

use std::sync::Arc;
use tsumugi_ult::Scheduler;

/// Runs `model`, the model of test `test` (`module::name`), over all interleavings, unchanged and
/// with each of its mutants.
fn check(test: &str, mutants: &[&'static str], model: fn()) {
    check_within(0, test, mutants, model);
}

/// The same with at least `preemptions` preemptions, for a small model.
fn check_within(preemptions: usize, test: &str, mutants: &[&'static str], model: fn()) {
    model::check(test, mutants, || explore(preemptions, model));
}

fn explore(preemptions: usize, model: fn()) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.map(|bound| bound.max(preemptions));
    builder.max_branches = 20_000;
    let executions = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = executions.clone();
    builder.check(move || {
        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        model();
    });
    println!("{} executions", executions.load(std::sync::atomic::Ordering::Relaxed));
}

/// A scheduler whose children run on stacks of their own.
fn scheduler(workers: usize) -> Scheduler {
    with_inline(workers, usize::MAX)
}

fn with_inline(workers: usize, inline_bytes: usize) -> Scheduler {
    model::scheduler(workers, 3, inline_bytes)
}

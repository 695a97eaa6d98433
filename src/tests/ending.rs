//! A scheduler that ends early, for tests of what its ULTs leave behind.

use std::sync::Arc;
use std::thread;
use tsumugi_core::sync::{AtomicBool, Ordering};
use tsumugi_ult::{Config, Scheduler, StackArea};

/// Runs `begins` on a ULT of a scheduler of its own, which ends once the ULT has
/// begun: the ULT is cut off where it first yields or sleeps.
pub(crate) fn cut_off(begins: impl FnOnce() + Send + 'static) {
    let stacks = StackArea::map(16 << 20).expect("addresses");
    let config = Config::new(stacks).workers(1).main_stack_bytes(256 << 10);
    let mut scheduler = Scheduler::new(config).expect("a scheduler");
    scheduler.start().expect("a thread");
    let begun = Arc::new(AtomicBool::new(false));
    let has_begun = begun.clone();
    let ult = scheduler.spawner().spawn(move || {
        // Release: pairs with the Acquire below.
        has_begun.store(true, Ordering::Release);
        begins();
    });
    // Acquire: pairs with the Release above.
    while !begun.load(Ordering::Acquire) {
        thread::yield_now();
    }
    drop(scheduler);
    assert!(ult.join().is_err(), "it has ended before its scheduler");
}

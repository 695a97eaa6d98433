//! Schedulers for tests.

#![allow(dead_code, reason = "each test binary uses some of it")]

use tsumugi_ult::{Config, Scheduler, StackArea};

/// A scheduler of `workers`, room for `stacks` stacks of 64 KiB: less
/// is too little to print a backtrace in a debug build.
pub fn scheduler(workers: usize, stacks: usize) -> Scheduler {
    Scheduler::new(config(workers, stacks)).unwrap()
}

/// Its configuration.
pub fn config(workers: usize, stacks: usize) -> Config {
    let (stack_bytes, main_stack_bytes) = (64 << 10, 256 << 10);
    let bytes = StackArea::bytes_for(stacks, stack_bytes, main_stack_bytes);
    let area = StackArea::map(bytes).unwrap();
    Config { workers, stack_bytes, main_stack_bytes, ..Config::new(area) }
}

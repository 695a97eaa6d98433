//! What a sleeping ULT takes of memory, and how long so many take to make.

use std::sync::Arc;
use std::time::Instant;
use tsumugi_ult::sync::Barrier;
use tsumugi_ult::{Config, Guards, Scheduler, StackArea, spawn, yield_now};

/// Many ULTs asleep at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asleep {
    /// Growth of resident memory and page tables, per ULT.
    pub bytes_each: f64,
    /// To create one and let it go to sleep.
    pub create_ns: f64,
    /// To wake one and join it.
    pub wake_ns: f64,
}

/// Puts `ults` to sleep on one scheduler of one worker.
pub fn asleep(ults: usize) -> Asleep {
    // Half a million need more mappings than a process may have, with a guard
    // each.
    let stacks = StackArea::map(StackArea::bytes_for(ults, STACK_BYTES, 1 << 20));
    let config = Config {
        workers: 1,
        stack_bytes: STACK_BYTES,
        main_stack_bytes: 1 << 20,
        guards: Guards::Canaries,
        ..Config::new(stacks.expect("addresses for the stacks"))
    };
    Scheduler::new(config).expect("a scheduler starts").run(move || {
        let mut sleepers = Vec::with_capacity(ults);
        let barrier = Arc::new(Barrier::new(ults + 1));
        let (before, start) = (resident_kib(), Instant::now());
        while sleepers.len() < ults {
            for _ in 0..BATCH.min(ults - sleepers.len()) {
                let barrier = barrier.clone();
                sleepers.push(spawn(move || barrier.wait()));
            }
            while barrier.arrived() < sleepers.len() {
                yield_now();
            }
        }
        let create_ns = start.elapsed().as_nanos() as f64 / ults as f64;
        let bytes_each = (resident_kib() - before) as f64 * 1024.0 / ults as f64;
        let start = Instant::now();
        barrier.wait();
        for sleeper in sleepers {
            sleeper.join().expect("it only slept");
        }
        let wake_ns = start.elapsed().as_nanos() as f64 / ults as f64;
        Asleep { bytes_each, create_ns, wake_ns }
    })
}

/// VmRSS and VmPTE.
pub fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("proc is mounted");
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).expect("a field of proc");
        let value = line.split_whitespace().nth(1).expect("a value");
        value.parse::<u64>().expect("a number of KiB")
    };
    field("VmRSS") + field("VmPTE")
}

const STACK_BYTES: usize = 16 << 10;
/// As many are new at a time, so that no queue grows.
const BATCH: usize = 128;

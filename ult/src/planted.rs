//! Planted defects on ULTs, which the sanitizers must report (`ci/asan.sh`,
//! `ci/tsan.sh`). `tests/asan.rs` has the defects of ULT stacks.

use crate::{Config, Scheduler, StackArea, spawn, yield_now};
use std::hint::black_box;
use std::sync::Arc;
use tsumugi_conformance::planted::{Racy, on_two_threads};

tsumugi_conformance::planted! {
    overflow: || scheduler().run(|| {
        let defect = || {
            let words = vec![0u64; 4];
            yield_now();
            // SAFETY: none, because this is the defect: the read is out of bounds.
            unsafe { black_box(words.as_ptr()).add(black_box(4)).read_volatile() };
        };
        spawn(defect).join().unwrap();
    }),
    race: || {
        let racy = Arc::new(Racy::default());
        on_two_threads(|thread| {
            let racy = Arc::clone(&racy);
            // SAFETY: none, because this is the defect: a thread and a ULT of another
            // thread race.
            let defect = move || unsafe { racy.get().write_volatile(thread) };
            match thread {
                0 => defect(),
                _ => scheduler().run(move || spawn(defect).join().unwrap()),
            }
        });
    },
}

fn scheduler() -> Scheduler {
    let (stack_bytes, main_stack_bytes) = (64 << 10, 256 << 10);
    let area = StackArea::map(StackArea::bytes_for(8, stack_bytes, main_stack_bytes)).unwrap();
    let config =
        Config::new(area).workers(1).stack_bytes(stack_bytes).main_stack_bytes(main_stack_bytes);
    Scheduler::new(config).unwrap()
}

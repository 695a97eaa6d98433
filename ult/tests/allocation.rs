//! After a warm-up, spawns, joins, yields, parks and locks allocate nothing. The allocations are
//! counted on the test's own thread, which is the only worker.

mod common;

use common::scheduler;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;
use tsumugi_ult::sync::{Barrier, Mutex};
use tsumugi_ult::{block_on, park, spawn, unparker, yield_now};

struct Counting;

std::thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: the system's allocator, counted.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn the_data_path_allocates_nothing() {
    let during = scheduler(1, 200).run(|| {
        let (mutex, barrier) = (Arc::new(Mutex::new(0u64)), Arc::new(Barrier::new(101)));
        let round = || {
            let all: [_; 100] = std::array::from_fn(|n| {
                let (mutex, barrier) = (mutex.clone(), barrier.clone());
                let main = unparker();
                spawn(move || {
                    *mutex.lock() += n as u64;
                    yield_now();
                    barrier.wait();
                    if n == 0 {
                        main.unpark();
                    }
                    block_on(async { [n as u64; 4] })
                })
            });
            barrier.wait();
            park();
            all.into_iter().map(|one| one.join().unwrap()[3]).sum::<u64>()
        };
        round();
        round();
        let before = ALLOCATIONS.get();
        let sum: u64 = (0..50).map(|_| round()).sum();
        let after = ALLOCATIONS.get();
        assert_eq!(sum, 50 * 4950);
        after - before
    });
    assert_eq!(during, 0, "allocations in 5,000 spawns and joins");
}

//! After start the data path allocates nothing.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use tsumugi::{Config, Error, Rank, Runtime};
use tsumugi_core::sync::{AtomicU64, Ordering};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Set on the ranks' threads: the harness has one of its own.
    static IS_RANK: Cell<bool> = const { Cell::new(false) };
}

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if IS_RANK.try_with(Cell::get).unwrap_or(false) {
            ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static GLOBAL: Counting = Counting;

#[test]
fn a_million_operations_allocate_nothing() {
    let job = Config::default().workers(1).run_ranks(2, |rt: &Runtime| {
        // One worker each, which is the thread of the rank.
        IS_RANK.with(|is_rank| is_rank.set(true));
        let words = rt.share::<u64>(4096)?;
        let buf = &mut [0u64; 64];
        rt.barrier()?;
        if rt.rank() == Rank(0) {
            let before = ALLOCATIONS.load(Ordering::Relaxed);
            for index in 0..200_000 {
                let at = words.at(Rank(1), index & 4000);
                rt.put(at, 1)?;
                rt.get(at)?;
                rt.fetch_add(at, 1)?;
                rt.get_slice(at, buf)?;
                tsumugi::ult::yield_now();
                assert!(rt.get(words.at(Rank(1), 4096)).is_err());
            }
            let made = ALLOCATIONS.load(Ordering::Relaxed) - before;
            assert_eq!(made, 0, "allocations in a million operations");
        }
        rt.barrier()
    });
    job.map(|_: Vec<()>| ()).unwrap_or_else(|error: Error| panic!("{error}"));
}

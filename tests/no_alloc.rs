//! After start the data path allocates nothing.

use std::alloc::{GlobalAlloc, Layout, System};
use tsumugi::{Error, Rank, Runtime, run_ranks};
use tsumugi_core::sync::{AtomicU64, Ordering};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
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
    run_ranks(2, |rt: &Runtime| {
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
    })
    .map(|_: Vec<()>| ())
    .unwrap_or_else(|error: Error| panic!("{error}"));
}

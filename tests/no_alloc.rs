//! After start the data path allocates nothing.

use std::alloc::{GlobalAlloc, Layout, System};
use tsumugi::{Config, Error, Path, Rank, Runtime};
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

/// One test, as the counter is the process's.
#[test]
fn operations_allocate_nothing_by_whatever_path() {
    for (path, rounds) in
        [(Path::Direct, 200_000), (Path::Delegate, 100_000), (Path::Offload, 10_000)]
    {
        Config::default()
            .path(path)
            .run_ranks(2, |rt| operate(rt, path, rounds))
            .map(|_: Vec<()>| ())
            .unwrap_or_else(|error: Error| panic!("{path:?}: {error}"));
    }
}

fn operate(rt: &Runtime, path: Path, rounds: usize) -> Result<(), Error> {
    let words = rt.share::<u64>(4096)?;
    let buf = &mut [0u64; 64];
    rt.barrier()?;
    if rt.rank() == Rank(0) {
        let mut before = 0;
        for index in 0..rounds + 1 {
            let at = words.at(Rank(1), index & 4000);
            rt.put(at, 1)?;
            rt.get(at)?;
            rt.fetch_add(at, 1)?;
            rt.get_slice(at, buf)?;
            tsumugi::ult::yield_now();
            assert!(rt.get(words.at(Rank(1), 4096)).is_err());
            if index == 0 {
                // The first round is part of the start.
                before = ALLOCATIONS.load(Ordering::Relaxed);
            }
        }
        let made = ALLOCATIONS.load(Ordering::Relaxed) - before;
        assert_eq!(made, 0, "allocations in {} operations, {path:?}", 5 * rounds);
    }
    rt.barrier()
}

//! The data path allocates nothing after start.

use std::alloc::{GlobalAlloc, Layout, System};
use tsumugi::{self as api, Config, Error, Path, Rank, Runtime};

mod allocations;

struct Counting;

// SAFETY: all calls are passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        allocations::note();
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static GLOBAL: Counting = Counting;

/// One test for all paths, because the counters are those of the process.
#[test]
fn operations_allocate_nothing_on_any_path() {
    for (path, rounds) in
        [(Path::Direct, 200_000), (Path::Delegate, 50_000), (Path::Offload, 4_000)]
    {
        // Each rank has one worker, which is the rank's thread.
        let config = Config::default().workers(1).path(path);
        let job = config.run_ranks(2, |rt| operate(rt, path, rounds));
        job.map(|_: Vec<()>| ()).unwrap_or_else(|error: Error| panic!("{path:?}: {error}"));
    }
}

fn operate(rt: &Runtime, path: Path, rounds: usize) -> Result<(), Error> {
    allocations::count_this_thread();
    let words = rt.share::<u64>(4096)?;
    let buf = &mut [0u64; 64];
    rt.barrier()?;
    if rt.rank() == Rank(0) {
        let mut before = allocations::counts();
        for round in 0..=rounds {
            let at = words.at(Rank(1), round & 4000);
            rt.put(at, 1)?;
            rt.get(at)?;
            rt.fetch_add(at, 1)?;
            rt.get_slice(at, buf)?;
            tsumugi::ult::yield_now();
            assert!(rt.get(words.at(Rank(1), 4096)).is_err());
            if round == 0 {
                // The first round is part of the start.
                before = allocations::counts();
            }
        }
        let after = allocations::counts();
        let operations = 5 * rounds;
        assert_eq!(after[0] - before[0], 0, "allocations in {operations} operations, {path:?}");
        // These are the allocations of a communication thread and of the test harness.
        let others = after[1] - before[1];
        assert!(others < 100, "{others} allocations beside {operations} operations, {path:?}");
    }
    rt.barrier()?;
    allocations::values(rt)?;
    if path == Path::Direct { exchange(rt, 1000) } else { Ok(()) }
}

/// Messages of each kind, in both directions.
fn exchange(rt: &Runtime, rounds: usize) -> Result<(), Error> {
    let (comm, peer) = (rt.comm(), Rank(1 - rt.rank().0));
    let (sent, mut received) = (rt.buffer::<u8>(20_000)?, rt.buffer::<u8>(20_000)?);
    rt.barrier()?;
    let mut before = 0;
    for round in 0..=rounds {
        for bytes in [8, 500, 20_000] {
            if round % 100 == 0 || bytes < 20_000 {
                let into = &mut received[..bytes];
                comm.send_recv(peer, 1, &sent[..bytes], peer, 1, into)?;
            }
        }
        comm.scope(|scope| {
            for into in received.chunks_mut(100).take(8) {
                scope.irecv(peer, 2, into)?;
            }
            for values in sent.chunks(100).take(8) {
                scope.isend(peer, 2, values)?;
            }
            scope.wait_all()
        })?;
        if round == 0 {
            before = allocations::counts()[0];
        }
    }
    let allocations = allocations::counts()[0] - before;
    assert_eq!(allocations, 0, "allocations in {rounds} exchanges");
    rt.barrier()
}

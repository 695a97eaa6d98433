//! Time of one 64-byte allocation and its release: the partition's heap beside
//! the system's allocator, by 1 and by 2 threads, in turns.
//!
//! `cargo run --release -p tsumugi-pvas --example heap`

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::ptr::NonNull;
use std::sync::Barrier;
use std::time::Instant;
use tsumugi_core::mem::Memory;
use tsumugi_pvas::{Config, Member};

/// The system's allocator behind the same seam.
struct Glibc;

// SAFETY: the system's allocator keeps the same promises.
unsafe impl Memory for Glibc {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: no layout here is empty.
        NonNull::new(unsafe { System.alloc(layout) })
    }

    unsafe fn release(&self, memory: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's.
        unsafe { System.dealloc(memory.as_ptr(), layout) }
    }
}

fn main() {
    let member = Member::threads(1, &Config::default()).unwrap().remove(0);
    println!("{:>8} {:>8} {:>10} {:>10} {:>7}", "threads", "held", "glibc ns", "heap ns", "ratio");
    for threads in [1, 2] {
        for held in [1, 64] {
            let mut rounds: Vec<(f64, f64)> = (0..ROUNDS)
                .map(|_| (time(&Glibc, threads, held), time(member.heap(), threads, held)))
                .collect();
            rounds.sort_by(|a, b| (a.1 / a.0).total_cmp(&(b.1 / b.0)));
            let (glibc, heap) = rounds[ROUNDS / 2];
            let ratio = heap / glibc;
            println!("{threads:>8} {held:>8} {glibc:>10.1} {heap:>10.1} {ratio:>7.2}");
        }
    }
    member.finish();
}

/// Nanoseconds of one allocation and its release, while `held` blocks are held.
fn time(memory: &dyn Memory, threads: usize, held: usize) -> f64 {
    let layout = Layout::from_size_align(64, 8).unwrap();
    let start = Barrier::new(threads);
    let work = || {
        let mut blocks = Vec::with_capacity(held);
        start.wait();
        let began = Instant::now();
        for _ in 0..PAIRS / held {
            for _ in 0..held {
                let block = memory.allocate(layout).unwrap();
                // SAFETY: the block is ours.
                unsafe { block.as_ptr().write_volatile(1) };
                blocks.push(black_box(block));
            }
            for block in blocks.drain(..) {
                // SAFETY: allocated above with this layout.
                unsafe { memory.release(block, layout) };
            }
        }
        began.elapsed().as_secs_f64() * 1e9 / PAIRS as f64
    };
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let times: Vec<f64> = handles.into_iter().map(|handle| handle.join().unwrap()).collect();
        times.iter().sum::<f64>() / threads as f64
    })
}

const ROUNDS: usize = 11;
const PAIRS: usize = 1 << 20;

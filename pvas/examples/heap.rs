//! Time of one 64-byte allocation and its release: the partition's heap, by
//! itself and as a program's allocator, beside the system's, by 1 and by 2
//! threads, in turns. Ratios are medians of those within a round.
//!
//! `cargo run --release -p tsumugi-pvas --example heap`

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::ptr::NonNull;
use std::sync::Barrier;
use std::time::Instant;
use tsumugi_core::mem::MemorySource;
use tsumugi_pvas::{GlobalHeap, Member, SpaceConfig};

/// The system's allocator behind the same seam.
struct Glibc;

// SAFETY: the system's allocator keeps the same promises.
unsafe impl MemorySource for Glibc {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: no layout here is empty.
        NonNull::new(unsafe { System.alloc(layout) })
    }

    unsafe fn release(&self, memory: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's.
        unsafe { System.dealloc(memory.as_ptr(), layout) }
    }
}

/// The allocator of a program whose blocks lie in the heap.
struct Program;

// SAFETY: the allocator keeps the same promises.
unsafe impl MemorySource for Program {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: no layout here is empty.
        NonNull::new(unsafe { GlobalHeap.alloc(layout) })
    }

    unsafe fn release(&self, memory: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's.
        unsafe { GlobalHeap.dealloc(memory.as_ptr(), layout) }
    }
}

fn main() {
    let member = Member::threads(1, &SpaceConfig::default()).unwrap().remove(0);
    println!(
        "{:>8} {:>6} {:>9} {:>9} {:>6} {:>11} {:>6}",
        "threads", "held", "glibc ns", "heap ns", "ratio", "program ns", "ratio"
    );
    for threads in [1, 2] {
        for held in [1, 64] {
            let all: [&dyn MemorySource; 3] = [&Glibc, member.heap(), &Program];
            let rounds: Vec<[f64; 3]> =
                (0..ROUNDS).map(|_| all.map(|memory| time(memory, threads, held))).collect();
            let median = |of: &dyn Fn(&[f64; 3]) -> f64| {
                let mut values: Vec<f64> = rounds.iter().map(of).collect();
                values.sort_by(f64::total_cmp);
                values[ROUNDS / 2]
            };
            let [glibc, heap, program] = [0, 1, 2].map(|which| median(&|round| round[which]));
            let [heap_ratio, ratio] = [1, 2].map(|which| median(&|round| round[which] / round[0]));
            println!(
                "{threads:>8} {held:>6} {glibc:>9.1} {heap:>9.1} {heap_ratio:>6.2} \
                 {program:>11.1} {ratio:>6.2}"
            );
        }
    }
    member.finish();
}

/// Nanoseconds of one allocation and its release, while `held` blocks are held.
fn time(memory: &dyn MemorySource, threads: usize, held: usize) -> f64 {
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

use super::*;
use crate::sys;
use std::os::fd::AsFd;
use std::sync::mpsc;
use std::thread;

const BYTES: usize = 8 << 30;

fn heap() -> Heap {
    heap_of(BYTES)
}

/// A heap in memory that stays mapped, because mimalloc keeps it.
fn heap_of(bytes: usize) -> Heap {
    let file = sys::memory_file(bytes).unwrap();
    let slack = 64 << 10;
    let start = sys::map(file.as_fd(), None, bytes).unwrap().as_ptr() as usize;
    let start = NonNull::new(start.next_multiple_of(slack) as *mut u8).unwrap();
    // SAFETY: fresh, and never unmapped.
    unsafe { Heap::new(start, bytes - slack, None) }.unwrap()
}

fn layout(size: usize, align: usize) -> Layout {
    Layout::from_size_align(size, align).unwrap()
}

#[test]
fn blocks_are_inside_apart_and_aligned() {
    let heap = heap();
    let layouts = [(1, 1), (64, 64), (100, 4096), (1 << 20, 4096), (3 << 30, 64 << 10)];
    let blocks: Vec<_> = layouts
        .iter()
        .map(|&(size, align)| (heap.allocate(layout(size, align)).unwrap(), size, align))
        .collect();
    let mut ends: Vec<_> = blocks
        .iter()
        .map(|&(block, size, align)| {
            let start = block.as_ptr() as usize;
            assert!(heap.contains(block) && start.is_multiple_of(align), "{size} {align}");
            assert!(start + size <= heap.start().as_ptr() as usize + heap.bytes());
            // SAFETY: the block is ours.
            unsafe { block.as_ptr().write(7) };
            (start, start + size)
        })
        .collect();
    ends.sort();
    assert!(ends.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{ends:x?}");
    for (block, size, align) in blocks {
        // SAFETY: allocated above with this layout.
        unsafe { heap.release(block, layout(size, align)) };
    }
}

#[test]
fn a_full_heap_refuses_a_block() {
    let heap = heap();
    assert!(heap.allocate(layout(BYTES, 8)).is_none());
    assert!(heap.allocate(layout(64, 128 << 10)).is_none());
    let mut blocks = Vec::new();
    while let Some(block) = heap.allocate(layout(1 << 30, 4096)) {
        assert!(heap.contains(block));
        blocks.push(block);
    }
    assert!((5..8).contains(&blocks.len()), "{} blocks of 1 GiB", blocks.len());
    for block in blocks {
        // SAFETY: allocated above with this layout.
        unsafe { heap.release(block, layout(1 << 30, 4096)) };
    }
    assert!(heap.allocate(layout(4 << 30, 4096)).is_some(), "released memory is merged again");
}

#[test]
fn a_heap_larger_than_an_arena_is_used_whole() {
    let heap = heap_of(40 << 30);
    let mut blocks = 0;
    while let Some(block) = heap.allocate(layout(3 << 30, 4096)) {
        assert!(heap.contains(block));
        blocks += 1;
    }
    assert!((10..14).contains(&blocks), "{blocks} blocks of 3 GiB in 40");
}

#[test]
fn heaps_are_disjoint_and_any_thread_can_release() {
    let heaps = [heap(), heap()];
    let (send, receive) = mpsc::channel::<(usize, usize)>();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let (heaps, send) = (&heaps, send.clone());
            scope.spawn(move || {
                for step in 0..4000 {
                    let which = step % 2;
                    let block = heaps[which].allocate(layout(64, 8)).unwrap();
                    assert!(heaps[which].contains(block) && !heaps[1 - which].contains(block));
                    send.send((which, block.as_ptr() as usize)).unwrap();
                }
            });
        }
        drop(send);
        for (which, block) in receive {
            let block = NonNull::new(block as *mut u8).unwrap();
            // SAFETY: the other thread allocated the block and passed it to this
            // one.
            unsafe { heaps[which].release(block, layout(64, 8)) };
        }
    });
}

/// Threads come and go, and each uses more heaps than mimalloc's table of a thread has at first.
/// The table of a thread that has ended must not be used as the table of the next thread.
#[test]
fn a_new_thread_starts_with_an_empty_table_of_heaps() {
    let heaps: Vec<_> = (0..40).map(|_| heap_of(33 << 20)).collect();
    let touch = |heap: &Heap| {
        let block = heap.allocate(layout(100, 8)).unwrap();
        assert!(heap.contains(block), "{block:p} is not of {heap:?}");
        // SAFETY: allocated just now with this layout.
        unsafe { heap.release(block, layout(100, 8)) };
    };
    for _ in 0..10 {
        // The first thread's table becomes long where the second heap begins.
        thread::scope(|scope| scope.spawn(|| heaps.iter().rev().for_each(touch)).join()).unwrap();
        thread::scope(|scope| scope.spawn(|| heaps.iter().for_each(touch)).join()).unwrap();
    }
}

use super::*;
use crate::sys;
use std::collections::BTreeMap;
use std::os::fd::AsFd;

/// An area of fresh shared memory, which stays mapped.
fn area(bytes: usize) -> ExposedArea {
    let file = sys::memory_file(bytes).unwrap();
    let start = sys::map(file.as_fd(), None, bytes).unwrap();
    // SAFETY: fresh, shared, and never unmapped.
    unsafe { ExposedArea::new(start, bytes, None) }
}

fn layout(size: usize, align: usize) -> Layout {
    Layout::from_size_align(size, align).unwrap()
}

fn bytes_of<'a>(block: NonNull<u8>, bytes: usize) -> &'a mut [u8] {
    // SAFETY: every test uses its blocks from one thread, one at a time.
    unsafe { std::slice::from_raw_parts_mut(block.as_ptr(), bytes) }
}

fn release(area: &ExposedArea, block: NonNull<u8>, layout: Layout) {
    // SAFETY: the tests release what they allocated, once.
    unsafe { area.release(block, layout) };
}

/// Pseudo-random numbers that are the same in every run.
fn random(state: &mut u64) -> usize {
    tsumugi_core::random::advance(state) as usize
}

#[test]
fn any_order_of_use_ends_with_one_free_range() {
    const BYTES: usize = 64 << 20;
    let area = area(BYTES);
    for seed in 1..9 {
        // By start: the layout, and the byte with which the block is filled.
        let (mut state, mut model) = (seed, BTreeMap::<usize, (Layout, u8)>::new());
        for step in 0..1500 {
            if model.len() > 40 || (random(&mut state) % 5 < 2 && !model.is_empty()) {
                let nth = random(&mut state) % model.len();
                let start = *model.keys().nth(nth).unwrap();
                let (layout, fill) = model.remove(&start).unwrap();
                let block = NonNull::new(start as *mut u8).unwrap();
                let found = bytes_of(block, layout.size());
                assert!(found.iter().all(|byte| *byte == fill), "seed {seed} step {step}");
                release(&area, block, layout);
                continue;
            }
            let size = random(&mut state) % (1 << (random(&mut state) % 18));
            let layout = layout(size, 1 << (random(&mut state) % 17));
            let block = area.allocate_zeroed(layout).unwrap();
            let start = block.as_ptr() as usize;
            let below = model.range(..=start).next_back();
            assert!(below.is_none_or(|(at, (layout, _))| at + layout.size().max(1) <= start));
            let above = model.range(start..).next();
            assert!(above.is_none_or(|(at, _)| start + size.max(1) <= *at), "seed {seed}");
            assert!(area.contains(block) && start.is_multiple_of(layout.align().max(LINE)));
            let found = bytes_of(block, size);
            assert!(found.iter().all(|byte| *byte == 0), "seed {seed} step {step}");
            let fill = step as u8 | 1;
            found.fill(fill);
            model.insert(start, (layout, fill));
        }
        let lent: usize = model.values().map(|(layout, _)| block_bytes(*layout)).sum();
        assert_eq!(area.free_bytes(), BYTES - lent, "seed {seed}");
        for (start, (layout, _)) in model {
            release(&area, NonNull::new(start as *mut u8).unwrap(), layout);
        }
        assert_eq!(area.free_bytes(), BYTES);
        let whole = layout(BYTES, 4096);
        let block = area.allocate(whole).expect("one free range");
        release(&area, block, whole);
    }
}

#[test]
fn a_write_to_released_memory_breaks_nothing() {
    const BYTES: usize = 1 << 20;
    let area = area(BYTES);
    let layouts: Vec<_> = (0..64).map(|index| layout(64 << (index % 8), 64)).collect();
    let blocks: Vec<_> = layouts.iter().map(|layout| area.allocate(*layout).unwrap()).collect();
    for (block, layout) in blocks.iter().zip(&layouts) {
        release(&area, *block, *layout);
        bytes_of(*block, layout.size()).fill(0xff);
    }
    let whole = area.allocate_zeroed(layout(BYTES, 64)).expect("the bookkeeping is intact");
    assert!(bytes_of(whole, BYTES).iter().all(|byte| *byte == 0));
}

#[test]
fn a_block_that_does_not_fit_is_refused() {
    let area = area(1 << 20);
    for refused in [
        layout((1 << 20) + 1, 1),
        layout(isize::MAX as usize, 1),
        layout(64, 4 << 20),
        layout(64, 1 << 62),
    ] {
        assert!(area.allocate(refused).is_none(), "{refused:?}");
        assert!(area.allocate_zeroed(refused).is_none(), "{refused:?}");
    }
    let blocks: Vec<_> = std::iter::from_fn(|| area.allocate(layout(0, 1))).collect();
    assert_eq!(blocks.len(), (1 << 20) / LINE, "empty blocks have places of their own");
    assert_eq!(area.free_bytes(), 0);
    assert!(area.allocate(layout(1, 1)).is_none());
}

#[test]
fn a_huge_block_is_zero_again_and_uses_no_memory() {
    const BYTES: usize = 16 << 30;
    let area = area(BYTES);
    let huge = layout(BYTES - (1 << 20), 64);
    let small = area.allocate(layout(100, 64)).unwrap();
    for round in 0..3 {
        let block = area.allocate_zeroed(huge).unwrap();
        for at in [0, 1, 64 << 10, 5 << 30, huge.size() - 1] {
            // SAFETY: inside of the block, which is ours.
            let byte = unsafe { &mut *block.as_ptr().add(at) };
            assert_eq!(*byte, 0, "round {round} at {at:#x}");
            *byte = 7;
        }
        release(&area, block, huge);
        // A late operation writes to the released block.
        // SAFETY: mapped, and no test code uses the block now.
        unsafe { block.as_ptr().add(3 << 30).write(7) };
    }
    let block = area.allocate_zeroed(huge).unwrap();
    // SAFETY: the block is ours.
    assert_eq!(unsafe { block.as_ptr().add(3 << 30).read() }, 0);
    release(&area, block, huge);
    release(&area, small, layout(100, 64));
    assert_eq!(area.free_bytes(), BYTES);
}

#[test]
fn threads_share_an_area() {
    const BYTES: usize = 4 << 20;
    let area = area(BYTES);
    std::thread::scope(|scope| {
        for thread in 1..5u8 {
            let area = &area;
            scope.spawn(move || {
                let mut state = u64::from(thread);
                for _ in 0..500 {
                    let layout = layout(random(&mut state) % 4096, 64);
                    let block = area.allocate_zeroed(layout).unwrap();
                    let bytes = bytes_of(block, layout.size());
                    assert!(bytes.iter().all(|byte| *byte == 0));
                    bytes.fill(thread);
                    std::thread::yield_now();
                    assert!(bytes.iter().all(|byte| *byte == thread));
                    release(area, block, layout);
                }
            });
        }
    });
    assert_eq!(area.free_bytes(), BYTES);
    assert!(area.allocate(layout(BYTES, 64)).is_some(), "one free range");
}

use super::head::HEAD_BYTES;
use super::layout::*;
use super::*;
use crate::area::{STACK_BYTES_MIN, StackArea, StackError};
use crate::pool::WorkerCache;
use core::ptr;

const STACK: usize = 16384;
// SAFETY: no ULT runs on these stacks.
const UNGUARDED: Guards = Guards::None(unsafe { Unguarded::new() });

const LIVES: Lives = Lives { run: |_| (), run_entered: |_| ptr::null() };

fn stacks(stacks: usize, guards: Guards) -> Stacks {
    let area = StackArea::map(StackArea::bytes_for(stacks, STACK, 65536)).unwrap();
    Stacks::new(area, STACK, 65536, guards, LIVES).unwrap()
}

fn head(stack: &Stack) -> &StackHead {
    // SAFETY: the stack belongs to the test.
    unsafe { stack.0.as_ref() }
}

fn all(stacks: &Stacks) -> Vec<Stack> {
    let mut cache = WorkerCache::new();
    std::iter::from_fn(|| stacks.take(Class::default(), &mut cache)).collect()
}

#[test]
fn stacks_are_apart_and_run_out() {
    for guards in [UNGUARDED, Guards::Canaries, Guards::Groups(2), Guards::Pages(2)] {
        let stacks = stacks(5, guards);
        let main = stacks.take_main().unwrap();
        let taken = all(&stacks);
        assert_eq!(taken.len(), stacks.max(), "{guards:?}");
        for pair in [&main].into_iter().chain(&taken).collect::<Vec<_>>().windows(2) {
            let top = pair[0].0.addr().get() + HEAD_BYTES + CANARY_LINE;
            assert!(top <= head(pair[1]).floor(), "{guards:?}");
        }
        let guarded = taken.iter().filter(|stack| head(stack).floor & GUARDED != 0).count();
        let expected = match guards {
            Guards::Groups(2) => taken.len().div_ceil(2),
            Guards::Pages(max) => max,
            _ => 0,
        };
        assert_eq!(guarded, expected, "{guards:?}");
    }
}

#[test]
fn a_group_may_be_larger_than_the_area() {
    assert!(stacks(5, Guards::Groups(u32::MAX)).max() >= 5);
}

#[test]
fn a_guard_is_the_page_below_its_stack() {
    let stacks = stacks(2, Guards::Pages(1));
    let taken = all(&stacks);
    let guarded = head(&taken[0]);
    assert!(guarded.is_guard(guarded.floor() - 1) && !guarded.is_guard(guarded.floor()));
    assert!(!head(&taken[1]).is_guard(head(&taken[1]).floor() - 1));
}

#[test]
fn each_size_is_pooled_by_itself() {
    let (stacks, mut cache) = (stacks(20, UNGUARDED), WorkerCache::new());
    let [small, large] = [1, 4 * STACK].map(|bytes| stacks.class(bytes).unwrap());
    assert_eq!(stacks.class(STACK), Some(Class::default()));
    assert_eq!(stacks.class(usize::MAX), None);
    let first = stacks.take(large, &mut cache).unwrap();
    assert_eq!(head(&first).bytes(), 4 * STACK);
    assert_eq!(head(&stacks.take(small, &mut cache).unwrap()).bytes(), STACK_BYTES_MIN);
    let place = first.0;
    stacks.put(first, &mut cache);
    assert!(cache.is_empty() && stacks.has_spare(large, &cache));
    assert_eq!(stacks.take(large, &mut cache).map(|stack| stack.0), Some(place));
}

#[test]
fn an_overflow_destroys_the_canary() {
    let stacks = stacks(3, Guards::Canaries);
    let stack = all(&stacks).remove(0);
    assert!(head(&stack).is_intact());
    let below = ptr::with_exposed_provenance_mut::<u64>(head(&stack).floor() - 8);
    // SAFETY: the write goes to the line of the canary, which belongs to the area; it stands for an
    // overflow.
    unsafe { below.write(0) };
    assert!(!head(&stack).is_intact());
}

#[test]
fn bad_areas_are_refused() {
    let area = StackArea::map(1 << 20).unwrap();
    let refused = Stacks::new(area, 10_000, 65536, UNGUARDED, LIVES).err();
    assert_eq!(refused, Some(StackError::Size { stack_bytes: 10_000 }));
    let refused = {
        let area = StackArea::map(65536).unwrap();
        Stacks::new(area, STACK, 65536, UNGUARDED, LIVES).err()
    };
    assert!(matches!(refused, Some(StackError::Small { bytes: 65536, .. })), "{refused:?}");
    let largest = usize::MAX - 4095;
    for (stack, main) in [(STACK, largest), (largest, 65536), (largest, largest)] {
        for guards in [UNGUARDED, Guards::Canaries, Guards::Groups(u32::MAX), Guards::Pages(9)] {
            let area = StackArea::map(1 << 20).unwrap();
            let refused = Stacks::new(area, stack, main, guards, LIVES).err();
            let expected = StackError::Large { stack_bytes: largest, bytes: 1 << 20 };
            assert_eq!(refused, Some(expected), "{guards:?}");
        }
    }
    assert_eq!(StackArea::bytes_for(usize::MAX, STACK, 65536), usize::MAX);
    assert!(matches!(StackArea::map(100), Err(StackError::Unaligned { bytes: 100, .. })));
}

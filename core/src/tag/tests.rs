extern crate std;

use super::*;
use std::collections::HashSet;
use std::vec::Vec;

#[test]
fn each_tag_is_given_out_once() {
    let table = TagTable::<3>::new();
    let tags = table.pool();
    let taken: Vec<Tag> = core::iter::from_fn(|| tags.try_take(1)).collect();
    assert_eq!(taken.len(), tags.len());
    assert_eq!(taken.iter().map(|tag| tag.index()).collect::<HashSet<_>>().len(), 192);
    assert_eq!((tags.available(), tags.try_take(0)), (0, None));
    // In any order.
    for tag in taken.iter().step_by(2).chain(taken.iter().skip(1).step_by(2)) {
        assert!(tags.release(*tag), "{tag:?}");
    }
    assert_eq!(tags.available(), 192);
}

#[test]
fn a_hint_names_a_shard_and_other_shards_serve_when_it_is_empty() {
    let table = TagTable::<2>::new();
    let tags = table.pool();
    let home = |tag: Tag| tag.index() / TagPool::PER_SHARD;
    assert_eq!(home(tags.try_take(1).unwrap()), 1);
    assert_eq!(home(tags.try_take(6).unwrap()), 0, "a hint beyond the shards wraps");
    let all: Vec<Tag> = core::iter::from_fn(|| tags.try_take(1)).collect();
    assert_eq!(all.len(), 126);
    assert!(tags.release(all[0]));
    assert_eq!(home(all[0]), 1);
    assert_eq!(tags.try_take(0).map(Tag::index), Some(all[0].index()), "from shard 1");
}

#[test]
fn the_shards_are_tried_in_a_circle() {
    for hint in 0..7 {
        let table = TagTable::<3>::new();
        let tags = table.pool();
        for further in 0..3 {
            for _ in 0..TagPool::PER_SHARD {
                let tag = tags.try_take(hint).expect("some shard has a tag");
                let home = tag.index() / TagPool::PER_SHARD;
                assert_eq!(home, (hint + further) % 3, "{tag:?} for hint {hint}");
            }
        }
        assert_eq!(tags.try_take(hint), None);
    }
}

#[test]
fn a_returned_tag_has_another_generation() {
    let table = TagTable::<1>::new();
    let tags = table.pool();
    let mut last = 0;
    for life in 0..3 {
        let tag = tags.try_take(0).unwrap();
        assert!(tags.is_current(tag) && tag.generation() > last || life == 0);
        last = tag.generation();
        tags.put_back(tag);
        assert!(!tags.is_current(tag) && !tags.release(tag));
        assert_eq!(tags.available(), 64);
        // A free tag's generation differs from all generations in which it was
        // taken.
        let free = table.shards[0].generations[tag.index()].load(Ordering::Relaxed);
        assert_eq!(free, last + 1);
        let forged = Tag::new(tag.index(), free);
        assert!(!tags.is_current(forged) && !tags.release(forged));
    }
    table.shards[0].generations[0].store(GENERATION_MASK - 1, Ordering::Relaxed);
    tags.put_back(tags.try_take(0).unwrap());
    assert_eq!(table.shards[0].generations[0].load(Ordering::Relaxed), 0, "the generation wraps");
}

#[test]
fn a_tag_of_an_old_generation_is_refused() {
    let table = TagTable::<1>::new();
    let tags = table.pool();
    let old = tags.try_take(0).unwrap();
    assert!(tags.release(old));
    assert!(!tags.is_current(old) && !tags.release(old));
    let new = tags.try_take(0).unwrap();
    assert_eq!(new.index(), old.index());
    assert!(!tags.is_current(old) && !tags.release(old));
    assert!(tags.is_current(new) && tags.release(new));
}

#[test]
fn a_forged_tag_is_refused() {
    let table = TagTable::<1>::new();
    let tags = table.pool();
    for bits in [0, 1, 63, 64, 1 << 24, 0xff_ffff, 5 << 24 | 3, u64::MAX] {
        let tag = Tag::from_bits(bits);
        assert!(!tags.is_current(tag) && !tags.release(tag), "{tag:?}");
    }
    assert_eq!(tags.available(), 64);
}

#[test]
fn generations_wrap() {
    let table = TagTable::<1>::new();
    let tags = table.pool();
    table.shards[0].generations[0].store(GENERATION_MASK - 1, Ordering::Relaxed);
    let last = tags.try_take(0).unwrap();
    assert_eq!((last.index(), last.generation()), (0, GENERATION_MASK));
    assert!(tags.release(last));
    let first = tags.try_take(0).unwrap();
    assert_eq!((first.index(), first.generation()), (0, 1));
}

#[repr(C, align(128))]
struct Block([u8; 2048]);

#[test]
fn a_pool_in_given_memory_has_the_requested_number_of_tags() {
    for count in [1, 63, 64, 65, 128] {
        let mut block = Block([0xa5; 2048]);
        assert!(TagPool::memory_size(count) <= 2048, "{count}");
        let memory = NonNull::from(&mut block).cast();
        // SAFETY: the block is large and aligned enough and lives longer.
        let tags = unsafe { TagPool::init(memory, count) }.unwrap();
        assert_eq!(core::iter::from_fn(|| tags.try_take(0)).count(), count);
    }
}

#[test]
fn a_pool_of_a_bad_size_names_the_value() {
    let mut block = Block([0; 2048]);
    let memory = NonNull::from(&mut block).cast::<u8>();
    for tags in [0, Tag::INDEX_MAX + 1] {
        // SAFETY: the call is refused before it touches the memory.
        let error = unsafe { TagPool::init(memory, tags) }.unwrap_err();
        assert_eq!(error, TagPoolError::Count { tags });
    }
    // SAFETY: as above.
    let off = unsafe { TagPool::init(memory.add(8), 1) }.unwrap_err();
    assert_eq!(off, TagPoolError::Unaligned { address: memory.as_ptr() as usize + 8 });
}

#[test]
fn threads_never_hold_the_same_tag() {
    let table = TagTable::<1>::new();
    let held: [AtomicU64; 64] = core::array::from_fn(|_| AtomicU64::new(0));
    std::thread::scope(|scope| {
        for worker in 0..3 {
            let (tags, held) = (table.pool(), &held);
            scope.spawn(move || {
                for _ in 0..2_000 {
                    let Some(tag) = tags.try_take(worker) else { continue };
                    assert_eq!(held[tag.index()].swap(1, Ordering::Relaxed), 0, "{tag:?}");
                    held[tag.index()].store(0, Ordering::Relaxed);
                    assert!(tags.release(tag));
                }
            });
        }
    });
    assert_eq!(table.pool().available(), 64);
}

//! Tags: one holder at a time, and one end for each life.

use crate::check;
use loom::cell::UnsafeCell;
use loom::thread;
use std::sync::Arc;
use tsumugi_core::tag::{TagPool, TagTable};

/// The data that only the holder of a tag may touch, without a lock.
struct Held([UnsafeCell<u32>; TagPool::PER_SHARD * 2]);

// SAFETY: the model checks that only the holder of a tag touches its cell.
unsafe impl Sync for Held {}

impl Held {
    fn new() -> Self {
        Self(std::array::from_fn(|_| UnsafeCell::new(0)))
    }

    fn touch(&self, index: usize) {
        // SAFETY: as above; loom reports a second holder.
        self.0[index].with_mut(|cell| unsafe { *cell += 1 });
    }
}

#[test]
fn a_tag_has_one_holder_at_a_time() {
    check(&["tag_take_load_store", "tag_release_relaxed"], || {
        let shared = Arc::new((TagTable::<1>::new(), Held::new()));
        let threads = [0, 1].map(|hint| {
            let shared = shared.clone();
            thread::spawn(move || {
                let (table, held) = &*shared;
                for _ in 0..2 {
                    let tag = table.pool().try_take(hint).expect("as many tags as threads");
                    held.touch(tag.index());
                    assert!(table.pool().release(tag));
                }
            })
        });
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(shared.0.pool().available(), TagPool::PER_SHARD);
    });
}

#[test]
fn the_last_tag_is_found_in_any_shard_and_has_one_taker() {
    check(&["tag_take_load_store"], || {
        let table = Arc::new(TagTable::<2>::new());
        for _ in 1..table.pool().len() {
            table.pool().try_take(0).unwrap();
        }
        let threads = [0, 1].map(|hint| {
            let table = table.clone();
            thread::spawn(move || table.pool().try_take(hint).is_some())
        });
        let took = threads.map(|thread| thread.join().unwrap());
        assert!(took[0] != took[1], "{took:?}");
    });
}

#[test]
fn a_life_ends_once() {
    check(&["tag_release_unchecked"], || {
        let table = Arc::new(TagTable::<1>::new());
        let tag = table.pool().try_take(0).unwrap();
        let threads = [(); 2].map(|()| {
            let table = table.clone();
            thread::spawn(move || table.pool().release(tag))
        });
        let next = table.pool().try_take(0);
        let ended = threads.map(|thread| thread.join().unwrap());
        assert!(ended[0] != ended[1], "{ended:?}");
        assert!(!table.pool().is_current(tag));
        assert!(table.pool().is_current(next.unwrap()), "an old end does not end a new life");
    });
}

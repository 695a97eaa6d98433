//! One deque, its owner and its thieves.

use super::*;

fn item(n: usize) -> *mut u8 {
    core::ptr::without_provenance_mut(n)
}

/// Steals into a list.
fn steal(deque: &WorkDeque<u8>) -> Vec<usize> {
    let mut more = Vec::new();
    match deque.steal(|_| true, |item| more.push(item.addr())) {
        Steal::Taken(first) => {
            more.insert(0, first.addr());
            more
        }
        Steal::Empty | Steal::Lost => Vec::new(),
    }
}

#[test]
fn the_owner_takes_the_youngest_a_thief_the_oldest() {
    let deque = WorkDeque::<u8>::new(2, true, Fences::of_system());
    // SAFETY: only this thread uses the deque.
    unsafe {
        for n in 1..=100 {
            deque.push(item(n));
        }
        assert_eq!(deque.youngest(), Some(item(100)));
        assert_eq!(deque.pop(), Some(item(100)));
        assert_eq!(steal(&deque), (1..=12).collect::<Vec<_>>(), "an eighth of the queue");
        assert_eq!(deque.take_first(), Some(item(13)));
        for n in (14..100).rev() {
            assert_eq!(deque.pop(), Some(item(n)));
        }
        assert_eq!((deque.pop(), deque.take_first(), deque.youngest()), (None, None, None));
        assert_eq!(steal(&deque), []);
        assert!(deque.is_empty());
        deque.push(item(1));
        assert_eq!(deque.steal(|_| false, |_| ()), Steal::Empty, "the item is not wanted");
        deque.push(item(2));
        deque.push(item(3));
        for n in [1, 2, 3] {
            assert_eq!(steal(&deque), [n], "of a few items, one");
        }
    }
}

#[test]
fn without_thieves_an_item_can_be_rotated() {
    let deque = WorkDeque::<u8>::new(4, false, Fences::of_system());
    // SAFETY: only this thread uses the deque.
    unsafe {
        assert_eq!(deque.rotate(item(1), |_| true, |_| ()), None, "the deque was empty");
        for n in 1..=4 {
            deque.push(item(n));
        }
        for n in 5..=100 {
            assert_eq!(deque.rotate(item(n), |_| false, |_| ()), None, "the item is not wanted");
            let mut soon = None;
            let oldest = deque.rotate(item(n), |_| true, |item| soon = Some(item));
            assert_eq!(oldest, Some(item(n - 4)), "the oldest item of a full deque");
            assert_eq!(soon, Some(item(n - 1)), "the third item after it");
        }
        deque.owner.retired.with(|retired| assert!((*retired).is_empty()));
        deque.push(item(101));
        assert_eq!(deque.pop_alone_if(|_| false), None);
        assert_eq!(deque.pop_alone_if(|last| last == item(101)), Some(item(101)));
        for n in 97..=100 {
            assert_eq!(deque.take_first(), Some(item(n)));
        }
        assert_eq!(deque.pop_alone_if(|_| true), None, "the deque is empty");
    }
}

#[test]
fn slots_are_reused_without_growth() {
    let deque = WorkDeque::<u8>::new(4, true, Fences::of_system());
    // SAFETY: only this thread uses the deque.
    unsafe {
        for n in 1..=1000 {
            deque.push(item(n));
            assert_eq!(deque.take_first(), Some(item(n)));
        }
        deque.owner.retired.with(|retired| assert!((*retired).is_empty()));
    }
}

#[test]
fn every_item_is_taken_once() {
    for fences in [Fences::Symmetric, Fences::of_system()] {
        every_item_once(fences);
    }
}

fn every_item_once(fences: Fences) {
    const ITEMS: usize = 20_000;
    let deque = WorkDeque::<u8>::new(4, true, fences);
    let sum = std::thread::scope(|scope| {
        let thief = scope.spawn(|| {
            let (mut sum, mut empty) = (0, 0);
            while empty < 1000 {
                let stolen = steal(&deque);
                if stolen.is_empty() {
                    empty += 1;
                    std::thread::yield_now();
                }
                sum += stolen.iter().sum::<usize>();
            }
            sum
        });
        let mut sum = 0;
        for n in 1..=ITEMS {
            // SAFETY: only this thread is the owner.
            unsafe {
                deque.push(item(n));
                if n % 3 == 0 {
                    sum += deque.pop().map_or(0, |item| item.addr());
                }
                if n % 5 == 0 {
                    sum += deque.take_first().map_or(0, |item| item.addr());
                }
            }
        }
        while !deque.is_empty() {
            // SAFETY: as above.
            sum += unsafe { deque.pop() }.map_or(0, |item| item.addr());
        }
        sum + thief.join().unwrap()
    });
    assert_eq!(sum, ITEMS * (ITEMS + 1) / 2, "{fences:?}");
}

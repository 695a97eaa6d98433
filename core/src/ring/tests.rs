extern crate std;

use super::*;
use core::ptr::NonNull;
use std::sync::Arc;
use std::vec::Vec;

#[repr(C, align(128))]
struct Block([u8; 1024]);

#[test]
fn a_full_ring_returns_the_value_and_uses_all_its_slots() {
    let mut ring = Mpsc::<u32, 4>::new();
    let (producer, mut consumer) = ring.split();
    for lap in 0..3 {
        for i in 0..4 {
            assert_eq!(producer.try_push(lap * 4 + i), Ok(()), "N elements fit, not N - 1");
        }
        assert_eq!(producer.try_push(99), Err(99));
        assert_eq!(producer.len(), 4);
        for i in 0..4 {
            assert!(consumer.is_ready());
            assert_eq!(consumer.try_pop(), Some(lap * 4 + i));
        }
        assert_eq!((consumer.try_pop(), consumer.is_ready()), (None, false));
        assert!(producer.is_empty());
    }
}

#[test]
fn the_first_push_after_a_mark_reports_it() {
    let mut ring = Mpsc::<u32, 2>::new();
    let (producer, mut consumer) = ring.split();
    for lap in 0..3 {
        assert!(consumer.try_mark() && consumer.try_mark(), "the ring is empty");
        assert!(producer.is_empty());
        assert_eq!(producer.try_push_told(lap), Ok(Pushed::Asleep));
        assert_eq!(producer.try_push_told(lap), Ok(Pushed::Awake));
        assert_eq!((producer.try_push_told(9), producer.len()), (Err(9), 2));
        assert!(!consumer.try_mark(), "the ring is not empty");
        assert_eq!((consumer.try_pop(), consumer.try_pop()), (Some(lap), Some(lap)));
    }
    assert!(consumer.try_mark());
    assert_eq!(producer.try_push(7), Ok(()), "a push that does not look at the mark");
    assert_eq!(consumer.try_pop(), Some(7));
}

#[test]
fn both_ends_of_an_spsc_see_full_and_empty() {
    let mut ring = Spsc::<u32, 2>::new();
    let (mut producer, mut consumer) = ring.split();
    assert_eq!(consumer.try_pop(), None);
    for lap in 0..3 {
        assert_eq!(producer.try_push(lap), Ok(()));
        assert_eq!(producer.try_push(lap + 10), Ok(()));
        assert_eq!(producer.try_push(99), Err(99));
        assert!(!producer.view().is_empty() && producer.view().len() == 2);
        assert_eq!((consumer.try_pop(), consumer.try_pop()), (Some(lap), Some(lap + 10)));
        assert_eq!(consumer.try_pop(), None);
    }
}

#[test]
fn drain_takes_the_oldest_values_up_to_its_limit() {
    let mut ring = Mpsc::<u32, 8>::new();
    let (producer, mut consumer) = ring.split();
    (0..6).for_each(|i| producer.try_push(i).unwrap());
    let mut seen = Vec::new();
    assert_eq!(consumer.drain(4, |i| seen.push(i)), 4);
    assert_eq!(consumer.drain(4, |i| seen.push(i)), 2);
    assert_eq!(seen, [0, 1, 2, 3, 4, 5]);

    let mut ring = Spsc::<u32, 8>::new();
    let (mut producer, mut consumer) = ring.split();
    (0..6).for_each(|i| producer.try_push(i).unwrap());
    assert_eq!(consumer.drain(5, drop), 5);
    assert_eq!(consumer.try_pop(), Some(5));
}

#[test]
fn a_dropped_ring_drops_what_is_in_it() {
    let witness = Arc::new(());
    let mut ring = Mpsc::<_, 4>::new();
    let (producer, mut consumer) = ring.split();
    (0..3).for_each(|_| producer.try_push(witness.clone()).unwrap());
    drop(consumer.try_pop());
    drop(ring);
    assert_eq!(Arc::strong_count(&witness), 1);

    let mut ring = Spsc::<_, 4>::new();
    ring.split().0.try_push(witness.clone()).unwrap();
    drop(ring);
    assert_eq!(Arc::strong_count(&witness), 1);
}

#[test]
fn two_views_of_one_memory_are_one_ring() {
    let mut block = Block([0; 1024]);
    assert!(MpscView::<[u64; 7]>::memory_size(4) <= 1024);
    let memory = NonNull::from(&mut block).cast();
    // SAFETY: large and aligned enough, zero, and used as nothing else.
    let none = unsafe { MpscView::<[u64; 7]>::attach(memory, 4) }.unwrap_err();
    assert_eq!(none, RingError::Shape { slots: 0, slot_bytes: 0 });
    // SAFETY: the same.
    let made = unsafe { MpscView::<[u64; 7]>::init(memory, 4) }.unwrap();
    // SAFETY: the same.
    let found = unsafe { MpscView::<[u64; 7]>::attach(memory, 4) }.unwrap();
    assert!(made.try_push([1; 7]).is_ok() && found.try_push([2; 7]).is_ok());
    // SAFETY: this is the only consumer.
    let mut consumer = unsafe { found.consumer() };
    assert_eq!(consumer.try_pop(), Some([1; 7]));
    assert_eq!(consumer.try_pop(), Some([2; 7]));
    // SAFETY: the same memory; the shape is checked before the slots are touched.
    let other = unsafe { MpscView::<[u64; 7]>::attach(memory, 2) }.unwrap_err();
    assert_eq!(other, RingError::Shape { slots: 4, slot_bytes: 64 });
}

#[test]
fn the_ends_of_an_spsc_can_be_made_again() {
    let mut block = Block([0xa5; 1024]);
    let memory = NonNull::from(&mut block).cast();
    // SAFETY: large and aligned enough, and used as nothing else.
    let view = unsafe { SpscView::<u64>::init(memory, 4) }.unwrap();
    for value in 0..10 {
        // SAFETY: the two ends are used one after the other on one thread.
        let (mut producer, mut consumer) = unsafe { (view.producer(), view.consumer()) };
        assert_eq!(producer.try_push(value), Ok(()));
        assert_eq!(consumer.try_pop(), Some(value));
    }
    // SAFETY: as above.
    let found = unsafe { SpscView::<u64>::attach(memory, 4) }.unwrap();
    assert!(found.is_empty() && found.slots() == 4);
}

#[test]
fn a_new_ring_is_empty_whatever_its_memory_held() {
    let mut block = Block([0xa5; 1024]);
    let memory = NonNull::from(&mut block).cast();
    // SAFETY: large and aligned enough, and used as nothing else.
    let view = unsafe { MpscView::<u64>::init(memory, 4) }.unwrap();
    // SAFETY: this is the only consumer.
    let mut consumer = unsafe { view.consumer() };
    assert!(consumer.try_pop().is_none() && !consumer.is_ready() && view.is_empty());
    for value in 0..4 {
        assert_eq!(view.try_push(value), Ok(()));
    }
    assert_eq!(view.try_push(9), Err(9));
    for value in 0..4 {
        assert_eq!(consumer.try_pop(), Some(value));
    }
    assert_eq!(consumer.try_pop(), None);
}

#[test]
fn a_ring_of_a_bad_size_names_the_value() {
    let mut block = Block([0; 1024]);
    let memory = NonNull::from(&mut block).cast::<u8>();
    for slots in [0, 1, 3, 6, (1 << 31) + 1, 1 << 32] {
        // SAFETY: the call is refused before it touches the memory.
        let error = unsafe { MpscView::<u8>::init(memory, slots) }.unwrap_err();
        assert_eq!(error, RingError::Slots { slots });
        // SAFETY: the same.
        let error = unsafe { SpscView::<u8>::attach(memory, slots) }.unwrap_err();
        assert_eq!(error, RingError::Slots { slots });
    }
    // SAFETY: the same.
    let error = unsafe { MpscView::<u8>::init(memory.add(8), 2) }.unwrap_err();
    let address = memory.as_ptr() as usize + 8;
    assert_eq!(error, RingError::Unaligned { address, align: MpscView::<u8>::ALIGN });
}

#[test]
fn producers_lose_nothing_and_keep_their_order() {
    const EACH: u64 = 2_000;
    let mut ring = Mpsc::<(usize, u64), 8>::new();
    let (producer, mut consumer) = ring.split();
    std::thread::scope(|scope| {
        for who in 0..3 {
            scope.spawn(move || {
                for value in 0..EACH {
                    while producer.try_push((who, value)).is_err() {
                        std::thread::yield_now();
                    }
                }
            });
        }
        let mut next = [0; 3];
        while next.iter().sum::<u64>() < 3 * EACH {
            match consumer.try_pop() {
                Some((who, value)) => {
                    assert_eq!(value, next[who], "producer {who}");
                    next[who] += 1;
                }
                None => std::thread::yield_now(),
            }
        }
    });
    assert_eq!(consumer.try_pop(), None);
}

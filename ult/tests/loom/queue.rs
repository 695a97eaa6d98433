//! The queues, the hand-off slot and the public slot, each alone.

use crate::check;
use std::ptr::NonNull;
use std::sync::Arc;
use tsumugi_core::sync::{AtomicPtr, AtomicU32, Ordering, UnsafeCell};
use tsumugi_ult::internals::{
    Fences, HandoffBatch, HandoffSlot, Inject, Linked, PublicSlot, Steal, WorkDeque,
};

/// An item that counts how often it was taken, and holds a value that its taker must see.
struct Item {
    link: AtomicPtr<Item>,
    value: UnsafeCell<u32>,
    taken: AtomicU32,
}

impl Item {
    fn new() -> *mut Self {
        Box::into_raw(Box::new(Self {
            link: AtomicPtr::new(std::ptr::null_mut()),
            value: UnsafeCell::new(0),
            taken: AtomicU32::new(0),
        }))
    }

    fn fill(item: *mut Self) -> *mut Self {
        // SAFETY: not published yet.
        unsafe { (*item).value.with_mut(|value| *value = 7) };
        item
    }

    fn take(item: *mut Self) {
        assert!(!item.is_null(), "a slot that was never filled");
        // SAFETY: items are freed at the end of the model.
        unsafe {
            assert_eq!((*item).taken.fetch_add(1, Ordering::Relaxed), 0, "taken twice");
            (*item).value.with(|value| assert_eq!(*value, 7));
        }
    }

    fn finish(items: impl IntoIterator<Item = *mut Self>) {
        for item in items {
            // SAFETY: the threads are joined.
            let item = unsafe { Box::from_raw(item) };
            assert_eq!(item.taken.load(Ordering::Relaxed), 1, "not taken");
        }
    }
}

/// One attempt of a thief, which takes what it got.
fn steal(deque: &WorkDeque<Item>) {
    if let Steal::Taken(first) = deque.steal(|_| true, Item::take) {
        Item::take(first);
    }
}

// SAFETY: used by the queue only.
unsafe impl Linked for Item {
    fn link(&self) -> &AtomicPtr<Self> {
        &self.link
    }
}

struct Shared<T>(T);
// SAFETY: the models check the accesses to its content.
unsafe impl<T> Send for Shared<T> {}
// SAFETY: the same.
unsafe impl<T> Sync for Shared<T> {}

#[test]
fn deque_owner_and_thief() {
    check(
        "queue::deque_owner_and_thief",
        &["deque_pop_no_fence", "deque_steal_no_fence", "deque_claim_kept", "deque_push_relaxed"],
        || {
            let deque = Arc::new(Shared(WorkDeque::new(2, true, Fences::of_system())));
            let items = [Item::new(), Item::new()];
            let own = |item| {
                // SAFETY: the model's first thread is the owner.
                unsafe { deque.0.push(Item::fill(item)) }
            };
            own(items[0]);
            let thief = {
                let deque = deque.clone();
                loom::thread::spawn(move || {
                    for _ in 0..2 {
                        steal(&deque.0);
                    }
                })
            };
            own(items[1]);
            // SAFETY: as above.
            while let Some(item) = unsafe { deque.0.pop() } {
                Item::take(item);
            }
            thief.join().unwrap();
            // Items that a thief claimed and returned.
            // SAFETY: as above.
            while let Some(item) = unsafe { deque.0.pop() } {
                Item::take(item);
            }
            Item::finish(items);
        },
    );
}

#[test]
fn deque_grows_under_a_thief() {
    check("queue::deque_grows_under_a_thief", &["deque_freed_early"], || {
        let deque = Arc::new(Shared(WorkDeque::new(1, true, Fences::of_system())));
        let items = [Item::new(), Item::new(), Item::new()];
        // SAFETY: the model's first thread is the owner.
        unsafe { deque.0.push(Item::fill(items[0])) };
        let thief = {
            let deque = deque.clone();
            loom::thread::spawn(move || {
                steal(&deque.0);
            })
        };
        for item in &items[1..] {
            // SAFETY: as above.
            unsafe { deque.0.push(Item::fill(*item)) };
        }
        thief.join().unwrap();
        // SAFETY: as above.
        while let Some(item) = unsafe { deque.0.take_first() } {
            Item::take(item);
        }
        Item::finish(items);
    });
}

#[test]
fn inject_two_pushers() {
    check("queue::inject_two_pushers", &["inject_push_relaxed", "inject_load_then_store"], || {
        let queue = Arc::new(Shared(Inject::new()));
        let items = [Item::new(), Item::new()];
        let pusher = {
            let (queue, item) = (queue.clone(), Shared(items[1]));
            loom::thread::spawn(move || {
                let item = item;
                // SAFETY: in no queue.
                unsafe { queue.0.push(Item::fill(item.0)) }
            })
        };
        // SAFETY: in no queue.
        unsafe { queue.0.push(Item::fill(items[0])) };
        queue.0.take_all(Item::take);
        pusher.join().unwrap();
        queue.0.take_all(Item::take);
        Item::finish(items);
    });
}

/// Mail that the owner does not read is taken by another worker, or the owner reads it.
#[test]
fn a_batch_is_intercepted() {
    check("queue::a_batch_is_intercepted", &["mail_intercept_blind"], || {
        let handoff = Arc::new(Shared(HandoffSlot::<Item>::new()));
        let item = Item::new();
        handoff.0.open();
        assert!(handoff.0.try_send(NonNull::new(Item::fill(item)).unwrap().into()));
        let other = {
            let handoff = handoff.clone();
            loom::thread::spawn(move || {
                if let Some(HandoffBatch { first, .. }) = handoff.0.intercept() {
                    Item::take(first.as_ptr());
                }
            })
        };
        if let Some(HandoffBatch { first, .. }) = handoff.0.close() {
            Item::take(first.as_ptr());
        }
        other.join().unwrap();
        Item::finish([item]);
    });
}

/// The item of a public slot is taken once, by its owner or by another worker.
#[test]
fn a_public_slot_is_taken_once() {
    check(
        "queue::a_public_slot_is_taken_once",
        &["offer_relaxed", "offer_load_then_store"],
        || {
            let public_slot = Arc::new(Shared(PublicSlot::new(true, Fences::of_system())));
            let item = Item::new();
            let take = |public_slot: &PublicSlot<Item>| {
                if let Some(HandoffBatch { first, .. }) = public_slot.take() {
                    Item::take(first.as_ptr());
                }
            };
            let other = {
                let public_slot = public_slot.clone();
                loom::thread::spawn(move || take(&public_slot.0))
            };
            let batch = NonNull::new(Item::fill(item)).unwrap().into();
            // SAFETY: the model's first thread is the owner, and it is empty.
            unsafe { public_slot.0.publish(batch) };
            take(&public_slot.0);
            other.join().unwrap();
            Item::finish([item]);
        },
    );
}

/// A push beside an item in the public slot rings no worker, and the item is taken: a worker about to
/// sleep then sees the push.
#[test]
fn a_push_without_a_ring_is_seen_before_a_sleep() {
    let mutants = ["notify_no_light", "offer_no_heavy"];
    check("queue::a_push_without_a_ring_is_seen_before_a_sleep", &mutants, || {
        let fences = Fences::of_system();
        let public_slot = Arc::new(Shared(PublicSlot::<Item>::new(true, fences)));
        let pushed = Arc::new(AtomicU32::new(0));
        let item = Item::new();
        // SAFETY: the model's first thread is the owner, and it is empty.
        unsafe { public_slot.0.publish(NonNull::new(Item::fill(item)).unwrap().into()) };
        let taker = {
            let (public_slot, item) = (public_slot.clone(), Shared(item));
            loom::thread::spawn(move || {
                let item = item;
                assert!(public_slot.0.take().is_some());
                Item::take(item.0);
            })
        };
        let sleeper = {
            let (public_slot, pushed) = (public_slot.clone(), pushed.clone());
            loom::thread::spawn(move || {
                let none = PublicSlot::all_empty(std::iter::once(&public_slot.0), fences);
                none && pushed.load(Ordering::Relaxed) == 0
            })
        };
        pushed.store(1, Ordering::Relaxed);
        let calm = public_slot.0.is_calm();
        taker.join().unwrap();
        assert!(!(sleeper.join().unwrap() && calm), "asleep, and no worker was rung");
        Item::finish([item]);
    });
}

/// A ULT that slept on the other worker is handed to it while it spins, alone or as a chain of two.
#[test]
fn a_spinning_worker_gets_a_batch() {
    check(
        "queue::a_spinning_worker_gets_a_batch",
        &["mail_relaxed", "mail_load_then_store"],
        || {
            let handoff = Arc::new(Shared(HandoffSlot::<Item>::new()));
            let items = [Item::new(), Item::new()];
            handoff.0.open();
            let sender = {
                let (handoff, items) = (handoff.clone(), Shared(items));
                loom::thread::spawn(move || {
                    let items = items;
                    let [first, second] = items.0.map(Item::fill);
                    // SAFETY: not sent yet.
                    unsafe { (*first).link.store(second, Ordering::Relaxed) };
                    handoff
                        .0
                        .try_send(HandoffBatch { first: NonNull::new(first).unwrap(), more: true })
                })
            };
            let came = handoff.0.close();
            let got = came.is_some();
            if let Some(HandoffBatch { first, more }) = came {
                assert!(more, "the first of two");
                // SAFETY: it was received, so that this thread owns it.
                Item::take(unsafe { first.as_ref() }.link.load(Ordering::Relaxed));
                Item::take(first.as_ptr());
            }
            assert_eq!(got, sender.join().unwrap(), "lost, or never sent");
            if !got {
                items.into_iter().for_each(Item::take);
            }
            Item::finish(items);
        },
    );
}

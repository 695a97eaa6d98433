//! Every interleaving of two threads and a few steps, within two preemptions:
//! of the queues alone, and of the whole scheduler with its real switches.
//!
//! `RUSTFLAGS="--cfg tsumugi_loom" LOOM_MAX_PREEMPTIONS=2 cargo test -p
//! tsumugi-ult --release --target-dir target/loom --test loom`
//!
//! Each model is run as it is, and then with each of its planted mutants,
//! which it must catch.
#![cfg(all(tsumugi_loom, not(tsumugi_shuttle)))]

mod model;

use std::ptr::NonNull;
use std::sync::Arc;
use tsumugi_core::sync::{AtomicPtr, AtomicU32, AtomicUsize, Ordering, UnsafeCell};
use tsumugi_ult::bias::{Bias, STREAK};
use tsumugi_ult::deque::{Deque, Steal};
use tsumugi_ult::fences::Fences;
use tsumugi_ult::inject::{Inject, Linked};
use tsumugi_ult::mail::{Letter, Mail};
use tsumugi_ult::offer::Offer;
use tsumugi_ult::sync::{Condvar, Flag, Latch, Mutex, RwLock, Semaphore, channel};
use tsumugi_ult::{Limit, Scheduler, park, park_within, spawn, unparker, yield_now};

/// A thread's name, as the owner of a bias.
const ME: usize = 64;

/// Runs `model`, that of test `test`, over all interleavings, as it is and with
/// each of its mutants.
fn check(test: &str, mutants: &[&'static str], model: fn()) {
    check_within(0, test, mutants, model);
}

/// The same with at least `preemptions` of them, for a small model.
fn check_within(preemptions: usize, test: &str, mutants: &[&'static str], model: fn()) {
    model::check(test, mutants, || explore(preemptions, model));
}

fn explore(preemptions: usize, model: fn()) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.map(|bound| bound.max(preemptions));
    builder.max_branches = 20_000;
    let executions = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = executions.clone();
    builder.check(move || {
        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        model();
    });
    println!("{} executions", executions.load(std::sync::atomic::Ordering::Relaxed));
}

/// An item that knows how often it was taken, and holds a value that whoever
/// takes it must see.
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
        assert!(!item.is_null(), "a slot that nobody filled");
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

/// One try of a thief, who takes what it got.
fn steal(deque: &Deque<Item>) {
    if let Steal::Taken(first) = deque.steal(|_| true, Item::take) {
        Item::take(first);
    }
}

struct Shared<T>(T);
// SAFETY: what is in it is what the models are about.
unsafe impl<T> Send for Shared<T> {}
// SAFETY: the same.
unsafe impl<T> Sync for Shared<T> {}

// SAFETY: used by the queue only.
unsafe impl Linked for Item {
    fn link(&self) -> &AtomicPtr<Self> {
        &self.link
    }
}

#[test]
fn deque_owner_and_thief() {
    check(
        "deque_owner_and_thief",
        &["deque_pop_no_fence", "deque_steal_no_fence", "deque_claim_kept", "deque_push_relaxed"],
        || {
            let deque = Arc::new(Shared(Deque::new(2, true, Fences::of_system())));
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
            // What a thief claimed and gave back.
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
    check("deque_grows_under_a_thief", &["deque_freed_early"], || {
        let deque = Arc::new(Shared(Deque::new(1, true, Fences::of_system())));
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
    check("inject_two_pushers", &["inject_push_relaxed", "inject_load_then_store"], || {
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

/// A scheduler whose children run on stacks of their own.
fn scheduler(workers: usize) -> Scheduler {
    with_inline(workers, usize::MAX)
}

fn with_inline(workers: usize, inline_bytes: usize) -> Scheduler {
    model::scheduler(workers, 3, inline_bytes)
}

#[test]
fn join_across_workers() {
    check(
        "join_across_workers",
        &["join_load_then_store", "join_no_second_look", "join_relaxed", "stop_relaxed"],
        || {
            let value = scheduler(2).run(|| spawn(|| 5).join().unwrap());
            assert_eq!(value, 5);
        },
    );
}

#[test]
fn park_and_unpark_across_workers() {
    check("park_and_unpark_across_workers", &["park_no_second_look"], || {
        scheduler(2).run(|| {
            let main = unparker();
            drop(spawn(move || main.unpark()));
            park();
        });
    });
}

#[test]
fn outsider_wakes_a_sleeping_worker() {
    check("outsider_wakes_a_sleeping_worker", &["notify_no_fence", "sleep_no_last_look"], || {
        let mut scheduler = scheduler(1);
        scheduler.start().unwrap();
        let handle = scheduler.spawner().spawn(|| 3);
        assert_eq!(handle.join().unwrap(), 3);
    });
}

#[test]
fn a_thread_raises_a_flag() {
    check("a_thread_raises_a_flag", &["flag_no_second_look"], || {
        let flag = Arc::new(Flag::new());
        let raised = flag.clone();
        let raiser = loom::thread::spawn(move || raised.raise());
        scheduler(1).run(|| flag.wait());
        raiser.join().unwrap();
        assert!(!flag.take());
    });
}

#[test]
fn mutex_of_two_ults() {
    check("mutex_of_two_ults", &["mutex_no_second_look"], || {
        scheduler(2).run(|| {
            let count = Arc::new(Mutex::new(0));
            let other = {
                let count = count.clone();
                spawn(move || *count.lock() += 1)
            };
            *count.lock() += 1;
            other.join().unwrap();
            assert_eq!(*count.lock(), 2);
        });
    });
}

/// The owner of a bias and one who ends it: plain stores are not lost.
#[test]
fn a_bias_ends() {
    check("a_bias_ends", &["bias_no_light", "bias_no_heavy", "bias_no_wait"], || {
        let shared = Arc::new((Bias::new(), AtomicU32::new(0)));
        assert!(shared.0.claim(ME));
        let other = {
            let shared = shared.clone();
            loom::thread::spawn(move || {
                shared.0.end_and_wait();
                shared.1.fetch_add(1, Ordering::Relaxed);
            })
        };
        let (bias, count) = &*shared;
        if bias.enter(ME) {
            count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            bias.leave();
        } else {
            count.fetch_add(1, Ordering::Relaxed);
        }
        other.join().unwrap();
        assert_eq!(count.load(Ordering::Relaxed), 2);
    });
}

/// A worker alone has a mutex, and another thread comes.
#[test]
fn a_biased_mutex_is_shared() {
    let mutants = ["bias_no_light", "bias_no_heavy", "mutex_owes_nothing", "bias_shared_early"];
    check_within(4, "a_biased_mutex_is_shared", &mutants, || {
        scheduler(1).run(|| {
            let count = Arc::new(Mutex::new(0));
            for _ in 0..=STREAK {
                *count.lock() += 1;
            }
            let other = {
                let count = count.clone();
                loom::thread::spawn(move || *count.lock() += 1)
            };
            *count.lock() += 1;
            other.join().unwrap();
            assert_eq!(*count.lock(), STREAK + 3);
        });
    });
}

/// The same for a lock of a few instructions.
#[test]
fn a_biased_lock_is_shared() {
    let mutants = ["bias_no_light", "bias_no_heavy", "bias_no_wait"];
    check("a_biased_lock_is_shared", &mutants, || {
        scheduler(1).run(|| {
            let nobody = Arc::new(Condvar::new());
            for _ in 0..=STREAK {
                nobody.notify_one();
            }
            let other = {
                let nobody = nobody.clone();
                loom::thread::spawn(move || nobody.notify_one())
            };
            assert!(!nobody.notify_one() && !other.join().unwrap());
        });
    });
}

/// A worker alone has the park words, and another thread unparks.
#[test]
fn a_thread_unparks_a_lone_workers_ult() {
    let mutants = ["bias_no_light", "bias_no_heavy", "bias_no_wait", "park_no_second_look"];
    check("a_thread_unparks_a_lone_workers_ult", &mutants, || {
        scheduler(1).run(|| {
            let main = unparker();
            let other = loom::thread::spawn(move || main.unpark());
            park();
            other.join().unwrap();
        });
    });
}

/// A child that lets others run while it runs on its joiner's stack, so that
/// the other worker may go on with both.
#[test]
fn a_child_leaves_on_its_joiners_stack() {
    check("a_child_leaves_on_its_joiners_stack", &[], || {
        assert_eq!(with_inline(2, 0).run(child_that_yields), 5);
    });
}

/// The same on a stack of its own.
#[test]
fn a_child_leaves_in_its_joiners_place() {
    check("a_child_leaves_in_its_joiners_place", &["join_relaxed"], || {
        assert_eq!(with_inline(2, usize::MAX).run(child_that_yields), 5);
    });
}

fn child_that_yields() -> u32 {
    let child = spawn(|| {
        yield_now();
        5
    });
    child.join().unwrap()
}

/// A worker that is busy for good has pushed; the other one must come.
#[test]
fn a_push_wakes_a_sleeping_worker() {
    check("a_push_wakes_a_sleeping_worker", &["notify_no_light"], || {
        scheduler(2).run(|| {
            let ran = Arc::new(AtomicUsize::new(0));
            let seen = ran.clone();
            drop(spawn(move || seen.store(1, Ordering::Release)));
            while ran.load(Ordering::Acquire) == 0 {
                loom::thread::yield_now();
            }
        });
    });
}

/// A ULT that slept on the other worker is handed to it while it spins, or two
/// that hang together.
#[test]
fn a_spinning_worker_gets_mail() {
    check("a_spinning_worker_gets_mail", &["mail_relaxed", "mail_load_then_store"], || {
        let mail = Arc::new(Shared(Mail::<Item>::new()));
        let items = [Item::new(), Item::new()];
        mail.0.open();
        let sender = {
            let (mail, items) = (mail.clone(), Shared(items));
            loom::thread::spawn(move || {
                let items = items;
                let [first, second] = items.0.map(Item::fill);
                // SAFETY: not sent yet.
                unsafe { (*first).link.store(second, Ordering::Relaxed) };
                mail.0.try_send(Letter { first: NonNull::new(first).unwrap(), more: true })
            })
        };
        let came = mail.0.close();
        let got = came.is_some();
        if let Some(Letter { first, more }) = came {
            assert!(more, "one of two");
            // SAFETY: it came, so it is ours.
            Item::take(unsafe { first.as_ref() }.link.load(Ordering::Relaxed));
            Item::take(first.as_ptr());
        }
        assert_eq!(got, sender.join().unwrap(), "lost, or from nowhere");
        if !got {
            items.into_iter().for_each(Item::take);
        }
        Item::finish(items);
    });
}

/// What the owner does not come for, somebody else takes, or the owner does.
#[test]
fn mail_is_intercepted() {
    check("mail_is_intercepted", &["mail_intercept_blind"], || {
        let mail = Arc::new(Shared(Mail::<Item>::new()));
        let item = Item::new();
        mail.0.open();
        assert!(mail.0.try_send(NonNull::new(Item::fill(item)).unwrap().into()));
        let other = {
            let mail = mail.clone();
            loom::thread::spawn(move || {
                if let Some(Letter { first, .. }) = mail.0.intercept() {
                    Item::take(first.as_ptr());
                }
            })
        };
        if let Some(Letter { first, .. }) = mail.0.close() {
            Item::take(first.as_ptr());
        }
        other.join().unwrap();
        Item::finish([item]);
    });
}

/// What an owner lays out, it or another takes, once.
#[test]
fn an_offer_is_taken_once() {
    check("an_offer_is_taken_once", &["offer_relaxed", "offer_load_then_store"], || {
        let offer = Arc::new(Shared(Offer::new(true, Fences::of_system())));
        let item = Item::new();
        let take = |offer: &Offer<Item>| {
            if let Some(Letter { first, .. }) = offer.take() {
                Item::take(first.as_ptr());
            }
        };
        let other = {
            let offer = offer.clone();
            loom::thread::spawn(move || take(&offer.0))
        };
        let letter = NonNull::new(Item::fill(item)).unwrap().into();
        // SAFETY: the model's first thread is the owner, and it is empty.
        unsafe { offer.0.lay_out(letter) };
        take(&offer.0);
        other.join().unwrap();
        Item::finish([item]);
    });
}

/// A push beside an item that lies there tells nobody, and the item is taken:
/// who is about to sleep then sees the push.
#[test]
fn a_calm_push_is_seen_by_who_would_sleep() {
    let mutants = ["notify_no_light", "offer_no_heavy"];
    check("a_calm_push_is_seen_by_who_would_sleep", &mutants, || {
        let fences = Fences::of_system();
        let offer = Arc::new(Shared(Offer::<Item>::new(true, fences)));
        let pushed = Arc::new(AtomicU32::new(0));
        let item = Item::new();
        // SAFETY: the model's first thread is the owner, and it is empty.
        unsafe { offer.0.lay_out(NonNull::new(Item::fill(item)).unwrap().into()) };
        let taker = {
            let (offer, item) = (offer.clone(), Shared(item));
            loom::thread::spawn(move || {
                let item = item;
                assert!(offer.0.take().is_some());
                Item::take(item.0);
            })
        };
        let sleeper = {
            let (offer, pushed) = (offer.clone(), pushed.clone());
            loom::thread::spawn(move || {
                let none = Offer::none_of(std::iter::once(&offer.0), fences);
                none && pushed.load(Ordering::Relaxed) == 0
            })
        };
        pushed.store(1, Ordering::Relaxed);
        let calm = offer.0.is_calm();
        taker.join().unwrap();
        assert!(!(sleeper.join().unwrap() && calm), "asleep, and nobody was told");
        Item::finish([item]);
    });
}

/// A limit that has passed already: when it is noticed is the model's choice.
fn passed() -> Limit {
    Limit::until(std::time::Instant::now())
}

#[test]
fn limit_against_release() {
    check("limit_against_release", &["queue_remove_blind", "race_no_second_look"], || {
        let room = Arc::new(Semaphore::new(0));
        let other = {
            let room = room.clone();
            loom::thread::spawn(move || room.release(1))
        };
        let got = scheduler(1).run(|| room.acquire_within(1, passed()).is_ok());
        other.join().unwrap();
        assert_eq!(room.available(), if got { 0 } else { 1 }, "got: {got}");
    });
}

#[test]
fn thread_with_a_limit_against_release() {
    check("thread_with_a_limit_against_release", &["queue_remove_blind"], || {
        let room = Arc::new(Semaphore::new(0));
        let other = {
            let room = room.clone();
            loom::thread::spawn(move || room.release(1))
        };
        let got = room.acquire_within(1, passed()).is_ok();
        other.join().unwrap();
        assert_eq!(room.available(), if got { 0 } else { 1 }, "got: {got}");
    });
}

#[test]
fn cancel_against_unpark() {
    check("cancel_against_unpark", &["cancel_no_mark"], || {
        scheduler(2).run(|| {
            let sleeper = spawn(|| park_within(Limit::CANCELLABLE).is_ok());
            sleeper.cancel();
            // Nobody unparks it: it gives up, whenever it looks.
            assert!(!sleeper.join().unwrap());
        });
    });
}

#[test]
fn reader_against_writer() {
    check("reader_against_writer", &["rwlock_no_second_look"], || {
        let lock = Arc::new(RwLock::new(0));
        let other = {
            let lock = lock.clone();
            loom::thread::spawn(move || *lock.write() += 1)
        };
        let seen = *lock.read();
        assert!(seen <= 1);
        other.join().unwrap();
        assert_eq!(*lock.read(), 1);
    });
}

#[test]
fn latch_opens_for_all() {
    check("latch_opens_for_all", &["latch_no_second_look"], || {
        let latch = Arc::new(Latch::new(1));
        let other = {
            let latch = latch.clone();
            loom::thread::spawn(move || latch.count_down(1))
        };
        latch.wait();
        other.join().unwrap();
    });
}

#[test]
fn channel_ends_meet() {
    check("channel_ends_meet", &["channel_no_second_look"], || {
        let (sender, receiver) = channel::bounded(0);
        let other = loom::thread::spawn(move || sender.send(7).is_ok());
        assert_eq!(receiver.recv(), Ok(7));
        drop(receiver);
        assert!(other.join().unwrap());
    });
}

#[test]
fn yielding_ults_migrate_whole() {
    check("yielding_ults_migrate_whole", &[], || {
        let steps = Arc::new(AtomicUsize::new(0));
        scheduler(2).run(|| {
            let counted = steps.clone();
            let other = spawn(move || counted.fetch_add(1, Ordering::Relaxed));
            yield_now();
            other.join().unwrap();
        });
        assert_eq!(steps.load(Ordering::Relaxed), 1);
    });
}

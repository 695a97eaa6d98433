//! Locks, barriers and channels: between ULTs, between OS threads, and across, with one worker and
//! with two.

mod common;

use common::everywhere;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tsumugi_ult::sync::channel::{
    self, RecvWithinError, SendWithinError, TryRecvError, TrySendError,
};
use tsumugi_ult::sync::{
    Barrier, Condvar, Latch, Mutex, Once, OnceCell, RwLock, Semaphore, WaitGroup,
};
use tsumugi_ult::{Interrupted, block_on, yield_now};

const SHORT: Duration = Duration::from_millis(3);
const LONG: Duration = Duration::from_secs(20);

#[test]
fn readers_share_and_writers_do_not() {
    everywhere(|party| {
        let lock = Arc::new(RwLock::new((0u64, 0u64)));
        let torn = Arc::new(AtomicUsize::new(0));
        party.each(|n| {
            let (lock, torn) = (lock.clone(), torn.clone());
            move || {
                for round in 0..300 {
                    if (n + round) % 3 == 0 {
                        let mut pair = lock.write();
                        pair.0 += 1;
                        if round % 16 == 0 {
                            yield_now();
                        }
                        pair.1 += 1;
                    } else {
                        let pair = lock.read();
                        torn.fetch_add((pair.0 != pair.1) as usize, Ordering::Relaxed);
                    }
                }
            }
        });
        assert_eq!(torn.load(Ordering::Relaxed), 0);
        assert_eq!(lock.read().0, 400);
        assert!(lock.try_write().is_some(), "the lock is free");
    });
}

#[test]
fn a_writer_that_gives_up_lets_the_readers_behind_it_in() {
    everywhere(|party| {
        let lock = Arc::new(RwLock::new(0));
        let held = lock.read();
        let (latch, let_in) = (Arc::new(Latch::new(1)), Arc::new(AtomicBool::new(false)));
        let behind = {
            let (lock, latch, let_in) = (lock.clone(), latch.clone(), let_in.clone());
            party.spawn(move || {
                latch.wait();
                while lock.try_read().is_some() {
                    yield_now();
                }
                // The writer waits: the reader queues behind it.
                drop(lock.read_timeout(LONG).expect("let in when the writer gave up"));
                let_in.store(true, Ordering::Release);
            })
        };
        latch.count_down(1);
        // This ULT may have had no turn while the writer waited.
        while !let_in.load(Ordering::Acquire) {
            assert!(lock.write_timeout(Duration::from_millis(30)).is_none());
        }
        behind.join();
        drop(held);
        assert!(lock.try_write().is_some());
    });
}

#[test]
fn timed_calls_give_up_and_leave_nothing_behind() {
    everywhere(|_| {
        let start = Instant::now();
        let mutex = Mutex::new(());
        let guard = mutex.lock();
        assert!(mutex.try_lock().is_none());
        assert!(mutex.try_lock().is_none(), "a refusal must not unlock");
        assert!(mutex.lock_timeout(SHORT).is_none());
        drop(guard);
        assert!(mutex.lock_timeout(SHORT).is_some());
        assert!(mutex.try_lock().is_some());

        let (condvar, mut guard) = (Condvar::new(), mutex.lock());
        assert!(!condvar.wait_timeout(&mut guard, SHORT));
        assert!(!condvar.notify_one(), "the waiter that gave up is gone");
        drop(guard);

        let none = Semaphore::new(1);
        assert!(!none.acquire_timeout(2, SHORT));
        assert!(none.try_acquire(1), "no waiter is in front");

        let barrier = Barrier::new(2);
        assert_eq!(barrier.wait_within(SHORT), Err(Interrupted::TimedOut));
        assert_eq!(barrier.arrived(), 0);

        assert!(!Latch::new(1).wait_timeout(SHORT));
        let group = WaitGroup::new();
        let _member = group.clone();
        assert!(!group.wait_timeout(SHORT));

        let (sender, receiver) = channel::bounded(1);
        let none = Err(RecvWithinError::Interrupted(Interrupted::TimedOut));
        assert_eq!(receiver.recv_timeout(SHORT), none);
        sender.send(1).unwrap();
        let full = Err(SendWithinError::Interrupted(Interrupted::TimedOut, 2));
        assert_eq!(sender.send_timeout(2, SHORT), full);
        assert_eq!(receiver.try_recv(), Ok(1));
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
        assert!(start.elapsed() >= SHORT * 8);
    });
}

#[test]
fn permits_go_to_the_first_waiter_and_none_is_lost() {
    everywhere(|party| {
        let (room, inside) = (Arc::new(Semaphore::new(2)), Arc::new(AtomicUsize::new(0)));
        party.each(|n| {
            let (room, inside) = (room.clone(), inside.clone());
            move || {
                for round in 0..200usize {
                    let wanted = 1 + (n + round) % 2;
                    if round % 7 == 0 && !room.acquire_timeout(wanted, Duration::from_micros(50)) {
                        continue;
                    } else if round % 7 != 0 {
                        room.acquire(wanted);
                    }
                    let now = inside.fetch_add(wanted, Ordering::AcqRel) + wanted;
                    assert!(now <= 2, "{now} inside");
                    if round % 8 == 0 {
                        yield_now();
                    }
                    inside.fetch_sub(wanted, Ordering::AcqRel);
                    room.release(wanted);
                }
            }
        });
        assert_eq!(room.available(), 2);
    });
}

/// A waiter that wants more permits than there are blocks others only while it waits.
#[test]
fn a_waiter_that_gives_up_lets_the_next_one_in() {
    everywhere(|party| {
        let (room, is_over) = (Arc::new(Semaphore::new(1)), Arc::new(AtomicBool::new(false)));
        let (first, over) = (room.clone(), is_over.clone());
        let in_the_way = party.spawn(move || {
            while !over.load(Ordering::Relaxed) {
                assert!(!first.acquire_timeout(2, Duration::from_micros(200)));
            }
        });
        for round in 0..100 {
            assert!(room.acquire_timeout(1, LONG), "round {round}");
            room.release(1);
            yield_now();
        }
        is_over.store(true, Ordering::Relaxed);
        in_the_way.join();
        assert_eq!(room.available(), 1);
    });
}

#[test]
fn a_waiter_for_many_permits_is_not_overtaken() {
    everywhere(|party| {
        let room = Arc::new(Semaphore::new(2));
        room.acquire(1);
        let first = room.clone();
        let waits = party.spawn(move || first.acquire(2));
        // One permit is free until the other ULT waits.
        let start = Instant::now();
        while room.try_acquire(1) {
            room.release(1);
            assert!(start.elapsed() < LONG, "the waiter is overtaken for ever");
            yield_now();
        }
        room.release(1);
        waits.join();
        assert_eq!(room.available(), 0);
    });
}

#[test]
fn once_runs_once_and_survives_a_panic() {
    everywhere(|party| {
        let (once, runs) = (Arc::new(Once::new()), Arc::new(AtomicUsize::new(0)));
        let cell = Arc::new(OnceCell::new());
        party.each(|n| {
            let (once, runs, cell) = (once.clone(), runs.clone(), cell.clone());
            move || {
                let call = || {
                    once.call(|| {
                        yield_now();
                        if runs.fetch_add(1, Ordering::AcqRel) == 0 {
                            std::panic::resume_unwind(Box::new("the first fails"));
                        }
                    })
                };
                if std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).is_err() {
                    call();
                }
                assert!(once.is_done());
                let value = *cell.get_or_init(|| {
                    yield_now();
                    n
                });
                assert_eq!(cell.get(), Some(&value));
            }
        });
        assert_eq!(runs.load(Ordering::Relaxed), 2, "one failure, one success");
    });
}

#[test]
fn a_wait_group_waits_for_all_members() {
    everywhere(|party| {
        let (group, done) = (WaitGroup::new(), Arc::new(AtomicUsize::new(0)));
        let members: Vec<_> = (0..3)
            .map(|_| {
                let (member, done) = (group.clone(), done.clone());
                party.spawn(move || {
                    yield_now();
                    done.fetch_add(1, Ordering::AcqRel);
                    drop(member);
                })
            })
            .collect();
        group.wait();
        assert_eq!(done.load(Ordering::Acquire), 3);
        members.into_iter().for_each(|member| member.join());
    });
}

#[test]
fn values_arrive_once_and_in_order() {
    const EACH: usize = 400;
    for capacity in [0, 1, 16, usize::MAX] {
        everywhere(|party| {
            let (sender, receiver) = match capacity {
                usize::MAX => channel::unbounded(),
                capacity => channel::bounded(capacity),
            };
            let sum = Arc::new(AtomicUsize::new(0));
            let sides: Vec<_> = (0..2)
                .flat_map(|side| {
                    let (sender, receiver, sum) = (sender.clone(), receiver.clone(), sum.clone());
                    let sends = party.spawn(move || {
                        for n in 0..EACH {
                            sender.send((side, n)).unwrap();
                        }
                    });
                    let receives = party.spawn(move || {
                        let mut last = [None; 2];
                        for (side, n) in &receiver {
                            assert!(last[side] < Some(n), "{side}: {n} after {last:?}");
                            last[side] = Some(n);
                            sum.fetch_add(n, Ordering::Relaxed);
                        }
                    });
                    [sends, receives]
                })
                .collect();
            drop((sender, receiver));
            sides.into_iter().for_each(|side| side.join());
            assert_eq!(sum.load(Ordering::Relaxed), EACH * (EACH - 1), "capacity {capacity}");
        });
    }
}

#[test]
fn a_disconnected_channel_returns_an_error() {
    everywhere(|party| {
        let (sender, receiver) = channel::bounded(2);
        sender.send(1).unwrap();
        drop(sender);
        assert_eq!(receiver.recv(), Ok(1), "values that were sent can still be received");
        assert!(receiver.recv().is_err());
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
        assert_eq!(receiver.recv_timeout(LONG), Err(RecvWithinError::Disconnected));

        let (sender, receiver) = channel::bounded(1);
        let witness = Arc::new(());
        sender.send(witness.clone()).unwrap();
        let waiting = {
            let (sender, witness) = (sender.clone(), witness.clone());
            party.spawn(move || assert!(sender.send(witness).is_err()))
        };
        while Arc::strong_count(&witness) < 3 {
            yield_now();
        }
        drop(receiver);
        waiting.join();
        assert_eq!(
            Arc::strong_count(&witness),
            1,
            "the values were dropped, since no receiver is left"
        );
        let refused = sender.try_send(witness).unwrap_err();
        assert!(matches!(refused, TrySendError::Disconnected(_)));

        let (sender, receiver) = channel::bounded::<()>(0);
        assert!(matches!(sender.try_send(()), Err(TrySendError::Full(()))), "no receiver waits");
        let waiting = party.spawn(move || assert!(receiver.recv().is_err()));
        yield_now();
        drop(sender);
        waiting.join();
    });
}

#[test]
fn futures_send_and_receive_and_lose_nothing() {
    everywhere(|party| {
        let (sender, receiver) = channel::bounded(1);
        let producer = party.spawn(move || {
            block_on(async {
                for n in 0..100 {
                    sender.send_async(n).await.unwrap();
                }
            })
        });
        let mut sum = 0;
        block_on(async {
            while let Ok(n) = receiver.recv_async().await {
                sum += n;
            }
        });
        assert_eq!(sum, 4950);
        producer.join();

        // A receiver that was handed a value and is dropped passes it on.
        let (sender, receiver) = channel::bounded(4);
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let mut first = Box::pin(receiver.recv_async());
        assert!(first.as_mut().poll(&mut context).is_pending());
        sender.send(1).unwrap();
        sender.send(2).unwrap();
        drop(first);
        assert_eq!((receiver.recv(), receiver.recv()), (Ok(1), Ok(2)));
        let mut given_up = Box::pin(receiver.recv_async());
        assert!(given_up.as_mut().poll(&mut context).is_pending());
        drop(given_up);
        sender.send(3).unwrap();
        assert_eq!(receiver.try_recv(), Ok(3));
    });
}

/// The clone and the drop of a waker may run any code, also calls on the channel that has it.
#[test]
fn a_waker_may_use_its_channel_when_it_is_dropped() {
    struct Uses(channel::Sender<u32>, channel::Receiver<u32>, Arc<AtomicUsize>);
    impl std::task::Wake for Uses {
        fn wake(self: Arc<Self>) {}
    }
    impl Drop for Uses {
        fn drop(&mut self) {
            assert_eq!(self.0.len() + self.1.len(), 2 * self.0.len());
            self.2.fetch_add(1, Ordering::SeqCst);
        }
    }
    let dropped = Arc::new(AtomicUsize::new(0));
    let (sender, receiver) = channel::bounded::<u32>(1);
    let uses = || {
        let uses = Uses(sender.clone(), receiver.clone(), dropped.clone());
        std::task::Waker::from(Arc::new(uses))
    };
    fn poll<F: Future>(future: std::pin::Pin<&mut F>, waker: std::task::Waker) -> bool {
        future.poll(&mut std::task::Context::from_waker(&waker)).is_ready()
    }
    let count = || dropped.swap(0, Ordering::SeqCst);

    // Replaced by a later poll, by one that finds the future served, and dropped with it.
    let mut receives = Box::pin(receiver.recv_async());
    assert!(!poll(receives.as_mut(), uses()) && !poll(receives.as_mut(), uses()));
    assert_eq!(count(), 1);
    sender.send(1).unwrap();
    assert!(poll(receives.as_mut(), uses()));
    assert_eq!(count(), 2);
    let mut given_up = Box::pin(receiver.recv_async());
    assert!(!poll(given_up.as_mut(), uses()));
    drop(given_up);
    assert_eq!(count(), 1);

    // The same for a future that sends.
    sender.send(2).unwrap();
    let mut sends = Box::pin(sender.send_async(3));
    assert!(!poll(sends.as_mut(), uses()) && !poll(sends.as_mut(), uses()));
    assert_eq!(count(), 1);
    assert_eq!((receiver.recv(), receiver.recv()), (Ok(2), Ok(3)));
    assert!(poll(sends.as_mut(), uses()));
    assert_eq!(count(), 2);
    sender.send(4).unwrap();
    let mut given_up = Box::pin(sender.send_async(5));
    assert!(!poll(given_up.as_mut(), uses()));
    drop(given_up);
    assert_eq!(count(), 1);
}

#[test]
fn a_latch_that_cannot_count_down_stays_as_it_is() {
    for (count, by) in [(0, 1), (1, 2), (3, usize::MAX)] {
        let latch = Latch::new(count);
        let counts = std::panic::AssertUnwindSafe(|| latch.count_down(by));
        let refused = std::panic::catch_unwind(counts).unwrap_err();
        assert_eq!(
            refused.downcast_ref::<String>().unwrap(),
            &format!("a latch with {count} left was counted down by {by}")
        );
        assert_eq!((latch.count(), latch.is_open()), (count, count == 0));
        latch.count_down(0);
        latch.count_down(count);
        latch.wait();
    }
}

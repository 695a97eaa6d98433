//! The engine: no operation that was enqueued is left without a thread that works on it.

use crate::{Kernel, Threads, check, retry};
use loom::sync::Arc;
use loom::thread;
use tsumugi_core::backend::{Completion, Endpoint};
use tsumugi_core::completion::CompletionTable;
use tsumugi_core::engine::{Delegate, Idle, Offload, Port, PortCounts, WaiterStack, Work};
use tsumugi_core::mem::{Rank, RegionKey, RemoteAddr, Width};
use tsumugi_core::op::Op;
use tsumugi_core::ring::Mpsc;
use tsumugi_core::sync::{AtomicU32, AtomicUsize, Ordering};

/// A device that completes what it takes, and counts it.
struct Counting(Arc<AtomicUsize>, heapless::Deque<Completion, 4>);

impl Endpoint for Counting {
    fn post(&mut self, ops: &[Op]) -> usize {
        for op in ops {
            self.1.push_back(Completion { tag: op.tag, result: Ok(0) }).unwrap();
        }
        // Relaxed: the model checks that it was posted, and not what the poster saw.
        self.0.fetch_add(ops.len(), Ordering::Relaxed);
        ops.len()
    }

    fn poll(&mut self, completions: &mut [Completion]) -> usize {
        let Some(done) = self.1.pop_front() else { return 0 };
        completions[0] = done;
        1
    }

    fn arm(&mut self) -> bool {
        true
    }
}

fn get() -> Op {
    let addr = RemoteAddr { rank: Rank(0), key: RegionKey::new(0, 1), offset: 0 };
    Op::get_word(addr, Width::W8)
}

/// The parts that live as long as an execution of the model.
struct Parts {
    table: CompletionTable<1>,
    ring: Mpsc<Work, 2>,
    counts: PortCounts,
}

impl Parts {
    fn leak() -> &'static Self {
        // Freed by `reclaim`, since loom reports leaks.
        Box::leak(Box::new(Self {
            table: CompletionTable::new(),
            ring: Mpsc::new(),
            counts: PortCounts::new(),
        }))
    }

    fn reclaim(&'static self) {
        // SAFETY: from `leak`, and no thread uses it any more.
        drop(unsafe { Box::from_raw((&raw const *self).cast_mut()) });
    }
}

#[test]
fn a_delegate_leaves_nothing_behind() {
    nothing_is_left_by(|delegate| delegate.enqueue(get()).unwrap());
}

#[test]
fn a_delegate_that_is_worked_at_once_leaves_nothing_behind() {
    nothing_is_left_by(|delegate| delegate.enqueue_now(get()).unwrap());
}

fn nothing_is_left_by(enqueue: fn(&Delegate<'static, Counting>)) {
    check(&["delegate_mark_only_if_held", "delegate_mark_kept"], move || {
        let parts = Parts::leak();
        let posted = Arc::new(AtomicUsize::new(0));
        let device = Counting(posted.clone(), heapless::Deque::new());
        let port = Port::new(device, parts.table.view(), &parts.counts);
        // SAFETY: no other consumer pops.
        let delegate = Arc::new(unsafe { Delegate::new(port, parts.ring.view()) });
        let other = thread::spawn({
            let delegate = delegate.clone();
            move || enqueue(&delegate)
        });
        enqueue(&delegate);
        other.join().unwrap();
        // What is gathered goes out with one poll, and the ring is empty by
        // now, or its content was marked and drained.
        delegate.flush();
        assert_eq!(posted.load(Ordering::Relaxed), 2, "left in the ring");
        drop(delegate);
        parts.reclaim();
    });
}

#[test]
fn an_owner_is_woken() {
    check(&["event_notify_unordered", "event_prepare_unordered", "offload_no_last_look"], || {
        let parts = Parts::leak();
        let posted = Arc::new(AtomicUsize::new(0));
        let offload = Arc::new(Offload::new(parts.ring.view()));
        let kernel = Arc::new(Kernel::new());
        let owner = thread::spawn({
            let (offload, kernel, posted) = (offload.clone(), kernel.clone(), posted.clone());
            move || {
                let device = Counting(posted, heapless::Deque::new());
                let port = Port::new(device, parts.table.view(), &parts.counts);
                // SAFETY: the only owner.
                let mut owner = unsafe { offload.owner(port) };
                owner.sleep(&*kernel, None);
                // One wake is enough: the owner sees what was pushed before it.
                retry(3, || owner.turn().then_some(())).expect("woken without work");
            }
        });
        offload.enqueue(get(), &*kernel).unwrap();
        owner.join().unwrap();
        assert_eq!(posted.load(Ordering::Relaxed), 1);
        drop(offload);
        parts.reclaim();
    });
}

#[test]
fn a_waiter_for_room_is_woken() {
    check(&["room_no_fence", "room_edge"], || {
        let room = Arc::new(WaiterStack::new());
        let free = Arc::new(AtomicU32::new(0));
        let waiter = thread::spawn({
            let (room, free) = (room.clone(), free.clone());
            move || room.wait(&Threads, &|| free.load(Ordering::SeqCst) > 0)
        });
        free.swap(1, Ordering::SeqCst);
        room.made();
        waiter.join().unwrap();
    });
}

#[test]
fn a_stopped_owner_ends() {
    check(&[], || {
        let parts = Parts::leak();
        let posted = Arc::new(AtomicUsize::new(0));
        let offload = Arc::new(Offload::new(parts.ring.view()));
        let kernel = Arc::new(Kernel::new());
        let owner = thread::spawn({
            let (offload, kernel, posted) = (offload.clone(), kernel.clone(), posted.clone());
            move || {
                let device = Counting(posted, heapless::Deque::new());
                let port = Port::new(device, parts.table.view(), &parts.counts);
                // SAFETY: the only owner.
                let mut owner = unsafe { offload.owner(port) };
                owner.run(Idle { spins: 0, yields: 0 }, &*kernel, &thread::yield_now);
            }
        });
        offload.stop(&*kernel);
        owner.join().unwrap();
        drop(offload);
        parts.reclaim();
    });
}

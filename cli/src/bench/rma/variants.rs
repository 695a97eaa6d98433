//! The paper's other designs of the same engine, measured side by side with listings
//! 6 and 7: which side takes the tag, and how the executor waits.
//!
//! | name | tags | ring | an idle executor |
//! |---|---|---|---|
//! | `requester_tags` | by the requester | [`Mpsc`] | spins |
//! | `executor_tags` | by the executor, as on Tofu | [`Mpsc`] | spins |
//! | `wait_spin` | by the requester | [`Mpsc`] | spins |
//! | `wait_yield` | by the requester | [`Mpsc`] | yields |
//! | `wait_condvar` | by the requester | under a mutex | waits for a condition variable |
//! | `wait_marked` | by the requester | [`Marked`], its mark is the tail's lowest bit | sleeps on a futex |
//! | `wait_event` | by the requester | [`Mpsc`] and an [`EventWord`] | sleeps on a futex |
//!
//! `requester_tags` is the engine as it is. The others share one executor, except
//! for the differences in the table: the executor carries each operation out and
//! completes it at once. An executor that sleeps does so as soon as it has nothing
//! to do; the engine spins for a while first, and each variant could do so as well.

use super::bed::TestBed;
use super::bench::RmaBench;
use super::figures::{self, WantedLoops};
use super::listing::Calls;
use crate::bench::catalogue::Group;
use crate::failure::Failure;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use tsumugi::affinity;
use tsumugi::pvas::Direct;
use tsumugi::ult::SystemFutex;
use tsumugi_core::backend::execute;
use tsumugi_core::completion::{Callback, CompletionTable};
use tsumugi_core::mem::Width;
use tsumugi_core::op::Op;
use tsumugi_core::ring::{Marked, Mpsc, Pushed};
use tsumugi_core::sync::{AtomicBool, AtomicU32, Ordering, spin_loop};
use tsumugi_core::wait::{EventWord, Futex};

pub const GROUP: Group = Group {
    name: "variants",
    rows: &[
        "requester_tags",
        "executor_tags",
        "wait_spin",
        "wait_yield",
        "wait_condvar",
        "wait_marked",
        "wait_event",
    ],
};

pub fn measure(bench: &RmaBench<'_>, bed: &mut TestBed) -> Result<(), Failure> {
    for name in GROUP.rows.iter().filter(|name| bench.wants(name)) {
        bench.rows.progress.stage(name, THREADS.len() as u64);
        for (step, threads) in (1..).zip(THREADS) {
            one(bench, bed, name, threads)?;
            bench.rows.progress.at(step);
        }
    }
    Ok(())
}

fn one(bench: &RmaBench<'_>, bed: &mut TestBed, name: &str, threads: usize) -> Result<(), Failure> {
    let op = Op::get_word(bench.places[0].addr(), Width::W8);
    let memory = bed.memory().clone();
    let cpu = bench.cpus[1];
    let timed = bench.between_trips(|| match name {
        "requester_tags" => {
            let serving = bed.offload(cpu);
            figures::point(
                bench,
                serving.engine(),
                op,
                threads,
                &bench.cpus[..1],
                WantedLoops::BOTH,
            )
        }
        "executor_tags" => executor_tags(bench, memory, op, threads),
        "wait_spin" => waiting(bench, Spin::default(), memory, op, threads),
        "wait_yield" => waiting(bench, Yield::default(), memory, op, threads),
        "wait_condvar" => waiting(bench, Locked::default(), memory, op, threads),
        "wait_marked" => waiting(bench, LowBit::default(), memory, op, threads),
        _ => waiting(bench, EventQueue::default(), memory, op, threads),
    })?;
    let kinds = ["latency", "overhead", "rate"].into_iter().zip(timed.value.clone());
    let rows = kinds.filter_map(|(kind, mut samples)| {
        timed.row(name, &format!("threads={threads} of={kind}"), &mut samples)
    });
    bench.rows.write(rows)
}

/// A queue, and the way in which its consumer waits.
trait WaitingQueue: Send + Sync + 'static {
    /// Puts `op` in; returns false if there is no room.
    fn try_push(&self, op: Op) -> bool;

    /// Takes an operation out. Only one thread calls it.
    fn try_pop(&self) -> Option<Op>;

    /// Waits after an empty `try_pop`; may return early. Only the consumer's thread
    /// calls it.
    fn wait(&self) {
        spin_loop();
    }

    /// Ends the present or the next wait of the consumer.
    fn interrupt(&self) {}
}

/// A design in which requesters take tags, and an executor does the rest.
struct Variant<Q> {
    queue: Q,
    table: CompletionTable<SHARDS>,
    stop: AtomicBool,
}

impl<Q: WaitingQueue> Calls for &'static Variant<Q> {
    fn try_call(&self, hint: usize, op: Op, callback: Callback) -> bool {
        let table = self.table.view();
        let Some(tag) = table.try_begin_callback(hint, callback) else { return false };
        let pushed = self.queue.try_push(op.tagged(tag));
        if !pushed {
            table.retract_callback(tag);
        }
        pushed
    }
}

fn waiting<Q: WaitingQueue>(
    bench: &RmaBench<'_>,
    queue: Q,
    memory: Direct,
    op: Op,
    threads: usize,
) -> Result<[Vec<f64>; 3], Failure> {
    // Leaked as in the bed, because there are few.
    let variant: &'static Variant<Q> = Box::leak(Box::new(Variant {
        queue,
        table: CompletionTable::new(),
        stop: AtomicBool::new(false),
    }));
    let executor = move || {
        while !variant.stop.load(Ordering::SeqCst) {
            while let Some(op) = variant.queue.try_pop() {
                variant.table.view().complete(op.tag, execute(&memory, &op));
            }
            variant.queue.wait();
        }
    };
    let measure =
        || figures::point(bench, variant, op, threads, &bench.cpus[..1], WantedLoops::BOTH);
    beside(bench.cpus[1], executor, measure, || {
        variant.stop.store(true, Ordering::SeqCst);
        variant.queue.interrupt();
    })
}

/// A design in which only the executor uses tags.
struct ExecutorTags {
    ring: Mpsc<(Op, Callback), SLOTS>,
    stop: AtomicBool,
}

impl Calls for &'static ExecutorTags {
    fn try_call(&self, _: usize, op: Op, callback: Callback) -> bool {
        self.ring.try_push((op, callback)).is_ok()
    }
}

fn executor_tags(
    bench: &RmaBench<'_>,
    memory: Direct,
    op: Op,
    threads: usize,
) -> Result<[Vec<f64>; 3], Failure> {
    let variant: &'static ExecutorTags =
        Box::leak(Box::new(ExecutorTags { ring: Mpsc::new(), stop: AtomicBool::new(false) }));
    let executor = move || {
        let table = Box::new(CompletionTable::<1>::new());
        while !variant.stop.load(Ordering::SeqCst) {
            // SAFETY: this thread is the only consumer.
            while let Some((op, callback)) = unsafe { variant.ring.view().try_pop() } {
                let tag = table.view().try_begin_callback(0, callback).expect("64 tags are free");
                table.view().complete(tag, execute(&memory, &op));
            }
            spin_loop();
        }
    };
    let measure =
        || figures::point(bench, variant, op, threads, &bench.cpus[..1], WantedLoops::BOTH);
    beside(bench.cpus[1], executor, measure, || variant.stop.store(true, Ordering::SeqCst))
}

/// Runs `measure` while `executor` runs on `cpu`.
fn beside<T>(
    cpu: usize,
    executor: impl FnOnce() + Send + 'static,
    measure: impl FnOnce() -> T,
    stop: impl FnOnce(),
) -> T {
    let executor = thread::spawn(move || {
        // If the machine does not allow pinning, the measured trips show that.
        let _ = affinity::pin(cpu);
        executor();
    });
    let measured = measure();
    stop();
    executor.join().expect("the executor does not panic");
    measured
}

#[derive(Default)]
struct Spin(Mpsc<Op, SLOTS>);

impl WaitingQueue for Spin {
    fn try_push(&self, op: Op) -> bool {
        self.0.try_push(op).is_ok()
    }

    fn try_pop(&self) -> Option<Op> {
        // SAFETY: only one thread calls it, by the trait's contract.
        unsafe { self.0.view().try_pop() }
    }
}

#[derive(Default)]
struct Yield(Spin);

impl WaitingQueue for Yield {
    fn try_push(&self, op: Op) -> bool {
        self.0.try_push(op)
    }

    fn try_pop(&self) -> Option<Op> {
        self.0.try_pop()
    }

    fn wait(&self) {
        thread::yield_now();
    }
}

#[derive(Default)]
struct Locked {
    queue: Mutex<(VecDeque<Op>, bool)>,
    filled: Condvar,
}

impl Locked {
    fn lock(&self) -> MutexGuard<'_, (VecDeque<Op>, bool)> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WaitingQueue for Locked {
    fn try_push(&self, op: Op) -> bool {
        let mut queue = self.lock();
        let has_room = queue.0.len() < SLOTS;
        if has_room {
            queue.0.push_back(op);
            self.filled.notify_one();
        }
        has_room
    }

    fn try_pop(&self) -> Option<Op> {
        self.lock().0.pop_front()
    }

    fn wait(&self) {
        let empty = |queue: &mut (VecDeque<Op>, bool)| queue.0.is_empty() && !queue.1;
        drop(self.filled.wait_while(self.lock(), empty));
    }

    fn interrupt(&self) {
        self.lock().1 = true;
        self.filled.notify_one();
    }
}

#[derive(Default)]
struct LowBit {
    ring: Marked<Op, SLOTS>,
    /// 1 while the consumer sleeps or is about to sleep.
    asleep: AtomicU32,
    stop: AtomicBool,
}

impl LowBit {
    fn wake(&self) {
        self.asleep.store(0, Ordering::SeqCst);
        SystemFutex.wake(&self.asleep, 1);
    }
}

impl WaitingQueue for LowBit {
    fn try_push(&self, op: Op) -> bool {
        match self.ring.try_push(op) {
            Ok(Pushed::Awake) => true,
            Ok(Pushed::Asleep) => {
                self.wake();
                true
            }
            Err(_) => false,
        }
    }

    fn try_pop(&self) -> Option<Op> {
        // SAFETY: only one thread calls it, by the trait's contract.
        unsafe { self.ring.try_pop() }
    }

    fn wait(&self) {
        // SeqCst: before the mark, after which a producer clears the word.
        self.asleep.store(1, Ordering::SeqCst);
        // SAFETY: only one thread calls it, by the trait's contract.
        if unsafe { self.ring.try_mark() } && !self.stop.load(Ordering::SeqCst) {
            while self.asleep.load(Ordering::SeqCst) == 1 {
                SystemFutex.wait(&self.asleep, 1, None);
            }
        }
    }

    fn interrupt(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.wake();
    }
}

#[derive(Default)]
struct EventQueue {
    queue: Spin,
    event: EventWord,
    stop: AtomicBool,
}

impl EventQueue {
    fn notify(&self) {
        if self.event.notify() {
            SystemFutex.wake(self.event.word(), 1);
        }
    }
}

impl WaitingQueue for EventQueue {
    fn try_push(&self, op: Op) -> bool {
        let pushed = self.queue.try_push(op);
        if pushed {
            self.notify();
        }
        pushed
    }

    fn try_pop(&self) -> Option<Op> {
        self.queue.try_pop()
    }

    fn wait(&self) {
        let ticket = self.event.prepare();
        if self.queue.0.view().is_empty() && !self.stop.load(Ordering::SeqCst) {
            SystemFutex.wait(self.event.word(), ticket.expected(), None);
        }
        self.event.cancel();
    }

    fn interrupt(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.notify();
    }
}

const THREADS: [usize; 2] = [1, 4];
const SHARDS: usize = 16;
const SLOTS: usize = 1024;

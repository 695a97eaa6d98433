//! The two loops of the paper, over any interface that calls back when an operation
//! has ended.
//!
//! ```text
//!  listing 6   t0 submit t1 wait t2      overhead t1 - t0, latency t2 - t0
//!  listing 7   submit submit ...         operations ended in a time
//! ```
//!
//! As in the paper, a requester that cannot submit, or that waits, lets other
//! threads run if it shares its CPU. Unlike in the paper, listing 7 keeps to a
//! window, so that no queue grows beyond what can be drained in a moment.

use super::crew::Work;
use std::hint::black_box;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tsumugi::AddrError;
use tsumugi_core::backend::Endpoint;
use tsumugi_core::completion::Callback;
use tsumugi_core::engine::Engine;
use tsumugi_core::op::Op;
use tsumugi_core::sync::{AtomicU64, CachePadded, Ordering, spin_loop};

/// `try_read_async` of the paper.
pub trait Calls: Clone + Send + 'static {
    /// Begins `op`; returns false if there is no room for it. `hint` is the
    /// requester's number.
    fn try_call(&self, hint: usize, op: Op, callback: Callback) -> bool;

    /// Posts and polls, for paths where no other thread does; returns whether there
    /// was anything.
    fn poll(&self) -> bool {
        false
    }
}

impl<E: Endpoint> Calls for &'static Engine<'static, E> {
    fn try_call(&self, hint: usize, op: Op, callback: Callback) -> bool {
        self.submit_callback(hint, op, callback).is_ok()
    }

    fn poll(&self) -> bool {
        Engine::poll(self) > 0
    }
}

/// The operation of a requester, and its conditions.
#[derive(Clone)]
pub struct RequesterSetup<C> {
    pub calls: C,
    pub op: Op,
    /// Whether no other requester shares the CPU; then the requester spins.
    pub is_alone: bool,
    /// The number of outstanding operations, for listing 7.
    pub window: u64,
    /// The cost of a pair of clock readings.
    pub clock_ns: f64,
}

/// The measurements of all requesters of listing 6.
#[derive(Debug, Default)]
pub struct Measurements {
    pub overhead: Vec<f64>,
    pub latency: Vec<f64>,
}

/// A requester of listing 6.
pub struct Listing6<C> {
    request: RequesterSetup<C>,
    hint: usize,
    ended: Box<CompletionCount>,
    own: Measurements,
    all: Arc<Mutex<Measurements>>,
}

/// A requester of listing 7.
pub struct Listing7<C> {
    request: RequesterSetup<C>,
    hint: usize,
    ended: Box<CompletionCount>,
    begun: u64,
    seen: u64,
}

/// The counter that callbacks write.
#[derive(Default)]
struct CompletionCount {
    count: CachePadded<AtomicU64>,
    failed: OnceLock<AddrError>,
}

impl<C: Calls> Listing6<C> {
    /// The requester with the number `hint`.
    pub fn new(request: &RequesterSetup<C>, hint: usize, all: &Arc<Mutex<Measurements>>) -> Self {
        let room = || Vec::with_capacity(SAMPLES_MAX);
        let own = Measurements { overhead: room(), latency: room() };
        Self { request: request.clone(), hint, ended: Box::default(), own, all: all.clone() }
    }
}

impl<C: Calls> Work for Listing6<C> {
    fn turn(&mut self, relax: &dyn Fn()) -> Result<u64, AddrError> {
        let RequesterSetup { calls, op, is_alone, clock_ns, .. } = &self.request;
        let wait = || {
            if calls.poll() {
            } else if *is_alone {
                spin_loop();
            } else {
                relax();
            }
        };
        let (mut overhead, mut latency, mut count) = (Duration::ZERO, Duration::ZERO, 0);
        while count < BATCH && latency < BATCH_TIME_MAX {
            let before = self.ended.count.load(Ordering::Relaxed);
            let t0 = Instant::now();
            while !calls.try_call(self.hint, *op, self.ended.callback()) {
                wait();
            }
            let t1 = Instant::now();
            // Acquire: pairs with the Release in `callback`.
            while self.ended.count.load(Ordering::Acquire) == before {
                wait();
            }
            overhead += t1 - t0;
            latency += t0.elapsed();
            count += 1;
        }
        self.ended.result()?;
        if self.own.latency.len() < SAMPLES_MAX {
            let mean = |time: Duration| time.as_nanos() as f64 / count as f64;
            self.own.overhead.push(mean(overhead) - clock_ns);
            self.own.latency.push(mean(latency) - 2.0 * clock_ns);
        }
        Ok(count)
    }

    fn finish(&mut self, _: &dyn Fn()) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.overhead.append(&mut self.own.overhead);
        all.latency.append(&mut self.own.latency);
    }
}

impl<C: Calls> Listing7<C> {
    /// The requester with the number `hint`.
    pub fn new(request: &RequesterSetup<C>, hint: usize) -> Self {
        Self { request: request.clone(), hint, ended: Box::default(), begun: 0, seen: 0 }
    }
}

impl<C: Calls> Work for Listing7<C> {
    fn turn(&mut self, relax: &dyn Fn()) -> Result<u64, AddrError> {
        let RequesterSetup { calls, op, window, .. } = &self.request;
        let room = window - (self.begun - self.ended.count.load(Ordering::Relaxed));
        for _ in 0..room {
            if !calls.try_call(self.hint, *op, self.ended.callback()) {
                break;
            }
            self.begun += 1;
        }
        let ended = self.ended.count.load(Ordering::Relaxed) - self.seen;
        self.seen += ended;
        self.ended.result()?;
        if ended == 0 && !calls.poll() {
            relax();
        }
        Ok(ended)
    }

    fn finish(&mut self, relax: &dyn Fn()) {
        // Acquire: pairs with the Release in `callback`: afterwards no callback is
        // left that could touch the counter.
        while self.ended.count.load(Ordering::Acquire) != self.begun {
            if !self.request.calls.poll() {
                relax();
            }
        }
    }
}

impl CompletionCount {
    fn callback(&self) -> Callback {
        // SAFETY: both kinds of requesters wait for all operations that they have
        // begun before they are dropped, and a callback touches the counter last.
        unsafe { Callback::new(count, (&raw const *self).cast_mut().cast()) }
    }

    fn result(&self) -> Result<(), AddrError> {
        self.failed.get().map_or(Ok(()), |error| Err(*error))
    }
}

fn count(ended: *mut (), result: Result<u64, AddrError>) {
    // SAFETY: see `callback`.
    let ended = unsafe { &*ended.cast::<CompletionCount>() };
    if let Err(error) = result {
        // Only the first error is kept.
        let _ = ended.failed.set(error);
    }
    // Release: pairs with the Acquire of the requester.
    ended.count.fetch_add(1, Ordering::Release);
}

/// The time that a pair of clock readings adds to an interval measured between them.
pub fn clock_ns() -> f64 {
    let batch = |_| {
        let pair = |_| {
            let begin = Instant::now();
            black_box(begin.elapsed()).as_nanos() as u64
        };
        (0..BATCH).map(pair).sum::<u64>() as f64 / BATCH as f64
    };
    let mut batches: Vec<f64> = (0..CLOCK_BATCHES).map(batch).collect();
    batches.sort_unstable_by(f64::total_cmp);
    batches[batches.len() / 2]
}

/// The clock has steps of 10 ns: many readings make these negligible.
const BATCH: u64 = 64;
/// A batch of long messages ends earlier.
const BATCH_TIME_MAX: Duration = Duration::from_millis(2);
const CLOCK_BATCHES: u32 = 101;
const SAMPLES_MAX: usize = 1 << 14;

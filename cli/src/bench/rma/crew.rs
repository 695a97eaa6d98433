//! Requesters that work at the same time: OS threads on given CPUs, or user-level
//! threads of this rank.
//!
//! ```text
//!  requester 0   work ─ work ─ look at the clock ─ work ─ ...   samples of all
//!  requester 1   work ─ work ─ work ─ ...                       their operations
//! ```
//!
//! The samples are of the steady state: the first ones are dropped, and all
//! requesters work until the last sample is taken. One of the requesters takes the
//! samples, so that no further thread needs a CPU.

use super::super::sample::Budget;
use crate::failure::Failure;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use tsumugi::affinity;
use tsumugi::{AddrError, Runtime};
use tsumugi_core::sync::{AtomicBool, AtomicU64, CachePadded, Ordering};

/// The work of a requester.
pub trait Work: Send + 'static {
    /// Does some of the work; returns the number of operations that have ended in
    /// it. `relax` lets other threads run if there is nothing to do.
    fn turn(&mut self, relax: &dyn Fn()) -> Result<u64, AddrError>;

    /// Waits for the operations in flight.
    fn finish(&mut self, relax: &dyn Fn());
}

/// The kind of requesters.
#[derive(Clone, Copy)]
pub enum Crew<'a> {
    /// OS threads, distributed over these CPUs.
    Threads(&'a [usize]),
    /// User-level threads of a rank with one worker.
    Ults(&'a Runtime),
}

/// Runs all `works` until the budget is used up; returns nanoseconds per operation
/// of all together, sample by sample.
pub fn run<W: Work>(crew: Crew<'_>, budget: Budget, works: Vec<W>) -> Result<Vec<f64>, Failure> {
    let done = works.iter().map(|_| CachePadded::new(AtomicU64::new(0))).collect();
    let meter = Arc::new(Meter { stop: AtomicBool::new(false), done });
    let works = works.into_iter().enumerate();
    let samples: Vec<Result<Vec<f64>, AddrError>> = match crew {
        Crew::Threads(cpus) => {
            let start = |(index, work)| {
                let (meter, cpu) = (meter.clone(), cpus[index % cpus.len()]);
                thread::spawn(move || {
                    // If the machine does not allow pinning, the measured trips
                    // show that.
                    let _ = affinity::pin(cpu);
                    meter.work(index, budget, work, &thread::yield_now)
                })
            };
            let threads: Vec<_> = works.map(start).collect();
            threads.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
        }
        Crew::Ults(rt) => {
            let start = |(index, work)| {
                let meter = meter.clone();
                rt.spawn(move |_| meter.work(index, budget, work, &tsumugi::ult::yield_now))
            };
            let ults: Vec<_> = works.map(start).collect();
            ults.into_iter().map(|ult| ult.join().expect("no ULT panics")).collect()
        }
    };
    Ok(samples.into_iter().collect::<Result<Vec<_>, _>>()?.concat())
}

struct Meter {
    stop: AtomicBool,
    /// The operations done by each requester, read by requester 0.
    done: Vec<CachePadded<AtomicU64>>,
}

impl Meter {
    fn work(
        &self,
        index: usize,
        budget: Budget,
        mut work: impl Work,
        relax: &dyn Fn(),
    ) -> Result<Vec<f64>, AddrError> {
        let mut sampler = (index == 0).then(|| Sampler::new(budget));
        let mut done = 0;
        while !self.stop.load(Ordering::Relaxed) {
            match work.turn(relax) {
                Ok(ended) => done += ended,
                Err(error) => {
                    self.stop.store(true, Ordering::Relaxed);
                    work.finish(relax);
                    return Err(error);
                }
            }
            self.done[index].store(done, Ordering::Relaxed);
            if let Some(sampler) = &mut sampler
                && sampler.is_over(done, || self.total())
            {
                self.stop.store(true, Ordering::Relaxed);
            }
        }
        work.finish(relax);
        Ok(sampler.map_or_else(Vec::new, |sampler| sampler.samples))
    }

    fn total(&self) -> u64 {
        self.done.iter().map(|done| done.load(Ordering::Relaxed)).sum()
    }
}

struct Sampler {
    budget: Budget,
    samples: Vec<f64>,
    begin: Instant,
    /// The time at which the present sample began.
    since: Instant,
    total: u64,
    /// The number of operations when the clock was last read, and that time.
    done: u64,
    read: Instant,
    turns: u32,
    /// The turns after which the clock is read: few where a turn takes long.
    turns_max: u32,
    dropped: u32,
}

impl Sampler {
    fn new(budget: Budget) -> Self {
        let (samples, now) = (Vec::with_capacity(SAMPLES_MAX), Instant::now());
        Self {
            budget,
            samples,
            begin: now,
            since: now,
            total: 0,
            done: 0,
            read: now,
            turns: 0,
            turns_max: 1,
            dropped: 0,
        }
    }

    /// Takes a sample if it is time; returns whether it was the last.
    fn is_over(&mut self, done: u64, total: impl FnOnce() -> u64) -> bool {
        self.turns += 1;
        if done - self.done < DONE_MIN && self.turns < self.turns_max {
            return false;
        }
        let (now, total) = (Instant::now(), total());
        self.turns_max = match now - self.read > SAMPLE {
            true => (self.turns_max / 2).max(1),
            false => (self.turns_max * 2).min(TURNS_MAX),
        };
        (self.done, self.turns, self.read) = (done, 0, now);
        if now - self.since >= SAMPLE && total > self.total {
            if self.dropped < DROPPED {
                self.dropped += 1;
                self.begin = now;
            } else if self.samples.len() < SAMPLES_MAX {
                let ns = (now - self.since).as_nanos() as f64;
                self.samples.push(ns / (total - self.total) as f64);
            }
            (self.since, self.total) = (now, total);
        }
        !self.samples.is_empty()
            && match self.budget {
                Budget::Time(time) => now - self.begin >= time,
                Budget::Operations(operations) => total >= operations,
            }
    }
}

/// Long enough for several turns of all threads that share a CPU, and short enough
/// that most samples are not disturbed by other programs.
const SAMPLE: Duration = Duration::from_micros(300);
const SAMPLES_MAX: usize = 1 << 12;
const DROPPED: u32 = 2;
/// Reading the clock costs as much as a short operation.
const DONE_MIN: u64 = 256;
const TURNS_MAX: u32 = 64;

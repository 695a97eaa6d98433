//! Two threads that answer each other, each on a CPU of its own, until a
//! given time.

use crate::sys;
use std::thread;
use std::time::Instant;
use tsumugi_core::sync::{AtomicBool, AtomicU64, CachePadded, Ordering};

/// What the two say to each other.
pub struct Court {
    /// The round that the giver has begun; they count from 1. Written by it
    /// alone.
    asked: CachePadded<AtomicU64>,
    /// The last round that the taker has ended. Written by it alone.
    answered: CachePadded<AtomicU64>,
    /// Written once, by whoever gives up first.
    stop: AtomicBool,
    end: Instant,
}

impl Court {
    /// Nobody plays yet.
    pub fn new(end: Instant) -> Self {
        let line = || CachePadded::new(AtomicU64::new(0));
        Self { asked: line(), answered: line(), stop: AtomicBool::new(false), end }
    }

    /// Runs both until the first has ended, and returns what that says;
    /// `None` if they did not come so far.
    pub fn play<T: Send>(
        &self,
        cpus: [usize; 2],
        give: impl FnOnce() -> Option<T> + Send,
        take: impl FnOnce() -> Option<()> + Send,
    ) -> Option<T> {
        thread::scope(|scope| {
            let taker = thread::Builder::new().spawn_scoped(scope, || {
                if sys::pin(cpus[1]).is_ok() {
                    self.answer(READY);
                    take();
                }
                self.stop.store(true, Ordering::Relaxed);
            });
            let giver = thread::Builder::new().spawn_scoped(scope, || {
                let outcome = sys::pin(cpus[0]).ok().and_then(|()| {
                    self.wait_answer(READY)?;
                    give()
                });
                self.stop.store(true, Ordering::Relaxed);
                outcome
            });
            match (taker, giver) {
                (Ok(_), Ok(giver)) => giver.join().expect("it does not panic"),
                _ => {
                    self.stop.store(true, Ordering::Relaxed);
                    None
                }
            }
        })
    }

    /// The giver's: begins a round.
    pub fn ask(&self, round: u64) {
        // Release: pairs with the Acquire in `wait_asked`.
        self.asked.store(round, Ordering::Release);
    }

    /// The taker's: waits until the round has begun.
    pub fn wait_asked(&self, round: u64) -> Option<()> {
        // Acquire: pairs with the Release in `ask`.
        self.wait(|| self.asked.load(Ordering::Acquire) == round)
    }

    /// The taker's: ends a round.
    pub fn answer(&self, round: u64) {
        // Release: pairs with the Acquire in `wait_answer`.
        self.answered.store(round, Ordering::Release);
    }

    /// The giver's: waits for the end of a round.
    pub fn wait_answer(&self, round: u64) -> Option<()> {
        // Acquire: pairs with the Release in `answer`.
        self.wait(|| self.answered.load(Ordering::Acquire) == round)
    }

    /// Waits until `is_there`; `None` if the other has given up, or the time
    /// is over.
    pub fn wait(&self, is_there: impl Fn() -> bool) -> Option<()> {
        let mut turns = 0u32;
        while !is_there() {
            turns += 1;
            // Each has a core of its own: no pause, which costs more than the
            // line takes to come.
            if !turns.is_multiple_of(TURNS_BEFORE_YIELD) {
                continue;
            }
            // Somebody else may be in the way of the other thread.
            thread::yield_now();
            if self.stop.load(Ordering::Relaxed) || Instant::now() >= self.end {
                return None;
            }
        }
        Some(())
    }
}

/// Some tens of microseconds: on a busy machine both are to run at once.
const TURNS_BEFORE_YIELD: u32 = 1 << 15;
/// Answered before the first round.
const READY: u64 = u64::MAX;

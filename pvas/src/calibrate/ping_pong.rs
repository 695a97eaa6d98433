//! A ping-pong benchmark: two threads, the giver and the taker, that answer each
//! other, each on a CPU of its own, until a given time.

use crate::sys;
use std::io;
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Instant;
use tsumugi_core::sync::{AtomicBool, AtomicU64, CachePadded, Ordering};

/// The words by which the two threads synchronize.
pub struct PingPong {
    /// The round that the giver has begun; rounds count from 1. Written by the
    /// giver alone.
    asked: CachePadded<AtomicU64>,
    /// The last round that the taker has ended. Written by the taker alone.
    answered: CachePadded<AtomicU64>,
    /// Set by the thread that gives up first.
    stop: AtomicBool,
    end: Instant,
}

/// What one of the threads does; it returns `None` if it gives up.
pub type PingPongSide<'a> = &'a mut (dyn FnMut() -> Option<()> + Send);

impl PingPong {
    /// Makes a ping-pong without threads.
    pub fn new(end: Instant) -> Self {
        let line = || CachePadded::new(AtomicU64::new(0));
        Self { asked: line(), answered: line(), stop: AtomicBool::new(false), end }
    }

    /// Runs both threads until the giver has ended, and returns its result; `None`
    /// if the threads did not get to that.
    pub fn play(
        &self,
        cpus: [usize; 2],
        give: PingPongSide<'_>,
        take: PingPongSide<'_>,
    ) -> Option<()> {
        let mut give = || {
            self.wait_answer(READY)?;
            give()
        };
        let mut take = || {
            self.answer(READY);
            take()
        };
        let players: [PingPongSide<'_>; 2] = [&mut give, &mut take];
        thread::scope(move |scope| {
            let [giver, taker] = players;
            let taker = self.start(scope, cpus[1], taker);
            let giver = self.start(scope, cpus[0], giver);
            match (taker, giver) {
                (Ok(_), Ok(giver)) => giver.join().expect("it does not panic"),
                _ => {
                    self.stop.store(true, Ordering::Relaxed);
                    None
                }
            }
        })
    }

    /// Starts the thread of one player on a CPU.
    fn start<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        cpu: usize,
        player: PingPongSide<'scope>,
    ) -> io::Result<ScopedJoinHandle<'scope, Option<()>>> {
        thread::Builder::new().spawn_scoped(scope, move || {
            let outcome = sys::pin(cpu).ok().and_then(|()| player());
            self.stop.store(true, Ordering::Relaxed);
            outcome
        })
    }

    /// Called by the giver: begins a round.
    pub fn ask(&self, round: u64) {
        // Release: pairs with the Acquire in `wait_asked`.
        self.asked.store(round, Ordering::Release);
    }

    /// Called by the taker: waits until the round has begun.
    pub fn wait_asked(&self, round: u64) -> Option<()> {
        // Acquire: pairs with the Release in `ask`.
        self.wait(|| self.asked.load(Ordering::Acquire) == round)
    }

    /// Called by the taker: ends a round.
    pub fn answer(&self, round: u64) {
        // Release: pairs with the Acquire in `wait_answer`.
        self.answered.store(round, Ordering::Release);
    }

    /// Called by the giver: waits for the end of a round.
    pub fn wait_answer(&self, round: u64) -> Option<()> {
        // Acquire: pairs with the Release in `answer`.
        self.wait(|| self.answered.load(Ordering::Acquire) == round)
    }

    /// Waits until `is_there` returns true; `None` if the other thread has given
    /// up, or the time is over.
    pub fn wait(&self, is_there: impl Fn() -> bool) -> Option<()> {
        let mut turns = 0u32;
        while !is_there() {
            turns += 1;
            // Each thread has a core of its own: no pause instruction, which takes
            // longer than the line takes to arrive.
            if !turns.is_multiple_of(TURNS_BEFORE_YIELD) {
                continue;
            }
            // Another process may occupy the core of the other thread.
            thread::yield_now();
            if self.stop.load(Ordering::Relaxed) || Instant::now() >= self.end {
                return None;
            }
        }
        Some(())
    }
}

/// Some tens of microseconds; then a waiter yields, so that both threads run.
const TURNS_BEFORE_YIELD: u32 = 1 << 15;
/// The taker's answer before the first round.
const READY: u64 = u64::MAX;

//! What the machine itself takes: the references that the bars name.

use crate::server::time;
use corosensei::stack::{Stack, StackPointer};
use corosensei::{Coroutine, Yielder};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use tsumugi_core::sync::{AtomicU32, AtomicU64, CachePadded, Ordering, spin_loop};

/// One resume and one suspend of a bare context.
pub fn raw_switch() -> Option<f64> {
    const SWITCHES: u64 = 20_000;
    let memory = Memory(Box::leak(Box::new([[0; 16]; 4096])));
    let mut context =
        Coroutine::<(), (), (), Memory>::with_stack(memory, |yielder: &Yielder<(), ()>, ()| {
            for _ in 0..=SWITCHES {
                yielder.suspend(());
            }
        });
    context.resume(());
    let ns = time(SWITCHES, || {
        for _ in 0..SWITCHES {
            context.resume(());
        }
    });
    context.resume(());
    drop(context.into_stack().reclaim());
    ns
}

/// A bare wake of a thread that sleeps on a word, to its first instruction:
/// the batch is one wake.
pub fn wake_sleeping() -> Option<f64> {
    let sleeper = Arc::new(Sleeper::default());
    let thread = {
        let sleeper = sleeper.clone();
        thread::spawn(move || {
            while sleeper.word.load(Ordering::Acquire) == 0 {
                futex(&sleeper.word, libc::FUTEX_WAIT, 0);
            }
            Instant::now()
        })
    };
    // Long enough for it to be asleep.
    thread::sleep(Duration::from_millis(2));
    let start = Instant::now();
    sleeper.word.store(1, Ordering::Release);
    futex(&sleeper.word, libc::FUTEX_WAKE, 1);
    let woken = thread.join().expect("the sleeper does not panic");
    Some(woken.saturating_duration_since(start).as_nanos() as f64)
}

/// A cache line's way from one core to the other, one way: the middle of many.
pub fn line_trip() -> f64 {
    const ROUNDS: u64 = 64;
    let lines = Arc::new([const { CachePadded::new(AtomicU64::new(0)) }; 2]);
    let other = {
        let lines = lines.clone();
        thread::spawn(move || {
            for round in 1..=ROUNDS * BATCHES {
                wait_for(&lines[0], round);
                lines[1].store(round, Ordering::Release);
            }
        })
    };
    let mut samples: Vec<_> = (0..BATCHES)
        .map(|batch| {
            let ns = time(2 * ROUNDS, || {
                for round in 1..=ROUNDS {
                    let round = batch * ROUNDS + round;
                    lines[0].store(round, Ordering::Release);
                    wait_for(&lines[1], round);
                }
            });
            ns.expect("always timed")
        })
        .collect();
    other.join().expect("the other side does not panic");
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

fn wait_for(line: &AtomicU64, round: u64) {
    let mut turns = 0u32;
    while line.load(Ordering::Acquire) != round {
        turns += 1;
        if turns.is_multiple_of(1 << 10) {
            thread::yield_now();
        } else {
            spin_loop();
        }
    }
}

fn futex(word: &AtomicU32, call: i32, value: u32) {
    let none = core::ptr::null::<libc::timespec>();
    // SAFETY: the word outlives the call.
    unsafe { libc::syscall(libc::SYS_futex, word, call, value, none) };
}

#[derive(Default)]
struct Sleeper {
    word: AtomicU32,
}

/// A stack that no context here comes to the end of.
struct Memory(&'static mut [[u64; 16]; 4096]);

impl Memory {
    fn reclaim(self) -> Box<[[u64; 16]; 4096]> {
        // SAFETY: leaked in `raw_switch`, and nobody runs on it.
        unsafe { Box::from_raw(self.0) }
    }
}

// SAFETY: 512 KiB that belong to the context alone. There is no guard page:
// the contexts here use a few hundred bytes.
unsafe impl Stack for Memory {
    fn base(&self) -> StackPointer {
        StackPointer::new(self.0.as_ptr_range().end.addr() & !15).expect("no stack ends at 0")
    }

    fn limit(&self) -> StackPointer {
        StackPointer::new((self.0.as_ptr().addr() + 15) & !15).expect("no stack begins at 0")
    }
}

const BATCHES: u64 = 100;

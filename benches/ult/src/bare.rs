//! What the machine itself takes: the references to which the requirements (bars)
//! refer.

use crate::System;
use crate::apart::{Apart, NAP, wait_for};
use crate::asleep::STACK_BYTES;
use crate::fork::{self, Board, Calls};
use crate::inbox::{Inbox, time};
use crate::uts::{self, Node, T1_DEPTH, T1_NODES};
use corosensei::stack::{Stack, StackPointer};
use corosensei::{Coroutine, Yielder};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Instant;
use tsumugi_core::sync::{AtomicU32, AtomicU64, CachePadded, Ordering};

/// The machine itself, as a system.
pub const SYSTEM: System = System { name: "bare", serve, elsewhere: &[] };

fn serve(inbox: Inbox) {
    if inbox.row() == "futex_wake" {
        return futex_wake(&inbox);
    }
    if inbox.row() == "page_touch" {
        return page_touch(&inbox);
    }
    let apart = Apart::new();
    inbox.serve(|row| match row {
        "raw_switch" => raw_switch(),
        "line_trip" => Some(line_trip(&apart)),
        "cas_pair" => cas_pair(),
        "serial_uts" => time(T1_NODES, || {
            assert_eq!(uts::count(&Node::root(T1_DEPTH)), T1_NODES);
        }),
        "serial_nqueens" => time(fork::QUEENS_CHILDREN, || {
            assert_eq!(fork::queens::<Calls>(Board::new(fork::QUEENS)), fork::QUEENS_WAYS);
        }),
        _ => None,
    });
}

/// Times one resume and one suspend of a bare context.
fn raw_switch() -> Option<f64> {
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

/// Times two uncontended compare-and-swaps: the minimum for a lock and an unlock
/// that allow for waiters.
fn cas_pair() -> Option<f64> {
    const PAIRS: u64 = 10_000;
    let word = AtomicU32::new(0);
    time(PAIRS, || {
        for _ in 0..PAIRS {
            let locked = word.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed);
            let freed = word.compare_exchange(1, 0, Ordering::Release, Ordering::Relaxed);
            std::hint::black_box((locked, freed)).0.expect("no other thread changes the word");
        }
    })
}

/// Times a bare wake of a thread that sleeps on a word, until its first
/// instruction. A batch is one wake, from one CPU to the other.
fn futex_wake(inbox: &Inbox) {
    let word = Arc::new(AtomicU32::new(0));
    let (send, woken) = channel();
    let sleep = {
        let word = word.clone();
        move || {
            for round in 0.. {
                // Acquire: pairs with the Release of the waker.
                while word.load(Ordering::Acquire) == round {
                    futex(&word, libc::FUTEX_WAIT, round);
                }
                if send.send(Instant::now()).is_err() {
                    return;
                }
            }
        }
    };
    // The thread ends with the process.
    Apart::new().on_second(|| thread::spawn(sleep));
    inbox.serve(|_| {
        thread::sleep(NAP);
        let start = Instant::now();
        // Release: pairs with the Acquire of the sleeper.
        word.fetch_add(1, Ordering::Release);
        futex(&word, libc::FUTEX_WAKE, 1);
        let woken = woken.recv().expect("the sleeper does not panic");
        Some(woken.saturating_duration_since(start).as_nanos() as f64)
    });
}

/// Times the first touch of one page for each sleeper; the pages are as far apart
/// as the sleepers' stacks. That is the minimum for a system in which each ULT
/// has a stack.
fn page_touch(inbox: &Inbox) {
    let pages = inbox.sleepers();
    inbox.serve(|_| {
        let bytes = pages * STACK_BYTES;
        let (read, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_NORESERVE);
        let flags = flags | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: the mapping is new, so no other code uses it, and it is given
        // back below.
        let memory = unsafe { libc::mmap(std::ptr::null_mut(), bytes, read, flags, -1, 0) };
        assert_ne!(memory, libc::MAP_FAILED, "{bytes} bytes of addresses");
        let ns = time(pages as u64, || {
            for page in 0..pages {
                // SAFETY: the address is within the mapping.
                unsafe { memory.cast::<u8>().add(page * STACK_BYTES).write_volatile(1) };
            }
        });
        // SAFETY: the memory was mapped above, and no pointer into it is used
        // after this.
        unsafe { libc::munmap(memory, bytes) };
        ns
    });
}

/// Times how long a cache line takes from one core to the other, one way: the
/// median of many trips.
fn line_trip(apart: &Apart) -> f64 {
    const ROUNDS: u64 = 64;
    let lines = Arc::new([const { CachePadded::new(AtomicU64::new(0)) }; 2]);
    let other = {
        let lines = lines.clone();
        let answer = move || {
            for round in 1..=ROUNDS * BATCHES {
                wait_for(&lines[0], round);
                lines[1].store(round, Ordering::Release);
            }
        };
        apart.on_second(|| thread::spawn(answer))
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

fn futex(word: &AtomicU32, call: i32, value: u32) {
    let none = core::ptr::null::<libc::timespec>();
    // SAFETY: `word` is a reference, so the word is there during the call.
    unsafe { libc::syscall(libc::SYS_futex, word, call, value, none) };
}

/// A stack that is larger than any context here needs.
struct Memory(&'static mut [[u64; 16]; 4096]);

impl Memory {
    fn reclaim(self) -> Box<[[u64; 16]; 4096]> {
        // SAFETY: the memory was leaked in `raw_switch`, and no context runs on
        // it any more.
        unsafe { Box::from_raw(self.0) }
    }
}

// SAFETY: the 512 KiB belong to this context alone. There is no guard page, but
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

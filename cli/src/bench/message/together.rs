//! What two cores do together, with no messages: both copy a half, past the
//! caches, with nothing around it but two words that say where they are.
//!
//! ```text
//!  the writer   dirties its buffer ─► ready ─► copies the first half ─► done
//!  the reader                           └────► copies the second half    └─► reads all
//! ```
//!
//! The payload is touched as in the rows that it stands beside. It is a row of
//! its own, called [`NAME`], for pre-posted messages from [`BYTES_MIN`] on.

use super::case::Case;
use super::serve::Command;
use super::work::{dirty, look};
use crate::bench::pinned::Pinned;
use std::hint::spin_loop;
use std::ptr::NonNull;
use std::thread;
use std::time::Instant;
use tsumugi::pvas::copy::{self, Mode};
use tsumugi_core::sync::{AtomicUsize, CachePadded, Ordering};

/// What the rows are called.
pub const NAME: &str = "two_cores";
/// Where messages are no longer a matter of few lines.
const BYTES_MIN: usize = 8 << 10;
/// Looks at a word before others may have the core.
const LOOKS: u32 = 1024;

/// Nanoseconds of half a round of a case; none of a case that has no such row.
pub fn measure(case: &Case) -> Vec<f64> {
    let command = Command::of(&case.command);
    let number = |name| command.number(name).unwrap_or(0) as usize;
    let (bytes, rounds) = (number("bytes"), number("rounds").max(1));
    if command.name() != "latency" || number("pre") != 1 || bytes < BYTES_MIN || !case.crosses {
        return Vec::new();
    }
    let cpus = [number("cpu0"), number("cpu1")];
    let mut buffers = [(); 4].map(|()| vec![1u8; bytes]);
    let [first, second, third, fourth] = &mut buffers;
    let sides = [(first, second), (third, fourth)];
    let desk = Desk {
        sides: sides.map(|(sent, received)| Side {
            sent: NonNull::from(sent.as_mut_slice()).cast(),
            received: NonNull::from(received.as_mut_slice()).cast(),
            ready: CachePadded::new(AtomicUsize::new(0)),
            done: CachePadded::new(AtomicUsize::new(0)),
        }),
        bytes,
    };
    thread::scope(|scope| {
        let other = scope.spawn(|| desk.run(1, cpus[1], rounds, number("repeat")));
        let ns = desk.run(0, cpus[0], rounds, number("repeat"));
        // It has no way to fail.
        let _ = other.join();
        ns
    })
}

/// Both cores, and what each of them sends and receives.
struct Desk {
    sides: [Side; 2],
    bytes: usize,
}

struct Side {
    sent: NonNull<u8>,
    received: NonNull<u8>,
    /// The number of the message that lies in `sent`, and of the one of which
    /// the first half is copied.
    ready: CachePadded<AtomicUsize>,
    done: CachePadded<AtomicUsize>,
}

// SAFETY: the two threads take turns on the buffers, as the words say.
unsafe impl Sync for Desk {}

impl Desk {
    fn run(&self, me: usize, cpu: usize, rounds: usize, repeat: usize) -> Vec<f64> {
        let _pinned = Pinned::to(cpu);
        let mut number = 0;
        // No batch waits for the other thread: each round does.
        let mut batch = |rounds: usize| {
            let start = Instant::now();
            for _ in 0..rounds {
                number += 1;
                match me {
                    0 => (self.write(me, number), self.read(me, number)),
                    _ => (self.read(me, number), self.write(me, number)),
                };
            }
            start.elapsed().as_nanos() as f64 / (2 * rounds) as f64
        };
        batch(rounds / 4 + 4);
        (0..repeat).map(|_| batch(rounds)).collect()
    }

    fn write(&self, me: usize, number: usize) {
        let (own, other) = (&self.sides[me], &self.sides[1 - me]);
        // SAFETY: the other thread has copied what was here before, or this
        // one would not be writing again.
        dirty(unsafe { std::slice::from_raw_parts_mut(own.sent.as_ptr(), self.bytes) }, number);
        // Release: pairs with `read`: the other thread copies it.
        own.ready.store(number, Ordering::Release);
        // SAFETY: the first half is this thread's to write until it is done.
        unsafe { copy::copy(Mode::Streaming, own.sent, other.received, self.bytes / 2) };
        // Release: pairs with `read`: the other thread reads it.
        own.done.store(number, Ordering::Release);
    }

    fn read(&self, me: usize, number: usize) {
        let (own, other) = (&self.sides[me], &self.sides[1 - me]);
        // Acquire: pairs with `write`.
        let wait = |word: &AtomicUsize| {
            for looks in 1u32.. {
                if word.load(Ordering::Acquire) == number {
                    break;
                }
                // Both may be on one core.
                if looks % LOOKS == 0 { thread::yield_now() } else { spin_loop() }
            }
        };
        wait(&other.ready);
        let half = self.bytes / 2;
        // SAFETY: the second half is this thread's to write; inside both.
        unsafe {
            let (from, to) = (other.sent.add(half), own.received.add(half));
            copy::copy(Mode::Streaming, from, to, self.bytes - half);
        }
        wait(&other.done);
        // SAFETY: all of it is here, and nobody writes before the next turn.
        look(unsafe { std::slice::from_raw_parts(own.received.as_ptr(), self.bytes) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_messages_that_are_waited_for_have_such_a_row() {
        let case = |command: &str| Case::new("latency", String::new(), command.to_owned(), true);
        let measured = measure(&case("latency bytes=8192 pre=1 rounds=2 repeat=3"));
        assert!(measured.len() == 3 && measured.iter().all(|ns| *ns > 0.0), "{measured:?}");
        for other in ["latency bytes=64 pre=1", "latency bytes=8192 pre=0", "rate bytes=8192"] {
            assert!(measure(&case(other)).is_empty(), "{other}");
        }
    }
}

//! The limit of two cores without messages: a way of moving bytes, with only two
//! words that tell the other side how far the bytes have come.
//!
//! ```text
//!  the writer   dirties its buffer ─► (copies) ─► ready ─►        (copies a half) ─► done
//!  the reader                                     └─► (copies) ─► reads all
//! ```
//!
//! Each [`CopyMethod`] is tried; the row is the best way at the size, so it is the limit
//! for messages with a single copy. The payload is touched as in the rows that are
//! compared with it. The result is a row of its own with the name [`NAME`], for
//! pre-posted messages from [`BYTES_MIN`] on.

use super::case::Case;
use super::command::BenchCommand;
use super::payload::{dirty, look};
use crate::bench::pinned::Pinned;
use crate::summary::Summary;
use std::hint::spin_loop;
use std::ptr::NonNull;
use std::thread;
use std::time::Instant;
use tsumugi::pvas::copy::{self, CopyMode};
use tsumugi_core::sync::{AtomicUsize, CachePadded, Ordering};

/// The name of the rows.
pub const NAME: &str = "two_cores";
/// The size from which messages have many cache lines.
const BYTES_MIN: usize = 8 << 10;
/// The number of loads of a word before the thread yields.
const LOOKS: u32 = 1024;

/// How the bytes move.
#[derive(Clone, Copy, Debug)]
enum CopyMethod {
    /// The writer copies, with this kind of copy.
    Push(CopyMode),
    /// The writer copies past the caches, a quarter at a time; the reader fetches
    /// each quarter while the next one is being written.
    Parts,
    /// The reader copies.
    Pull,
    /// Each side copies one half.
    Halves,
}

const COPY_METHODS: [CopyMethod; 5] = [
    CopyMethod::Push(CopyMode::Plain),
    CopyMethod::Push(CopyMode::Streaming),
    CopyMethod::Parts,
    CopyMethod::Pull,
    CopyMethod::Halves,
];

/// Nanoseconds of half a round of a case, by the best way; empty for a case without
/// such a row.
pub fn measure(case: &Case) -> Vec<f64> {
    let command = BenchCommand::of(&case.command);
    let number = |name| command.number(name).unwrap_or(0) as usize;
    let (bytes, rounds, repeat) = (number("bytes"), number("rounds").max(1), number("repeat"));
    if command.name() != "latency" || number("pre") != 1 || bytes < BYTES_MIN || !case.crosses {
        return Vec::new();
    }
    let cpus = [number("cpu0"), number("cpu1")];
    let mut buffers = [(); 4].map(|()| vec![1u8; bytes]);
    let [first, second, third, fourth] = &mut buffers;
    let sides = [(first, second), (third, fourth)];
    let buffers = TwoCoreBuffers {
        sides: sides.map(|(sent, received)| CoreSide {
            sent: NonNull::from(sent.as_mut_slice()).cast(),
            received: NonNull::from(received.as_mut_slice()).cast(),
            ready: CachePadded::new(AtomicUsize::new(0)),
            done: CachePadded::new(AtomicUsize::new(0)),
        }),
        bytes,
    };
    let both = |me: usize| {
        let _pinned = Pinned::to(cpus[me]);
        let mut number = 0;
        COPY_METHODS.map(|method| buffers.run(me, method, &mut number, rounds, repeat))
    };
    let ways = thread::scope(|scope| {
        let other = scope.spawn(|| both(1));
        let ways = both(0);
        // The thread cannot fail.
        let _ = other.join();
        ways
    });
    let median = |ns: &Vec<f64>| Summary::of(&mut ns.clone()).map_or(f64::MAX, |all| all.median);
    ways.into_iter().min_by(|one, other| median(one).total_cmp(&median(other))).unwrap_or_default()
}

/// The buffers and words of both cores.
struct TwoCoreBuffers {
    sides: [CoreSide; 2],
    bytes: usize,
}

struct CoreSide {
    sent: NonNull<u8>,
    received: NonNull<u8>,
    /// `ready`: the number of parts, over all messages up to now, that lie where the
    /// reader finds them. `done`: the number of messages with the writer's half
    /// copied.
    ready: CachePadded<AtomicUsize>,
    done: CachePadded<AtomicUsize>,
}

// SAFETY: the two threads take turns on the buffers, ordered by the words `ready`
// and `done`.
unsafe impl Sync for TwoCoreBuffers {}

impl TwoCoreBuffers {
    fn run(
        &self,
        me: usize,
        method: CopyMethod,
        number: &mut usize,
        rounds: usize,
        repeat: usize,
    ) -> Vec<f64> {
        // No synchronization between batches: each round waits for the other thread.
        let mut batch = |rounds: usize| {
            let start = Instant::now();
            for _ in 0..rounds {
                *number += 1;
                match me {
                    0 => (self.write(me, method, *number), self.read(me, method, *number)),
                    _ => (self.read(me, method, *number), self.write(me, method, *number)),
                };
            }
            start.elapsed().as_nanos() as f64 / (2 * rounds) as f64
        };
        batch(rounds / 4 + 4);
        (0..repeat).map(|_| batch(rounds)).collect()
    }

    fn write(&self, me: usize, method: CopyMethod, number: usize) {
        let (own, other) = (&self.sides[me], &self.sides[1 - me]);
        // Release: pairs with the Acquire in `wait`, after which the other thread
        // reads the part.
        let say = |parts: usize| own.ready.store(number * PARTS + parts, Ordering::Release);
        // SAFETY: the range lies inside both buffers. The other thread has copied
        // the last message, or this thread would not be writing again; and it does
        // not touch this part before `ready` covers it.
        let copy = |mode, from: usize, to: usize| unsafe {
            copy::copy(mode, own.sent.add(from), other.received.add(from), to - from);
        };
        // SAFETY: the same.
        dirty(unsafe { std::slice::from_raw_parts_mut(own.sent.as_ptr(), self.bytes) }, number);
        match method {
            CopyMethod::Push(mode) => copy(mode, 0, self.bytes),
            CopyMethod::Parts => {
                for part in 1..PARTS {
                    copy(CopyMode::Streaming, self.start(part - 1), self.start(part));
                    say(part);
                }
                copy(CopyMode::Streaming, self.start(PARTS - 1), self.bytes);
            }
            CopyMethod::Pull | CopyMethod::Halves => {}
        }
        say(PARTS);
        if let CopyMethod::Halves = method {
            copy(CopyMode::Plain, 0, self.bytes / 2);
        }
        // Release: pairs with the Acquire in `wait`, after which the other thread
        // reads the message.
        own.done.store(number, Ordering::Release);
    }

    fn read(&self, me: usize, method: CopyMethod, number: usize) {
        let (own, other) = (&self.sides[me], &self.sides[1 - me]);
        // SAFETY: the part that the other thread has announced is here, and no
        // thread writes it before the next turn.
        let look = |from: usize, to: usize| unsafe {
            look(std::slice::from_raw_parts(own.received.add(from).as_ptr(), to - from));
        };
        if let CopyMethod::Parts = method {
            for part in 1..PARTS {
                wait(&other.ready, number * PARTS + part);
                look(self.start(part - 1), self.start(part));
            }
        }
        wait(&other.ready, number * PARTS + PARTS);
        let pulled = match method {
            CopyMethod::Pull => 0,
            CopyMethod::Halves => self.bytes / 2,
            _ => self.bytes,
        };
        // SAFETY: the range lies inside both buffers; this part is this thread's to
        // write.
        unsafe {
            let (from, to) = (other.sent.add(pulled), own.received.add(pulled));
            copy::copy(CopyMode::Plain, from, to, self.bytes - pulled);
        }
        wait(&other.done, number);
        look(0, self.bytes);
    }

    /// The place where a part begins.
    fn start(&self, part: usize) -> usize {
        self.bytes / PARTS * part
    }
}

/// Waits until the other thread has reached this number.
fn wait(word: &AtomicUsize, number: usize) {
    for looks in 1u32.. {
        // Acquire: pairs with `write`.
        if word.load(Ordering::Acquire) >= number {
            break;
        }
        // Both threads may be on one core.
        if looks % LOOKS == 0 { thread::yield_now() } else { spin_loop() }
    }
}

/// The number of parts of a message.
const PARTS: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_messages_with_a_posted_receive_are_measured_together() {
        let case = |command: &str| Case::new("latency", String::new(), command.to_owned(), true);
        let measured = measure(&case("latency bytes=8192 pre=1 rounds=2 repeat=3"));
        assert!(measured.len() == 3 && measured.iter().all(|ns| *ns > 0.0), "{measured:?}");
        for other in ["latency bytes=64 pre=1", "latency bytes=8192 pre=0", "rate bytes=8192"] {
            assert!(measure(&case(other)).is_empty(), "{other}");
        }
    }
}

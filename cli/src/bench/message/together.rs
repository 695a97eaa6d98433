//! What two cores do together, with no messages: a way of moving bytes, with
//! nothing around it but two words that say where they are.
//!
//! ```text
//!  the writer   dirties its buffer ─► (copies) ─► ready ─►        (copies a half) ─► done
//!  the reader                                     └─► (copies) ─► reads all
//! ```
//!
//! Each [`Way`] is tried; the row is the one that is best at the size, and so
//! what messages that are copied once can come near to. The payload is touched
//! as in the rows that it stands beside. It is a row of its own, called
//! [`NAME`], for pre-posted messages from [`BYTES_MIN`] on.

use super::case::Case;
use super::serve::Command;
use super::work::{dirty, look};
use crate::bench::pinned::Pinned;
use crate::summary::Summary;
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

/// How the bytes move.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// By the writer, so.
    Push(Mode),
    /// By the writer, past the caches, a quarter at a time; the reader fetches
    /// each while the next one is on its way.
    Parts,
    /// By the reader.
    Pull,
    /// Half by each.
    Halves,
}

const WAYS: [Way; 5] =
    [Way::Push(Mode::Plain), Way::Push(Mode::Streaming), Way::Parts, Way::Pull, Way::Halves];

/// Nanoseconds of half a round of a case, by the best way; none of a case that
/// has no such row.
pub fn measure(case: &Case) -> Vec<f64> {
    let command = Command::of(&case.command);
    let number = |name| command.number(name).unwrap_or(0) as usize;
    let (bytes, rounds, repeat) = (number("bytes"), number("rounds").max(1), number("repeat"));
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
    let both = |me: usize| {
        let _pinned = Pinned::to(cpus[me]);
        let mut number = 0;
        WAYS.map(|way| desk.run(me, way, &mut number, rounds, repeat))
    };
    let ways = thread::scope(|scope| {
        let other = scope.spawn(|| both(1));
        let ways = both(0);
        // It has no way to fail.
        let _ = other.join();
        ways
    });
    let median = |ns: &Vec<f64>| Summary::of(&mut ns.clone()).map_or(f64::MAX, |all| all.median);
    ways.into_iter().min_by(|one, other| median(one).total_cmp(&median(other))).unwrap_or_default()
}

/// Both cores, and what each of them sends and receives.
struct Desk {
    sides: [Side; 2],
    bytes: usize,
}

struct Side {
    sent: NonNull<u8>,
    received: NonNull<u8>,
    /// Parts of all messages so far that are where the reader is to find them,
    /// and messages of which the writer's half is copied.
    ready: CachePadded<AtomicUsize>,
    done: CachePadded<AtomicUsize>,
}

// SAFETY: the two threads take turns on the buffers, as the words say.
unsafe impl Sync for Desk {}

impl Desk {
    fn run(
        &self,
        me: usize,
        way: Way,
        number: &mut usize,
        rounds: usize,
        repeat: usize,
    ) -> Vec<f64> {
        // No batch waits for the other thread: each round does.
        let mut batch = |rounds: usize| {
            let start = Instant::now();
            for _ in 0..rounds {
                *number += 1;
                match me {
                    0 => (self.write(me, way, *number), self.read(me, way, *number)),
                    _ => (self.read(me, way, *number), self.write(me, way, *number)),
                };
            }
            start.elapsed().as_nanos() as f64 / (2 * rounds) as f64
        };
        batch(rounds / 4 + 4);
        (0..repeat).map(|_| batch(rounds)).collect()
    }

    fn write(&self, me: usize, way: Way, number: usize) {
        let (own, other) = (&self.sides[me], &self.sides[1 - me]);
        // Release: pairs with `wait`: the other thread goes on with it.
        let say = |parts: usize| own.ready.store(number * PARTS + parts, Ordering::Release);
        // SAFETY: inside both buffers; the other thread has copied what was
        // here before, or this one would not be writing again, and leaves
        // this part alone until it is told.
        let copy = |mode, from: usize, to: usize| unsafe {
            copy::copy(mode, own.sent.add(from), other.received.add(from), to - from);
        };
        // SAFETY: the same.
        dirty(unsafe { std::slice::from_raw_parts_mut(own.sent.as_ptr(), self.bytes) }, number);
        match way {
            Way::Push(mode) => copy(mode, 0, self.bytes),
            Way::Parts => {
                for part in 1..PARTS {
                    copy(Mode::Streaming, self.start(part - 1), self.start(part));
                    say(part);
                }
                copy(Mode::Streaming, self.start(PARTS - 1), self.bytes);
            }
            Way::Pull | Way::Halves => {}
        }
        say(PARTS);
        if let Way::Halves = way {
            copy(Mode::Plain, 0, self.bytes / 2);
        }
        // Release: pairs with `wait`: the other thread reads it.
        own.done.store(number, Ordering::Release);
    }

    fn read(&self, me: usize, way: Way, number: usize) {
        let (own, other) = (&self.sides[me], &self.sides[1 - me]);
        // SAFETY: what the other thread has said is here, and nobody writes
        // it before the next turn.
        let look = |from: usize, to: usize| unsafe {
            look(std::slice::from_raw_parts(own.received.add(from).as_ptr(), to - from));
        };
        if let Way::Parts = way {
            for part in 1..PARTS {
                wait(&other.ready, number * PARTS + part);
                look(self.start(part - 1), self.start(part));
            }
        }
        wait(&other.ready, number * PARTS + PARTS);
        let pulled = match way {
            Way::Pull => 0,
            Way::Halves => self.bytes / 2,
            _ => self.bytes,
        };
        // SAFETY: inside both; this part is this thread's to write.
        unsafe {
            let (from, to) = (other.sent.add(pulled), own.received.add(pulled));
            copy::copy(Mode::Plain, from, to, self.bytes - pulled);
        }
        wait(&other.done, number);
        look(0, self.bytes);
    }

    /// Where a part begins.
    fn start(&self, part: usize) -> usize {
        self.bytes / PARTS * part
    }
}

/// Waits until the other thread has come so far.
fn wait(word: &AtomicUsize, number: usize) {
    for looks in 1u32.. {
        // Acquire: pairs with `write`.
        if word.load(Ordering::Acquire) >= number {
            break;
        }
        // Both may be on one core.
        if looks % LOOKS == 0 { thread::yield_now() } else { spin_loop() }
    }
}

/// Of a message that moves in parts.
const PARTS: usize = 4;

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

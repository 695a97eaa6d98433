//! Measures two cores: how long a line travels between them, and how long each method
//! of moving bytes takes.
//!
//! ```text
//!  giver    dirty every line ─ move ─ ring ─►                      ◄─ wait
//!  taker                               wait ─ (move) ─ read every line ─ ring
//! ```
//!
//! The result counts the way there: the round without the trip back. Of several
//! rounds the first are left out, because the time of a method depends on where the
//! method before it has left the lines. A program that writes a buffer that was pulled
//! has to take each line back from the receiver; the first pull after a push does
//! not show this cost. Of the other rounds the result is the first octile (an
//! eighth of the rounds is faster): every disturbance on the machine makes a round
//! longer, but a round after an interruption can be too short.

use super::copy_bench::CopyBench;
use super::method::TransferMethod;
use super::ping_pong::PingPong;
use crate::distance_probe::SAMPLE_BYTES;
use std::time::{Duration, Instant};

/// The time of one method at one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    /// The method.
    pub method: TransferMethod,
    /// The number of bytes.
    pub bytes: usize,
    /// From the giver's start until the taker has read the bytes.
    pub ns: f64,
}

/// The measurements of a pair of cores.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The trip of a line, in one direction.
    pub trip_ns: f64,
    /// The timings of methods and sizes for which there was time.
    pub timings: Vec<Timing>,
    /// The probe's reading for this pair, if there was time.
    pub sample_ns: Option<u64>,
    /// How long all the measurements took.
    pub took: Duration,
}

impl Measured {
    /// The time of a method at a size, if it was measured. Not inlined: the search is for
    /// many callers, once in a job.
    #[inline(never)]
    pub fn ns(&self, method: TransferMethod, bytes: usize) -> Option<f64> {
        let of = |timing: &&Timing| timing.method == method && timing.bytes == bytes;
        self.timings.iter().find(of).map(|timing| timing.ns)
    }

    /// The time of the faster of two methods to push.
    pub fn push_ns(&self, bytes: usize) -> Option<f64> {
        let plain = self.ns(TransferMethod::Push, bytes)?;
        Some(self.ns(TransferMethod::Pieces, bytes).map_or(plain, |pieces| pieces.min(plain)))
    }

    /// The sizes that were measured of a method, in the order of the measurements: ascending.
    pub fn sizes(&self, method: TransferMethod) -> Vec<usize> {
        let of = self.timings.iter().filter(|timing| timing.method == method);
        of.map(|timing| timing.bytes).collect()
    }
}

/// How long a line travels one way, in ns; `None` if `end` comes first or a thread
/// cannot run on one of the CPUs.
pub fn trip(first: usize, second: usize, end: Instant) -> Option<f64> {
    let (ping_pong, mut least) = (PingPong::new(end), f64::MAX);
    let mut give = || {
        let mut round = 0;
        for _ in 0..TRIP_ROUNDS {
            let begin = Instant::now();
            for _ in 0..TRIP_BATCH {
                round += 1;
                ping_pong.ask(round);
                ping_pong.wait_answer(round)?;
            }
            least = least.min(begin.elapsed().as_nanos() as f64 / f64::from(2 * TRIP_BATCH));
        }
        Some(())
    };
    let mut take = || {
        for round in 1..=u64::from(TRIP_ROUNDS * TRIP_BATCH) {
            ping_pong.wait_asked(round)?;
            ping_pong.answer(round);
        }
        Some(())
    };
    ping_pong.play([first, second], &mut give, &mut take)?;
    Some(least)
}

/// Times every method at every size until `end`.
pub fn measure(cpus: [usize; 2], trip_ns: f64, end: Instant) -> Option<Measured> {
    let begin = Instant::now();
    let (ping_pong, bench) = (PingPong::new(end), CopyBench::new(BYTES_MAX).ok()?);
    let mut timings = Vec::new();
    let mut readings = Vec::new();
    let steps = steps();
    let mut give = || {
        let mut number = 0;
        for _ in 0..READINGS {
            number += 1;
            readings.push(bench.sample() as f64);
            ping_pong.ask(number);
            ping_pong.wait_answer(number)?;
        }
        for step in &steps {
            let mut rounds = Vec::with_capacity(ROUNDS_MAX);
            for round in 0..step.warm + step.rounds {
                let begin = Instant::now();
                for _ in 0..step.batch {
                    number += 1;
                    bench.give(&ping_pong, number, step.method, step.bytes);
                    ping_pong.wait_answer(number)?;
                }
                let ns = begin.elapsed().as_nanos() as f64 / f64::from(step.batch);
                if round >= step.warm {
                    rounds.push(ns - trip_ns);
                }
            }
            let octile = rounds.len() / 8;
            let ns = sorted(&mut rounds)[octile].max(0.0);
            timings.push(Timing { method: step.method, bytes: step.bytes, ns });
        }
        Some(())
    };
    let mut take = || {
        let mut number = 0;
        for _ in 0..READINGS {
            number += 1;
            bench.take(&ping_pong, number, TransferMethod::Push, SAMPLE_BYTES)?;
            ping_pong.answer(number);
        }
        for step in &steps {
            for _ in 0..(step.warm + step.rounds) * step.batch as usize {
                number += 1;
                bench.take(&ping_pong, number, step.method, step.bytes)?;
                ping_pong.answer(number);
            }
        }
        Some(())
    };
    // When the time runs out, that is no failure: the rest stays unmeasured.
    let _ = ping_pong.play(cpus, &mut give, &mut take);
    let sample_ns = sorted(&mut readings).get(READINGS / 2).map(|ns| *ns as u64);
    let measured = Measured { trip_ns, timings, sample_ns, took: begin.elapsed() };
    (!measured.timings.is_empty()).then_some(measured)
}

/// One method at one size, and how often it is measured.
#[derive(Clone, Copy)]
struct TimingStep {
    method: TransferMethod,
    bytes: usize,
    batch: u32,
    /// Rounds that are not counted: the lines of a method settle in the two caches,
    /// and memory is touched for the first time.
    warm: usize,
    rounds: usize,
}

/// All steps, the smallest sizes first: if time runs out, the largest are missing.
fn steps() -> Vec<TimingStep> {
    let mut steps = Vec::new();
    let mut add = |method, bytes: usize| {
        let (warm, rounds) = match bytes {
            bytes if bytes <= SMALL => (2, 12),
            bytes if bytes <= LARGE => (4, ROUNDS_MAX),
            _ => (1, 4),
        };
        let batch = (BATCH_BYTES / bytes).clamp(1, 16) as u32;
        steps.push(TimingStep { method, bytes, batch, warm, rounds });
    };
    for bytes in PAYLOADS {
        add(TransferMethod::Inline, bytes);
        add(TransferMethod::Push, bytes);
    }
    for bytes in SHORT {
        add(TransferMethod::Push, bytes);
        add(TransferMethod::Pieces, bytes);
    }
    for bytes in SHORT.into_iter().chain(SIZES) {
        if bytes <= CopyBench::SLOTS_BYTES {
            add(TransferMethod::Bounce, bytes);
        }
    }
    for bytes in SIZES {
        add(TransferMethod::Push, bytes);
        add(TransferMethod::Stream, bytes);
        add(TransferMethod::Pull, bytes);
        if bytes <= PIECES_MAX {
            add(TransferMethod::Pieces, bytes);
        }
        if HALVED.contains(&bytes) {
            add(TransferMethod::Halves, bytes);
            add(TransferMethod::HalvesInPieces, bytes);
        }
        if bytes >= BOTH_MIN {
            add(TransferMethod::Both, bytes);
        }
    }
    steps
}

/// The same times, the shortest first.
fn sorted(times: &mut [f64]) -> &[f64] {
    times.sort_unstable_by(f64::total_cmp);
    times
}

/// The payloads of a packet of one to four lines.
pub const PAYLOADS: [usize; 4] = [32, 88, 144, 200];
/// Sizes at which a push may begin to be faster than slots.
pub const SHORT: [usize; 2] = [512, 1 << 10];
/// Sizes of messages that are too long for a packet.
pub const SIZES: [usize; 9] =
    [2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 512 << 10, 2 << 20];
const BYTES_MAX: usize = 2 << 20;
/// Above this size the C library's copy is as fast.
pub const PIECES_MAX: usize = 4 << 10;
/// The sizes that may go in two halves: longer messages are not copied in a call.
pub const HALVED: [usize; 2] = [4 << 10, 8 << 10];
/// The bytes that a core has copied before it has told another core that it may
/// help.
const BOTH_MIN: usize = 16 << 10;
/// Up to this size methods differ by less than the variation of a round.
const SMALL: usize = 8 << 10;
const LARGE: usize = 256 << 10;
const BATCH_BYTES: usize = 16 << 10;
const ROUNDS_MAX: usize = 16;
const READINGS: usize = 15;
const TRIP_BATCH: u32 = 32;
const TRIP_ROUNDS: u32 = 48;

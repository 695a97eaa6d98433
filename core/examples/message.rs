//! How long a message takes between two threads, with nothing around the
//! machine: half a round trip, beside that of a single cache line in the same
//! run.
//!
//! `cargo run --release -p tsumugi-core --example message`

use std::alloc::{Layout, alloc_zeroed};
use std::hint::spin_loop;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;
use tsumugi_core::mem::{LocalRank, PeerIndex};
use tsumugi_core::msg::*;

fn main() {
    let memory = [0, 1].map(|_| {
        let layout = Layout::from_size_align(SHAPE.memory_size(), 4096).unwrap();
        // SAFETY: it has a size; it is never freed.
        Memory(NonNull::new(unsafe { alloc_zeroed(layout) }).expect("memory"))
    });
    let line: &AtomicU64 = Box::leak(Box::new(AtomicU64::new(0)));
    println!("{:>8} {:>12} {:>12} {:>12} {:>12}", "bytes", "line min", "min", "median", "rate64");
    let other = thread::spawn(move || rank(1, memory, line));
    rank(0, memory, line);
    other.join().unwrap();
}

#[derive(Clone, Copy)]
struct Memory(NonNull<u8>);

// SAFETY: both ranks know it only as lanes.
unsafe impl Send for Memory {}

/// One of the two ranks; rank 0 prints.
fn rank(me: u32, memory: [Memory; 2], line: &AtomicU64) {
    let you = PeerIndex(1 - me);
    let mut peers = [MessagePeer::EMPTY; 2];
    let mut requests = vec![RequestEntry::EMPTY; 256];
    let mut unexpected = vec![UnexpectedMessage::EMPTY; SHAPE.unexpected()];
    let mut log = vec![LoggedMessage::EMPTY; SHAPE.log()];
    let mut mirror = vec![MirroredOffer::EMPTY; SHAPE.mirrored()];
    let tables = MessageTables {
        peers: &mut peers,
        requests: &mut requests,
        unexpected: &mut unexpected,
        log: &mut log,
        mirror: &mut mirror,
    };
    let design = if std::env::args().any(|arg| arg == "two-copy") {
        MatchingDesign::TwoCopy
    } else {
        MatchingDesign::Mirror
    };
    let mut machine =
        MessageMachine::new(LocalRank(me), SHAPE, design, Thresholds::DEFAULT, tables)
            .expect("it fits");
    let mut ends = [LaneEnd::EMPTY, LaneEnd::EMPTY];
    // SAFETY: zero memory of the shape's size; each side makes its ends once;
    // all buffers below live until their messages have ended.
    let mut lanes = unsafe {
        let mut lanes =
            NodeLanes::new(LocalRank(me), SHAPE, memory[me as usize].0, &mut ends).unwrap();
        lanes.connect(PeerIndex(0), memory[0].0);
        lanes.connect(PeerIndex(1), memory[1].0);
        lanes
    };
    let buffers = (vec![1u8; 1 << 20], vec![0u8; 1 << 20]);
    let mut turn = 0;
    for bytes in [8, 32, 64, 88, 128, 256, 512, 1024, 2048, 4096, 8192] {
        let out = MessageBytes { at: expose(&buffers.0), len: bytes, in_reach: true };
        let into = MessageBytes { at: expose(&buffers.1), len: bytes, in_reach: true };
        let mut halves = Vec::with_capacity(ROUNDS);
        let mut trips = Vec::with_capacity(ROUNDS);
        for _ in 0..ROUNDS {
            let start = Instant::now();
            for _ in 0..BATCH {
                turn += 1;
                if turn % 2 == u64::from(me) {
                    line.store(turn, Ordering::Release);
                } else {
                    while line.load(Ordering::Acquire) < turn {
                        spin_loop();
                    }
                }
            }
            trips.push(start.elapsed().as_nanos() as u64 / BATCH);
            let start = Instant::now();
            let mut post = receive(&mut machine, &mut lanes, you, into);
            for turn in 0..BATCH {
                if turn % 2 == u64::from(me) {
                    send(&mut machine, &mut lanes, you, out);
                } else {
                    wait(&mut machine, &mut lanes, you, post);
                    if turn + 2 < BATCH {
                        post = receive(&mut machine, &mut lanes, you, into);
                    }
                }
            }
            halves.push(start.elapsed().as_nanos() as u64 / BATCH);
        }
        let rate = window(&mut machine, &mut lanes, me, out, into);
        halves.sort_unstable();
        trips.sort_unstable();
        if me == 0 {
            let median = halves[ROUNDS / 2];
            println!("{bytes:>8} {:>12} {:>12} {median:>12} {rate:>12}", trips[0], halves[0]);
        }
    }
    if me == 0 {
        println!("{:?}", machine.counts());
    }
}

/// Messages of a window of 64 each: nanoseconds for one.
fn window(
    machine: &mut MessageMachine<'_>,
    lanes: &mut NodeLanes<'_>,
    me: u32,
    out: MessageBytes,
    into: MessageBytes,
) -> u64 {
    let you = PeerIndex(1 - me);
    let mut best = u64::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        if me == 0 {
            for _ in 0..64 {
                send(machine, lanes, you, out);
            }
            let post = receive(machine, lanes, you, into);
            wait(machine, lanes, you, post);
        } else {
            let posts: [_; 64] = std::array::from_fn(|_| receive(machine, lanes, you, into));
            for post in posts {
                wait(machine, lanes, you, post);
            }
            send(machine, lanes, you, out);
        }
        best = best.min(start.elapsed().as_nanos() as u64 / 64);
    }
    best
}

fn send(
    machine: &mut MessageMachine<'_>,
    lanes: &mut NodeLanes<'_>,
    to: PeerIndex,
    out: MessageBytes,
) {
    let label = Label { context: 0, tag: 7 };
    let request = match machine.send(lanes, to, label, out).expect("a request") {
        Begun::Done(()) => return,
        Begun::Pending(request) => request,
    };
    while machine.take(request).is_none() {
        machine.advance_from(lanes, to);
    }
}

fn receive(
    machine: &mut MessageMachine<'_>,
    lanes: &mut NodeLanes<'_>,
    from: PeerIndex,
    into: MessageBytes,
) -> Option<RequestId> {
    let pattern = Pattern { context: 0, source: Some(from), tag: Some(7) };
    machine.receive(lanes, pattern, into).expect("a request").pending()
}

fn wait(
    machine: &mut MessageMachine<'_>,
    lanes: &mut NodeLanes<'_>,
    from: PeerIndex,
    post: Option<RequestId>,
) {
    let Some(request) = post else { return };
    while machine.take(request).is_none() {
        if !machine.advance_from(lanes, from) {
            spin_loop();
        }
    }
}

fn expose(buffer: &[u8]) -> u64 {
    buffer.as_ptr().expose_provenance() as u64
}

const SHAPE: MessageShape = MessageShape::of(2);
const ROUNDS: usize = 400;
const BATCH: u64 = 200;

//! The copy benchmark: the memory in which bytes are moved, and each method of moving
//! them.

use super::method::TransferMethod;
use super::ping_pong::PingPong;
use crate::copy::{CopyMode, copy};
use crate::distance_probe;
use crate::sys;
use std::hint::black_box;
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use tsumugi_core::msg::{Split, SplitSide, Thresholds};
use tsumugi_core::sync::{AtomicU64, CachePadded, Ordering};

/// The buffers of the giver and the taker, and the words by which parts are
/// announced.
pub struct CopyBench {
    source: BenchBlock,
    destination: BenchBlock,
    slots: BenchBlock,
    /// The round, and how many of its bytes the taker may read. Written by the
    /// giver.
    there: CachePadded<AtomicU64>,
    /// Which side copies which part; the round of which the giver has copied its
    /// part.
    split: Split,
    done: CachePadded<AtomicU64>,
    /// Lines with a stamp and payload each. Written by the giver.
    lines: [CachePadded<[AtomicU64; WORDS]>; LINES],
}

impl CopyBench {
    /// The size of all slots together.
    pub const SLOTS_BYTES: usize = 16 << 10;

    /// Makes a bench for messages of up to `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> io::Result<Self> {
        Ok(Self {
            source: BenchBlock::new(bytes_max)?,
            destination: BenchBlock::new(bytes_max)?,
            slots: BenchBlock::new(Self::SLOTS_BYTES)?,
            there: CachePadded::new(AtomicU64::new(0)),
            split: Split::new(),
            done: CachePadded::new(AtomicU64::new(0)),
            lines: Default::default(),
        })
    }

    /// The giver's part of a round: dirties the bytes, moves them, announces them
    /// to the taker.
    pub fn give(&self, ping_pong: &PingPong, round: u64, method: TransferMethod, bytes: usize) {
        self.source.dirty(bytes, round);
        match method {
            TransferMethod::Push | TransferMethod::Halves => {
                self.push(round, method, CopyMode::Plain, bytes)
            }
            TransferMethod::Pieces | TransferMethod::HalvesInPieces => {
                self.push(round, method, CopyMode::Pieces, bytes)
            }
            TransferMethod::Stream => self.push(round, method, CopyMode::Streaming, bytes),
            TransferMethod::Pull => {}
            TransferMethod::Both => {
                let opened = self.split.open(round as u32);
                debug_assert!(opened, "the round before has closed it");
                ping_pong.ask(round);
                self.share(round, SplitSide::Sender, bytes);
                // Release: pairs with the Acquire in `take`.
                return self.done.store(round, Ordering::Release);
            }
            // The taker polls the lines, or the slots.
            TransferMethod::Inline => return self.write_lines(round, bytes),
            TransferMethod::Bounce => return self.fill_slots(round, bytes),
        }
        ping_pong.ask(round);
    }

    /// A reading of the probe, on bytes that the taker has read before.
    pub fn sample(&self) -> u64 {
        // SAFETY: both blocks are longer than a sample; the taker reads only after
        // the round has begun.
        unsafe { distance_probe::sample(self.source.start, self.destination.start) }
    }

    /// The taker's part of a round: waits, moves the bytes, reads them.
    pub fn take(
        &self,
        ping_pong: &PingPong,
        round: u64,
        method: TransferMethod,
        bytes: usize,
    ) -> Option<()> {
        match method {
            TransferMethod::Push
            | TransferMethod::Pieces
            | TransferMethod::Stream
            | TransferMethod::Halves
            | TransferMethod::HalvesInPieces => {
                self.fetch(ping_pong, round, method, bytes)?;
            }
            TransferMethod::Pull => {
                ping_pong.wait_asked(round)?;
                let (from, to) = self.ends();
                // SAFETY: the giver accesses neither block until the answer.
                unsafe { copy(CopyMode::Plain, from, to, bytes) };
            }
            TransferMethod::Both => {
                ping_pong.wait_asked(round)?;
                self.share(round, SplitSide::Receiver, bytes);
                // Acquire: pairs with the Release in `give`.
                ping_pong.wait(|| self.done.load(Ordering::Acquire) == round)?;
            }
            TransferMethod::Inline => self.read_lines(ping_pong, round, bytes)?,
            TransferMethod::Bounce => self.empty_slots(ping_pong, round, bytes)?,
        }
        self.destination.read(0..bytes);
        Some(())
    }

    fn ends(&self) -> (NonNull<u8>, NonNull<u8>) {
        (self.source.start, self.destination.start)
    }

    /// Copies all of a message, and announces each part of it to the taker.
    fn push(&self, round: u64, method: TransferMethod, mode: CopyMode, bytes: usize) {
        let (from, to) = self.ends();
        for part in parts(method, bytes) {
            // SAFETY: both blocks have that size or more; the taker reads this part
            // only after its announcement, and does not access it after its answer.
            unsafe { copy(mode, from.add(part.start), to.add(part.start), part.len()) };
            if part.end < bytes {
                // Release: pairs with the Acquire in `fetch`.
                self.there.store(there(round, part.end), Ordering::Release);
            }
        }
    }

    /// Reads the announced parts while the rest is on its way.
    fn fetch(
        &self,
        ping_pong: &PingPong,
        round: u64,
        method: TransferMethod,
        bytes: usize,
    ) -> Option<()> {
        for part in parts(method, bytes).filter(|part| part.end < bytes) {
            // Acquire: pairs with the Release in `push`.
            ping_pong.wait(|| self.there.load(Ordering::Acquire) >= there(round, part.end))?;
            self.destination.read(part);
        }
        ping_pong.wait_asked(round)
    }

    /// Copies the parts that this side claims.
    fn share(&self, round: u64, side: SplitSide, bytes: usize) {
        let (from, to) = self.ends();
        self.split.share(round as u32, side, bytes as u64, SPLIT_LEAST, |part| {
            let (at, len) = (part.start as usize, (part.end - part.start) as usize);
            // SAFETY: the part lies inside both blocks; the other side has not
            // claimed it, and the giver accesses neither block until the answer.
            unsafe { copy(CopyMode::Plain, from.add(at), to.add(at), len) };
        });
    }

    fn write_lines(&self, round: u64, bytes: usize) {
        for (line, part) in lines(bytes) {
            let line = &self.lines[line];
            for (word, at) in line[WORDS - part.len().div_ceil(8)..].iter().zip(part.step_by(8)) {
                word.store(self.source.word(at), Ordering::Relaxed);
            }
            // Release: pairs with the Acquire in `read_lines`.
            line[0].store(round, Ordering::Release);
        }
    }

    fn read_lines(&self, ping_pong: &PingPong, round: u64, bytes: usize) -> Option<()> {
        for (line, part) in lines(bytes) {
            let line = &self.lines[line];
            // Acquire: pairs with the Release in `write_lines`.
            ping_pong.wait(|| line[0].load(Ordering::Acquire) == round)?;
            for (word, at) in line[WORDS - part.len().div_ceil(8)..].iter().zip(part.step_by(8)) {
                self.destination.set_word(at, word.load(Ordering::Relaxed));
            }
        }
        Some(())
    }

    fn fill_slots(&self, round: u64, bytes: usize) {
        for at in (0..bytes).step_by(SLOT_BYTES) {
            let len = SLOT_BYTES.min(bytes - at);
            let (from, to) = (self.source.start, self.slots.start);
            // SAFETY: the taker emptied these slots before its last answer.
            unsafe { copy(CopyMode::Plain, from.add(at), to.add(at), len) };
            // Release: pairs with the Acquire in `empty_slots`.
            self.there.store(there(round, at + len), Ordering::Release);
        }
    }

    fn empty_slots(&self, ping_pong: &PingPong, round: u64, bytes: usize) -> Option<()> {
        for at in (0..bytes).step_by(SLOT_BYTES) {
            let len = SLOT_BYTES.min(bytes - at);
            // Acquire: pairs with the Release in `fill_slots`.
            ping_pong.wait(|| self.there.load(Ordering::Acquire) >= there(round, at + len))?;
            let (from, to) = (self.slots.start, self.destination.start);
            // SAFETY: the giver has filled this slot and does not access it until
            // the answer.
            unsafe { copy(CopyMode::Plain, from.add(at), to.add(at), len) };
        }
        Some(())
    }
}

/// Zeroed memory of the same kind as partitions: pages of a file. In other memory,
/// which may consist of huge pages, slots take half as long.
struct BenchBlock {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the two threads take turns by the rounds of the ping-pong.
unsafe impl Sync for BenchBlock {}

impl BenchBlock {
    fn new(bytes: usize) -> io::Result<Self> {
        let start = sys::map(sys::memory_file(bytes)?.as_fd(), None, bytes)?;
        Ok(Self { start, bytes })
    }

    /// Changes every line of the first `bytes` bytes.
    fn dirty(&self, bytes: usize, value: u64) {
        for at in (0..bytes).step_by(LINE) {
            self.set_word(at, value);
        }
    }

    /// Reads every line of a range.
    fn read(&self, place: Range<usize>) {
        let sum = place.step_by(LINE).fold(0u64, |sum, at| sum.wrapping_add(self.word(at)));
        black_box(sum);
    }

    fn word(&self, at: usize) -> u64 {
        debug_assert!(at + 8 <= self.bytes && at.is_multiple_of(8));
        // SAFETY: within the block and aligned; no thread writes it during the
        // read, by the rounds of the ping-pong.
        unsafe { self.start.add(at).cast().read() }
    }

    fn set_word(&self, at: usize, value: u64) {
        debug_assert!(at + 8 <= self.bytes && at.is_multiple_of(8));
        // SAFETY: as above, and no thread reads it either.
        unsafe { self.start.add(at).cast().write(value) }
    }
}

impl Drop for BenchBlock {
    fn drop(&mut self) {
        // SAFETY: mapped in `new`, and no user is left.
        unsafe { sys::unmap(self.start, self.bytes) };
    }
}

/// Which bytes of a message travel in which line: 32 in the first line, beside the
/// head, and 56 in each of the others.
fn lines(bytes: usize) -> impl Iterator<Item = (usize, Range<usize>)> {
    let start = |line: usize| if line == 0 { 0 } else { FIRST_BYTES + (line - 1) * MORE_BYTES };
    let part = move |line| (line, start(line)..bytes.min(start(line + 1)));
    (0..LINES).map(part).take_while(|(_, part)| !part.is_empty())
}

/// The parts of a push that are announced one by one, with the sizes that messages
/// use.
fn parts(method: TransferMethod, bytes: usize) -> impl Iterator<Item = Range<usize>> {
    let part = match method {
        TransferMethod::Halves | TransferMethod::HalvesInPieces => HALVING.half_of(bytes as u64),
        _ => Thresholds::DEFAULT.part_of(bytes as u64, method == TransferMethod::Stream),
    } as usize;
    // A short rest is added to the last part.
    let count = (bytes / part).max(1);
    (0..count).map(move |at| at * part..if at + 1 == count { bytes } else { (at + 1) * part })
}

/// The word that announces the first `bytes` bytes of a round.
fn there(round: u64, bytes: usize) -> u64 {
    round << 32 | bytes as u64
}

/// The least number of bytes that a side claims when both sides copy.
pub const SPLIT_LEAST: u64 = 8 << 10;
/// Thresholds by which all messages go in two halves.
const HALVING: Thresholds = Thresholds { halves_from: 0, ..Thresholds::DEFAULT };
const LINE: usize = 64;
const WORDS: usize = LINE / 8;
const LINES: usize = 4;
const FIRST_BYTES: usize = 32;
const MORE_BYTES: usize = 56;
const SLOT_BYTES: usize = 2 << 10;

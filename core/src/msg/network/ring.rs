//! Lines and slots of a lane, in chunks: the memory of records and of message
//! bytes, and when that memory is freed.

use super::chunk::{CHUNK_BYTES, ChunkPlace, Pool, Space};
use crate::msg::shape::MessageShape;

/// Bytes of a line.
pub(super) const LINE_BYTES: usize = 64;
const CHUNK_LINES: u32 = (CHUNK_BYTES / LINE_BYTES) as u32;

/// A ring of lines; a record may continue at the start.
#[derive(Debug)]
pub(super) struct Ring<'t> {
    space: Space<'t>,
    lines: u32,
}

impl<'t> Ring<'t> {
    pub(super) const fn new(lines: u32, places: &'t mut [ChunkPlace<'t>]) -> Self {
        Self { space: Space::new(places), lines }
    }

    pub(super) const fn lines(&self) -> u32 {
        self.lines
    }

    /// Writes a record at a line.
    pub(super) fn write(&mut self, pool: &mut Pool<'t>, line: u32, record: &[u8]) {
        let (start, end) = self.span(line);
        let (first, rest) = record.split_at(record.len().min(end - start));
        self.space.write(pool, start, first);
        self.space.write(pool, 0, rest);
    }

    /// Reads as many bytes as `into` has; bytes that were never written stay
    /// unchanged.
    pub(super) fn read(&self, line: u32, into: &mut [u8]) {
        let (start, end) = self.span(line);
        let (first, rest) = into.split_at_mut(into.len().min(end - start));
        self.space.read(start, first);
        self.space.read(0, rest);
    }

    /// Frees the lines from `from` until `to`; the lines in use that follow end
    /// before `reach`.
    pub(super) fn pass(&mut self, pool: &mut Pool<'t>, from: u32, to: u32, reach: u32) {
        if to == reach {
            self.give_up_all(pool);
            return;
        }
        let mut chunk = from - from % CHUNK_LINES;
        while to.wrapping_sub(chunk) >= CHUNK_LINES {
            // The chunk may have lines of the next round at its start.
            if reach.wrapping_sub(chunk) <= self.lines {
                self.space.give_up(pool, self.span(chunk).0 / CHUNK_BYTES);
            }
            chunk = chunk.wrapping_add(CHUNK_LINES);
        }
    }

    pub(super) fn give_up_all(&mut self, pool: &mut Pool<'t>) {
        self.space.give_up_all(pool);
    }

    /// Returns the offset at which a line starts, and the end of the last line.
    fn span(&self, line: u32) -> (usize, usize) {
        ((line % self.lines) as usize * LINE_BYTES, self.lines as usize * LINE_BYTES)
    }
}

/// Slots; only slots with bytes have memory.
#[derive(Debug)]
pub(super) struct Slots<'t> {
    space: Space<'t>,
    slot_bytes: u32,
    used: u32,
}

impl<'t> Slots<'t> {
    pub(super) const fn new(shape: &MessageShape, places: &'t mut [ChunkPlace<'t>]) -> Self {
        Self { space: Space::new(places), slot_bytes: shape.slot_bytes, used: 0 }
    }

    /// Calls `write` for the bytes of a slot, from an offset on, piece by piece.
    pub(super) fn fill(
        &mut self,
        pool: &mut Pool<'t>,
        slot: u32,
        offset: u32,
        len: usize,
        write: impl FnMut(usize, &mut [u8]),
    ) {
        self.used |= 1 << slot;
        self.space.fill(pool, self.start(slot) + offset as usize, len, write);
    }

    /// Calls `see` for the bytes of a slot, piece by piece, as far as any were
    /// written.
    pub(super) fn visit(&self, slot: u32, offset: u32, len: usize, see: impl FnMut(usize, &[u8])) {
        self.space.visit(self.start(slot) + offset as usize, len, see);
    }

    /// Frees the memory of slots that no call reads any more.
    pub(super) fn give_up(&mut self, pool: &mut Pool<'t>, slots: u32) {
        let done = slots & self.used;
        self.used &= !slots;
        for slot in each_of(done) {
            let (start, end) = (self.start(slot), self.start(slot + 1));
            for chunk in start / CHUNK_BYTES..end.div_ceil(CHUNK_BYTES) {
                let (first, last) = (chunk * CHUNK_BYTES, (chunk + 1) * CHUNK_BYTES - 1);
                let shares = |slot: u32| self.start(slot)..self.start(slot + 1);
                let is_free = each_of(self.used)
                    .map(shares)
                    .all(|other| other.end <= first || other.start > last);
                if is_free {
                    self.space.give_up(pool, chunk);
                }
            }
        }
    }

    pub(super) fn give_up_all(&mut self, pool: &mut Pool<'t>) {
        self.used = 0;
        self.space.give_up_all(pool);
    }

    pub(super) const fn is_unused(&self) -> bool {
        self.used == 0
    }

    const fn start(&self, slot: u32) -> usize {
        slot as usize * self.slot_bytes as usize
    }
}

/// Returns how many chunks the lines, and the slots, of one lane need.
pub(super) const fn chunks_of(shape: &MessageShape) -> (usize, usize) {
    let lines = shape.lines as usize * LINE_BYTES;
    let slots = shape.slots as usize * shape.slot_bytes as usize;
    (lines.div_ceil(CHUNK_BYTES), slots.div_ceil(CHUNK_BYTES))
}

/// Returns the slots of a set, the lowest first.
pub(super) fn slots_of(shape: &MessageShape, slots: u32) -> impl Iterator<Item = u32> + use<> {
    each_of(slots & shape.slot_mask())
}

/// Returns for each slot of a set: the slot, the offset of its bytes in a message
/// of `len` bytes, and their number.
pub(super) fn each_slot(
    shape: &MessageShape,
    slots: u32,
    len: u64,
) -> impl Iterator<Item = (u32, u64, usize)> + use<> {
    let size = u64::from(shape.slot_bytes);
    slots_of(shape, slots)
        .enumerate()
        .map(move |(number, slot)| (slot, number as u64 * size))
        .take_while(move |(_, at)| *at < len)
        .map(move |(slot, at)| (slot, at, size.min(len - at) as usize))
}

fn each_of(mut slots: u32) -> impl Iterator<Item = u32> {
    core::iter::from_fn(move || {
        let slot = (slots != 0).then(|| slots.trailing_zeros())?;
        slots &= slots - 1;
        Some(slot)
    })
}

#[cfg(all(test, not(tsumugi_loom)))]
mod tests {
    use super::super::chunk::LaneChunk;
    use super::*;
    use std::vec::Vec;

    fn pool(chunks: usize) -> Pool<'static> {
        let mut pool = Pool::default();
        for chunk in Vec::leak((0..chunks).map(|_| LaneChunk::EMPTY).collect()) {
            pool.give(chunk);
        }
        pool
    }

    fn places(count: usize) -> &'static mut [ChunkPlace<'static>] {
        Vec::leak((0..count).map(|_| None).collect())
    }

    #[test]
    fn a_record_wraps_to_the_start_of_the_ring() {
        let (mut pool, mut ring) = (pool(1), Ring::new(8, places(1)));
        let record: [u8; 200] = core::array::from_fn(|at| at as u8);
        ring.write(&mut pool, 8 * 1000 + 6, &record);
        let mut read_back = [0; 200];
        ring.read(6, &mut read_back);
        assert_eq!(read_back, record);
        let (mut sixth, mut first) = ([0], [0]);
        ring.read(6, &mut sixth);
        ring.read(0, &mut first);
        assert_eq!((sixth[0], first[0]), (0, 128));
    }

    #[test]
    fn passed_lines_give_their_memory_back() {
        let (mut pool, mut ring) = (pool(4), Ring::new(128, places(4)));
        // Positions beyond the wrap of the counter.
        let at = |line: u32| (u32::MAX - 127).wrapping_add(line);
        for line in (10..130).step_by(2) {
            ring.write(&mut pool, at(line), &[line as u8; 128]);
        }
        assert_eq!(pool.free(), 0);
        ring.pass(&mut pool, at(10), at(40), at(130));
        assert_eq!(pool.free(), 0, "the first chunk has lines of the next round");
        let mut line = [0; 64];
        ring.read(at(129), &mut line);
        assert_eq!(line, [128; 64]);
        ring.pass(&mut pool, at(40), at(70), at(130));
        assert_eq!(pool.free(), 1);
        ring.read(at(70), &mut line);
        assert_eq!(line, [70; 64]);
        ring.pass(&mut pool, at(70), at(130), at(130));
        assert_eq!(pool.free(), 4);
    }

    #[test]
    fn small_slots_share_a_chunk_and_large_ones_have_several() {
        for (slot_bytes, slots) in [(64, 32), (512, 7), (2048, 3), (8192, 2)] {
            let shape = MessageShape { slots, slot_bytes, ..MessageShape::of(1) };
            let count = chunks_of(&shape).1;
            let (mut pool, mut own) = (pool(count), Slots::new(&shape, places(count)));
            let size = slot_bytes as usize;
            for slot in 0..slots {
                own.fill(&mut pool, slot, 0, size, |_, into| into.fill(slot as u8));
            }
            assert_eq!(pool.free(), 0);
            for slot in (0..slots).rev() {
                own.visit(slot, 0, size, |_, bytes| {
                    assert!(bytes.iter().all(|byte| *byte == slot as u8), "slot {slot}");
                });
                own.give_up(&mut pool, 1 << slot);
            }
            assert!(pool.free() == count && own.is_unused());
        }
    }

    #[test]
    fn slots_are_filled_from_the_lowest() {
        let shape = MessageShape { slots: 4, slot_bytes: 64, ..MessageShape::of(1) };
        let mut each = each_slot(&shape, 0b1_1010, 100);
        assert_eq!((each.next(), each.next()), (Some((1, 0, 64)), Some((3, 64, 36))));
        assert_eq!(each.next(), None);
    }
}

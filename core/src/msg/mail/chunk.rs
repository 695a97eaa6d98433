//! Memory that all far lanes of a rank share: a lane has as much of it as lies
//! in it.
//!
//! ```text
//!  places of a lane   ─┬─────┬─ ─┬─────┬─ ─┬──
//!                      │ ●   │   │  ●  │   │      none where nothing lies
//!                      └─│───┴─ ─┴──│──┴─ ─┴──
//!                        ▼          ▼
//!  chunks              2 KiB      2 KiB           ■ ─► ■ ─► ■  pool: free ones
//! ```

use crate::msg::setup::Shape;
use core::fmt;

/// Memory for what lies in a lane, to be given to a [`Mail`](super::Mail).
pub struct Chunk<'t> {
    next: Place<'t>,
    bytes: [u8; CHUNK_BYTES],
}

/// Where a chunk may be.
pub type Place<'t> = Option<&'t mut Chunk<'t>>;

/// Chunks that are free. What was used last is used next.
#[derive(Default)]
pub(super) struct Pool<'t> {
    first: Place<'t>,
    free: usize,
}

/// Bytes by their numbers, of which those have memory that were written and
/// not given up.
#[derive(Debug)]
pub(super) struct Space<'t> {
    places: &'t mut [Place<'t>],
}

impl Chunk<'_> {
    /// A chunk with nothing in it.
    pub const EMPTY: Self = Self { next: None, bytes: [0; CHUNK_BYTES] };
}

impl<'t> Pool<'t> {
    pub(super) const fn free(&self) -> usize {
        self.free
    }

    pub(super) fn give(&mut self, chunk: &'t mut Chunk<'t>) {
        chunk.next = self.first.take();
        self.first = Some(chunk);
        self.free += 1;
    }

    /// # Panics
    ///
    /// If there is none: nobody has looked whether it is short.
    pub(super) fn take(&mut self) -> &'t mut Chunk<'t> {
        let chunk = self.first.take().expect("mail is fed before it is short of chunks");
        self.first = chunk.next.take();
        self.free -= 1;
        chunk
    }
}

impl<'t> Space<'t> {
    pub(super) const fn new(places: &'t mut [Place<'t>]) -> Self {
        Self { places }
    }

    pub(super) fn write(&mut self, pool: &mut Pool<'t>, at: usize, bytes: &[u8]) {
        self.fill(pool, at, bytes.len(), |done, into| {
            into.copy_from_slice(&bytes[done..done + into.len()]);
        });
    }

    /// Has so many bytes written, piece by piece: how many were, and the next.
    pub(super) fn fill(
        &mut self,
        pool: &mut Pool<'t>,
        at: usize,
        len: usize,
        mut write: impl FnMut(usize, &mut [u8]),
    ) {
        for (index, start, done, len) in pieces(at, len) {
            let chunk = self.places[index].get_or_insert_with(|| pool.take());
            write(done, &mut chunk.bytes[start..start + len]);
        }
    }

    /// Leaves of `into` what has no memory here.
    pub(super) fn read(&self, at: usize, into: &mut [u8]) {
        self.visit(at, into.len(), |done, bytes| {
            into[done..done + bytes.len()].copy_from_slice(bytes);
        });
    }

    /// Shows so many bytes, piece by piece: how many were before it, and it.
    pub(super) fn visit(&self, at: usize, len: usize, mut see: impl FnMut(usize, &[u8])) {
        for (index, start, done, len) in pieces(at, len) {
            if let Some(chunk) = &self.places[index] {
                see(done, &chunk.bytes[start..start + len]);
            }
        }
    }

    /// Gives up the chunk of that number.
    pub(super) fn give_up(&mut self, pool: &mut Pool<'t>, index: usize) {
        if let Some(chunk) = self.places[index].take() {
            pool.give(chunk);
        }
    }

    pub(super) fn give_up_all(&mut self, pool: &mut Pool<'t>) {
        (0..self.places.len()).for_each(|index| self.give_up(pool, index));
    }
}

/// Bytes from `at` on as they lie in chunks: which one, from where in it, how
/// many were before, how many are there.
fn pieces(at: usize, len: usize) -> impl Iterator<Item = (usize, usize, usize, usize)> {
    let mut done = 0;
    core::iter::from_fn(move || {
        let (index, start) = ((at + done) / CHUNK_BYTES, (at + done) % CHUNK_BYTES);
        let piece = (len - done).min(CHUNK_BYTES - start);
        done += piece;
        (piece > 0).then_some((index, start, done - piece, piece))
    })
}

/// Chunks of the lines, and of the slots, of one lane.
pub(super) const fn chunks_of(shape: &Shape) -> (usize, usize) {
    let lines = shape.lines as usize * super::ring::LINE_BYTES;
    let slots = shape.slots as usize * shape.slot_bytes as usize;
    (lines.div_ceil(CHUNK_BYTES), slots.div_ceil(CHUNK_BYTES))
}

impl fmt::Debug for Chunk<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Chunk")
    }
}

impl fmt::Debug for Pool<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pool({} free)", self.free)
    }
}

/// A slot as a rule, or 32 lines.
pub(super) const CHUNK_BYTES: usize = 2048;

#[cfg(all(test, not(tsumugi_loom)))]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn what_is_written_has_memory_until_it_is_given_up() {
        let mut pool = Pool::default();
        for chunk in Vec::leak((0..4).map(|_| Chunk::EMPTY).collect()) {
            pool.give(chunk);
        }
        let mut space = Space::new(Vec::leak((0..4).map(|_| None).collect()));
        let bytes: [u8; 300] = core::array::from_fn(|at| at as u8);
        space.write(&mut pool, CHUNK_BYTES - 100, &bytes);
        assert_eq!(pool.free(), 2);
        let mut back = [9; 300];
        space.read(CHUNK_BYTES - 100, &mut back);
        assert_eq!(back, bytes);
        space.give_up(&mut pool, 0);
        back.fill(9);
        space.read(CHUNK_BYTES - 100, &mut back);
        assert!(back[..100].iter().all(|byte| *byte == 9) && back[100..] == bytes[100..]);
        space.write(&mut pool, 0, &bytes);
        space.give_up_all(&mut pool);
        assert_eq!(pool.free(), 4);
    }
}

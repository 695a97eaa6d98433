//! Memory that all network lanes of a rank share: a lane holds only as many chunks as
//! its content needs.
//!
//! ```text
//!  places of a lane   ─┬─────┬─ ─┬─────┬─ ─┬──
//!                      │ ●   │   │  ●  │   │      none where the lane is empty
//!                      └─│───┴─ ─┴──│──┴─ ─┴──
//!                        ▼          ▼
//!  chunks              2 KiB      2 KiB           ■ ─► ■ ─► ■  pool: free ones
//! ```

use core::fmt;

/// A piece of memory for the content of lanes, to be given to a
/// [`NetworkLanes`](super::NetworkLanes).
pub struct LaneChunk<'t> {
    next: ChunkPlace<'t>,
    bytes: [u8; CHUNK_BYTES],
}

/// A place for a chunk.
pub type ChunkPlace<'t> = Option<&'t mut LaneChunk<'t>>;

/// The free chunks. The chunk that was used last is used next.
#[derive(Default)]
pub(super) struct Pool<'t> {
    first: ChunkPlace<'t>,
    free: usize,
}

/// An array of bytes in chunks. Only bytes that were written and not given up
/// have memory.
#[derive(Debug)]
pub(super) struct Space<'t> {
    places: &'t mut [ChunkPlace<'t>],
}

impl LaneChunk<'_> {
    /// A chunk with nothing in it.
    pub const EMPTY: Self = Self { next: None, bytes: [0; CHUNK_BYTES] };
}

impl<'t> Pool<'t> {
    pub(super) const fn free(&self) -> usize {
        self.free
    }

    pub(super) fn give(&mut self, chunk: &'t mut LaneChunk<'t>) {
        chunk.next = self.first.take();
        self.first = Some(chunk);
        self.free += 1;
    }

    /// Takes a free chunk.
    ///
    /// # Panics
    ///
    /// If there is none: the caller did not check whether the pool is short.
    pub(super) fn take(&mut self) -> &'t mut LaneChunk<'t> {
        let chunk =
            self.first.take().expect("no chunk is free: `NetworkLanes::feed` it while it is short");
        self.first = chunk.next.take();
        self.free -= 1;
        chunk
    }
}

impl<'t> Space<'t> {
    pub(super) const fn new(places: &'t mut [ChunkPlace<'t>]) -> Self {
        Self { places }
    }

    pub(super) fn write(&mut self, pool: &mut Pool<'t>, at: usize, bytes: &[u8]) {
        self.fill(pool, at, bytes.len(), |done, into| {
            into.copy_from_slice(&bytes[done..done + into.len()]);
        });
    }

    /// Calls `write` for the `len` bytes at `at`, piece by piece: with the number
    /// of bytes before the piece, and the piece.
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

    /// Reads bytes into `into`; bytes without memory here stay unchanged.
    pub(super) fn read(&self, at: usize, into: &mut [u8]) {
        self.visit(at, into.len(), |done, bytes| {
            into[done..done + bytes.len()].copy_from_slice(bytes);
        });
    }

    /// Calls `see` for the `len` bytes at `at`, piece by piece: with the number
    /// of bytes before the piece, and the piece.
    pub(super) fn visit(&self, at: usize, len: usize, mut see: impl FnMut(usize, &[u8])) {
        for (index, start, done, len) in pieces(at, len) {
            if let Some(chunk) = &self.places[index] {
                see(done, &chunk.bytes[start..start + len]);
            }
        }
    }

    /// Gives up the chunk with that number.
    pub(super) fn give_up(&mut self, pool: &mut Pool<'t>, index: usize) {
        if let Some(chunk) = self.places[index].take() {
            pool.give(chunk);
        }
    }

    pub(super) fn give_up_all(&mut self, pool: &mut Pool<'t>) {
        (0..self.places.len()).for_each(|index| self.give_up(pool, index));
    }
}

/// Splits the bytes from `at` on by chunks: the index of the chunk, the offset in
/// it, the number of bytes before, and the number of bytes there.
fn pieces(at: usize, len: usize) -> impl Iterator<Item = (usize, usize, usize, usize)> {
    let mut done = 0;
    core::iter::from_fn(move || {
        let (index, start) = ((at + done) / CHUNK_BYTES, (at + done) % CHUNK_BYTES);
        let piece = (len - done).min(CHUNK_BYTES - start);
        done += piece;
        (piece > 0).then_some((index, start, done - piece, piece))
    })
}

impl fmt::Debug for LaneChunk<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LaneChunk")
    }
}

impl fmt::Debug for Pool<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pool({} free)", self.free)
    }
}

/// One slot of the default size, or 32 lines.
pub(super) const CHUNK_BYTES: usize = 2048;

#[cfg(all(test, not(tsumugi_loom)))]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn written_bytes_have_memory_until_they_are_given_up() {
        let mut pool = Pool::default();
        for chunk in Vec::leak((0..4).map(|_| LaneChunk::EMPTY).collect()) {
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

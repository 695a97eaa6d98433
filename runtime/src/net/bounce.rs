//! A pool of bounce buffers: memory that a put or get may use after its caller is
//! gone.
//!
//! An operation on borrowed memory must not return before the device has released
//! that memory, which may take minutes if the other node does not answer any more.
//! So the operation goes through a chunk of this pool: when its peer is lost, the
//! caller gets the error at once, and the chunk is never used again. A second gain
//! is that borrowed memory need not be registered. Chunks take memory only after
//! they were used.

use crate::error::Error;
use std::alloc::Layout;
use std::sync::{Mutex, PoisonError};
use tsumugi_core::mem::AddrError;
use tsumugi_core::mem::{Access, LocalAddr, MemorySource, Region};
use tsumugi_core::sync::{AtomicUsize, Ordering};
use tsumugi_pvas::Member;
use tsumugi_pvas::config::HEAP;

/// The pool. See the module.
#[derive(Debug)]
pub(super) struct Bounce {
    region: Region,
    free: Mutex<Vec<usize>>,
    /// Chunks that are never used again.
    parked: AtomicUsize,
}

/// One chunk of the pool, lent. A chunk that is dropped is never lent again.
#[derive(Debug)]
pub(super) struct BounceChunk<'b> {
    bounce: &'b Bounce,
    index: usize,
}

impl Bounce {
    /// Makes a pool in the rank's heap, registered for the rank's own operations.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`]: the heap has no room. [`Error::Register`]: the table
    /// of regions has no room.
    pub(super) fn new(member: &Member) -> Result<Self, Error> {
        let bytes = CHUNKS * CHUNK_BYTES;
        let layout = Layout::from_size_align(bytes, 4096).expect("4096 is a valid alignment");
        let base = member.heap().allocate(layout);
        let base = base.ok_or(Error::OutOfMemory { bytes, variable: HEAP })?;
        // SAFETY: the memory is never given back, and it is read and written only
        // through a chunk after the operation on it has ended.
        let region =
            unsafe { member.direct().register_runtime(base, bytes as u64, Access::Local)? };
        let free = Mutex::new((0..CHUNKS).rev().collect());
        Ok(Self { region, free, parked: AtomicUsize::new(0) })
    }

    /// The region of the whole pool.
    pub(super) fn region(&self) -> &Region {
        &self.region
    }

    /// Takes a chunk, if one is free.
    pub(super) fn try_take(&self) -> Option<BounceChunk<'_>> {
        let index = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
        Some(BounceChunk { bounce: self, index })
    }

    /// The chunk of an index that [`BounceChunk::into_index`] has returned.
    pub(super) fn lent(&self, index: usize) -> BounceChunk<'_> {
        BounceChunk { bounce: self, index }
    }

    /// Whether no chunk will ever be free again, because lost peers have them all.
    pub(super) fn is_used_up(&self) -> bool {
        self.parked.load(Ordering::Relaxed) >= CHUNKS
    }
}

impl BounceChunk<'_> {
    pub(super) fn local(&self) -> LocalAddr {
        let offset = (self.index * CHUNK_BYTES) as u64;
        LocalAddr { key: self.bounce.region.key, offset }
    }

    /// Copies bytes into the chunk, for a put.
    ///
    /// # Safety
    ///
    /// `from` is valid for reads of `bytes` bytes, at most a chunk's.
    pub(super) unsafe fn fill(&self, from: *const u8, bytes: usize) {
        // SAFETY: the chunk is lent to this caller alone; `from` is the caller's
        // promise.
        unsafe { std::ptr::copy_nonoverlapping(from, self.start(), bytes) };
    }

    /// Takes the result of an operation that has ended, with the bytes of a get, and
    /// gives the chunk back.
    ///
    /// # Safety
    ///
    /// `into` is valid for writes of `bytes` bytes, at most a chunk's, and the
    /// result is that of the operation on this chunk.
    pub(super) unsafe fn finish(
        self,
        result: Result<u64, AddrError>,
        into: Option<*mut u8>,
        bytes: usize,
    ) -> Result<(), AddrError> {
        if let Err(error @ AddrError::PeerLost { .. }) = result {
            self.bounce.parked.fetch_add(1, Ordering::Relaxed);
            return Err(error);
        }
        if let (Ok(_), Some(into)) = (result, into) {
            // SAFETY: the operation has ended, so the device does not use the chunk;
            // `into` is the caller's promise.
            unsafe { std::ptr::copy_nonoverlapping(self.start(), into, bytes) };
        }
        self.give_back();
        result.map(drop)
    }

    fn start(&self) -> *mut u8 {
        self.bounce.region.base.as_ptr().wrapping_add(self.index * CHUNK_BYTES)
    }

    /// Turns the lent chunk into its index: see [`Bounce::lent`].
    pub(super) fn into_index(self) -> usize {
        self.index
    }

    /// Gives back a chunk that no operation has used.
    pub(super) fn give_back(self) {
        self.bounce.free.lock().unwrap_or_else(PoisonError::into_inner).push(self.index);
    }
}

/// Bytes of a chunk.
pub(super) const CHUNK_BYTES: usize = 64 << 10;
/// How many chunks a rank has.
pub(crate) const CHUNKS: usize = 64;

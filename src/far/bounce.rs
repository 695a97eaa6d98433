//! Memory that a put or get may use after its caller has gone.
//!
//! An operation on memory that is only borrowed must not return before the
//! device has given that memory up, and if the other node does not answer any
//! more that may take minutes. So it goes by a chunk of this pool; when its
//! peer is lost the caller is told at once, and the chunk is never used again.
//! Nor has the device to be told of each borrow. Chunks cost memory once they
//! were used.

use crate::{AddrError, Error};
use std::alloc::Layout;
use std::sync::{Mutex, PoisonError};
use tsumugi_core::mem::{Access, LocalAddr, Memory, Region};
use tsumugi_core::sync::{AtomicUsize, Ordering};
use tsumugi_pvas::Member;
use tsumugi_pvas::config::HEAP;

/// See the module.
#[derive(Debug)]
pub(super) struct Bounce {
    region: Region,
    free: Mutex<Vec<usize>>,
    /// Chunks that are never used again.
    parked: AtomicUsize,
}

/// One piece of it, lent. One that is dropped is never lent again.
#[derive(Debug)]
pub(super) struct Chunk<'b> {
    bounce: &'b Bounce,
    index: usize,
}

impl Bounce {
    /// A pool in the rank's heap, registered for its own operations.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`], [`Error::Register`].
    pub(super) fn new(member: &Member) -> Result<Self, Error> {
        let bytes = CHUNKS * CHUNK_BYTES;
        let layout = Layout::from_size_align(bytes, 4096).expect("a constant");
        let base = member.heap().allocate(layout);
        let base = base.ok_or(Error::OutOfMemory { bytes, variable: HEAP })?;
        // SAFETY: it is never given back, and nobody looks at it but through
        // a chunk whose operation has ended.
        let region =
            unsafe { member.direct().register_runtime(base, bytes as u64, Access::Local)? };
        let free = Mutex::new((0..CHUNKS).rev().collect());
        Ok(Self { region, free, parked: AtomicUsize::new(0) })
    }

    /// All of it.
    pub(super) fn region(&self) -> &Region {
        &self.region
    }

    /// A chunk, if one is free.
    pub(super) fn try_take(&self) -> Option<Chunk<'_>> {
        let index = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
        Some(Chunk { bounce: self, index })
    }

    /// A chunk that was lent on.
    pub(super) fn lent(&self, index: usize) -> Chunk<'_> {
        Chunk { bounce: self, index }
    }

    /// Whether there will never be one again: as many gets were lost.
    pub(super) fn is_used_up(&self) -> bool {
        self.parked.load(Ordering::Relaxed) >= CHUNKS
    }
}

impl Chunk<'_> {
    pub(super) fn local(&self) -> LocalAddr {
        let offset = (self.index * CHUNK_BYTES) as u64;
        LocalAddr { key: self.bounce.region.key, offset }
    }

    /// Copies bytes into it, for a put.
    ///
    /// # Safety
    ///
    /// `from` is valid for reads of `bytes` bytes, at most a chunk's.
    pub(super) unsafe fn fill(&self, from: *const u8, bytes: usize) {
        // SAFETY: the chunk is ours alone; the rest is the caller's.
        unsafe { std::ptr::copy_nonoverlapping(from, self.start(), bytes) };
    }

    /// Takes the bytes of a get that has ended, and gives the chunk back.
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
            // SAFETY: the device is done with the chunk; the rest is the
            // caller's.
            unsafe { std::ptr::copy_nonoverlapping(self.start(), into, bytes) };
        }
        self.give_back();
        result.map(drop)
    }

    fn start(&self) -> *mut u8 {
        self.bounce.region.base.as_ptr().wrapping_add(self.index * CHUNK_BYTES)
    }

    /// Lends it on: see [`Bounce::lent`].
    pub(super) fn into_index(self) -> usize {
        self.index
    }

    /// Nothing was done with it.
    pub(super) fn give_back(self) {
        self.bounce.free.lock().unwrap_or_else(PoisonError::into_inner).push(self.index);
    }
}

/// Bytes of a chunk.
pub(super) const CHUNK_BYTES: usize = 64 << 10;
/// How many there are.
pub(crate) const CHUNKS: usize = 64;

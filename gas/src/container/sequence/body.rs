//! The bytes of a sequence: a ring, in which any range is one piece or two.

use crate::address::GlobalAddr;
use crate::container::data::{Data, Element};
use crate::container::error::ContainerError;
use crate::container::store::{Store, after};

/// Bytes that are allocated for a body of `capacity` bytes: whole lines.
pub(super) const fn room(capacity: u64) -> u64 {
    up_to(LINE, capacity)
}

/// The next multiple of `unit`, or `u64::MAX` if there is none.
pub(super) const fn up_to(unit: u64, bytes: u64) -> u64 {
    match bytes.checked_next_multiple_of(unit) {
        Some(bytes) => bytes,
        None => u64::MAX,
    }
}

/// The contents of a sequence's header.
#[derive(Clone, Copy, Debug)]
pub(super) struct SequenceBody {
    pub(super) at: GlobalAddr,
    pub(super) offset: u64,
    pub(super) size: u64,
    pub(super) capacity: u64,
}

impl SequenceBody {
    pub(super) fn check(&self, at: u64, bytes: u64) -> Result<(), ContainerError> {
        let size = self.size;
        if at > size || bytes > size - at {
            return Err(ContainerError::OutOfRange { at, bytes, size });
        }
        Ok(())
    }

    /// The longest piece from byte `at` on, of at most `bytes` bytes.
    fn piece<S: Store + ?Sized>(&self, store: &S, at: u64, bytes: u64) -> Element {
        if bytes == 0 {
            return Element::NONE;
        }
        let first = (self.offset + at) % self.capacity;
        Element { addr: after(store, self.at, first), bytes: bytes.min(self.capacity - first) }
    }

    pub(super) fn pieces<S: Store + ?Sized>(&self, store: &S, at: u64, bytes: u64) -> [Element; 2] {
        let first = self.piece(store, at, bytes);
        [first, self.piece(store, at + first.bytes, bytes - first.bytes)]
    }

    /// Writes `data` over the bytes from `at` on.
    pub(super) fn fill<S: Store + ?Sized>(
        &self,
        store: &S,
        at: u64,
        data: Data<'_>,
    ) -> Result<(), ContainerError> {
        let mut done = 0;
        for piece in self.pieces(store, at, data.bytes()) {
            if piece.bytes > 0 {
                data.write_part(store, (done, piece.bytes), piece.addr)?;
            }
            done += piece.bytes;
        }
        Ok(())
    }

    /// Copies the bytes of a range of `other` to `at`. The two must not overlap.
    pub(super) fn copy<S: Store + ?Sized>(
        &self,
        store: &S,
        at: u64,
        other: &Self,
        (from, to): (u64, u64),
    ) -> Result<(), ContainerError> {
        let mut done = 0;
        while from + done < to {
            let src = other.piece(store, from + done, to - from - done);
            let dst = self.piece(store, at + done, src.bytes);
            store.copy(dst.addr, src.addr, dst.bytes)?;
            done += dst.bytes;
        }
        Ok(())
    }

    /// Frees the memory of the body.
    pub(super) fn free<S: Store + ?Sized>(&self, store: &S) -> Result<(), ContainerError> {
        if self.at.is_null() { Ok(()) } else { Ok(store.free(self.at)?) }
    }
}

/// The unit in which memory is taken, and the size from which a body grows by a
/// half.
pub(super) const LINE: u64 = 64;

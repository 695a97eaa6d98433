//! A sequence while it is locked: several steps that no other call comes between.

use super::Sequence;
use super::body::SequenceBody;
use crate::container::data::Data;
use crate::container::error::ContainerError;
use crate::container::guard::{ContainerGuard, lock};
use crate::container::store::Store;
use crate::lock::LockMode;
use core::fmt;

/// A sequence that is locked until this is dropped. The holder must make no other call on
/// the sequence.
pub struct HeldSequence<'s, S: Store + ?Sized> {
    sequence: Sequence,
    store: &'s S,
    body: SequenceBody,
    _lock: ContainerGuard<'s, S>,
}

impl Sequence {
    /// Locks the sequence for this caller alone.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach.
    pub fn hold<S: Store + ?Sized>(self, store: &S) -> Result<HeldSequence<'_, S>, ContainerError> {
        self.hold_as(store, LockMode::Exclusive)
    }

    /// Shares the lock with other callers that only read. The holder must only read.
    pub(super) fn hold_shared<S: Store + ?Sized>(
        self,
        store: &S,
    ) -> Result<HeldSequence<'_, S>, ContainerError> {
        self.hold_as(store, LockMode::Shared)
    }

    /// Calls `with` with the sequence, in a state in which no call changes it meanwhile:
    /// its size in bytes, and a function that reads bytes from an offset on.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach, and those of
    /// `with`.
    pub fn view<S: Store + ?Sized, T>(
        self,
        store: &S,
        with: impl FnOnce(
            u64,
            &dyn Fn(u64, &mut [u8]) -> Result<(), ContainerError>,
        ) -> Result<T, ContainerError>,
    ) -> Result<T, ContainerError> {
        let held = self.hold_shared(store)?;
        with(held.size(), &|at, into| held.read(at, into))
    }

    fn hold_as<S: Store + ?Sized>(
        self,
        store: &S,
        mode: LockMode,
    ) -> Result<HeldSequence<'_, S>, ContainerError> {
        let _lock = lock(store, self.lock_at(store), mode)?;
        Ok(HeldSequence { sequence: self, store, body: self.body(store)?, _lock })
    }
}

impl<S: Store + ?Sized> HeldSequence<'_, S> {
    /// The number of bytes.
    pub fn size(&self) -> u64 {
        self.body.size
    }

    /// Reads the bytes from `at` on.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::OutOfRange`] if there are no such bytes.
    pub fn read(&self, at: u64, into: &mut [u8]) -> Result<(), ContainerError> {
        self.body.check(at, into.len() as u64)?;
        let mut into = into;
        for piece in self.body.pieces(self.store, at, into.len() as u64) {
            let (first, rest) = into.split_at_mut(piece.bytes as usize);
            if !first.is_empty() {
                self.store.read(piece.addr, first)?;
            }
            into = rest;
        }
        Ok(())
    }

    /// Overwrites the bytes from `at` on.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::OutOfRange`] if there are no such bytes.
    pub fn write(&self, at: u64, data: Data<'_>) -> Result<(), ContainerError> {
        self.body.check(at, data.bytes())?;
        self.body.fill(self.store, at, data)
    }

    /// Removes the last `bytes` bytes, or all if there are fewer.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach.
    pub fn pop_back(mut self, bytes: u64) -> Result<(), ContainerError> {
        self.body.size = self.body.size.saturating_sub(bytes);
        self.sequence.set_body(self.store, self.body)
    }

    /// Removes `bytes` bytes from `at` on, or all from there if there are fewer.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::Heap`] if there is no memory, or a block to free is no block,
    /// [`ContainerError::OutOfRange`] if `at` is larger than the size.
    pub fn erase(mut self, at: u64, bytes: u64) -> Result<(), ContainerError> {
        self.body.check(at, 0)?;
        let bytes = bytes.min(self.body.size - at);
        self.sequence.shift(self.store, &self.body, (at + bytes, at))?;
        self.body.size -= bytes;
        self.sequence.set_body(self.store, self.body)
    }

    /// Removes the first `bytes` bytes of a deque, or all if there are fewer.
    pub(in crate::container) fn pop_front(mut self, bytes: u64) -> Result<(), ContainerError> {
        let bytes = bytes.min(self.body.size);
        if self.body.capacity > 0 {
            self.body.offset = (self.body.offset + bytes) % self.body.capacity;
        }
        self.body.size -= bytes;
        self.sequence.set_body(self.store, self.body)
    }
}

impl<S: Store + ?Sized> fmt::Debug for HeldSequence<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HeldSequence").field(&self.sequence).finish()
    }
}

//! Deques: bytes in a ring, which grows at either end.

use super::data::Data;
use super::error::ContainerError;
use super::sequence::{Form, Sequence};
use super::store::Store;
use crate::address::GlobalAddr;
use core::ops::Deref;
use tsumugi_core::mem::Rank;

/// A deque of bytes, by the address of its header. The other calls are those of
/// [`Sequence`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Deque(Sequence);

impl Deque {
    /// Creates a deque of `bytes` bytes on `rank`.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::Heap`] if there is no memory.
    pub fn create<S: Store + ?Sized>(
        store: &S,
        bytes: u64,
        rank: Rank,
    ) -> Result<Self, ContainerError> {
        Sequence::create(store, Form::Deque, bytes, rank).map(Self)
    }

    /// The deque that has its header at `addr`.
    pub const fn at_addr(addr: GlobalAddr) -> Self {
        Self(Sequence::at_addr(addr, Form::Deque))
    }

    /// Inserts `data` before the first byte.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::Heap`] if there is no memory, or a block to free is no block.
    pub fn push_front<S: Store + ?Sized>(
        self,
        store: &S,
        data: Data<'_>,
    ) -> Result<(), ContainerError> {
        self.0.push_front(store, data)
    }

    /// Removes the first `bytes` bytes, or all if there are fewer.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach.
    pub fn pop_front<S: Store + ?Sized>(self, store: &S, bytes: u64) -> Result<(), ContainerError> {
        self.0.pop_front(store, bytes)
    }

    /// Reads the first bytes, as many as `into` has, and removes them. Returns false, and
    /// removes nothing, if there are fewer.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach.
    pub fn take_front<S: Store + ?Sized>(
        self,
        store: &S,
        into: &mut [u8],
    ) -> Result<bool, ContainerError> {
        let held = self.hold(store)?;
        let bytes = into.len() as u64;
        if held.size() < bytes {
            return Ok(false);
        }
        held.read(0, into)?;
        held.pop_front(bytes)?;
        Ok(true)
    }
}

impl Deref for Deque {
    type Target = Sequence;

    fn deref(&self) -> &Sequence {
        &self.0
    }
}

//! Vectors: bytes in one piece, which grow at their end.

use super::error::ContainerError;
use super::sequence::{Form, Sequence};
use super::store::Store;
use crate::address::GlobalAddr;
use core::ops::Deref;
use tsumugi_core::mem::Rank;

/// A vector of bytes, by the address of its header. The other calls are those of
/// [`Sequence`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Vector(Sequence);

impl Vector {
    /// Creates a vector of `bytes` bytes on `rank`.
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
        Sequence::create(store, Form::Vector, bytes, rank).map(Self)
    }

    /// The vector that has its header at `addr`.
    pub const fn at_addr(addr: GlobalAddr) -> Self {
        Self(Sequence::at_addr(addr, Form::Vector))
    }

    /// The address of byte `at`; null if there is none.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach.
    pub fn at<S: Store + ?Sized>(self, store: &S, at: u64) -> Result<GlobalAddr, ContainerError> {
        Ok(self.pieces(store, at, 1)?[0].addr)
    }
}

impl Deref for Vector {
    type Target = Sequence;

    fn deref(&self) -> &Sequence {
        &self.0
    }
}

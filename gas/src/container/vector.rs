//! Vectors: bytes in one piece, which grow at their end.

use super::ContainerError;
use super::sequence::{Form, Sequence};
use super::store::Store;
use crate::address::GlobalAddr;
use core::ops::Deref;
use tsumugi_core::mem::Rank;

/// A vector of bytes, by the address of its header. What it can do stands at
/// [`Sequence`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Vector(Sequence);

impl Vector {
    /// Makes one of `bytes` bytes on `rank`.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    pub fn create<S: Store + ?Sized>(
        store: &S,
        bytes: u64,
        rank: Rank,
    ) -> Result<Self, ContainerError> {
        Sequence::create(store, Form::Vector, bytes, rank).map(Self)
    }

    /// The one whose header is at `addr`.
    pub const fn at_addr(addr: GlobalAddr) -> Self {
        Self(Sequence::at_addr(addr, Form::Vector))
    }

    /// Where byte `at` is; null if there is none.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
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

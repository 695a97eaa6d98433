//! Deques: bytes in a ring, which grow at either end.

use super::ContainerError;
use super::data::Data;
use super::sequence::{Form, Sequence};
use super::store::Store;
use crate::address::GlobalAddr;
use core::ops::Deref;
use tsumugi_core::mem::Rank;

/// A deque of bytes, by the address of its header. What else it can do stands
/// at [`Sequence`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Deque(Sequence);

impl Deque {
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
        Sequence::create(store, Form::Deque, bytes, rank).map(Self)
    }

    /// The one whose header is at `addr`.
    pub const fn at_addr(addr: GlobalAddr) -> Self {
        Self(Sequence::at_addr(addr, Form::Deque))
    }

    /// Puts `data` in before the first byte.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    pub fn push_front<S: Store + ?Sized>(
        self,
        store: &S,
        data: Data<'_>,
    ) -> Result<(), ContainerError> {
        self.0.push_front(store, data)
    }

    /// Takes the first bytes out, as many as there are of `bytes`.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    pub fn pop_front<S: Store + ?Sized>(self, store: &S, bytes: u64) -> Result<(), ContainerError> {
        self.0.pop_front(store, bytes)
    }
}

impl Deref for Deque {
    type Target = Sequence;

    fn deref(&self) -> &Sequence {
        &self.0
    }
}

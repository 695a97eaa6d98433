//! Calls of sets, multisets and maps as a whole: creation, and taking over elements
//! of another container.

use super::error::ContainerError;
use super::store::Store;
use super::table::{HashTable, Reach, TableKind};
use crate::address::GlobalAddr;
use core::ops::Deref;
use tsumugi_core::mem::Rank;

/// A container of keys, which is a table.
pub trait Keyed: Copy + From<HashTable> + Deref<Target = HashTable> {
    /// The kind of its elements. If a key comes in again, a multiset adds to its
    /// count; the others keep the element that they have.
    const KIND: TableKind;

    /// Creates an empty container: `slots` slots on each of `ranks`, the header on
    /// `rank`.
    ///
    /// # Errors
    ///
    /// - [`ContainerError::NoSlots`]: there are no ranks or no slots.
    /// - [`ContainerError::Heap`]: there is no memory.
    /// - [`ContainerError::Access`]: some of the memory is out of reach.
    fn create<S: Store + ?Sized>(
        store: &S,
        ranks: &[Rank],
        slots: u32,
        rank: Rank,
    ) -> Result<Self, ContainerError> {
        HashTable::create(store, Self::KIND, (ranks, slots), rank).map(Self::from)
    }

    /// The container that has its directory at `addr`.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach.
    fn at_addr<S: Store + ?Sized>(store: &S, addr: GlobalAddr) -> Result<Self, ContainerError> {
        HashTable::at_addr(store, Self::KIND, addr).map(Self::from)
    }

    /// Inserts copies of the elements of `other`. Goes from slot to slot.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::Heap`] if there is no memory, or a block to free is no block.
    fn merge<S: Store + ?Sized>(
        self,
        store: &S,
        other: Self,
        reach: Reach,
    ) -> Result<(), ContainerError> {
        (*self).merge(store, *other, reach)
    }

    /// Moves the elements of `other` here. Goes from slot to slot.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::Heap`] if there is no memory, or a block to free is no block.
    fn take_all<S: Store + ?Sized>(
        self,
        store: &S,
        other: Self,
        reach: Reach,
    ) -> Result<(), ContainerError> {
        (*self).take_all(store, *other, reach)
    }

    /// Replaces the contents by copies of the elements of `other`. Goes from slot to
    /// slot.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::Heap`] if there is no memory, or a block to free is no block.
    fn assign<S: Store + ?Sized>(
        self,
        store: &S,
        other: Self,
        reach: Reach,
    ) -> Result<(), ContainerError> {
        (*self).assign(store, *other, reach)
    }
}

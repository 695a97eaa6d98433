//! What sets, multisets and maps do as a whole: being made, and taking in what
//! another one has.

use super::ContainerError;
use super::store::Store;
use super::table::{Kind, Reach, Table};
use crate::address::GlobalAddr;
use core::ops::Deref;
use tsumugi_core::mem::Rank;

/// A container by keys, which is a table.
pub trait Keyed: Copy + From<Table> + Deref<Target = Table> {
    /// What its elements are. In a multiset a key that comes in again is there
    /// so many times more; in others the element that is there stays as it is.
    const KIND: Kind;

    /// Makes an empty one: `slots` slots on each of `ranks`, the header on
    /// `rank`.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    fn create<S: Store + ?Sized>(
        store: &S,
        ranks: &[Rank],
        slots: u32,
        rank: Rank,
    ) -> Result<Self, ContainerError> {
        Table::create(store, Self::KIND, (ranks, slots), rank).map(Self::from)
    }

    /// The one whose directory is at `addr`.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    fn at_addr<S: Store + ?Sized>(store: &S, addr: GlobalAddr) -> Result<Self, ContainerError> {
        Table::at_addr(store, Self::KIND, addr).map(Self::from)
    }

    /// Takes in copies of what `other` has. Slot by slot.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    fn merge<S: Store + ?Sized>(
        self,
        store: &S,
        other: Self,
        reach: Reach,
    ) -> Result<(), ContainerError> {
        (*self).merge(store, *other, reach)
    }

    /// Takes over what `other` has, which has none of it after that. Slot by
    /// slot.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    fn take_all<S: Store + ?Sized>(
        self,
        store: &S,
        other: Self,
        reach: Reach,
    ) -> Result<(), ContainerError> {
        (*self).take_all(store, *other, reach)
    }

    /// Becomes a copy of what `other` has. Slot by slot.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    fn assign<S: Store + ?Sized>(
        self,
        store: &S,
        other: Self,
        reach: Reach,
    ) -> Result<(), ContainerError> {
        (*self).assign(store, *other, reach)
    }
}

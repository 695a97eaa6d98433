//! Multisets: keys with a count each. An element is a key, whatever its count is.

use super::data::Data;
use super::error::ContainerError;
use super::keyed::Keyed;
use super::store::Store;
use super::table::{HashTable, Removed, TableKind};
use core::ops::Deref;

/// A multiset, by its table. The other calls are those of [`HashTable`] and [`Keyed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Multiset(HashTable);

impl Multiset {
    /// Adds one to the count of a key, and returns whether the count was 0.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::Heap`] if there is no memory.
    pub fn insert<S: Store + ?Sized>(
        self,
        store: &S,
        key: Data<'_>,
    ) -> Result<bool, ContainerError> {
        self.0.insert(store, key, Data::Here(&[]))
    }

    /// Subtracts one from the count of a key, and returns whether the key was there.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::Heap`] if a block to free is no block.
    pub fn remove<S: Store + ?Sized>(
        self,
        store: &S,
        key: Data<'_>,
    ) -> Result<bool, ContainerError> {
        self.0.remove(store, key, Removed::One)
    }

    /// Removes a key with its whole count, and returns whether it was there.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::Heap`] if a block to free is no block.
    pub fn remove_all<S: Store + ?Sized>(
        self,
        store: &S,
        key: Data<'_>,
    ) -> Result<bool, ContainerError> {
        self.0.remove(store, key, Removed::All)
    }

    /// The count of a key.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach.
    pub fn times<S: Store + ?Sized>(self, store: &S, key: Data<'_>) -> Result<u64, ContainerError> {
        self.0.retrieve(store, key, |_| Ok(()))
    }
}

/// Takes the table as a multiset's.
impl From<HashTable> for Multiset {
    fn from(table: HashTable) -> Self {
        Self(HashTable { kind: Self::KIND, ..table })
    }
}

impl Keyed for Multiset {
    const KIND: TableKind = TableKind::Multiset;
}

impl Deref for Multiset {
    type Target = HashTable;

    fn deref(&self) -> &HashTable {
        &self.0
    }
}

//! Sets of keys.

use super::data::Data;
use super::error::ContainerError;
use super::keyed::Keyed;
use super::store::Store;
use super::table::{HashTable, Removed, TableKind};
use core::ops::Deref;

/// A set, by its table. The other calls are those of [`HashTable`] and [`Keyed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Set(HashTable);

impl Set {
    /// Inserts a key, and returns whether it was not in the set.
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

    /// Removes a key, and returns whether it was in the set.
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
        self.0.remove(store, key, Removed::All)
    }
}

/// Takes the table as a set's.
impl From<HashTable> for Set {
    fn from(table: HashTable) -> Self {
        Self(HashTable { kind: Self::KIND, ..table })
    }
}

impl Keyed for Set {
    const KIND: TableKind = TableKind::Set;
}

impl Deref for Set {
    type Target = HashTable;

    fn deref(&self) -> &HashTable {
        &self.0
    }
}

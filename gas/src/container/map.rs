//! Maps: keys with one value each.

use super::data::{Data, Element};
use super::error::ContainerError;
use super::keyed::Keyed;
use super::store::Store;
use super::table::{HashTable, Removed, TableCursor, TableKind};
use core::ops::Deref;

/// A map, by its table. The other calls are those of [`HashTable`] and [`Keyed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Map(HashTable);

impl Map {
    /// Inserts a key with its value if the key is not in the map, and returns
    /// whether it was not.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::Heap`] if there is no memory.
    pub fn insert<S: Store + ?Sized>(
        self,
        store: &S,
        key: Data<'_>,
        value: Data<'_>,
    ) -> Result<bool, ContainerError> {
        self.0.insert(store, key, value)
    }

    /// Removes a key and its value, and returns whether the key was in the map.
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

    /// Copies the value of a key to `into`, as far as there is room, and returns the
    /// length of the value, if the key is in the map.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach.
    pub fn get<S: Store + ?Sized>(
        self,
        store: &S,
        key: Data<'_>,
        into: &mut [u8],
    ) -> Result<Option<u64>, ContainerError> {
        self.with_value(store, key, |value| {
            let bytes = into.len().min(value.bytes as usize);
            if bytes > 0 {
                store.read(value.addr, &mut into[..bytes])?;
            }
            Ok(())
        })
    }

    /// Calls `with` with the value of a key, which does not change meanwhile, if the key is
    /// in the map.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach, and those of
    /// `with`.
    pub fn read<S: Store + ?Sized, T>(
        self,
        store: &S,
        key: Data<'_>,
        with: impl FnOnce(Element) -> Result<T, ContainerError>,
    ) -> Result<Option<T>, ContainerError> {
        let mut read = None;
        self.0.retrieve(store, key, |value| {
            read = Some(with(value)?);
            Ok(())
        })?;
        Ok(read)
    }

    /// Copies the value of a key to memory of any rank, like [`get`](Self::get).
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach.
    pub fn copy_value<S: Store + ?Sized>(
        self,
        store: &S,
        key: Data<'_>,
        into: Element,
    ) -> Result<Option<u64>, ContainerError> {
        self.with_value(store, key, |value| {
            let bytes = into.bytes.min(value.bytes);
            if bytes > 0 {
                store.copy(into.addr, value.addr, bytes)?;
            }
            Ok(())
        })
    }

    /// The value of an element; no bytes at the end.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach.
    pub fn value<S: Store + ?Sized>(
        self,
        store: &S,
        entry: TableCursor,
    ) -> Result<Element, ContainerError> {
        self.0.value(store, entry)
    }

    fn with_value<S: Store + ?Sized>(
        self,
        store: &S,
        key: Data<'_>,
        mut with: impl FnMut(Element) -> Result<(), ContainerError>,
    ) -> Result<Option<u64>, ContainerError> {
        let mut bytes = 0;
        let times = self.0.retrieve(store, key, |value| {
            bytes = value.bytes;
            with(value)
        })?;
        Ok((times > 0).then_some(bytes))
    }
}

/// Takes the table as a map's.
impl From<HashTable> for Map {
    fn from(table: HashTable) -> Self {
        Self(HashTable { kind: Self::KIND, ..table })
    }
}

impl Keyed for Map {
    const KIND: TableKind = TableKind::Map;
}

impl Deref for Map {
    type Target = HashTable;

    fn deref(&self) -> &HashTable {
        &self.0
    }
}

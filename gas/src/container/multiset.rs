//! Multisets: keys, and how many times each is there. An element is a key,
//! however often it is there.

use super::ContainerError;
use super::data::Data;
use super::keyed::Keyed;
use super::store::Store;
use super::table::{Kind, Removed, Table};
use core::ops::Deref;

/// A multiset, by its table. What else it can do stands
/// at [`Table`] and [`Keyed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Multiset(Table);

impl Multiset {
    /// Puts a key in one time more; whether it was not there at all.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    pub fn insert<S: Store + ?Sized>(
        self,
        store: &S,
        key: Data<'_>,
    ) -> Result<bool, ContainerError> {
        self.0.insert(store, key, Data::Here(&[]))
    }

    /// Takes a key out one time; whether it was there.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    pub fn remove<S: Store + ?Sized>(
        self,
        store: &S,
        key: Data<'_>,
    ) -> Result<bool, ContainerError> {
        self.0.remove(store, key, Removed::One)
    }

    /// Takes a key out as often as it is there; whether it was.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    pub fn remove_all<S: Store + ?Sized>(
        self,
        store: &S,
        key: Data<'_>,
    ) -> Result<bool, ContainerError> {
        self.0.remove(store, key, Removed::All)
    }

    /// How many times a key is there.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    pub fn times<S: Store + ?Sized>(self, store: &S, key: Data<'_>) -> Result<u64, ContainerError> {
        self.0.retrieve(store, key, |_| Ok(()))
    }
}

/// Whose elements are a multiset's from then on.
impl From<Table> for Multiset {
    fn from(table: Table) -> Self {
        Self(Table { kind: Self::KIND, ..table })
    }
}

impl Keyed for Multiset {
    const KIND: Kind = Kind::Multiset;
}

impl Deref for Multiset {
    type Target = Table;

    fn deref(&self) -> &Table {
        &self.0
    }
}

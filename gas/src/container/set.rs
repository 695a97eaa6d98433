//! Sets: keys that are there or are not.

use super::ContainerError;
use super::data::Data;
use super::keyed::Keyed;
use super::store::Store;
use super::table::{Kind, Removed, Table};
use core::ops::Deref;

/// A set, by its table. What else it can do stands
/// at [`Table`] and [`Keyed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Set(Table);

impl Set {
    /// Puts a key in; whether it was not there.
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

    /// Takes a key out; whether it was there.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    pub fn remove<S: Store + ?Sized>(
        self,
        store: &S,
        key: Data<'_>,
    ) -> Result<bool, ContainerError> {
        self.0.remove(store, key, Removed::All)
    }
}

/// Whose elements are a set's from then on.
impl From<Table> for Set {
    fn from(table: Table) -> Self {
        Self(Table { kind: Self::KIND, ..table })
    }
}

impl Keyed for Set {
    const KIND: Kind = Kind::Set;
}

impl Deref for Set {
    type Target = Table;

    fn deref(&self) -> &Table {
        &self.0
    }
}

//! Sets of keys.

use super::handle::{self, Container, Opened, Parts, data, handle_calls};
use super::header::Shape;
use super::options::ContainerOptions;
use super::stored::Stored;
use super::table::{self, Hashed, NoValue, Walk, table_calls};
use crate::global::{GlobalAddr, Pool};
use crate::{Error, Rank, Runtime};
use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use tsumugi_gas::container::{ContainerError, Keyed, Reach, Set};

/// A set of all ranks. A handle: cheap to clone, and to send to other threads of the rank.
/// See [the module](super) for what is common to all containers.
pub struct GlobalSet<K: Stored + ?Sized> {
    opened: Arc<Opened<Set>>,
    of: PhantomData<fn(&K)>,
}

impl Runtime {
    /// Makes an empty set over all ranks. Collective: every rank calls it, in the same
    /// order.
    ///
    /// # Errors
    ///
    /// Those of [`ContainerOptions::create`].
    pub fn set<K: Stored + ?Sized>(&self) -> Result<GlobalSet<K>, Error> {
        GlobalSet::options().create(self)
    }
}

impl<K: Stored + ?Sized> GlobalSet<K> {
    /// Inserts a key, and returns whether it was not in the set. Takes effect while the
    /// key's bucket is locked, as the other calls with a key.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`]: the rank of the key has no memory left, and the set is as
    /// before. [`Error::Access`]: a rank has died.
    pub fn insert(&self, key: K::Arg<'_>) -> Result<bool, Error> {
        self.opened.call(|set, pool| set.insert(pool, data::<K>(&key)))
    }

    /// Whether a key is in the set. Shares the lock of the bucket.
    ///
    /// # Errors
    ///
    /// [`Error::Access`]: a rank has died.
    pub fn contains(&self, key: K::Arg<'_>) -> Result<bool, Error> {
        self.opened.call(|set, pool| Ok(set.find(pool, data::<K>(&key))? != set.end()))
    }

    /// Removes a key, and returns whether it was in the set.
    ///
    /// # Errors
    ///
    /// [`Error::Access`]: a rank has died.
    pub fn remove(&self, key: K::Arg<'_>) -> Result<bool, Error> {
        self.opened.call(|set, pool| set.remove(pool, data::<K>(&key)))
    }

    /// All keys, bucket by bucket.
    ///
    /// The iterator returns an error if a rank of the set has died, and ends then.
    pub fn iter(&self) -> impl Iterator<Item = Result<K::Owned, Error>> {
        self.walk(Reach::All)
    }

    /// The keys in this rank's memory. If each rank goes through its own, no key crosses
    /// the network.
    ///
    /// The iterator returns an error if the home has died, and ends then.
    pub fn iter_local(&self) -> impl Iterator<Item = Result<K::Owned, Error>> {
        self.walk(Reach::Local)
    }

    fn walk(&self, reach: Reach) -> impl Iterator<Item = Result<K::Owned, Error>> {
        let walk = Walk::<K, NoValue>::new(&self.opened, reach);
        walk.map(|found| found.map(|(key, ..)| key))
    }
}

handle_calls!(GlobalSet<K>: Stored);
table_calls!(GlobalSet<K>);

impl<K: Stored + ?Sized> Parts for GlobalSet<K> {
    type Object = Set;
    const SHAPE: Shape = Shape { kind: b's', key: K::CODE, value: NoValue::CODE };

    fn make(
        pool: &Pool,
        rt: &Runtime,
        options: &ContainerOptions<Self>,
    ) -> Result<GlobalAddr, ContainerError> {
        table::make::<Set, _>(pool, rt, options)
    }

    fn at_addr(pool: &Pool, addr: GlobalAddr) -> Result<Set, ContainerError> {
        Set::at_addr(pool, addr)
    }

    fn destroy(pool: &Pool, set: Set) -> Result<(), ContainerError> {
        set.destroy(pool)
    }

    fn of(opened: Arc<Opened<Set>>) -> Self {
        Self { opened, of: PhantomData }
    }
}

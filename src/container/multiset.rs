//! Multisets: keys with a count each.

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
use tsumugi_gas::container::{ContainerError, Keyed, Multiset, Reach};

/// A multiset of all ranks. A handle: cheap to clone, and to send to other threads of the rank.
/// See [the module](super) for what is common to all containers.
pub struct GlobalMultiset<K: Stored + ?Sized> {
    opened: Arc<Opened<Multiset>>,
    of: PhantomData<fn(&K)>,
}

impl Runtime {
    /// Makes an empty multiset over all ranks. Collective: every rank calls it, in the same
    /// order.
    ///
    /// # Errors
    ///
    /// Those of [`ContainerOptions::create`].
    pub fn multiset<K: Stored + ?Sized>(&self) -> Result<GlobalMultiset<K>, Error> {
        GlobalMultiset::options().create(self)
    }
}

impl<K: Stored + ?Sized> GlobalMultiset<K> {
    /// Adds one to the count of a key, and returns whether the count was 0. Takes effect
    /// while the key's bucket is locked, as the other calls with a key.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`]: the rank of the key has no memory left, and the multiset is
    /// as before. [`Error::Access`]: a rank has died.
    pub fn insert(&self, key: K::Arg<'_>) -> Result<bool, Error> {
        self.opened.call(|set, pool| set.insert(pool, data::<K>(&key)))
    }

    /// The count of a key. Shares the lock of the bucket.
    ///
    /// # Errors
    ///
    /// [`Error::Access`]: a rank has died.
    pub fn count(&self, key: K::Arg<'_>) -> Result<u64, Error> {
        self.opened.call(|set, pool| set.times(pool, data::<K>(&key)))
    }

    /// Subtracts one from the count of a key, and returns whether the key was there.
    ///
    /// # Errors
    ///
    /// [`Error::Access`]: a rank has died.
    pub fn remove(&self, key: K::Arg<'_>) -> Result<bool, Error> {
        self.opened.call(|set, pool| set.remove(pool, data::<K>(&key)))
    }

    /// Removes a key with its whole count, and returns the count.
    ///
    /// # Errors
    ///
    /// [`Error::Access`]: a rank has died.
    pub fn remove_all(&self, key: K::Arg<'_>) -> Result<u64, Error> {
        self.opened.call(|set, pool| {
            let held = set.hold(pool, data::<K>(&key))?;
            let count = held.times();
            held.remove()?;
            Ok(count)
        })
    }

    /// All keys with their counts, bucket by bucket.
    ///
    /// The iterator returns an error if a rank of the multiset has died, and ends then.
    pub fn iter(&self) -> impl Iterator<Item = Result<(K::Owned, u64), Error>> {
        self.walk(Reach::All)
    }

    /// The keys in this rank's memory, with their counts. If each rank goes through its
    /// own, no key crosses the network.
    ///
    /// The iterator returns an error if the home has died, and ends then.
    pub fn iter_local(&self) -> impl Iterator<Item = Result<(K::Owned, u64), Error>> {
        self.walk(Reach::Local)
    }

    fn walk(&self, reach: Reach) -> impl Iterator<Item = Result<(K::Owned, u64), Error>> {
        let walk = Walk::<K, NoValue>::new(&self.opened, reach);
        walk.map(|found| found.map(|(key, _, count)| (key, count)))
    }
}

handle_calls!(GlobalMultiset<K>: Stored);
table_calls!(GlobalMultiset<K>);

impl<K: Stored + ?Sized> Parts for GlobalMultiset<K> {
    type Object = Multiset;
    const SHAPE: Shape = Shape { kind: b'c', key: K::CODE, value: NoValue::CODE };

    fn make(
        pool: &Pool,
        rt: &Runtime,
        options: &ContainerOptions<Self>,
    ) -> Result<GlobalAddr, ContainerError> {
        table::make::<Multiset, _>(pool, rt, options)
    }

    fn at_addr(pool: &Pool, addr: GlobalAddr) -> Result<Multiset, ContainerError> {
        Multiset::at_addr(pool, addr)
    }

    fn destroy(pool: &Pool, set: Multiset) -> Result<(), ContainerError> {
        set.destroy(pool)
    }

    fn of(opened: Arc<Opened<Multiset>>) -> Self {
        Self { opened, of: PhantomData }
    }
}

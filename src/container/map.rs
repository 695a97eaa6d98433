//! Maps: keys with one value each.

use super::handle::{self, Container, Opened, Parts, data, fetch, handle_calls};
use super::header::Shape;
use super::options::ContainerOptions;
use super::stored::Stored;
use super::table::{self, Hashed, Walk, table_calls};
use crate::global::{GlobalAddr, Pool};
use crate::{Error, Rank, Runtime};
use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use tsumugi_gas::container::{ContainerError, Keyed, Map, Reach};

/// A map of all ranks. A handle: cheap to clone, and to send to other threads of the rank.
/// See [the module](super) for what is common to all containers.
pub struct GlobalMap<K: Stored + ?Sized, V: Stored + ?Sized> {
    opened: Arc<Opened<Map>>,
    of: PhantomData<fn(&K, &V)>,
}

impl Runtime {
    /// Makes an empty map over all ranks. Collective: every rank calls it, in the same
    /// order.
    ///
    /// # Errors
    ///
    /// Those of [`ContainerOptions::create`].
    pub fn map<K: Stored + ?Sized, V: Stored + ?Sized>(&self) -> Result<GlobalMap<K, V>, Error> {
        GlobalMap::options().create(self)
    }
}

impl<K: Stored + ?Sized, V: Stored + ?Sized> GlobalMap<K, V> {
    /// Inserts a key with its value, and returns the value that the key had before. Takes
    /// effect while the key's bucket is locked, as the other calls with a key.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`]: the rank of the key has no memory left, and the map is as
    /// before. [`Error::Access`]: a rank has died.
    pub fn insert(&self, key: K::Arg<'_>, value: V::Arg<'_>) -> Result<Option<V::Owned>, Error> {
        self.opened.call(|map, pool| {
            let held = map.hold(pool, data::<K>(&key))?;
            let old = held.value().map(|old| fetch::<V>(pool, old)).transpose()?;
            held.put(data::<V>(&value))?;
            Ok(old)
        })
    }

    /// Inserts a key with its value if the key is not there, and returns whether it was
    /// not.
    ///
    /// # Errors
    ///
    /// Those of [`insert`](Self::insert).
    pub fn insert_new(&self, key: K::Arg<'_>, value: V::Arg<'_>) -> Result<bool, Error> {
        self.opened.call(|map, pool| map.insert(pool, data::<K>(&key), data::<V>(&value)))
    }

    /// The value of a key. Shares the lock of the bucket.
    ///
    /// # Errors
    ///
    /// [`Error::Access`]: a rank has died.
    pub fn get(&self, key: K::Arg<'_>) -> Result<Option<V::Owned>, Error> {
        self.opened
            .call(|map, pool| map.read(pool, data::<K>(&key), |value| fetch::<V>(pool, value)))
    }

    /// Whether a key is there. Shares the lock of the bucket.
    ///
    /// # Errors
    ///
    /// [`Error::Access`]: a rank has died.
    pub fn contains_key(&self, key: K::Arg<'_>) -> Result<bool, Error> {
        self.opened.call(|map, pool| Ok(map.find(pool, data::<K>(&key))? != map.end()))
    }

    /// Removes a key, and returns the value that it had.
    ///
    /// # Errors
    ///
    /// [`Error::Access`]: a rank has died.
    pub fn remove(&self, key: K::Arg<'_>) -> Result<Option<V::Owned>, Error> {
        self.opened.call(|map, pool| {
            let held = map.hold(pool, data::<K>(&key))?;
            let old = held.value().map(|old| fetch::<V>(pool, old)).transpose()?;
            held.remove()?;
            Ok(old)
        })
    }

    /// Calls `change` with the value of a key, if it is there, and puts what it returns in
    /// the place of that value; `None` removes the key. Returns the new value.
    ///
    /// `change` runs under the lock of the bucket: it must not use this map. If it panics,
    /// the map is as before, and the panic goes on.
    ///
    /// ```
    /// # tsumugi::run_ranks(2, |rt| {
    /// let counts = rt.map::<u64, u64>()?;
    /// counts.update(7, |count| Some(count.unwrap_or(0) + 1))?;
    /// rt.barrier()?;
    /// assert_eq!(counts.get(7)?, Some(2));
    /// # rt.barrier()
    /// # })
    /// # .map(drop)
    /// # .unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`insert`](Self::insert).
    pub fn update(
        &self,
        key: K::Arg<'_>,
        change: impl FnOnce(Option<V::Owned>) -> Option<V::Owned>,
    ) -> Result<Option<V::Owned>, Error> {
        let changed = self.opened.call(|map, pool| {
            let held = map.hold(pool, data::<K>(&key))?;
            let old = held.value().map(|old| fetch::<V>(pool, old)).transpose()?;
            // The lock is given back before the panic goes on: giving it back may sleep.
            let new = match catch_unwind(AssertUnwindSafe(|| change(old))) {
                Ok(new) => new,
                Err(panic) => return Ok(Err(panic)),
            };
            match &new {
                Some(new) => held.put(data::<V>(&V::arg(new)))?,
                None => _ = held.remove()?,
            }
            Ok(Ok(new))
        })?;
        changed.or_else(|panic| resume_unwind(panic))
    }

    /// All keys and values, bucket by bucket.
    ///
    /// The iterator returns an error if a rank of the map has died, and ends then.
    pub fn iter(&self) -> impl Iterator<Item = Result<(K::Owned, V::Owned), Error>> {
        self.walk(Reach::All)
    }

    /// The keys and values in this rank's memory. If each rank goes through its own, no
    /// element crosses the network.
    ///
    /// The iterator returns an error if the home has died, and ends then.
    pub fn iter_local(&self) -> impl Iterator<Item = Result<(K::Owned, V::Owned), Error>> {
        self.walk(Reach::Local)
    }

    fn walk(&self, reach: Reach) -> impl Iterator<Item = Result<(K::Owned, V::Owned), Error>> {
        let walk = Walk::<K, V>::new(&self.opened, reach);
        walk.map(|found| found.map(|(key, value, _)| (key, value)))
    }
}

handle_calls!(GlobalMap<K, V>: Stored);
table_calls!(GlobalMap<K, V>);

impl<K: Stored + ?Sized, V: Stored + ?Sized> Parts for GlobalMap<K, V> {
    type Object = Map;
    const SHAPE: Shape = Shape { kind: b'm', key: K::CODE, value: V::CODE };

    fn make(
        pool: &Pool,
        rt: &Runtime,
        options: &ContainerOptions<Self>,
    ) -> Result<GlobalAddr, ContainerError> {
        table::make::<Map, _>(pool, rt, options)
    }

    fn at_addr(pool: &Pool, addr: GlobalAddr) -> Result<Map, ContainerError> {
        Map::at_addr(pool, addr)
    }

    fn destroy(pool: &Pool, map: Map) -> Result<(), ContainerError> {
        map.destroy(pool)
    }

    fn of(opened: Arc<Opened<Map>>) -> Self {
        Self { opened, of: PhantomData }
    }
}

//! The common part of maps, sets and multisets: tables by the hash of the key's bytes.

use super::handle::{Container, Opened, check};
use super::options::ContainerOptions;
use super::stored::Stored;
use crate::global::{GlobalAddr, Pool};
use crate::{Error, Rank, Runtime};
use std::collections::VecDeque;
use std::marker::PhantomData;
use tsumugi_gas::container::{ContainerError, HashTable, Keyed, Reach, Store};

/// The kinds of containers that are tables. It is sealed.
pub trait Hashed: Container {}

impl<C: Hashed> ContainerOptions<C> {
    /// Sets the number of buckets on each rank; 1024 if it is not set. Elements of one
    /// bucket lie in a chain, which a call goes through, and share a lock. A bucket takes
    /// 96 bytes.
    pub fn buckets(self, buckets: u32) -> Self {
        Self { buckets, ..self }
    }

    /// Sets the ranks on which the elements lie; all ranks if they are not set.
    pub fn ranks(self, ranks: &[Rank]) -> Self {
        Self { ranks: Some(ranks.to_vec()), ..self }
    }
}

/// Makes a table of bytes, and returns its address.
pub(super) fn make<T: Keyed, C>(
    pool: &Pool,
    rt: &Runtime,
    options: &ContainerOptions<C>,
) -> Result<GlobalAddr, ContainerError> {
    let all: Vec<Rank>;
    let ranks = match &options.ranks {
        Some(ranks) => ranks,
        None => {
            all = rt.ranks().collect();
            &all
        }
    };
    Ok(T::create(pool, ranks, options.buckets, options.home)?.addr)
}

/// An element of a table: key, value, count.
type Found<K, V> = (<K as Stored>::Owned, <V as Stored>::Owned, u64);

/// A walk through a table, some slots at a time.
pub(super) struct Walk<'c, K: Stored + ?Sized, V: Stored + ?Sized> {
    table: HashTable,
    pool: &'c Pool,
    reach: Reach,
    /// The place that is read next; `None`: none is left.
    next: Option<(u32, u32)>,
    found: VecDeque<Found<K, V>>,
    bytes: Vec<u8>,
}

impl<'c, K: Stored + ?Sized, V: Stored + ?Sized> Walk<'c, K, V> {
    pub(super) fn new<T: Keyed>(opened: &'c Opened<T>, reach: Reach) -> Self {
        Self {
            table: *opened.object,
            pool: &opened.pool,
            reach,
            next: Some((0, 0)),
            found: VecDeque::new(),
            bytes: Vec::new(),
        }
    }

    /// Reads the elements of the next slots.
    fn read(&mut self, from: (u32, u32)) -> Result<Option<(u32, u32)>, ContainerError> {
        let Self { table, pool, reach, found, bytes, .. } = self;
        table.visit(*pool, *reach, from, BATCH, |key, value, times| {
            check(pool, key.bytes)?;
            check(pool, value.bytes)?;
            // The value lies behind the key.
            bytes.resize((key.bytes + value.bytes) as usize, 0);
            if !bytes.is_empty() {
                pool.read(key.addr, bytes)?;
            }
            let (first, second) = bytes.split_at(key.bytes as usize);
            found.push_back((of::<K>(first)?, of::<V>(second)?, times));
            Ok(())
        })
    }
}

impl<K: Stored + ?Sized, V: Stored + ?Sized> Iterator for Walk<'_, K, V> {
    type Item = Result<Found<K, V>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(found) = self.found.pop_front() {
                return Some(Ok(found));
            }
            let from = self.next.take()?;
            match self.read(from) {
                Ok(next) => self.next = next,
                Err(error) => {
                    self.found.clear();
                    return Some(Err(self.pool.error(error)));
                }
            }
            if self.found.is_empty() && self.next.is_none() {
                return None;
            }
        }
    }
}

fn of<T: Stored + ?Sized>(bytes: &[u8]) -> Result<T::Owned, ContainerError> {
    T::fetch(bytes.len() as u64, |into| {
        into.copy_from_slice(bytes);
        Ok(())
    })
}

/// The value of an element that has none.
pub(super) type NoValue = PhantomData<()>;

/// The number of elements that are read at a time, at least.
const BATCH: usize = 64;

/// The calls that all tables have.
macro_rules! table_calls {
    ($name:ident<$key:ident $(, $of:ident)*>) => {
        impl<$key: Stored + ?Sized $(, $of: Stored + ?Sized)*> Hashed for $name<$key $(, $of)*> {}

        impl<$key: Stored + ?Sized $(, $of: Stored + ?Sized)*> $name<$key $(, $of)*> {
            /// The number of different keys: the sum of the numbers of all buckets, each at
            /// its own moment. Reads 32 buckets at a time.
            ///
            /// # Errors
            ///
            /// [`Error::Access`]: a rank of the table has died.
            pub fn len(&self) -> Result<usize, Error> {
                self.opened.call(|table, pool| Ok(table.size(pool, Reach::All)? as usize))
            }

            /// The number of different keys in this rank's memory.
            ///
            /// # Errors
            ///
            /// [`Error::Access`]: the home has died.
            pub fn len_local(&self) -> Result<usize, Error> {
                self.opened.call(|table, pool| Ok(table.size(pool, Reach::Local)? as usize))
            }

            /// Whether there are no elements; goes from bucket to bucket.
            ///
            /// # Errors
            ///
            /// [`Error::Access`]: a rank of the table has died.
            pub fn is_empty(&self) -> Result<bool, Error> {
                self.opened.call(|table, pool| table.is_empty(pool, Reach::All))
            }

            /// Removes all elements; each bucket is emptied at its own moment.
            ///
            /// # Errors
            ///
            /// [`Error::Access`]: a rank of the table has died.
            pub fn clear(&self) -> Result<(), Error> {
                self.opened.call(|table, pool| table.clear(pool, Reach::All))
            }

            /// The rank to which a key belongs, whether or not it is there.
            ///
            /// # Errors
            ///
            /// [`Error::Access`]: the home has died.
            pub fn rank_of(&self, key: $key::Arg<'_>) -> Result<Rank, Error> {
                self.opened.call(|table, pool| table.home(pool, data::<$key>(&key)))
            }
        }
    };
}

pub(super) use table_calls;

//! Lists: values in a chain, each on the rank that inserts it.

use super::handle::{self, Container, Opened, Parts, data, fetch, handle_calls};
use super::header::Shape;
use super::options::ContainerOptions;
use super::stored::Stored;
use crate::global::{GlobalAddr, Pool};
use crate::{Error, Rank, Runtime};
use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::vec::IntoIter;
use tsumugi_gas::container::{ContainerError, Element, List, ListEnd, Store};

/// A list of all ranks: each element lies on the rank that inserts it. A handle: cheap to
/// clone, and to send to other threads of the rank. See [the module](super) for what is
/// common to all containers.
pub struct GlobalList<T: Stored + ?Sized> {
    opened: Arc<Opened<List>>,
    of: PhantomData<fn(&T)>,
}

impl Runtime {
    /// Makes an empty list. Collective: every rank calls it, in the same order.
    ///
    /// # Errors
    ///
    /// Those of [`ContainerOptions::create`].
    pub fn list<T: Stored + ?Sized>(&self) -> Result<GlobalList<T>, Error> {
        GlobalList::options().create(self)
    }
}

impl<T: Stored + ?Sized> GlobalList<T> {
    /// Inserts a value behind the last one, in the memory of the calling rank. Takes effect
    /// while the list is locked, as the other calls.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`]: this rank has no memory left, and the list is as before.
    /// [`Error::Access`]: a rank has died.
    pub fn push_back(&self, value: T::Arg<'_>) -> Result<(), Error> {
        self.opened
            .call(|list, pool| list.push_back(pool, data::<T>(&value), pool.rank()).map(drop))
    }

    /// Inserts a value before the first one, in the memory of the calling rank.
    ///
    /// # Errors
    ///
    /// Those of [`push_back`](Self::push_back).
    pub fn push_front(&self, value: T::Arg<'_>) -> Result<(), Error> {
        self.opened
            .call(|list, pool| list.push_front(pool, data::<T>(&value), pool.rank()).map(drop))
    }

    /// Removes the last value, and returns it, if there is one.
    ///
    /// # Errors
    ///
    /// [`Error::Access`]: a rank has died.
    pub fn pop_back(&self) -> Result<Option<T::Owned>, Error> {
        self.take(ListEnd::Back)
    }

    /// Removes the first value, and returns it, if there is one.
    ///
    /// # Errors
    ///
    /// [`Error::Access`]: a rank has died.
    pub fn pop_front(&self) -> Result<Option<T::Owned>, Error> {
        self.take(ListEnd::Front)
    }

    /// The number of values. One load.
    ///
    /// # Errors
    ///
    /// [`Error::Access`]: the home has died.
    pub fn len(&self) -> Result<usize, Error> {
        self.opened.call(|list, pool| Ok(list.size(pool)? as usize))
    }

    /// Whether there are no values. One load.
    ///
    /// # Errors
    ///
    /// [`Error::Access`]: the home has died.
    pub fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.len()? == 0)
    }

    /// Removes all values.
    ///
    /// # Errors
    ///
    /// [`Error::Access`]: a rank has died.
    pub fn clear(&self) -> Result<(), Error> {
        self.opened.call(|list, pool| list.clear(pool))
    }

    /// Removes all values equal to `value`, and returns their number.
    ///
    /// # Errors
    ///
    /// [`Error::Access`]: a rank has died.
    pub fn remove(&self, value: T::Arg<'_>) -> Result<usize, Error> {
        self.opened.call(|list, pool| Ok(list.remove(pool, data::<T>(&value))? as usize))
    }

    /// All values in order, in the state of the moment of this call, which copies them all
    /// while it shares the lock: two reads for each value.
    ///
    /// The iterator returns an error if a rank has died, and ends then.
    pub fn iter(&self) -> impl Iterator<Item = Result<T::Owned, Error>> + use<T> {
        self.copies(|_, _| true)
    }

    /// The values in this rank's memory in order, as [`iter`](Self::iter).
    ///
    /// The iterator returns an error if a rank has died, and ends then.
    pub fn iter_local(&self) -> impl Iterator<Item = Result<T::Owned, Error>> + use<T> {
        self.copies(|pool, element| pool.split().rank(element.addr) == Some(pool.rank()))
    }

    fn copies(&self, is_in: impl Fn(&Pool, Element) -> bool) -> IntoIter<Result<T::Owned, Error>> {
        let mut values = Vec::new();
        let copied = self.opened.call(|list, pool| {
            list.visit(pool, |element| {
                if is_in(pool, element) {
                    values.push(Ok(fetch::<T>(pool, element)?));
                }
                Ok(())
            })
        });
        if let Err(error) = copied {
            values = vec![Err(error)];
        }
        values.into_iter()
    }

    fn take(&self, end: ListEnd) -> Result<Option<T::Owned>, Error> {
        self.opened.call(|list, pool| list.take(pool, end, |element| fetch::<T>(pool, element)))
    }
}

handle_calls!(GlobalList<T>: Stored);

impl<T: Stored + ?Sized> Parts for GlobalList<T> {
    type Object = List;
    const SHAPE: Shape = Shape { kind: b'l', key: T::CODE, value: 0 };

    fn make(
        pool: &Pool,
        _: &Runtime,
        options: &ContainerOptions<Self>,
    ) -> Result<GlobalAddr, ContainerError> {
        Ok(List::create(pool, options.home)?.addr())
    }

    fn at_addr(_: &Pool, addr: GlobalAddr) -> Result<List, ContainerError> {
        Ok(List::at_addr(addr))
    }

    fn destroy(pool: &Pool, list: List) -> Result<(), ContainerError> {
        list.destroy(pool)
    }

    fn of(opened: Arc<Opened<List>>) -> Self {
        Self { opened, of: PhantomData }
    }
}

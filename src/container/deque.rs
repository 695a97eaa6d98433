//! Deques: values in a row, which grows at either end.

use super::handle::{self, Container, Opened, Parts, handle_calls};
use super::header::Shape;
use super::options::ContainerOptions;
use super::row::{GlobalRow, Sequential};
use super::stored::{Stored, bytes_of_mut, zeroes};
use crate::global::{GlobalAddr, Pool};
use crate::ops::bytes_of;
use crate::{Error, Plain, Rank, Runtime};
use std::any::type_name;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use tsumugi_gas::container::{ContainerError, Data, Deque, Sequence};

/// A deque, all on one rank, which all ranks use. A handle:
/// cheap to clone, and to send to other threads of the rank. The other calls are those of
/// [`GlobalRow`]. See [the module](super) for what is common to all containers.
pub struct GlobalDeque<T: Plain>(GlobalRow<T>);

impl Runtime {
    /// Makes an empty deque on rank 0; [`GlobalDeque::options`] chooses another rank.
    /// Collective: every rank calls it, in the same order.
    ///
    /// # Errors
    ///
    /// Those of [`ContainerOptions::create`].
    pub fn deque<T: Plain>(&self) -> Result<GlobalDeque<T>, Error> {
        GlobalDeque::options().create(self)
    }
}

impl<T: Plain> GlobalDeque<T> {
    /// Appends an element. Takes effect while the deque is locked, as the other calls. Moves
    /// all elements, at their rank, if there is no room: the room grows by a half each time.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`]: the home has no memory left, and the deque is as before.
    /// [`Error::Access`]: a rank has died.
    pub fn push_back(&self, value: T) -> Result<(), Error> {
        self.append(&[value]).map(drop)
    }

    /// Inserts an element before the first one.
    ///
    /// # Errors
    ///
    /// Those of [`push_back`](Self::push_back).
    pub fn push_front(&self, value: T) -> Result<(), Error> {
        let value = [value];
        self.opened.call(|row, pool| {
            Deque::at_addr(row.addr()).push_front(pool, Data::Here(bytes_of(&value)))
        })
    }

    /// Removes the last element, and returns it, if there is one.
    ///
    /// # Errors
    ///
    /// [`Error::Access`]: a rank has died.
    pub fn pop_back(&self) -> Result<Option<T>, Error> {
        self.take_back()
    }

    /// Removes the first element, and returns it, if there is one.
    ///
    /// # Errors
    ///
    /// [`Error::Access`]: a rank has died.
    pub fn pop_front(&self) -> Result<Option<T>, Error> {
        self.opened.call(|row, pool| {
            let mut value = [zeroes()];
            let deque = Deque::at_addr(row.addr());
            let is_taken = deque.take_front(pool, bytes_of_mut(&mut value))?;
            Ok(is_taken.then_some(value[0]))
        })
    }
}

impl<T: Plain> Deref for GlobalDeque<T> {
    type Target = GlobalRow<T>;

    fn deref(&self) -> &GlobalRow<T> {
        &self.0
    }
}

handle_calls!(GlobalDeque<T>: Plain);

impl<T: Plain> Sequential for GlobalDeque<T> {}

impl<T: Plain> Parts for GlobalDeque<T> {
    type Object = Sequence;
    const SHAPE: Shape = Shape { kind: b'd', key: T::CODE, value: 0 };

    fn make(
        pool: &Pool,
        _: &Runtime,
        options: &ContainerOptions<Self>,
    ) -> Result<GlobalAddr, ContainerError> {
        let row = Deque::create(pool, 0, options.home)?;
        let bytes = (options.capacity as u64).saturating_mul(size_of::<T>() as u64);
        row.reserve(pool, bytes).inspect_err(|_| {
            let _ = row.destroy(pool);
        })?;
        Ok(row.addr())
    }

    fn at_addr(_: &Pool, addr: GlobalAddr) -> Result<Sequence, ContainerError> {
        Ok(*Deque::at_addr(addr))
    }

    fn destroy(pool: &Pool, row: Sequence) -> Result<(), ContainerError> {
        row.destroy(pool)
    }

    fn of(opened: Arc<Opened<Sequence>>) -> Self {
        Self(GlobalRow::new(opened))
    }
}

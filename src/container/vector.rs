//! Vectors: values in a row, which grows at its end.

use super::handle::{self, Container, Opened, Parts, handle_calls};
use super::header::Shape;
use super::options::ContainerOptions;
use super::row::{GlobalRow, Sequential};
use super::stored::Stored;
use crate::global::{GlobalAddr, Pool};
use crate::{Error, Plain, Rank, Runtime};
use std::any::type_name;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use tsumugi_gas::container::{ContainerError, Sequence, Vector};

/// A vector, all on one rank, which all ranks use. A handle:
/// cheap to clone, and to send to other threads of the rank. The other calls are those of
/// [`GlobalRow`]. See [the module](super) for what is common to all containers.
pub struct GlobalVec<T: Plain>(GlobalRow<T>);

impl Runtime {
    /// Makes an empty vector on rank 0; [`GlobalVec::options`] chooses another rank.
    /// Collective: every rank calls it, in the same order.
    ///
    /// # Errors
    ///
    /// Those of [`ContainerOptions::create`].
    pub fn vector<T: Plain>(&self) -> Result<GlobalVec<T>, Error> {
        GlobalVec::options().create(self)
    }
}

impl<T: Plain> GlobalVec<T> {
    /// Appends an element, and returns its index. Takes effect while the vector is locked,
    /// as the other calls. Moves all elements, at their rank, if there is no room behind
    /// them: the room grows by a half each time.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`]: the home has no memory left, and the vector is as before.
    /// [`Error::Access`]: a rank has died.
    pub fn push(&self, value: T) -> Result<usize, Error> {
        self.append(&[value])
    }

    /// Removes the last element, and returns it, if there is one.
    ///
    /// # Errors
    ///
    /// [`Error::Access`]: a rank has died.
    pub fn pop(&self) -> Result<Option<T>, Error> {
        self.take_back()
    }
}

impl<T: Plain> Deref for GlobalVec<T> {
    type Target = GlobalRow<T>;

    fn deref(&self) -> &GlobalRow<T> {
        &self.0
    }
}

handle_calls!(GlobalVec<T>: Plain);

impl<T: Plain> Sequential for GlobalVec<T> {}

impl<T: Plain> Parts for GlobalVec<T> {
    type Object = Sequence;
    const SHAPE: Shape = Shape { kind: b'v', key: T::CODE, value: 0 };

    fn make(
        pool: &Pool,
        _: &Runtime,
        options: &ContainerOptions<Self>,
    ) -> Result<GlobalAddr, ContainerError> {
        let row = Vector::create(pool, 0, options.home)?;
        let bytes = (options.capacity as u64).saturating_mul(size_of::<T>() as u64);
        row.reserve(pool, bytes).inspect_err(|_| {
            let _ = row.destroy(pool);
        })?;
        Ok(row.addr())
    }

    fn at_addr(_: &Pool, addr: GlobalAddr) -> Result<Sequence, ContainerError> {
        Ok(*Vector::at_addr(addr))
    }

    fn destroy(pool: &Pool, row: Sequence) -> Result<(), ContainerError> {
        row.destroy(pool)
    }

    fn of(opened: Arc<Opened<Sequence>>) -> Self {
        Self(GlobalRow::new(opened))
    }
}

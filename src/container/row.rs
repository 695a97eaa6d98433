//! Values in a row on one rank: the common part of vectors and deques.

use super::handle::{Container, Opened, check};
use super::options::ContainerOptions;
use super::stored::{bytes_of_mut, zeroes};
use crate::global::Pool;
use crate::ops::bytes_of;
use crate::{Error, Plain};
use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::vec::IntoIter;
use tsumugi_gas::container::{ContainerError, Data, HeldSequence, Sequence};

/// Values in a row, all on one rank. A [`GlobalVec`](super::GlobalVec) and a
/// [`GlobalDeque`](super::GlobalDeque) each dereference to their row.
pub struct GlobalRow<T: Plain> {
    pub(super) opened: Arc<Opened<Sequence>>,
    of: PhantomData<fn(T)>,
}

/// The kinds of containers that are rows. It is sealed.
pub trait Sequential: Container {}

impl<C: Sequential> ContainerOptions<C> {
    /// Makes room for so many elements at first, so that as many insertions move none.
    pub fn capacity(self, capacity: usize) -> Self {
        Self { capacity, ..self }
    }
}

impl<T: Plain> GlobalRow<T> {
    pub(super) fn new(opened: Arc<Opened<Sequence>>) -> Self {
        const { assert!(size_of::<T>() > 0, "an element has at least 1 byte") };
        Self { opened, of: PhantomData }
    }

    /// The number of elements. One load.
    ///
    /// # Errors
    ///
    /// [`Error::Access`]: the home has died.
    pub fn len(&self) -> Result<usize, Error> {
        self.opened.call(|row, pool| Ok(row.size(pool)? as usize / size_of::<T>()))
    }

    /// Whether there are no elements. One load.
    ///
    /// # Errors
    ///
    /// [`Error::Access`]: the home has died.
    pub fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.len()? == 0)
    }

    /// The element with an index, if there is one. Shares the lock.
    ///
    /// # Errors
    ///
    /// [`Error::Access`]: a rank has died.
    pub fn get(&self, index: usize) -> Result<Option<T>, Error> {
        self.opened.call(|row, pool| {
            let mut value = [zeroes()];
            match row.read(pool, place::<T>(index), bytes_of_mut(&mut value)) {
                Err(ContainerError::OutOfRange { .. }) => Ok(None),
                read => read.map(|()| Some(value[0])),
            }
        })
    }

    /// The first element, if there is one.
    ///
    /// # Errors
    ///
    /// [`Error::Access`]: a rank has died.
    pub fn first(&self) -> Result<Option<T>, Error> {
        self.get(0)
    }

    /// Copies the elements from `index` on to `into`, in the state of one moment. Shares
    /// the lock.
    ///
    /// # Errors
    ///
    /// [`Error::Container`] with [`NoElement`](ContainerError::NoElement): there are not as
    /// many. [`Error::Access`]: a rank has died.
    pub fn get_slice(&self, index: usize, into: &mut [T]) -> Result<(), Error> {
        let last = index.saturating_add(into.len().saturating_sub(1));
        self.opened.call(|row, pool| {
            let read = row.read(pool, place::<T>(index), bytes_of_mut(into));
            read.map_err(|error| no_element::<T>(error, last))
        })
    }

    /// A copy of all elements, in the state of one moment. Shares the lock.
    ///
    /// # Errors
    ///
    /// [`Error::Access`]: a rank has died.
    pub fn to_vec(&self) -> Result<Vec<T>, Error> {
        self.read(0, usize::MAX)
    }

    /// Writes an element, and returns its old value.
    ///
    /// # Errors
    ///
    /// [`Error::Container`] with [`NoElement`](ContainerError::NoElement): there is no
    /// element with this index. [`Error::Access`]: a rank has died.
    pub fn set(&self, index: usize, value: T) -> Result<T, Error> {
        self.held(|held| {
            let old = read(held, index)?;
            held.write(place::<T>(index), Data::Here(bytes_of(&[value])))?;
            Ok(old)
        })
    }

    /// Calls `change` with an element, writes what it returns in its place, and returns the
    /// new value.
    ///
    /// `change` runs under the lock: it must not use this container. If it panics, the
    /// element is as before, and the panic goes on.
    ///
    /// # Errors
    ///
    /// Those of [`set`](Self::set).
    pub fn update(&self, index: usize, change: impl FnOnce(T) -> T) -> Result<T, Error> {
        let changed = self.held(|held| {
            let old = read(held, index)?;
            // The lock is given back before the panic goes on: giving it back may sleep.
            let new = match catch_unwind(AssertUnwindSafe(|| change(old))) {
                Ok(new) => new,
                Err(panic) => return Ok(Err(panic)),
            };
            held.write(place::<T>(index), Data::Here(bytes_of(&[new])))?;
            Ok(Ok(new))
        })?;
        changed.or_else(|panic| resume_unwind(panic))
    }

    /// Exchanges two elements.
    ///
    /// # Errors
    ///
    /// Those of [`set`](Self::set), for both indices.
    pub fn swap(&self, one: usize, other: usize) -> Result<(), Error> {
        self.held(|held| {
            let values = (read::<T>(held, one)?, read::<T>(held, other)?);
            held.write(place::<T>(one), Data::Here(bytes_of(&[values.1])))?;
            held.write(place::<T>(other), Data::Here(bytes_of(&[values.0])))
        })
    }

    /// Inserts an element before the one with the index `index`, or at the end. Moves the
    /// elements behind it, at the home.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`]: the home has no memory left, and nothing was inserted; and
    /// those of [`set`](Self::set).
    pub fn insert(&self, index: usize, value: T) -> Result<(), Error> {
        self.opened.call(|row, pool| {
            let inserted = row.insert(pool, place::<T>(index), Data::Here(bytes_of(&[value])));
            inserted.map_err(|error| no_element::<T>(error, index))
        })
    }

    /// Removes an element, and returns it. Moves the elements behind it, at the home.
    ///
    /// # Errors
    ///
    /// Those of [`insert`](Self::insert): a move of more elements than were removed takes
    /// memory for a while.
    pub fn remove(&self, index: usize) -> Result<T, Error> {
        self.opened.call(|row, pool| {
            let held = row.hold(pool)?;
            let old = read(&held, index)?;
            held.erase(place::<T>(index), size_of::<T>() as u64)?;
            Ok(old)
        })
    }

    /// Appends all values, behind each other.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`]: the home has no memory left, and no value was appended.
    /// [`Error::Access`]: a rank has died.
    pub fn extend_from_slice(&self, values: &[T]) -> Result<(), Error> {
        self.append(values).map(drop)
    }

    /// Removes the elements from `len` on.
    ///
    /// # Errors
    ///
    /// [`Error::Access`]: a rank has died.
    pub fn truncate(&self, len: usize) -> Result<(), Error> {
        self.opened.call(|row, pool| row.truncate(pool, place::<T>(len)))
    }

    /// Removes all elements; the memory stays.
    ///
    /// # Errors
    ///
    /// [`Error::Access`]: a rank has died.
    pub fn clear(&self) -> Result<(), Error> {
        self.opened.call(|row, pool| row.clear(pool))
    }

    /// All elements in order, some of them at a time: each time in the state of one moment.
    ///
    /// The iterator returns an error if a rank has died, and ends then.
    pub fn iter(&self) -> impl Iterator<Item = Result<T, Error>> {
        RowIter { row: self, next: Some(0), batch: Vec::new().into_iter() }
    }

    /// Appends values, and returns the index of the first one.
    pub(super) fn append(&self, values: &[T]) -> Result<usize, Error> {
        let data = Data::Here(bytes_of(values));
        self.opened.call(|row, pool| Ok(row.push_back(pool, data)? as usize / size_of::<T>()))
    }

    /// Removes the last element, and returns it.
    pub(super) fn take_back(&self) -> Result<Option<T>, Error> {
        self.opened.call(|row, pool| {
            let mut value = [zeroes()];
            let is_taken = row.take_back(pool, bytes_of_mut(&mut value))?;
            Ok(is_taken.then_some(value[0]))
        })
    }

    /// At most `count` elements from `index` on, as many as there are.
    fn read(&self, index: usize, count: usize) -> Result<Vec<T>, Error> {
        self.opened.call(|row, pool| {
            row.view(pool, |size, read| {
                check(pool, size)?;
                let left = (size as usize / size_of::<T>()).saturating_sub(index);
                let mut values = vec![zeroes(); left.min(count)];
                if !values.is_empty() {
                    read(place::<T>(index), bytes_of_mut(&mut values))?;
                }
                Ok(values)
            })
        })
    }

    /// Makes a call while the lock is held.
    fn held<R>(
        &self,
        call: impl FnOnce(&HeldSequence<'_, Pool>) -> Result<R, ContainerError>,
    ) -> Result<R, Error> {
        self.opened.call(|row, pool| call(&row.hold(pool)?))
    }
}

/// An iterator through a row.
struct RowIter<'r, T: Plain> {
    row: &'r GlobalRow<T>,
    /// The index of the first element that was not read; `None` at the end.
    next: Option<usize>,
    batch: IntoIter<T>,
}

impl<T: Plain> Iterator for RowIter<'_, T> {
    type Item = Result<T, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(value) = self.batch.next() {
            return Some(Ok(value));
        }
        let at = self.next.take()?;
        match self.row.read(at, const { elements_of(BATCH_BYTES, size_of::<T>()) }) {
            Ok(batch) => {
                self.next = (!batch.is_empty()).then_some(at + batch.len());
                self.batch = batch.into_iter();
                self.batch.next().map(Ok)
            }
            Err(error) => Some(Err(error)),
        }
    }
}

impl<T: Plain> fmt::Debug for GlobalRow<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GlobalRow<{}>({})", std::any::type_name::<T>(), self.opened.header.0)
    }
}

fn read<T: Plain>(held: &HeldSequence<'_, Pool>, index: usize) -> Result<T, ContainerError> {
    let mut value = [zeroes()];
    held.read(place::<T>(index), bytes_of_mut(&mut value))
        .map_err(|error| no_element::<T>(error, index))?;
    Ok(value[0])
}

/// The offset of an element. No container has as many bytes as the largest number.
const fn place<T>(index: usize) -> u64 {
    (index as u64).saturating_mul(size_of::<T>() as u64)
}

/// The same error in elements.
fn no_element<T>(error: ContainerError, index: usize) -> ContainerError {
    match error {
        ContainerError::OutOfRange { size, .. } => {
            ContainerError::NoElement { index: index as u64, len: size / size_of::<T>() as u64 }
        }
        error => error,
    }
}

const fn elements_of(bytes: usize, size: usize) -> usize {
    if size > bytes { 1 } else { bytes / size }
}

/// The number of bytes that an iterator reads at a time.
const BATCH_BYTES: usize = 4096;

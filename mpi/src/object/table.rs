//! Tables of the program's objects. A handle has 31 bits, which `MPI_*_toint` returns: the
//! kind of the object, the life of its row, and the row. A handle of a freed object names an
//! earlier life, so that it is found out.

use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tsumugi_ult::internals::BiasedLock;

/// The objects of one kind. The lock is held for some instructions, in which no object is
/// dropped; a program that calls from one thread takes it without atomic instructions.
pub(crate) struct Table<T> {
    kind: usize,
    rows: BiasedLock<Rows<T>>,
}

struct Rows<T> {
    rows: Vec<Row<T>>,
    free: Vec<u32>,
}

struct Row<T> {
    life: usize,
    object: Option<T>,
}

/// The kinds. None is zero, so no handle is one of the standard's own.
pub(crate) mod kind {
    pub(crate) const COMM: usize = 1;
    pub(crate) const GROUP: usize = 2;
    pub(crate) const DATATYPE: usize = 3;
    pub(crate) const OP: usize = 4;
    pub(crate) const REQUEST: usize = 5;
    pub(crate) const INFO: usize = 6;
    pub(crate) const ERRHANDLER: usize = 7;
    pub(crate) const MESSAGE: usize = 8;
    pub(crate) const SESSION: usize = 9;
}

impl<T> Table<T> {
    pub(crate) const fn new(kind: usize) -> Self {
        Self { kind, rows: BiasedLock::new(Rows { rows: Vec::new(), free: Vec::new() }) }
    }

    /// Adds an object, and returns its handle. `None`: the table is full.
    #[inline]
    pub(crate) fn add(&self, object: T) -> Option<usize> {
        let rows = &mut *self.rows.lock();
        let row = match rows.free.pop() {
            Some(row) => row as usize,
            // The last one is never taken: requests have it for sends that have ended.
            None if rows.rows.len() < ROWS_MAX - 1 => {
                rows.rows.push(Row { life: 0, object: None });
                rows.rows.len() - 1
            }
            None => return None,
        };
        let place = &mut rows.rows[row];
        // Nothing lies in a free row, and nothing is dropped.
        mem::forget(place.object.replace(object));
        Some(self.kind << KIND_SHIFT | place.life << LIFE_SHIFT | row)
    }

    /// The object of a handle.
    pub(crate) fn get(&self, handle: usize) -> Option<T>
    where
        T: Clone,
    {
        self.look(handle, T::clone)
    }

    /// What `look` finds at the object of a handle; it must be short.
    #[inline]
    pub(crate) fn look<R>(&self, handle: usize, look: impl FnOnce(&T) -> R) -> Option<R> {
        let index = self.row_of(handle)?;
        let rows = self.rows.lock();
        let row = rows.rows.get(index).filter(|row| row.life == life_of(handle))?;
        row.object.as_ref().map(look)
    }

    /// Changes the object of a handle; `change` must be short, and drop nothing.
    pub(crate) fn change<R>(&self, handle: usize, change: impl FnOnce(&mut T) -> R) -> Option<R> {
        let index = self.row_of(handle)?;
        let mut rows = self.rows.lock();
        let row = rows.rows.get_mut(index).filter(|row| row.life == life_of(handle))?;
        row.object.as_mut().map(change)
    }

    /// Takes the object of a handle out of the table.
    pub(crate) fn remove(&self, handle: usize) -> Option<T> {
        let index = self.row_of(handle)?;
        let rows = &mut *self.rows.lock();
        let row = rows.rows.get_mut(index).filter(|row| row.life == life_of(handle))?;
        let object = row.object.take()?;
        row.life = (row.life + 1) % LIVES;
        rows.free.push(index as u32);
        Some(object)
    }

    /// Takes the object of a handle out of the table if `look` finds something at it, which it
    /// returns; `look` must be short.
    #[inline]
    pub(crate) fn remove_if<R>(
        &self,
        handle: usize,
        look: impl FnOnce(&T) -> Option<R>,
    ) -> Option<R> {
        let index = self.row_of(handle)?;
        let mut guard = self.rows.lock();
        let rows = &mut *guard;
        let row = rows.rows.get_mut(index).filter(|row| row.life == life_of(handle))?;
        let found = look(row.object.as_ref()?)?;
        let object = row.object.take();
        row.life = (row.life + 1) % LIVES;
        rows.free.push(index as u32);
        drop(guard);
        drop(object);
        Some(found)
    }

    /// What `look` finds at each object that the program has not freed.
    pub(crate) fn all<R>(&self, look: impl FnMut(&mut T) -> R) -> Vec<R> {
        let rows = &mut *self.rows.lock();
        rows.rows.iter_mut().filter_map(|row| row.object.as_mut()).map(look).collect()
    }

    fn row_of(&self, handle: usize) -> Option<usize> {
        (handle >> KIND_SHIFT == self.kind).then_some(handle & (ROWS_MAX - 1))
    }
}

/// Locks a mutex, also after a panic of another holder.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn life_of(handle: usize) -> usize {
    handle >> LIFE_SHIFT & (LIVES - 1)
}

const ROWS_MAX: usize = 1 << LIFE_SHIFT;
const LIFE_SHIFT: u32 = 20;
const LIVES: usize = 1 << (KIND_SHIFT - LIFE_SHIFT);
const KIND_SHIFT: u32 = 27;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_of_a_freed_object_is_found_out() {
        let table = Table::new(kind::INFO);
        let first = table.add(1).unwrap();
        assert_eq!(table.get(first), Some(1));
        assert!((crate::abi::OWN_FROM..1 << 31).contains(&first));
        assert_eq!(table.remove(first), Some(1));
        assert_eq!((table.get(first), table.remove(first)), (None, None));
        assert_eq!(table.change(first, |number| *number), None);
        let second = table.add(4).unwrap();
        assert_eq!(table.change(second, |number| std::mem::replace(number, 2)), Some(4));
        assert_eq!(table.get(second), Some(2));
        assert_ne!(first, second);
        assert_eq!(table.get(first), None);
        assert_eq!(table.get(second ^ 1 << KIND_SHIFT), None, "another kind");
        assert_eq!(table.get(second + 1), None);
    }
}

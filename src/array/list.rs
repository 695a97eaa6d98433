//! Accesses to the elements of a list of indices.

use super::{ArrayError, GlobalArray};
use crate::Plain;

impl<T: Plain> GlobalArray<T> {
    /// Reads the elements of `indices`, which may be in any order and may repeat.
    /// Elements on other nodes are read by several ULTs at once.
    ///
    /// # Errors
    ///
    /// [`ArrayError::Lists`] if `indices` and `into` have different lengths;
    /// [`ArrayError::OutOfRange`] if the array does not have one of the elements;
    /// [`ArrayError::Addr`] if the owner or the home of one of their pages has
    /// died, or a rank that was moving one.
    pub fn gather(&self, indices: &[usize], into: &mut [T]) -> Result<(), ArrayError> {
        self.check_list(indices, into.len())?;
        // SAFETY: the slice is borrowed, and has as many values as the list has indices.
        unsafe { self.load_list(indices, into.as_mut_ptr()) }
    }

    /// Reads the elements of `indices`, as [`gather`](Self::gather) does. The memory at
    /// `into` need not be aligned nor initialized, and is written only after all indices
    /// were found. For the C interface.
    ///
    /// # Errors
    ///
    /// Those of [`gather`](Self::gather).
    ///
    /// # Safety
    ///
    /// `into` is valid for a write of as many elements as the list has indices.
    #[doc(hidden)]
    pub unsafe fn load_list(&self, indices: &[usize], into: *mut T) -> Result<(), ArrayError> {
        self.check_list(indices, indices.len())?;
        if !self.engine.has_network() || indices.len() <= PART {
            return indices.iter().enumerate().try_for_each(|(place, index)| {
                let value = self.get(*index)?;
                // SAFETY: the caller's.
                unsafe { into.add(place).write_unaligned(value) };
                Ok(())
            });
        }
        let read = |array: &Self, (index, _): (usize, ())| array.get(index);
        let asked = indices.iter().map(|index| (*index, ()));
        let values = self.by_many(asked.collect(), read)?;
        // SAFETY: there are as many values; `into` is the caller's.
        unsafe { into.cast::<u8>().copy_from(values.as_ptr().cast(), size_of_val(&values[..])) };
        Ok(())
    }

    /// Writes `values` to the elements of `indices`, in any order: if an index
    /// repeats, any of its values may be the last. Several ULTs write at once to
    /// other nodes.
    ///
    /// # Errors
    ///
    /// [`ArrayError::Lists`] if `indices` and `values` have different lengths, and
    /// [`ArrayError::OutOfRange`] if the array does not have one of the elements:
    /// then nothing was written. [`ArrayError::Addr`] if the owner or the home of
    /// one of their pages has died, or a rank that was moving one: then some of the
    /// elements may have been written.
    pub fn scatter(&self, indices: &[usize], values: &[T]) -> Result<(), ArrayError> {
        self.check_list(indices, values.len())?;
        let asked = indices.iter().copied().zip(values.iter().copied());
        let write = |array: &Self, (index, value)| array.put(index, value);
        if !self.engine.has_network() || indices.len() <= PART {
            return asked.into_iter().try_for_each(|pair| write(self, pair));
        }
        self.by_many(asked.collect(), write).map(drop)
    }

    /// Calls `once` for each entry of a list, on as many ULTs as the length of the
    /// list justifies.
    fn by_many<V, R>(
        &self,
        list: Vec<(usize, V)>,
        once: impl Fn(&Self, (usize, V)) -> Result<R, ArrayError> + Send + Copy + 'static,
    ) -> Result<Vec<R>, ArrayError>
    where
        V: Copy + Send + 'static,
        R: Send + 'static,
    {
        let part = list.len().div_ceil(ULTS).max(PART);
        let ults: Vec<_> = list
            .chunks(part)
            .map(|part| {
                let (array, part) = (self.clone(), part.to_vec());
                let all = move |array: &Self| -> Result<Vec<R>, ArrayError> {
                    part.into_iter().map(|asked| once(array, asked)).collect()
                };
                self.engine.runtime().spawn(move |_| all(&array))
            })
            .collect();
        let mut done = Vec::with_capacity(list.len());
        let mut result = Ok(());
        for ult in ults {
            match ult.join().expect("an access of an array does not panic") {
                Ok(part) => done.extend(part),
                Err(error) => result = Err(error),
            }
        }
        result.map(|()| done)
    }

    fn check_list(&self, indices: &[usize], values: usize) -> Result<(), ArrayError> {
        if indices.len() != values {
            return Err(ArrayError::Lists { indices: indices.len(), values });
        }
        indices.iter().try_for_each(|index| self.check(*index, 1))
    }
}

/// The maximum number of ULTs for one list.
const ULTS: usize = 16;
/// The minimum number of elements for one ULT.
const PART: usize = 8;

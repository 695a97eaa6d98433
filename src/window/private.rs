//! A private copy of a rank's own array: MPI's separate memory model.
//!
//! ```text
//!   this rank ─► private copy ─┐            ┌─ other ranks' puts and atomics
//!                              └── sync ────┘► public copy, which is the window
//! ```
//!
//! In the unified model, which windows use by default, there is one copy, and a
//! program that reads while a put is under way may see old or new values. In the
//! separate model the puts of other ranks are seen after the next sync and not
//! before, and other ranks see the changes made here after it. The private copy is
//! an ordinary slice, for code that does not use windows.
//!
//! Progress: [`Private::sync`] is wait-free, [`Private::fence`] blocking.

use super::{Window, WindowError};
use crate::{Error, Plain};
use std::fmt;
use std::ops::{Deref, DerefMut};

/// The private copy of this rank's array; the public copy is the window's.
#[must_use = "changes that are not synchronised are lost"]
pub struct Private<'w, T: Plain> {
    window: &'w Window<T>,
    own: Vec<T>,
    /// The values of both copies at the last sync.
    same: Vec<T>,
}

impl<T: Plain> Window<T> {
    /// Makes a private copy of this rank's array as it is now.
    ///
    /// # Errors
    ///
    /// [`WindowError::Addr`]: the array cannot be read.
    pub fn private(&self) -> Result<Private<'_, T>, WindowError> {
        let same = self.public()?;
        Ok(Private { window: self, own: same.clone(), same })
    }

    fn public(&self) -> Result<Vec<T>, WindowError> {
        let at = self.at(self.inner.runtime.rank(), 0);
        let zero = std::mem::MaybeUninit::<T>::zeroed();
        // SAFETY: every bit pattern is a value of `T`, as it is `Plain`.
        let mut values = vec![unsafe { zero.assume_init() }; self.len()];
        self.inner.runtime.get_slice(at, &mut values)?;
        Ok(values)
    }
}

impl<T: Plain> Private<'_, T> {
    /// Makes both copies equal: each gets the changes of the other since the last
    /// sync. The caller must keep other ranks from putting to this rank's array
    /// meanwhile, by a fence, an epoch or an exclusive hold.
    ///
    /// # Errors
    ///
    /// [`WindowError::Conflict`] names a value that was changed in both copies: then
    /// neither copy is touched. [`WindowError::Addr`]: the public copy cannot be
    /// accessed.
    pub fn sync(&mut self) -> Result<(), WindowError> {
        let public = self.window.public()?;
        let changed = |values: &[T], index: usize| {
            bytes(&values[index..=index]) != bytes(&self.same[index..=index])
        };
        let indices = 0..self.own.len();
        let twice = |&index: &usize| changed(&self.own, index) && changed(&public, index);
        if let Some(index) = indices.clone().find(twice) {
            return Err(WindowError::Conflict { index });
        }
        let runtime = &self.window.inner.runtime;
        let own: Vec<usize> = indices.filter(|&index| changed(&self.own, index)).collect();
        let mut merged = public;
        // One put for each run of adjacent values.
        for run in own.chunk_by(|before, after| before + 1 == *after) {
            let (first, last) = (run[0], run[run.len() - 1]);
            merged[first..=last].copy_from_slice(&self.own[first..=last]);
            runtime.put_slice(self.window.at(runtime.rank(), first), &merged[first..=last])?;
        }
        self.own.copy_from_slice(&merged);
        self.same = merged;
        Ok(())
    }

    /// A [`Window::fence`] between two syncs: this copy then has all that any rank
    /// has put, or has changed in its private copy and fenced. Collective.
    ///
    /// # Errors
    ///
    /// Those of [`sync`](Self::sync) and of [`Window::fence`].
    pub fn fence(&mut self) -> Result<(), Error> {
        // Puts to this rank before the fence must not conflict with changes after
        // it.
        self.window.fence()?;
        self.sync()?;
        self.window.fence()
    }
}

impl<T: Plain> Deref for Private<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.own
    }
}

impl<T: Plain> DerefMut for Private<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.own
    }
}

impl<T: Plain> fmt::Debug for Private<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Private({} values)", self.own.len())
    }
}

fn bytes<T: Plain>(values: &[T]) -> &[u8] {
    // SAFETY: a `Plain` type has no padding: all its bytes have a value.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

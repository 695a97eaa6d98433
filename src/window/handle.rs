//! The handle of a window: making one, and its accesses.

use super::design::{Design, EACH_MAX};
use super::inner::WindowInner;
use super::options::WindowOptions;
use crate::{AddrError, Agent, Error, Exposed, Plain, Rank, Remote, Runtime, Shared};
use std::fmt;
use std::sync::Arc;
use tsumugi_core::mem::RemoteAddr;

/// One array on every rank, and its locks. A handle: cheap to clone, and to send to
/// other threads of the rank. Its memory is freed as that of a [`Shared`].
pub struct Window<T: Plain> {
    pub(super) inner: Arc<WindowInner>,
    pub(super) data: Arc<Shared<T>>,
}

impl Runtime {
    /// Makes an array of `len` zero values on every rank, with locks.
    /// Collective: every rank calls it with the same `len`, in the same order.
    ///
    /// # Errors
    ///
    /// Those of [`share`](Self::share) and of [`allgather`](Self::allgather).
    pub fn window<T: Plain>(&self, len: usize) -> Result<Window<T>, Error> {
        WindowOptions::new().create(self, len)
    }
}

impl WindowOptions {
    /// Makes an array of `len` zero values on every rank, with locks. Collective, as
    /// [`Runtime::window`].
    ///
    /// # Errors
    ///
    /// Those of [`Runtime::window`].
    pub fn create<T: Plain>(&self, rt: &Runtime, len: usize) -> Result<Window<T>, Error> {
        let data = Arc::new(rt.share::<T>(len)?);
        let default = if rt.size() <= EACH_MAX { Design::Each } else { Design::Tree };
        let designs = rt.allgather(self.design.unwrap_or(default) as u64)?;
        let design = Design::ALL[designs[0] as usize];
        let agent = if design == Design::Tree { Agent::Cpu } else { self.agent };
        let inner = Arc::new(WindowInner::share(rt, agent, design)?);
        // No rank uses a vertex before its tree service runs.
        rt.barrier()?;
        Ok(Window { inner, data })
    }
}

impl<T: Plain> Window<T> {
    /// The address of value `index` of `target`'s array.
    #[inline]
    pub fn at(&self, target: Rank, index: usize) -> Remote<T> {
        self.data.at(target, index)
    }

    /// This rank's own array.
    pub fn own(&self) -> &Exposed<T> {
        self.data.own()
    }

    /// The number of values on each rank.
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// Whether the arrays have no values.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// The design of the locks.
    pub fn design(&self) -> Design {
        self.inner.design
    }

    /// The agent that carries out the atomics of the locks.
    pub fn agent(&self) -> Agent {
        self.inner.words.agent()
    }

    /// Reads a value.
    ///
    /// # Errors
    ///
    /// [`AddrError::NoSuchRank`] if the job does not have the rank `target`;
    /// [`AddrError::OutOfRange`] if its array has no such value;
    /// [`AddrError::PeerLost`] if the rank has died.
    #[inline]
    pub fn get(&self, target: Rank, index: usize) -> Result<T, AddrError> {
        self.inner.runtime.get(self.at(target, index))
    }

    /// Reads values from `index` on.
    ///
    /// # Errors
    ///
    /// [`AddrError::NoSuchRank`] if the job does not have the rank `target`;
    /// [`AddrError::OutOfRange`] if its array does not have all of the values;
    /// [`AddrError::PeerLost`] if the rank has died.
    pub fn get_slice(&self, target: Rank, index: usize, into: &mut [T]) -> Result<(), AddrError> {
        // SAFETY: the slice is borrowed, and any bytes are values of a `Plain` type.
        unsafe { self.load(target, index, into.as_mut_ptr(), into.len()) }
    }

    /// Reads `count` values from `index` on. The memory at `into` need not be aligned nor
    /// initialized; it may overlap this rank's own array, and is written only after the
    /// range was found. For the C interface.
    ///
    /// # Errors
    ///
    /// Those of [`get_slice`](Self::get_slice).
    ///
    /// # Safety
    ///
    /// `into` is valid for a write of as many values, until this returns, and for ever if
    /// it does not return because its ULT is cut off. If the array does not have all of
    /// the values, any pointer is allowed.
    #[doc(hidden)]
    pub unsafe fn load(
        &self,
        target: Rank,
        index: usize,
        into: *mut T,
        count: usize,
    ) -> Result<(), AddrError> {
        let from = self.within(target, index, count)?;
        // SAFETY: the caller's.
        unsafe { self.inner.runtime.handle().load(from, into.cast(), count * size_of::<T>()) }
    }

    /// Writes values from `index` on. They have landed after the next flush, fence,
    /// or end of the epoch or hold; on this node, when this returns. `values` may
    /// change when this returns.
    ///
    /// # Errors
    ///
    /// [`AddrError::NoSuchRank`] if the job does not have the rank `target`;
    /// [`AddrError::OutOfRange`] if its array does not have all of the values;
    /// [`AddrError::PeerLost`] if the rank has died. The error of a put to another
    /// node may be returned later, by the next flush.
    pub fn put(&self, target: Rank, index: usize, values: &[T]) -> Result<(), AddrError> {
        // SAFETY: the values are borrowed.
        unsafe { self.store(target, index, values.as_ptr(), values.len()) }
    }

    /// Writes `count` values from `index` on, as [`put`](Self::put) does. The memory at
    /// `from` need not be aligned; it may overlap this rank's own array, and is read only
    /// after the range was found. For the C interface.
    ///
    /// # Errors
    ///
    /// Those of [`put`](Self::put).
    ///
    /// # Safety
    ///
    /// `from` is valid for a read of as many values, until this returns, and for ever if
    /// it does not return because its ULT is cut off. If the array does not have all of
    /// the values, any pointer is allowed.
    #[doc(hidden)]
    pub unsafe fn store(
        &self,
        target: Rank,
        index: usize,
        from: *const T,
        count: usize,
    ) -> Result<(), AddrError> {
        let to = Remote::new(self.within(target, index, count)?);
        // SAFETY: the caller's.
        unsafe { self.inner.puts.put(&self.inner.runtime, to, from, count) }
    }

    /// The address of values, all of which the array of the target has.
    fn within(&self, target: Rank, index: usize, count: usize) -> Result<RemoteAddr, AddrError> {
        let (len, size) = (self.len(), self.inner.runtime.size());
        if target.0 >= size {
            return Err(AddrError::NoSuchRank { rank: target, size });
        }
        if index.checked_add(count).is_some_and(|end| end <= len) {
            return Ok(self.at(target, index).addr());
        }
        Err(AddrError::OutOfRange {
            addr: self.at(target, index).addr(),
            bytes: (count as u64).saturating_mul(size_of::<T>() as u64),
            region_bytes: Some((len * size_of::<T>()) as u64),
        })
    }

    /// Waits until all of this rank's puts to `target` have landed.
    ///
    /// # Errors
    ///
    /// The error of the first put that has failed since the last flush.
    pub fn flush(&self, target: Rank) -> Result<(), AddrError> {
        self.inner.puts.flush(target)
    }

    /// Waits until all of this rank's puts to all targets have landed.
    ///
    /// # Errors
    ///
    /// The error of the first put to any target that has failed since the last
    /// flush.
    pub fn flush_all(&self) -> Result<(), AddrError> {
        self.inner.puts.flush_all()
    }
}

impl<T: Plain> Clone for Window<T> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), data: self.data.clone() }
    }
}

impl<T: Plain> fmt::Debug for Window<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Window({} values a rank, {:?})", self.len(), self.design())
    }
}

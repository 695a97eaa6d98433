//! Memory from elsewhere than the rank's partition, which the network's device
//! may use where it is.
//!
//! A program has its arrays where other libraries have put them: in vectors of
//! the system's allocator, in mapped files. Puts and gets take slices of all of
//! them; but one that goes to another node, of memory that nobody has shown to
//! the device, is copied once more. Adopted memory is shown to it when a put or
//! get of 128 KiB or more first needs it, and stays so:
//!
//! ```
//! # tsumugi::run_ranks(2, |rt| {
//! let words = rt.share::<u64>(100_000)?;
//! let mut values = rt.adopt(vec![1u64; 100_000]);
//! let next = words.at(tsumugi::Rank((rt.rank().0 + 1) % rt.size()), 0);
//! rt.put_slice(next, &values)?;
//! rt.get_slice(next, &mut values[..50_000])?;
//! let values: Vec<u64> = values.into_inner().unwrap();
//! # rt.barrier()
//! # }).unwrap();
//! ```
//!
//! # Bounds
//!
//! All that a rank shows so, its heap included, is at most 128 pieces of 128 MiB
//! together; the one that was used least lately makes room. They count as locked
//! memory (`ulimit -l`): what may not be locked goes by copies, as before.
//!
//! # Unmapping
//!
//! A device goes on with the pages that it was shown, whatever comes to their
//! address afterwards. So there is no cache for any pointer: the memory is owned
//! while it is known, and what was shown of it ends before it goes. An `Adopted`
//! that is forgotten ([`std::mem::forget`]) keeps its memory, too; a borrow could
//! not make it do so, and is no [`Foreign`]:
//!
//! ```compile_fail,E0597
//! # tsumugi::run_ranks(2, |rt| {
//! let mut values = vec![1u64; 100_000];
//! let adopted = rt.adopt(&mut values[..]);
//! # rt.barrier()
//! # }).unwrap();
//! ```
//!
//! Progress: adopting and giving up block for as long as the device takes to
//! register memory, or to end that.

use crate::{Plain, Runtime};
use std::fmt;
use std::mem::{ManuallyDrop, forget};
use std::ops::{Deref, DerefMut};

/// What can be adopted: an owner of values that stay where they are.
///
/// # Safety
///
/// [`values`](Self::values) and [`values_mut`](Self::values_mut) give the same
/// place and number of values each time, wherever the owner itself is moved.
/// They are its own, or borrowed from nobody else for good, and until it is
/// dropped their pages stay what they are: mapped, neither mapped again nor given
/// back to the system (`munmap`, `mremap`, `MADV_DONTNEED`, a file made shorter).
pub unsafe trait Foreign {
    /// What it has many of.
    type Value: Plain;

    /// All of them.
    fn values(&self) -> &[Self::Value];

    /// See [`values`](Self::values).
    fn values_mut(&mut self) -> &mut [Self::Value];
}

/// Memory from elsewhere that is this rank's alone, as a slice: see
/// [`Runtime::adopt`].
///
/// Dropping it ends what the device was shown, and drops the memory; if an
/// operation on it has lost its peer, neither, since the device may have it
/// still.
pub struct Adopted<M: Foreign> {
    memory: ManuallyDrop<M>,
    runtime: Runtime,
}

impl Runtime {
    /// Owns memory, so that long puts and gets of its slices need no copy
    /// wherever they go. Costs nothing until one does.
    pub fn adopt<M: Foreign>(&self, memory: M) -> Adopted<M> {
        let mut memory = ManuallyDrop::new(memory);
        if let Some(far) = &self.far {
            let values = memory.values_mut();
            let (start, bytes) = (values.as_mut_ptr().expose_provenance(), size_of_val(values));
            // SAFETY: the trait's promise, until the memory is dropped or given
            // back, which happens when it was disowned; owners have memory of
            // their own each.
            unsafe { far.adopt(start, bytes) };
        }
        Adopted { memory, runtime: self.clone() }
    }
}

impl<M: Foreign> Adopted<M> {
    /// Gives the memory back, which the device is not shown any more.
    ///
    /// # Errors
    ///
    /// Itself: an operation on it has lost its peer, and the device may have it
    /// still.
    pub fn into_inner(mut self) -> Result<M, Self> {
        if !self.disown() {
            return Err(self);
        }
        // SAFETY: not used after this: its drop does not run.
        let memory = unsafe { ManuallyDrop::take(&mut self.memory) };
        // SAFETY: the same, of the runtime; the place is forgotten.
        drop(unsafe { std::ptr::read(&raw const self.runtime) });
        forget(self);
        Ok(memory)
    }

    fn disown(&self) -> bool {
        let start = self.memory.values().as_ptr() as usize;
        self.runtime.far.as_ref().is_none_or(|far| far.disown(start))
    }
}

impl<M: Foreign> Deref for Adopted<M> {
    type Target = [M::Value];
    fn deref(&self) -> &[M::Value] {
        self.memory.values()
    }
}

impl<M: Foreign> DerefMut for Adopted<M> {
    fn deref_mut(&mut self) -> &mut [M::Value] {
        self.memory.values_mut()
    }
}

impl<M: Foreign> Drop for Adopted<M> {
    fn drop(&mut self) {
        if self.disown() {
            // SAFETY: not used after this.
            unsafe { ManuallyDrop::drop(&mut self.memory) };
        }
    }
}

impl<M: Foreign> fmt::Debug for Adopted<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Adopted<{}>({})", std::any::type_name::<M>(), self.len())
    }
}

// SAFETY: its block stays where it is as long as nobody changes its capacity,
// and an `Adopted` gives slices only.
unsafe impl<T: Plain> Foreign for Vec<T> {
    type Value = T;
    fn values(&self) -> &[T] {
        self
    }
    fn values_mut(&mut self) -> &mut [T] {
        self
    }
}

// SAFETY: its block is its own, and stays where it is.
unsafe impl<T: Plain> Foreign for Box<[T]> {
    type Value = T;
    fn values(&self) -> &[T] {
        self
    }
    fn values_mut(&mut self) -> &mut [T] {
        self
    }
}

// SAFETY: borrowed from nobody, for good.
unsafe impl<T: Plain> Foreign for &'static mut [T] {
    type Value = T;
    fn values(&self) -> &[T] {
        self
    }
    fn values_mut(&mut self) -> &mut [T] {
        self
    }
}

//! Memory from outside of the rank's partition, which the network's device may
//! access in place.
//!
//! A program has arrays where other libraries have put them: in vectors of the
//! system's allocator, in mapped files. Puts and gets take slices of any memory;
//! but if the operation goes to another node, bytes of memory that is not
//! registered with the device are copied once more. Adopted memory is registered
//! when a put or get of 128 KiB or more first needs it, and stays registered:
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
//! The memory that a rank has registered in this way, its heap included, is at most
//! 128 pieces with 128 MiB in total; the least recently used piece is unregistered
//! to make room. Registered memory counts as locked memory (`ulimit -l`): bytes
//! that may not be locked are copied, as before.
//!
//! # Unmapping
//!
//! A device continues to access the pages that were registered, even when other
//! pages are mapped at their address afterwards. So there is no registration cache
//! for arbitrary pointers: the memory is owned while it is registered, and the
//! registration ends before the memory is freed. An `Adopted` that is forgotten
//! ([`std::mem::forget`]) keeps its memory, too. A borrow could not do so, and
//! therefore is not [`Adoptable`]:
//!
//! ```compile_fail,E0597
//! # tsumugi::run_ranks(2, |rt| {
//! let mut values = vec![1u64; 100_000];
//! let adopted = rt.adopt(&mut values[..]);
//! # rt.barrier()
//! # }).unwrap();
//! ```
//!
//! Progress: adopting memory and giving it up block as long as the device takes to
//! register memory or to end a registration.

use crate::{Plain, Runtime};
use std::fmt;
use std::mem::{ManuallyDrop, forget};
use std::ops::{Deref, DerefMut};

/// A type that can be adopted: an owner of values that stay where they are.
///
/// # Safety
///
/// [`values`](Self::values) and [`values_mut`](Self::values_mut) return the same
/// place and number of values each time, even after the owner itself is moved. The
/// values belong to the owner, or are borrowed exclusively for ever. Until the
/// owner is dropped, their pages stay as they are: mapped, neither remapped nor
/// given back to the system (`munmap`, `mremap`, `MADV_DONTNEED`, a file that is
/// truncated).
pub unsafe trait Adoptable {
    /// The type of the values.
    type Value: Plain;

    /// All of the values.
    fn values(&self) -> &[Self::Value];

    /// All of the values, mutably; see [`values`](Self::values).
    fn values_mut(&mut self) -> &mut [Self::Value];
}

/// Adopted memory that only this rank uses, as a slice: see [`Runtime::adopt`].
///
/// Dropping it ends the registration with the device, and drops the memory. If an
/// operation on the memory has lost its peer, neither happens, because the device
/// may still access the memory.
pub struct Adopted<M: Adoptable> {
    memory: ManuallyDrop<M>,
    runtime: Runtime,
}

impl Runtime {
    /// Adopts memory, so that long puts and gets of its slices need no copy to any
    /// node. It costs nothing until the first such operation.
    pub fn adopt<M: Adoptable>(&self, memory: M) -> Adopted<M> {
        let mut memory = ManuallyDrop::new(memory);
        if let Some(net) = self.handle().net() {
            let values = memory.values_mut();
            let (start, bytes) = (values.as_mut_ptr().expose_provenance(), size_of_val(values));
            // SAFETY: the trait's contract holds until the memory is dropped or
            // returned, which happens only after it was disowned; different owners
            // have different memory.
            unsafe { net.adopt(start, bytes) };
        }
        Adopted { memory, runtime: self.clone() }
    }
}

impl<M: Adoptable> Adopted<M> {
    /// Ends the registration and returns the memory.
    ///
    /// # Errors
    ///
    /// The `Adopted` itself: an operation on the memory has lost its peer, and the
    /// device may still access the memory.
    pub fn into_inner(mut self) -> Result<M, Self> {
        if !self.disown() {
            return Err(self);
        }
        // SAFETY: the memory is not used after this, because the drop of `self`
        // does not run.
        let memory = unsafe { ManuallyDrop::take(&mut self.memory) };
        // SAFETY: the same holds for the runtime; `self` is forgotten.
        drop(unsafe { std::ptr::read(&raw const self.runtime) });
        forget(self);
        Ok(memory)
    }

    fn disown(&self) -> bool {
        let start = self.memory.values().as_ptr() as usize;
        self.runtime.handle().net().is_none_or(|net| net.disown(start))
    }
}

impl<M: Adoptable> Deref for Adopted<M> {
    type Target = [M::Value];
    fn deref(&self) -> &[M::Value] {
        self.memory.values()
    }
}

impl<M: Adoptable> DerefMut for Adopted<M> {
    fn deref_mut(&mut self) -> &mut [M::Value] {
        self.memory.values_mut()
    }
}

impl<M: Adoptable> Drop for Adopted<M> {
    fn drop(&mut self) {
        if self.disown() {
            // SAFETY: the memory is not used after this.
            unsafe { ManuallyDrop::drop(&mut self.memory) };
        }
    }
}

impl<M: Adoptable> fmt::Debug for Adopted<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Adopted<{}>({})", std::any::type_name::<M>(), self.len())
    }
}

// SAFETY: the vector's block stays where it is as long as its capacity does not
// change, and an `Adopted` gives access only to slices.
unsafe impl<T: Plain> Adoptable for Vec<T> {
    type Value = T;
    fn values(&self) -> &[T] {
        self
    }
    fn values_mut(&mut self) -> &mut [T] {
        self
    }
}

// SAFETY: the box owns its block, which stays where it is.
unsafe impl<T: Plain> Adoptable for Box<[T]> {
    type Value = T;
    fn values(&self) -> &[T] {
        self
    }
    fn values_mut(&mut self) -> &mut [T] {
        self
    }
}

// SAFETY: the values are borrowed exclusively for ever.
unsafe impl<T: Plain> Adoptable for &'static mut [T] {
    type Value = T;
    fn values(&self) -> &[T] {
        self
    }
    fn values_mut(&mut self) -> &mut [T] {
        self
    }
}

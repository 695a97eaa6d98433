//! Memory of this rank that has a global address.

use super::{Global, GlobalAddr, GlobalPtr};
use crate::memory::Block;
use crate::{Error, Plain};
use std::fmt;
use std::marker::PhantomData;
use tsumugi_core::mem::{Access, Agent};

/// An array of `T` in this rank's memory with a global address. When it is
/// dropped, its address is stale at once for this rank, and for another as soon
/// as that one has been told; the memory is kept until then.
pub struct GlobalBlock<T> {
    global: Global,
    block: Option<Block>,
    first: GlobalAddr,
    len: usize,
    of: PhantomData<fn() -> T>,
}

impl Global {
    /// Makes an array of `len` zero values that any rank can reach by its
    /// global address.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`], [`Error::Register`], [`Error::Name`].
    pub fn expose<T: Plain>(&self, len: usize) -> Result<GlobalBlock<T>, Error> {
        let block = Block::new::<T>(&self.runtime, len, Access::ReadWrite, Agent::Cpu)?;
        let first = self.driver.name(block.region())?;
        Ok(GlobalBlock { global: self.clone(), block: Some(block), first, len, of: PhantomData })
    }
}

impl<T: Plain> GlobalBlock<T> {
    /// The address of value `index`. Whether there is one, the access checks.
    pub fn at(&self, index: usize) -> GlobalPtr<T> {
        let split = self.global.split();
        let at = i64::try_from(index)
            .ok()
            .and_then(|index| split.index(GlobalPtr::new(self.first), index).ok());
        at.unwrap_or(GlobalPtr::NULL)
    }

    /// Where it is in this process, and how many bytes it has.
    pub(crate) fn memory(&self) -> Option<(std::ptr::NonNull<u8>, u64)> {
        let region = self.block.as_ref()?.region();
        Some((region.base, (self.len * size_of::<T>()) as u64))
    }

    /// Values in the array.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<T> Drop for GlobalBlock<T> {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            self.global.driver.retire(self.first, Box::new(block));
        }
    }
}

impl<T> fmt::Debug for GlobalBlock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = std::any::type_name::<T>();
        write!(f, "GlobalBlock<{of}>({} at {})", self.len, self.first)
    }
}

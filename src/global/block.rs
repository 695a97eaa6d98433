//! Arrays of this rank that have a global address.

use super::retire::Retiring;
use super::{Global, GlobalAddr, GlobalPtr};
use crate::memory::RegisteredBlock;
use crate::{Agent, Error, Exposed, MemoryOptions, Plain, Remote, RemoteAddr};
use std::fmt;
use std::marker::PhantomData;

/// An array of `T` in this rank's memory with a global address. When it is dropped,
/// the address is stale: at once for operations that this rank begins, and for
/// other ranks as soon as they have been notified. The memory is kept until all
/// ranks have been notified.
pub struct GlobalBlock<T> {
    global: Global,
    block: Option<RegisteredBlock>,
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
    /// - [`Error::OutOfMemory`]: the exposed memory of this rank has no free block
    ///   of this size (`TSUMUGI_EXPOSED_BYTES`).
    /// - [`Error::Register`]: the table of regions of this rank is full, or the
    ///   network device refuses the memory.
    /// - [`Error::Name`]: all 255 names of this rank are in use, or not free again
    ///   yet; or an address cannot name so many bytes.
    pub fn expose<T: Plain>(&self, len: usize) -> Result<GlobalBlock<T>, Error> {
        MemoryOptions::new().expose_global(self, len)
    }

    /// Gives an array that peers already reach by a [`Remote`] also a global
    /// address, for any agent. [`GlobalBlock::unregister`] takes the address away
    /// again and returns the array.
    ///
    /// ```
    /// tsumugi::run_ranks(2, |rt| {
    ///     let global = rt.global()?;
    ///     let mine = rt.expose::<u64>(4)?;
    ///     let array = global.register(mine)?;
    ///     let all = rt.allgather(array.at(2).addr().to_bits())?;
    ///     global.put(global.pointer(all[1 - rt.rank().0 as usize]), 7_u64)?;
    ///     rt.barrier()?;
    ///     // It has both names.
    ///     assert_eq!(rt.get(array.remote(2))?, 7);
    ///     // When this returns, no rank writes to it by a global address.
    ///     let mine = array.unregister();
    ///     assert_eq!(rt.get(mine.at(2))?, 7);
    ///     rt.barrier()
    /// })
    /// # .map(drop)
    /// # .unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Name`] if all 255 names of this rank are in use, or not free again
    /// yet, or if an address cannot name so many bytes; then the array is freed.
    ///
    /// # Panics
    ///
    /// If the array belongs to another rank or another job.
    pub fn register<T: Plain>(&self, memory: Exposed<T>) -> Result<GlobalBlock<T>, Error> {
        let (block, len) = memory.into_block();
        block.assert_of(&self.runtime, "the array");
        let first = self.driver.name(self.color, block.region())?;
        Ok(GlobalBlock { global: self.clone(), block: Some(block), first, len, of: PhantomData })
    }
}

impl MemoryOptions {
    /// Makes an array of `len` zero values with a global address, as
    /// [`Global::expose`] does. The agent is stored with the region, so every rank finds
    /// it in its table, and the description of [`agent`](Self::agent) applies to gets,
    /// puts, atomics, and operations that are [begun](Global::begin). When a rank copies
    /// to or from an array of its own, the bytes are moved by the agent of the path to
    /// the other end.
    ///
    /// # Errors
    ///
    /// Those of [`Global::expose`].
    pub fn expose_global<T: Plain>(
        &self,
        global: &Global,
        len: usize,
    ) -> Result<GlobalBlock<T>, Error> {
        global.register(self.expose(&global.runtime, len)?)
    }
}

impl<T: Plain> GlobalBlock<T> {
    /// The address of value `index`. The access checks that the value exists.
    pub fn at(&self, index: usize) -> GlobalPtr<T> {
        let split = self.global.split();
        let at = i64::try_from(index)
            .ok()
            .and_then(|index| split.index(GlobalPtr::new(self.first), index).ok());
        at.unwrap_or(GlobalPtr::NULL)
    }

    /// The remote address of value `index`, which is valid as long as the array:
    /// for [`Runtime::get`](crate::Runtime::get) and the other calls with a
    /// [`Remote`].
    pub fn remote(&self, index: usize) -> Remote<T> {
        let (rank, key) = (self.global.runtime.rank(), self.block().region().key);
        Remote::new(RemoteAddr { rank, key, offset: 0 }).add(index as u64)
    }

    /// The agent that carries out the atomics on the array.
    pub fn agent(&self) -> Agent {
        self.block().region().key.agent()
    }

    /// Takes the address away, waits until no rank reaches the array by it any
    /// more, and returns the array. From the call on the address is stale, as after
    /// a drop. Blocking: every live rank that has used the address is asked to
    /// forget it.
    pub fn unregister(mut self) -> Exposed<T> {
        let block = self.block.take().expect("the block is dropped once");
        let mut retiring = Retiring::new(block);
        self.global.driver.retire(self.first, retiring.memory());
        retiring.wait().into_exposed(self.len)
    }

    fn block(&self) -> &RegisteredBlock {
        self.block.as_ref().expect("the block lives as long as the array")
    }

    /// The address of the array in this process, and its size in bytes.
    pub fn memory(&self) -> (std::ptr::NonNull<u8>, u64) {
        (self.block().region().base, (self.len * size_of::<T>()) as u64)
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the array has no values.
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

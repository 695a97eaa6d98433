//! Arrays of this rank that have a global address.

use super::retire::Retiring;
use super::{Global, GlobalAddr, GlobalPtr};
use crate::memory::Block;
use crate::{Agent, Error, Exposed, Plain, Remote, RemoteAddr};
use std::fmt;
use std::marker::PhantomData;

/// An array of `T` in this rank's memory with a global address. When it is
/// dropped, its address is stale at once for what this rank begins, and for
/// accesses as soon as the rank that accesses has been told; the memory is kept
/// until then.
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
        self.expose_for(Agent::Cpu, len)
    }

    /// The same with words whose atomics are the agent's: the type of the
    /// region, which every rank finds in its table. What
    /// [`Runtime::share_for`](crate::Runtime::share_for) says of
    /// [`Agent::Device`] holds here, too, of gets, puts, atomics, and
    /// operations that are [begun](Self::begin); bytes that are copied to or
    /// from an array of the rank that copies are moved by whoever leads to the
    /// other end.
    ///
    /// # Errors
    ///
    /// Those of [`expose`](Self::expose).
    pub fn expose_for<T: Plain>(&self, agent: Agent, len: usize) -> Result<GlobalBlock<T>, Error> {
        self.register(self.runtime.expose_for(agent, len)?)
    }

    /// Gives an array that peers reach already a global address, too, whoever
    /// its agent is. [`GlobalBlock::unregister`] takes the address away again
    /// and answers the array.
    ///
    /// ```
    /// tsumugi::run_ranks(2, |rt| {
    ///     let global = rt.global()?;
    ///     let mine = rt.expose::<u64>(4)?;
    ///     let array = global.register(mine)?;
    ///     let all = rt.gather(array.at(2).addr().to_bits())?;
    ///     global.put(global.pointer(all[1 - rt.rank().0 as usize]), 7_u64)?;
    ///     rt.barrier()?;
    ///     // It has both names.
    ///     assert_eq!(rt.get(array.remote(2))?, 7);
    ///     // When this returns, nobody writes to it by a global address.
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
    /// [`Error::Name`]; the array is gone.
    pub fn register<T: Plain>(&self, memory: Exposed<T>) -> Result<GlobalBlock<T>, Error> {
        let (block, len) = memory.into_block();
        let first = self.driver.name(self.color, block.region())?;
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

    /// The other name of value `index`, which is good as long as the array is:
    /// for [`Runtime::get`](crate::Runtime::get) and its neighbours.
    pub fn remote(&self, index: usize) -> Remote<T> {
        let (rank, key) = (self.global.runtime.rank(), self.block().region().key);
        Remote::new(RemoteAddr { rank, key, offset: 0 }).add(index as u64)
    }

    /// Who carries out the atomics on it.
    pub fn agent(&self) -> Agent {
        self.block().region().key.agent()
    }

    /// Takes the address away, waits until nobody reaches the array by it any
    /// more, and answers the array. From the call on the address is stale, as
    /// after a drop. Blocking: every rank that has used the address is asked
    /// to forget it; one that has died is not.
    pub fn unregister(mut self) -> Exposed<T> {
        let block = self.block.take().expect("it goes once");
        let mut retiring = Retiring::new(block);
        self.global.driver.retire(self.first, retiring.memory());
        retiring.wait().into_exposed(self.len)
    }

    fn block(&self) -> &Block {
        self.block.as_ref().expect("it goes with the array")
    }

    /// Where it is in this process, and how many bytes it has.
    pub(crate) fn memory(&self) -> (std::ptr::NonNull<u8>, u64) {
        (self.block().region().base, (self.len * size_of::<T>()) as u64)
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

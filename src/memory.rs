//! Registered memory, as the rank that owns it holds it.
//!
//! | | made by | reached by |
//! |---|---|---|
//! | [`Shared<T>`] | all ranks together | all ranks: one array on each |
//! | [`Exposed<T>`] | one rank | all ranks that have its address |
//! | [`Buffer<T>`] | one rank | the rank itself, as a slice; its operations in progress |
//!
//! (Memory of other allocators can be used through [`Adopted`](crate::Adopted).)
//!
//! All of these lie in the rank's partition and are zero at first; pages of a large
//! array take memory on first use. An `Exposed` or a `Buffer` is freed when it is
//! dropped. A `Shared` is freed at the next [`barrier`](Runtime::barrier) of its
//! rank after it is dropped, so operations of peers before that barrier are safe.
//! Later operations return [`AddrError::StaleKey`](crate::AddrError::StaleKey).
//!
//! An operation that has looked up its address before the memory was freed, and is
//! delayed, may still access the bytes. By then the bytes can belong to another
//! `Shared` or `Exposed` array of this rank, which can then receive values that
//! were not meant for it. They never belong to anything else: these arrays lie in
//! an area of their own, with an allocator that keeps its metadata outside of the
//! area ([`tsumugi_pvas::exposed`]). Buffers lie in the rank's heap, which no
//! operation of a peer can reach.

mod options;

pub use options::MemoryOptions;

use crate::{Error, Plain, Rank, Remote, Runtime};
use std::alloc::Layout;
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;
use tsumugi_core::backend::LoadStore;
use tsumugi_core::mem::{
    Access, Agent, LocalAddr, MemorySource, Need, Region, RegionKey, RemoteAddr,
};
use tsumugi_core::sync::AtomicU64;
use tsumugi_pvas::config::{EXPOSED, HEAP};

/// One array of `T` on every rank, all of the same length.
pub struct Shared<T> {
    own: ManuallyDrop<Exposed<T>>,
    keys: Keys,
}

/// The keys of the other ranks' arrays.
#[derive(Clone)]
enum Keys {
    /// All arrays have the same key, which ranks get that make the same
    /// allocations.
    Same(RegionKey),
    /// Each array has a key of its own.
    Each(Arc<[RegionKey]>),
}

/// An array of `T` in this rank's memory that peers can reach.
pub struct Exposed<T> {
    block: RegisteredBlock,
    len: u64,
    of: PhantomData<fn() -> T>,
}

/// Registered memory that only this rank uses: the local end of operations.
///
/// The handle has two words. An operation in progress owns it, see
/// [`deferred`](crate::deferred).
pub struct Buffer<T> {
    block: Box<RegisteredBlock>,
    len: usize,
    of: PhantomData<T>,
}

/// The owner of the addresses of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryOwner {
    /// The program, which may have received the addresses or computed them.
    Program,
    /// Only the runtime.
    Runtime,
}

/// Registered memory of the partition: of its heap with [`Access::Local`], else of
/// its exposed area.
pub(crate) struct RegisteredBlock {
    runtime: Runtime,
    region: Region,
    layout: Layout,
}

impl Runtime {
    /// Makes an array of `len` zero values on every rank. Collective: every
    /// rank calls it with the same `len`, in the same order.
    ///
    /// # Errors
    ///
    /// - [`Error::OutOfMemory`]: the exposed memory of this rank has no free block
    ///   of this size (`TSUMUGI_EXPOSED_BYTES`).
    /// - [`Error::Register`]: the table of regions of this rank is full, or the
    ///   network device refuses the memory.
    /// - [`Error::LengthsDiffer`]: another rank has called with another `len`.
    /// - [`Error::Coll`]: a rank has died, or another thread of this rank is in a
    ///   collective.
    /// - [`Error::Addr`]: a rank has died while the ranks exchanged their lengths
    ///   or keys.
    pub fn share<T: Plain>(&self, len: usize) -> Result<Shared<T>, Error> {
        MemoryOptions::new().share(self, len)
    }

    /// Makes such arrays of words that only the runtime uses. No address that a
    /// program computes leads to them, except when the agent is the device, because
    /// its keys have no such class.
    pub(crate) fn share_words(&self, agent: Agent, len: usize) -> Result<Shared<u64>, Error> {
        let owner = MemoryOwner::Runtime;
        let block =
            RegisteredBlock::new::<u64>(self, len, Access::ReadWrite, self.agent(agent), owner)?;
        self.share_own(Exposed { block, len: len as u64, of: PhantomData })
    }

    /// Makes a shared array of which `own` is this rank's part.
    fn share_own<T: Plain>(&self, own: Exposed<T>) -> Result<Shared<T>, Error> {
        let len = own.len();
        let mine = own.block.region.key;
        self.check_length(len as u64)?;
        let keys = match self.handle().agree(u64::from(mine.to_bits()))? {
            Some(_) => Keys::Same(mine),
            None => {
                let bits = self.allgather(u64::from(mine.to_bits()))?.into_iter();
                Keys::Each(bits.map(|bits| RegionKey::from_bits(bits as u32)).collect())
            }
        };
        let shared = Shared { own: ManuallyDrop::new(own), keys };
        for rank in self.neighbours() {
            let first = RemoteAddr { rank, key: shared.key(rank), offset: 0 };
            self.map_in(first, shared.own.block.region.bytes);
        }
        Ok(shared)
    }

    /// Maps a peer's pages before their first use, if the job is configured so.
    fn map_in(&self, addr: RemoteAddr, bytes: u64) {
        let space = self.handle().direct().space();
        if let Ok(at) = self.handle().direct().resolve(addr, bytes, Need::Read)
            && let Some((local, _)) = space.place_of(at, bytes)
        {
            space.reach(local, at, bytes);
        }
    }

    /// Makes an array of `len` zero values, on which peers that have its address
    /// can use gets, puts and atomics.
    ///
    /// # Errors
    ///
    /// - [`Error::OutOfMemory`]: the exposed memory of this rank has no free block
    ///   of this size (`TSUMUGI_EXPOSED_BYTES`).
    /// - [`Error::Register`]: the table of regions of this rank is full, or the
    ///   network device refuses the memory.
    pub fn expose<T: Plain>(&self, len: usize) -> Result<Exposed<T>, Error> {
        MemoryOptions::new().expose(self, len)
    }

    /// The requested agent, or the processors if there is no such device.
    fn agent(&self, agent: Agent) -> Agent {
        let has_device = self.handle().net().is_some_and(|net| net.has_atomics());
        if has_device { agent } else { Agent::Cpu }
    }

    /// Makes a buffer of `len` zero values.
    ///
    /// # Errors
    ///
    /// - [`Error::OutOfMemory`]: the heap of this rank has no free block of this
    ///   size (`TSUMUGI_HEAP_BYTES`).
    /// - [`Error::Register`]: the table of regions of this rank is full, or the
    ///   network device refuses the memory.
    pub fn buffer<T: Plain>(&self, len: usize) -> Result<Buffer<T>, Error> {
        let (agent, owner) = (Agent::Cpu, MemoryOwner::Program);
        let block = Box::new(RegisteredBlock::new::<T>(self, len, Access::Local, agent, owner)?);
        Ok(Buffer { block, len, of: PhantomData })
    }
}

impl MemoryOptions {
    /// Makes an array of `len` zero values on every rank. Collective, as
    /// [`Runtime::share`].
    ///
    /// # Errors
    ///
    /// Those of [`Runtime::share`].
    pub fn share<T: Plain>(&self, rt: &Runtime, len: usize) -> Result<Shared<T>, Error> {
        rt.share_own(self.expose(rt, len)?)
    }

    /// Makes an array of `len` zero values that peers with its address can reach.
    ///
    /// # Errors
    ///
    /// Those of [`Runtime::expose`].
    pub fn expose<T: Plain>(&self, rt: &Runtime, len: usize) -> Result<Exposed<T>, Error> {
        let (agent, owner) = (rt.agent(self.agent), MemoryOwner::Program);
        let block = RegisteredBlock::new::<T>(rt, len, Access::ReadWrite, agent, owner)?;
        Ok(Exposed { block, len: len as u64, of: PhantomData })
    }
}

impl<T: Plain> Shared<T> {
    /// The address of value `index` of `rank`'s array. The operation that uses the
    /// address checks both. An index without a value is refused there, of any size:
    /// the error has the index if its offset would be 2^63 bytes or more, else the
    /// offset.
    #[inline(always)]
    pub fn at(&self, rank: Rank, index: usize) -> Remote<T> {
        Remote::new(RemoteAddr { rank, key: self.key(rank), offset: 0 }).add(index as u64)
    }

    /// The key of the rank's array.
    #[inline(always)]
    pub(crate) fn key(&self, rank: Rank) -> RegionKey {
        match &self.keys {
            Keys::Same(key) => *key,
            // With any key, the operation is refused if the rank does not exist.
            Keys::Each(keys) => match keys.get(rank.0 as usize) {
                Some(key) => *key,
                None => self.own.block.region.key,
            },
        }
    }

    /// The number of values on each rank.
    pub fn len(&self) -> usize {
        self.own.len()
    }

    /// Whether the arrays have no values.
    pub fn is_empty(&self) -> bool {
        self.own.is_empty()
    }

    /// The agent that carries out the atomics on the array.
    pub fn agent(&self) -> Agent {
        self.own.agent()
    }

    /// This rank's own array.
    pub fn own(&self) -> &Exposed<T> {
        &self.own
    }
}

impl<T: Plain> Exposed<T> {
    /// The address of value `index`, valid at this rank and at all others. The
    /// operation that uses the address checks that the value exists.
    #[inline]
    pub fn at(&self, index: usize) -> Remote<T> {
        let (rank, key) = (self.block.runtime.rank(), self.block.region.key);
        Remote::new(RemoteAddr { rank, key, offset: 0 }).add(index as u64)
    }

    /// The agent that carries out the atomics on the array.
    pub fn agent(&self) -> Agent {
        self.block.region.key.agent()
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether the array has no values.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<T> Exposed<T> {
    /// The block of the array, and the number of its values.
    pub(crate) fn into_block(self) -> (RegisteredBlock, usize) {
        (self.block, self.len as usize)
    }
}

impl Exposed<u64> {
    /// A word of the array, for this rank's processors.
    ///
    /// # Panics
    ///
    /// If the array has no such word, or if the device is the agent.
    #[inline(always)]
    pub(crate) fn word(&self, index: usize) -> &AtomicU64 {
        assert!(
            index < self.len() && self.agent() == Agent::Cpu,
            "processors have no word {index} of {self:?}"
        );
        // SAFETY: the word is one of the `len` words of a block that this value
        // owns; it is aligned as the block is, and only accessed as atomics and
        // plain bytes.
        unsafe { self.block.region.base.cast::<AtomicU64>().add(index).as_ref() }
    }

    /// The words of the array, for this rank's processors.
    ///
    /// # Panics
    ///
    /// If the device is the agent.
    #[inline(always)]
    pub(crate) fn words(&self) -> &[AtomicU64] {
        assert!(self.agent() == Agent::Cpu, "processors have no words of {self:?}");
        let first = self.block.region.base.cast::<AtomicU64>();
        // SAFETY: as for `word`, all of them.
        unsafe { std::slice::from_raw_parts(first.as_ptr(), self.len()) }
    }
}

impl<T: Plain> Buffer<T> {
    /// The address of the buffer as the local end of an operation of `runtime`.
    ///
    /// # Panics
    ///
    /// If the buffer belongs to another rank, or to another job: its key would name
    /// other memory of `runtime`.
    #[inline(always)]
    pub(crate) fn local(&self, runtime: &Runtime) -> LocalAddr {
        self.block.assert_of(runtime, "the buffer");
        LocalAddr { key: self.block.region.key, offset: 0 }
    }

    /// Checks that the buffer belongs to `runtime`.
    ///
    /// # Panics
    ///
    /// If it belongs to another rank, or to another job.
    pub(crate) fn assert_of(&self, runtime: &Runtime) {
        self.block.assert_of(runtime, "the buffer");
    }
}

impl<T: Plain> Deref for Buffer<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: the block holds `len` values of zeroed or copied bytes. It is
        // registered as local, so no remote end of an operation leads there, and
        // only operations that own the buffer have it as their local end.
        // (`Runtime::load_store`, which accepts any key, requires the same of its
        // caller.)
        unsafe { std::slice::from_raw_parts(self.block.region.base.as_ptr().cast(), self.len) }
    }
}

impl<T: Plain> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and the buffer is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.block.region.base.as_ptr().cast(), self.len) }
    }
}

impl RegisteredBlock {
    /// The block as an array of `len` values, which is what it was made from.
    pub(crate) fn into_exposed<T>(self, len: usize) -> Exposed<T> {
        Exposed { block: self, len: len as u64, of: PhantomData }
    }

    /// Checks that the block belongs to `runtime`.
    ///
    /// # Panics
    ///
    /// If it belongs to another rank, or to another job.
    #[inline(always)]
    pub(crate) fn assert_of(&self, runtime: &Runtime, what: &str) {
        runtime.assert_owns(what, &self.runtime);
    }

    /// The registration of the block.
    pub(crate) fn region(&self) -> &Region {
        &self.region
    }

    pub(crate) fn new<T: Plain>(
        runtime: &Runtime,
        len: usize,
        access: Access,
        agent: Agent,
        owner: MemoryOwner,
    ) -> Result<Self, Error> {
        runtime.handle().check_process()?;
        let layout = Layout::array::<T>(len).and_then(|array| array.align_to(LINE));
        // The device's words have 8 bytes.
        let layout = match agent {
            Agent::Cpu => layout,
            Agent::Device => layout.map(|layout| layout.pad_to_align()),
        };
        let block = layout
            .ok()
            .and_then(|layout| allocate_zeroed(runtime, access, layout).map(|base| (layout, base)));
        let Some((layout, base)) = block else {
            let variable = if access == Access::Local { HEAP } else { EXPOSED };
            return Err(Error::OutOfMemory { bytes: len.saturating_mul(size_of::<T>()), variable });
        };
        // SAFETY: memory of the partition stays mapped, and this block holds plain
        // bytes until `drop`, which unregisters it first. After that, bytes of the
        // exposed area hold the plain bytes of other such blocks, and no operation
        // on bytes of the heap is in progress, because the operation would own the
        // block.
        let registered = unsafe {
            let bytes = layout.size() as u64;
            match agent {
                Agent::Cpu if owner == MemoryOwner::Runtime => {
                    runtime.handle().direct().register_runtime(base, bytes, access)
                }
                Agent::Cpu => runtime.handle().direct().register(base, bytes, access),
                Agent::Device => runtime.handle().direct().register_for_device(base, bytes),
            }
        };
        match registered {
            Ok(region) => {
                let region = Region { access, ..region };
                let block = Self { runtime: runtime.clone(), region, layout };
                if let Some(net) = runtime.handle().net() {
                    net.register(&region)?;
                }
                Ok(block)
            }
            Err(error) => {
                // SAFETY: the memory was allocated above, with this layout.
                unsafe { memory_for(runtime, access).release(base, layout) };
                Err(error.into())
            }
        }
    }
}

/// The allocator for memory with this kind of access.
fn memory_for(runtime: &Runtime, access: Access) -> &dyn MemorySource {
    match access {
        Access::Local => runtime.handle().heap(),
        Access::Read | Access::ReadWrite => runtime.handle().exposed(),
    }
}

fn allocate_zeroed(runtime: &Runtime, access: Access, layout: Layout) -> Option<NonNull<u8>> {
    match access {
        Access::Local => {
            let block = runtime.handle().heap().allocate(layout)?;
            // SAFETY: the whole block was just allocated.
            unsafe { block.as_ptr().write_bytes(0, layout.size()) };
            Some(block)
        }
        Access::Read | Access::ReadWrite => runtime.handle().exposed().allocate_zeroed(layout),
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: `own` is not used after this.
        let own = unsafe { ManuallyDrop::take(&mut self.own) };
        let runtime = own.block.runtime.clone();
        runtime.handle().defer_free(Box::new(own.block));
    }
}

impl Drop for RegisteredBlock {
    fn drop(&mut self) {
        let Region { key, base, access, .. } = self.region;
        if let Some(net) = self.runtime.handle().net() {
            net.unregister(key);
        }
        self.runtime.handle().direct().unregister(key);
        // SAFETY: the memory was allocated in `new` with this layout, and is
        // unregistered.
        unsafe { memory_for(&self.runtime, access).release(base, self.layout) };
    }
}

impl<T> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shared<{}>({} on each rank)", std::any::type_name::<T>(), self.own.len)
    }
}

impl<T> fmt::Debug for Exposed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Exposed<{}>({})", std::any::type_name::<T>(), self.len)
    }
}

impl<T> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer<{}>({})", std::any::type_name::<T>(), self.len)
    }
}

/// The bytes that a [`Shared`] with different keys has for each rank.
pub(crate) const PEER_KEY_BYTES: usize = size_of::<RegionKey>();
/// The alignment of blocks, so that different arrays do not share a cache line.
const LINE: usize = 64;

//! Registered memory as its owner holds it.
//!
//! | | made by | who reaches it |
//! |---|---|---|
//! | [`Shared<T>`] | all ranks together | all ranks: one array on each |
//! | [`Exposed<T>`] | one rank | whoever is told its address |
//! | [`Buffer<T>`] | one rank | the rank itself, as a slice; its operations in flight |
//!
//! ([`Adopted`](crate::Adopted) memory is not made here: it comes from elsewhere.)
//!
//! All of it lies in the rank's partition and is zero at first; a large array
//! takes memory where it is used. An `Exposed` or a `Buffer` is gone when it is
//! dropped, a `Shared` when its rank has passed its next
//! [`barrier`](Runtime::barrier) after that: what peers do before they come to
//! that barrier is safe. Later operations answer
//! [`AddrError::StaleKey`](crate::AddrError::StaleKey).
//!
//! An operation that had looked its address up before the memory went, and is
//! late, may still touch the bytes. By then they can belong to another `Shared`
//! or `Exposed` array of this rank, which then has values that nobody meant
//! for it; never to anything else: those arrays lie in an area of their own,
//! whose allocator keeps its books outside of it ([`tsumugi_pvas::exposed`]).
//! Buffers lie in the rank's heap, where no peer's operation leads.

use crate::{Error, Plain, Rank, Remote, Runtime};
use std::alloc::Layout;
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;
use tsumugi_core::backend::LoadStore;
use tsumugi_core::mem::{Access, Agent, LocalAddr, Memory, Need, Region, RegionKey, RemoteAddr};
use tsumugi_core::sync::AtomicU64;
use tsumugi_pvas::config::{EXPOSED, HEAP};

/// One array of `T` on every rank, all of the same length.
pub struct Shared<T> {
    own: ManuallyDrop<Exposed<T>>,
    keys: Keys,
}

/// How the other ranks' arrays are named.
#[derive(Clone)]
enum Keys {
    /// By the same key as ours, which is what ranks that do the same get.
    Same(RegionKey),
    /// By one of their own each.
    Each(Arc<[RegionKey]>),
}

/// An array of `T` in this rank's memory that peers can reach.
pub struct Exposed<T> {
    block: Block,
    len: u64,
    of: PhantomData<fn() -> T>,
}

/// Registered memory that is this rank's alone: the local end of operations.
///
/// A handle of two words: an operation in flight owns it, see
/// [`Runtime::try_get`].
pub struct Buffer<T> {
    block: Box<Block>,
    len: usize,
    of: PhantomData<T>,
}

/// Whose a block's addresses are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The program's, which may be told of them, or make them up.
    Program,
    /// The runtime's alone.
    Runtime,
}

/// Memory of the partition under a registration: of its heap if it is
/// [`Access::Local`], of its exposed area if it is not.
pub(crate) struct Block {
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
    /// [`Error::OutOfMemory`], [`Error::Register`], [`Error::LengthsDiffer`],
    /// [`Error::Coll`].
    pub fn share<T: Plain>(&self, len: usize) -> Result<Shared<T>, Error> {
        self.share_for(Agent::Cpu, len)
    }

    /// The same with words whose atomics are the agent's.
    ///
    /// [`Agent::Device`]: every operation on the array goes by the device, of
    /// ranks of the same node and of the array's own, too, so that atomics of
    /// ranks of other nodes need none of its processors. What the device has
    /// not (all but [`fetch_add`](Self::fetch_add) and
    /// [`compare_swap`](Self::compare_swap) of 8 bytes) is done by its
    /// compare-and-swap. A put is a write of the device: among atomics on the
    /// same word it may be lost, a [`swap`](Self::swap) is not.
    ///
    /// Where no device can be it, in a job of one node, or over one without
    /// atomics, processors are the agent: [`Shared::agent`] says so.
    ///
    /// # Errors
    ///
    /// Those of [`share`](Self::share).
    pub fn share_for<T: Plain>(&self, agent: Agent, len: usize) -> Result<Shared<T>, Error> {
        self.share_own(self.expose_for::<T>(agent, len)?)
    }

    /// The same for words that the runtime keeps for itself: no address that a
    /// program makes up leads there, but where the words are the device's, whose
    /// keys have no such class.
    pub(crate) fn share_words(&self, agent: Agent, len: usize) -> Result<Shared<u64>, Error> {
        let owner = Owner::Runtime;
        let block = Block::new::<u64>(self, len, Access::ReadWrite, self.agent(agent), owner)?;
        self.share_own(Exposed { block, len: len as u64, of: PhantomData })
    }

    /// An array of every rank, of which this is the own one.
    fn share_own<T: Plain>(&self, own: Exposed<T>) -> Result<Shared<T>, Error> {
        let len = own.len();
        let mine = own.block.region.key;
        if self.agree(len as u64)?.is_none() {
            for (rank, other) in self.ranks().zip(self.gather(len as u64)?) {
                if other != len as u64 {
                    return Err(Error::LengthsDiffer { own: len as u64, rank, other });
                }
            }
        }
        let keys = match self.agree(u64::from(mine.to_bits()))? {
            Some(_) => Keys::Same(mine),
            None => {
                let bits = self.gather(u64::from(mine.to_bits()))?.into_iter();
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

    /// Maps a peer's pages before their first use, if the job is to.
    fn map_in(&self, addr: RemoteAddr, bytes: u64) {
        let space = self.direct.space();
        if let Ok(at) = self.direct.resolve(addr, bytes, Need::Read)
            && let Some((local, _)) = space.place_of(at, bytes)
        {
            space.reach(local, at, bytes);
        }
    }

    /// Makes an array of `len` zero values that peers can get, put and do
    /// atomics on once they are told its address.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`], [`Error::Register`].
    pub fn expose<T: Plain>(&self, len: usize) -> Result<Exposed<T>, Error> {
        self.expose_for(Agent::Cpu, len)
    }

    /// The same with words whose atomics are the agent's, as
    /// [`share_for`](Self::share_for) does.
    ///
    /// # Errors
    ///
    /// Those of [`expose`](Self::expose).
    pub fn expose_for<T: Plain>(&self, agent: Agent, len: usize) -> Result<Exposed<T>, Error> {
        let (agent, owner) = (self.agent(agent), Owner::Program);
        let block = Block::new::<T>(self, len, Access::ReadWrite, agent, owner)?;
        Ok(Exposed { block, len: len as u64, of: PhantomData })
    }

    /// The agent, if it can be it here.
    fn agent(&self, agent: Agent) -> Agent {
        let has_device = self.far.as_ref().is_some_and(|far| far.has_atomics());
        if has_device { agent } else { Agent::Cpu }
    }

    /// Makes a buffer of `len` zero values.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`], [`Error::Register`].
    pub fn buffer<T: Plain>(&self, len: usize) -> Result<Buffer<T>, Error> {
        let (agent, owner) = (Agent::Cpu, Owner::Program);
        let block = Box::new(Block::new::<T>(self, len, Access::Local, agent, owner)?);
        Ok(Buffer { block, len, of: PhantomData })
    }
}

impl<T: Plain> Shared<T> {
    /// The address of value `index` of `rank`'s array. Both are checked by
    /// the operation that uses it: an index of any size is refused there if
    /// there is no such value, with the index if it leads to 2^63 bytes or more, and
    /// with the offset that it leads to otherwise.
    #[inline(always)]
    pub fn at(&self, rank: Rank, index: usize) -> Remote<T> {
        Remote::new(RemoteAddr { rank, key: self.key(rank), offset: 0 }).add(index as u64)
    }

    /// What the rank's array is called.
    #[inline(always)]
    pub(crate) fn key(&self, rank: Rank) -> RegionKey {
        match &self.keys {
            Keys::Same(key) => *key,
            // An unknown rank is refused by the operation, whatever the key.
            Keys::Each(keys) => match keys.get(rank.0 as usize) {
                Some(key) => *key,
                None => self.own.block.region.key,
            },
        }
    }

    /// Values on each rank.
    pub fn len(&self) -> usize {
        self.own.len()
    }

    /// Whether the arrays have no values.
    pub fn is_empty(&self) -> bool {
        self.own.is_empty()
    }

    /// Who carries out the atomics on it.
    pub fn agent(&self) -> Agent {
        self.own.agent()
    }

    /// This rank's own array.
    pub fn own(&self) -> &Exposed<T> {
        &self.own
    }
}

impl<T: Plain> Exposed<T> {
    /// The address of value `index`, for this rank and for all others. Whether
    /// there is one, the operation that uses it checks.
    #[inline]
    pub fn at(&self, index: usize) -> Remote<T> {
        let (rank, key) = (self.block.runtime.rank(), self.block.region.key);
        Remote::new(RemoteAddr { rank, key, offset: 0 }).add(index as u64)
    }

    /// Who carries out the atomics on it.
    pub fn agent(&self) -> Agent {
        self.block.region.key.agent()
    }

    /// Values in the array.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<T> Exposed<T> {
    /// What it is made of, and how many values it has.
    pub(crate) fn into_block(self) -> (Block, usize) {
        (self.block, self.len as usize)
    }
}

impl Exposed<u64> {
    /// A word of its, for this rank's processors.
    ///
    /// # Panics
    ///
    /// If there are not as many, or if all of them are the device's.
    #[inline(always)]
    pub(crate) fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < self.len() && self.agent() == Agent::Cpu, "word {index} of {self:?}");
        // SAFETY: one of `len` words of a block that this owns, aligned as that
        // is, and only ever accessed as atomics and plain bytes.
        unsafe { self.block.region.base.cast::<AtomicU64>().add(index).as_ref() }
    }
}

impl<T: Plain> Buffer<T> {
    /// Its address as the local end of an operation.
    pub(crate) fn local(&self) -> LocalAddr {
        LocalAddr { key: self.block.region.key, offset: 0 }
    }
}

impl<T: Plain> Deref for Buffer<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: `len` values of zeroed or copied bytes, registered as local: no
        // operation's remote end leads there, and a local end only of those that
        // own the buffer. (`Runtime::load_store`, by which any key leads there,
        // demands the same.)
        unsafe { std::slice::from_raw_parts(self.block.region.base.as_ptr().cast(), self.len) }
    }
}

impl<T: Plain> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.block.region.base.as_ptr().cast(), self.len) }
    }
}

impl Block {
    /// An array again, of as many values as it was one of.
    pub(crate) fn into_exposed<T>(self, len: usize) -> Exposed<T> {
        Exposed { block: self, len: len as u64, of: PhantomData }
    }

    /// Where it is registered.
    pub(crate) fn region(&self) -> &Region {
        &self.region
    }

    pub(crate) fn new<T: Plain>(
        runtime: &Runtime,
        len: usize,
        access: Access,
        agent: Agent,
        owner: Owner,
    ) -> Result<Self, Error> {
        let layout = Layout::array::<T>(len).and_then(|array| array.align_to(LINE));
        // The device's words are of 8 bytes.
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
        // SAFETY: memory of the partition stays mapped, and this block holds
        // plain bytes until `drop`, which unregisters first. After that those
        // of the exposed area hold the plain bytes of other such blocks, and
        // on those of the heap no operation is under way: it would own them.
        let registered = unsafe {
            let bytes = layout.size() as u64;
            match agent {
                Agent::Cpu if owner == Owner::Runtime => {
                    runtime.direct.register_runtime(base, bytes, access)
                }
                Agent::Cpu => runtime.direct.register(base, bytes, access),
                Agent::Device => runtime.direct.register_for_device(base, bytes),
            }
        };
        match registered {
            Ok(region) => {
                let region = Region { access, ..region };
                let block = Self { runtime: runtime.clone(), region, layout };
                if let Some(far) = &runtime.far {
                    far.register(&region)?;
                }
                Ok(block)
            }
            Err(error) => {
                // SAFETY: allocated above, with this layout.
                unsafe { memory_for(runtime, access).release(base, layout) };
                Err(error.into())
            }
        }
    }
}

/// Where memory that others may use so comes from.
fn memory_for(runtime: &Runtime, access: Access) -> &dyn Memory {
    match access {
        Access::Local => runtime.heap(),
        Access::Read | Access::ReadWrite => runtime.exposed(),
    }
}

fn allocate_zeroed(runtime: &Runtime, access: Access, layout: Layout) -> Option<NonNull<u8>> {
    match access {
        Access::Local => {
            let block = runtime.heap().allocate(layout)?;
            // SAFETY: the block was just lent to us, whole.
            unsafe { block.as_ptr().write_bytes(0, layout.size()) };
            Some(block)
        }
        Access::Read | Access::ReadWrite => runtime.exposed().allocate_zeroed(layout),
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: `own` is not used after this.
        let own = unsafe { ManuallyDrop::take(&mut self.own) };
        let runtime = own.block.runtime.clone();
        runtime.bury(Box::new(own.block));
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let Region { key, base, access, .. } = self.region;
        if let Some(far) = &self.runtime.far {
            far.unregister(key);
        }
        self.runtime.direct.unregister(key);
        // SAFETY: allocated in `new` with this layout, and unregistered.
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

/// What a [`Shared`] whose keys differ keeps of each rank.
pub(crate) const PEER_KEY_BYTES: usize = size_of::<RegionKey>();
/// Arrays of different use do not share a cache line.
const LINE: usize = 64;

//! Memory of all ranks that any rank can allocate and free: remote malloc and free,
//! the base of the containers.
//!
//! ```text
//!  of each rank:  queue nodes of its claims to locks │ its heap
//! ```
//!
//! [`crate::container`] has containers of values over a pool that exists anyway. A program
//! makes a pool for blocks and containers of bytes, or for containers apart:
//!
//! ```
//! use tsumugi::Rank;
//! use tsumugi::global::container::Store;
//!
//! tsumugi::run_ranks(2, |rt| {
//!     let pool = rt.global()?.pool(1 << 20)?;
//!     // Any rank allocates at any rank; an address is a word.
//!     let block = pool.allocate(Rank(1), 100)?;
//!     pool.write(block, b"some bytes")?;
//!     pool.free(block)?;
//!     rt.barrier()
//! })
//! # .map(drop)
//! # .unwrap();
//! ```

use super::bases::Bases;
use super::{Change, Global, GlobalAddr, GlobalBlock, GlobalPtr, Split};
use crate::config::POOL;
use crate::lock::Nodes;
use crate::{AddrError, Error, Rank, Runtime};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tsumugi_core::signal::Until;
use tsumugi_core::sync::{AtomicU32, Ordering};
use tsumugi_gas::container::{ContainerError, Store, free, malloc, nodes_bytes};
use tsumugi_gas::heap::{Heap, HeapError};
use tsumugi_gas::lock::NodeId;
use tsumugi_pvas::config::EXPOSED;

/// A heap on every rank for remote allocations. This is a handle: cheap to clone,
/// and to send to other threads of the rank. A rank's heap lives as long as the
/// rank has a handle.
#[derive(Clone)]
pub struct Pool {
    shared: Arc<PoolShared>,
}

struct PoolShared {
    global: Global,
    /// The memory of this rank.
    own: GlobalBlock<u64>,
    bases: Bases,
    heap_bytes: u64,
    /// The variable that sets the size.
    variable: Option<&'static str>,
    nodes: Nodes,
    /// Where allocations begin to search the heap; it changes with each.
    hint: AtomicU32,
}

impl Global {
    /// Collects every rank's `addr`, in the order of the ranks. Collective.
    ///
    /// # Errors
    ///
    /// [`Error::Coll`], [`Error::Addr`]: a rank has died; [`Error::Coll`] also if
    /// another thread of this rank is in a collective.
    pub fn tell(&self, addr: GlobalAddr) -> Result<Vec<GlobalAddr>, Error> {
        let bits = self.runtime.allgather(addr.to_bits())?.into_iter();
        Ok(bits.map(GlobalAddr::from_bits).collect())
    }

    /// Makes a heap of `bytes` bytes on every rank. Collective, with the same
    /// `bytes` on all ranks. The longest block of a heap has 4 KiB; from 2 MiB on
    /// 256 KiB, from 192 MiB on 16 MiB, and from 16 GiB on 1 GiB.
    ///
    /// # Errors
    ///
    /// - [`Error::OutOfMemory`]: the exposed memory of this rank has no free block
    ///   of this size (`TSUMUGI_EXPOSED_BYTES`).
    /// - [`Error::Register`]: the table of regions of this rank is full, or the
    ///   network device refuses the memory.
    /// - [`Error::Name`]: all 255 names of this rank are in use, or not free again
    ///   yet; or an address cannot name so many bytes.
    /// - [`Error::Container`] with [`NotMade`](ContainerError::NotMade): another rank has
    ///   one of these errors.
    /// - [`Error::Coll`], [`Error::Addr`]: a rank has died; [`Error::Coll`] also if
    ///   another thread of this rank is in a collective.
    pub fn pool(&self, bytes: u64) -> Result<Pool, Error> {
        self.pool_of(bytes, None)
    }

    fn pool_of(&self, bytes: u64, variable: Option<&'static str>) -> Result<Pool, Error> {
        let words = nodes_bytes(NODES).checked_add(bytes).map(|bytes| bytes.div_ceil(8) as usize);
        let too_much = Error::OutOfMemory { bytes: bytes as usize, variable: EXPOSED };
        let words = words.ok_or(too_much)?;
        let own = self.expose::<u64>(words);
        // All ranks learn which one has failed, so that none waits for it.
        let failed = own.as_ref().map_or(u64::from(self.runtime.rank().0), |_| u64::MAX);
        let failed = self.runtime.handle().reduce(failed, u64::min)?;
        let own = own?;
        if failed != u64::MAX {
            return Err(ContainerError::NotMade { rank: Rank(failed as u32) }.into());
        }
        let first = own.at(0).addr();
        let bases = Bases::tell(self, first)?;
        let shared = PoolShared {
            global: self.clone(),
            own,
            bases,
            heap_bytes: bytes / 8 * 8,
            variable,
            nodes: Nodes::new(self.runtime.rank(), NODES),
            hint: AtomicU32::new(self.runtime.rank().0),
        };
        // No rank may allocate before all heaps exist.
        self.runtime.barrier()?;
        Ok(Pool { shared: Arc::new(shared) })
    }
}

impl Runtime {
    /// The pool of this job's containers. Collective at first; later calls are local.
    ///
    /// # Errors
    ///
    /// Those of [`global`](Self::global) and of [`Global::pool`].
    pub(crate) fn pool_of_containers(&self) -> Result<Pool, Error> {
        if let Some(pool) = self.kept_pool() {
            return Ok(pool);
        }
        // The nodes may be configured differently.
        let bytes = self.handle().node().pool_bytes() as u64;
        let bytes = self.handle().reduce(bytes, u64::min)?;
        let pool = self.global()?.pool_of(bytes, Some(POOL))?;
        self.handle().node().keep(pool.clone());
        Ok(pool)
    }

    /// The pool of this job's containers, if it was made.
    pub(crate) fn kept_pool(&self) -> Option<Pool> {
        self.handle().node().kept()
    }
}

impl Pool {
    /// The error of a call on a container of this pool. If memory is missing, the error
    /// names the variable that gives more.
    pub(crate) fn error(&self, error: ContainerError) -> Error {
        match (error, self.shared.variable) {
            (
                ContainerError::Heap(
                    HeapError::NoMemory { bytes } | HeapError::TooLarge { bytes, .. },
                ),
                Some(variable),
            ) => Error::OutOfMemory { bytes: bytes as usize, variable },
            (error, _) => error.into(),
        }
    }

    /// The rank to which the handle belongs.
    pub(crate) fn runtime(&self) -> &Runtime {
        &self.shared.global.runtime
    }

    /// Whether an address lies in the pool.
    pub(crate) fn has(&self, addr: GlobalAddr) -> bool {
        let split = self.split();
        let base = split.rank(addr).and_then(|rank| self.base(rank).ok());
        let offset = base.and_then(|base| split.distance(base, addr));
        let end = nodes_bytes(NODES) + self.shared.heap_bytes;
        offset.is_some_and(|offset| (nodes_bytes(NODES)..end).contains(&(offset as u64)))
    }

    /// The number of bytes of each rank's heap.
    pub(crate) fn heap_bytes(&self) -> u64 {
        self.shared.heap_bytes
    }

    /// The global memory to which the pool belongs.
    pub fn global(&self) -> &Global {
        &self.shared.global
    }

    /// The start of a rank's memory.
    fn base(&self, rank: Rank) -> Result<GlobalAddr, AddrError<GlobalAddr>> {
        let PoolShared { bases, global, .. } = &*self.shared;
        let size = global.runtime.size();
        bases.of(global, rank).ok_or(AddrError::NoSuchRank { rank, size })
    }

    /// The memory of this rank, for the C interfaces.
    #[doc(hidden)]
    pub fn own(&self) -> &GlobalBlock<u64> {
        &self.shared.own
    }

    fn heap(&self, rank: Rank) -> Result<Heap, AddrError<GlobalAddr>> {
        let split = self.shared.global.split();
        let base = self.base(rank)?;
        let heap = split.add(base, nodes_bytes(NODES) as i64);
        let heap =
            heap.map_err(|_| AddrError::OutOfRange { addr: base, bytes: 0, region_bytes: None })?;
        Ok(Heap::new(split, heap, self.shared.heap_bytes))
    }
}

impl Store for Pool {
    fn split(&self) -> Split {
        self.shared.global.split()
    }

    fn rank(&self) -> Rank {
        self.shared.global.runtime.rank()
    }

    fn read(&self, from: GlobalAddr, into: &mut [u8]) -> Result<(), AddrError<GlobalAddr>> {
        self.shared.global.get_slice(GlobalPtr::new(from), into)
    }

    fn write(&self, to: GlobalAddr, bytes: &[u8]) -> Result<(), AddrError<GlobalAddr>> {
        self.shared.global.put_slice(GlobalPtr::new(to), bytes)
    }

    fn copy(
        &self,
        dst: GlobalAddr,
        src: GlobalAddr,
        bytes: u64,
    ) -> Result<(), AddrError<GlobalAddr>> {
        let (dst, src) = (GlobalPtr::<u8>::new(dst), GlobalPtr::new(src));
        self.shared.global.copy(dst, src, bytes as usize)
    }

    fn word(&self, word: Change) -> Result<u64, AddrError<GlobalAddr>> {
        self.shared.global.change(word)
    }

    fn allocate(&self, rank: Rank, bytes: u64) -> Result<GlobalAddr, HeapError> {
        let heap = self.heap(rank).map_err(HeapError::Access)?;
        // Relaxed: any number is correct.
        let hint = self.shared.hint.fetch_add(1, Ordering::Relaxed);
        malloc(&heap, bytes, hint, |word| self.word(word))
    }

    fn free(&self, addr: GlobalAddr) -> Result<(), HeapError> {
        let nowhere = HeapError::Access(AddrError::Nowhere { addr });
        let rank = self.split().rank(addr).ok_or(nowhere)?;
        let heap = self.heap(rank).map_err(HeapError::Access)?;
        free(&heap, addr, |word| self.word(word))
    }

    fn nodes(&self, rank: Rank) -> Result<GlobalAddr, AddrError<GlobalAddr>> {
        self.base(rank)
    }

    fn take_node(&self) -> NodeId {
        let load = |slot: usize| {
            // A read of own memory; if it fails, the node does not count as free.
            self.shared.global.get(self.shared.own.at(slot * 2)).unwrap_or(0)
        };
        self.shared.nodes.take(load)
    }

    fn release_node(&self, node: NodeId, has_left: bool) {
        self.shared.nodes.release(node, has_left);
    }

    fn wait(&self, at: GlobalAddr, until: Until) -> Result<u64, AddrError<GlobalAddr>> {
        self.shared.global.wait_until(GlobalPtr::new(at), until)
    }

    fn lost(&self) -> Option<Rank> {
        self.shared.global.runtime.handle().lost()
    }

    fn pause(&self) {
        tsumugi_ult::sleep(PAUSE);
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pool({} bytes a rank)", self.shared.heap_bytes)
    }
}

/// How long to wait between two checks of a lock that a dead rank may have held.
const PAUSE: Duration = Duration::from_millis(1);
/// The maximum number of lock claims of a rank that wait at a time; further claims
/// wait for a queue node.
const NODES: u32 = 4096;

//! Global memory: 64-bit addresses that name a byte of any rank, and copies that
//! any rank requests between any two ranks' memory.
//!
//! ```
//! use tsumugi::{Error, GlobalPtr, Rank};
//!
//! tsumugi::run_ranks(2, |rt| {
//!     let global = rt.global()?;
//!     let own = global.expose::<u64>(4)?;
//!     // An address is a word, so it can be stored and sent.
//!     let all = rt.gather(own.at(0).addr().to_bits())?;
//!     let peer = global.pointer::<u64>(all[1 - rt.rank().0 as usize]);
//!     global.put(peer, 7)?;
//!     rt.barrier()?;
//!     assert_eq!(global.get(own.at(0))?, 7);
//!     rt.barrier()
//! })
//! # .map(drop)
//! # .unwrap();
//! ```
//!
//! | | |
//! |---|---|
//! | [`Runtime::global`] | opens it; collective |
//! | [`Global::expose`], [`Global::expose_for`] | makes memory with a global address; chooses the agent of its atomics |
//! | [`Global::register`], [`Global::publish`] | gives memory that the program has a global address |
//! | [`Global::addr_of`], [`Global::local`], [`Global::rank_of`] | translates between memory, addresses and ranks |
//! | [`Global::get`], [`Global::put`] and the atomics | accesses that are complete when they return |
//! | [`Global::copy`] | copies between any two ranks |
//! | [`Global::signal`], [`Global::wait_until`] | words for which ULTs wait |
//! | [`Global::begin`], [`Operation`] | copies and atomics with an order |
//! | [`Global::workspace`] | bytes in parts on several ranks |
//! | [`Global::channel_to`], [`Global::channel_from`] | messages of any length, in order |
//! | [`SegmentSource`], [`SegmentSink`] | rings of segments from one rank to another |
//! | [`Global::pool`], [`container`] | remote malloc and free; vectors, lists, maps of all ranks |
//!
//! The first access to a rank reads the rank's table of regions; later accesses
//! find the table in this rank's cache, which has a bound that does not depend on
//! the job. An access by the address of freed memory returns
//! [`AccessError::Stale`], even when the memory belongs to another array by then.
//!
//! Progress: an access to a rank of the same node is wait-free once that rank's
//! table is in the cache; all other calls are blocking.

mod access;
mod bases;
mod block;
mod channel;
mod copy;
mod operation;
mod pool;
mod region;
mod retire;
mod segment;
mod signal;
mod word;
mod workspace;

#[doc(hidden)]
pub use bases::Bases;
pub use block::GlobalBlock;
pub use channel::{ChannelReceiver, ChannelSender};
pub use operation::Operation;
pub use pool::Pool;
pub use region::GlobalRegion;
pub use segment::{SegmentSink, SegmentSource};
pub use tsumugi_gas::address::{AddressParts, GlobalAddr, GlobalPtr, LeavesRegion, STARTER, Split};
pub use tsumugi_gas::channel::ReceivedPart;
pub use tsumugi_gas::container;
pub use tsumugi_gas::error::AccessError;
pub use tsumugi_gas::heap::HeapError;
pub use tsumugi_gas::order::{After, Full, Handle};
pub use tsumugi_gas::request::{Copy, ENTRY_BYTES, GlobalRequest, ListCopy, WordRequest as Change};
pub use tsumugi_gas::table::NameError;
pub use workspace::Workspace;

use crate::{Error, Plain, Rank, Runtime};
use std::fmt;
use std::sync::Arc;
use tsumugi_core::mem::RegionKey;
use tsumugi_gas::cache::TableCache;
use tsumugi_runtime::service::global_memory::GlobalDriver;

/// The global memory, as one rank accesses it. This is a handle: cheap to clone and
/// to send to other threads of the rank.
#[derive(Clone)]
pub struct Global {
    runtime: Runtime,
    driver: Arc<GlobalDriver>,
    cache: TableCache<'static>,
    /// Whether an operation may still be in progress on the network after its
    /// lookup.
    flies: bool,
    /// The colour of the names that this handle's registrations get; each colour
    /// has 255 names.
    color: u8,
}

impl Runtime {
    /// Opens the global memory. The first call is collective; later calls, and
    /// clones of the handle, are local.
    ///
    /// # Errors
    ///
    /// - [`Error::OutOfMemory`]: this rank has no room for the tables of the global
    ///   memory.
    /// - [`Error::Register`]: the table of regions of this rank is full, or the
    ///   network device refuses the memory.
    /// - [`Error::Coll`], [`Error::Addr`]: a rank has died; [`Error::Coll`] also if
    ///   another thread of this rank is in a collective.
    pub fn global(&self) -> Result<Global, Error> {
        self.global_of(1, 0)
    }

    /// Opens the global memory with names of `colors` colours, if it is not open
    /// yet. The registrations of the handle get names of `color`.
    #[doc(hidden)]
    pub fn global_of(&self, colors: u32, color: u8) -> Result<Global, Error> {
        let driver = match self.handle().node().global() {
            Some(driver) => driver,
            None => self.open_global(colors)?,
        };
        let flies = self.handle().queue().is_some() || self.handle().far().is_some();
        let (driver, cache) = (driver.clone(), driver.cache());
        Ok(Global { runtime: self.clone(), driver, cache, flies, color })
    }

    fn open_global(&self, colors: u32) -> Result<&Arc<GlobalDriver>, Error> {
        let (member, far) = (self.handle().node().member(), self.handle().far());
        let mut driver = GlobalDriver::new(member, far, self.workers(), colors)?;
        let own = u64::from(driver.key().to_bits());
        // No rank may continue before the control regions of all ranks are
        // registered.
        if self.handle().agree(own)?.is_none() {
            let keys = self.gather(own)?.into_iter();
            driver.connect(Some(keys.map(|key| RegionKey::from_bits(key as u32)).collect()));
        }
        let driver = self.handle().node().open_global(driver);
        // Requests of other ranks may have come before the driver existed.
        driver.stir();
        Ok(driver)
    }
}

impl Global {
    /// The address of `rank`'s starter memory, as words; see [`Runtime::starter`].
    ///
    /// # Errors
    ///
    /// [`AccessError::Nowhere`] if the job has no such rank.
    pub fn starter(&self, rank: Rank) -> Result<GlobalPtr<u64>, AccessError> {
        let place = AddressParts { rank, color: 0, region: STARTER, life: 0, offset: 0 };
        let nowhere = AccessError::Nowhere { addr: GlobalAddr::NULL };
        let known = if rank.0 < self.runtime.size() { self.split().addr(place).ok() } else { None };
        known.map(GlobalPtr::new).ok_or(nowhere)
    }

    /// How addresses are split into rank, region and offset, and arithmetic on
    /// them.
    pub fn split(&self) -> Split {
        self.cache.split()
    }

    /// The pointer whose address another rank has sent as a word.
    pub fn pointer<T: Plain>(&self, bits: u64) -> GlobalPtr<T> {
        GlobalPtr::new(GlobalAddr::from_bits(bits))
    }

    /// The address `count` values of `T` after `from`, or before it if `count` is
    /// negative.
    ///
    /// # Errors
    ///
    /// [`AccessError::OutOfRange`] if the sum does not fit in an address.
    #[inline]
    pub fn index<T: Plain>(
        &self,
        from: GlobalPtr<T>,
        count: i64,
    ) -> Result<GlobalPtr<T>, AccessError> {
        let (addr, bytes) = (from.addr(), size_of::<T>() as u64);
        self.split().index(from, count).map_err(|_| AccessError::OutOfRange { addr, bytes })
    }
}

impl fmt::Debug for Global {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Global({:?})", self.driver)
    }
}

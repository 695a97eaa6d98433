//! The handle of the global memory.

use crate::{AddrError, Error, Plain, Rank, Runtime};
use std::fmt;
use std::sync::Arc;
use tsumugi_core::mem::RegionKey;
use tsumugi_gas::address::{AddressParts, GlobalAddr, GlobalPtr, STARTER, Split};
use tsumugi_gas::cache::TableCache;
use tsumugi_runtime::net::Transport;
use tsumugi_runtime::service::global_memory::{GlobalDriver, Lookaside};

/// The global memory, as one rank accesses it. This is a handle: cheap to clone and
/// to send to other threads of the rank.
#[derive(Clone)]
pub struct Global {
    pub(super) runtime: Runtime,
    pub(super) driver: Arc<GlobalDriver>,
    pub(super) cache: TableCache<'static>,
    pub(super) lookaside: Lookaside,
    /// Whether an operation may still be in progress on the network after its
    /// lookup.
    pub(super) flies: bool,
    /// The colour of the names that this handle's registrations get; each colour
    /// has 255 names.
    pub(super) color: u8,
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
        let flies = self.handle().queue().is_some() || self.handle().net().is_some();
        let (driver, cache) = (driver.clone(), driver.cache());
        let lookaside = driver.lookaside();
        Ok(Global { runtime: self.clone(), driver, cache, lookaside, flies, color })
    }

    fn open_global(&self, colors: u32) -> Result<&Arc<GlobalDriver>, Error> {
        let (member, net) = (self.handle().node().member(), self.handle().net());
        let transport = net.map(|net| net.clone() as Arc<dyn Transport>);
        let mut driver = GlobalDriver::new(member, transport.as_ref(), self.workers(), colors)?;
        let own = u64::from(driver.key().to_bits());
        // No rank may continue before the control regions of all ranks are
        // registered.
        if self.handle().agree(own)?.is_none() {
            let keys = self.allgather(own)?.into_iter();
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
    /// [`AddrError::NoSuchRank`] if the job has no such rank.
    pub fn starter(&self, rank: Rank) -> Result<GlobalPtr<u64>, AddrError<GlobalAddr>> {
        let place = AddressParts { rank, color: 0, region: STARTER, life: 0, offset: 0 };
        let size = self.runtime.size();
        let known = if rank.0 < size { self.split().addr(place).ok() } else { None };
        known.map(GlobalPtr::new).ok_or(AddrError::NoSuchRank { rank, size })
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
    /// [`AddrError::OutOfRange`] if the sum does not fit in an address.
    #[inline]
    pub fn index<T: Plain>(
        &self,
        from: GlobalPtr<T>,
        count: i64,
    ) -> Result<GlobalPtr<T>, AddrError<GlobalAddr>> {
        let (addr, bytes) = (from.addr(), size_of::<T>() as u64);
        self.split().index(from, count).map_err(|_| AddrError::OutOfRange {
            addr,
            bytes,
            region_bytes: None,
        })
    }
}

impl fmt::Debug for Global {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Global({:?})", self.driver)
    }
}

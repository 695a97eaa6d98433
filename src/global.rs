//! Global memory: 64-bit addresses that name a byte of any rank, and copies
//! between any two ranks' memory, whoever asks for them.
//!
//! ```
//! use tsumugi::{Error, GlobalPtr, Rank};
//!
//! tsumugi::run_ranks(2, |rt| {
//!     let global = rt.global()?;
//!     let own = global.expose::<u64>(4)?;
//!     // An address is a word: it goes wherever words go.
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
//! | [`Global::expose`] | memory with a global address |
//! | [`Global::get`] and its neighbours | accesses that are over when they return |
//! | [`Global::copy`] | between any two ranks |
//! | [`Global::signal`], [`Global::wait_until`] | words that ULTs wait for |
//! | [`Global::begin`], [`Operation`] | copies and atomics with an order |
//! | [`Global::workspace`] | bytes in parts on several ranks |
//! | [`Global::channel_to`], [`Global::channel_from`] | messages of any length, in order |
//! | [`SegmentSource`], [`SegmentSink`] | rings of segments from one rank to one other |
//! | [`Global::pool`], [`container`] | remote malloc and free; vectors, lists, maps of all ranks |
//!
//! The first access to a rank reads its table of regions, later ones find it in
//! this rank's cache, whose bound is the same in every job. An address whose
//! memory is gone is answered with [`AccessError::Stale`], also when the memory
//! belongs to another array by then.
//!
//! Progress: an access to a rank of the same node is wait-free once that rank's
//! table is here; all else is blocking.

mod bases;
mod channel;
mod operation;
mod pool;
#[cfg(feature = "capi")]
mod region;
mod segment;
mod signal;
mod word;
mod workspace;

pub use channel::{ChannelReceiver, ChannelSender};
pub use operation::Operation;
pub use pool::Pool;
pub use segment::{SegmentSink, SegmentSource};
pub use tsumugi_gas::address::{GlobalAddr, GlobalPtr, LeavesRegion, Place, STARTER, Split};
pub use tsumugi_gas::channel::Received;
pub use tsumugi_gas::container;
pub use tsumugi_gas::error::AccessError;
pub use tsumugi_gas::heap::HeapError;
pub use tsumugi_gas::order::{After, Full, Handle};
pub use tsumugi_gas::request::{Copy, ENTRY_BYTES, List, Request, Word as Change};
pub use tsumugi_gas::table::NameError;
pub use workspace::Workspace;
#[cfg(feature = "capi")]
pub(crate) use {bases::Bases, region::GlobalRegion};

use crate::gas::{Driver, Search};
use crate::memory::Block;
use crate::{AddrError, Error, Plain, Rank, Remote, RemoteAddr, Runtime, Word};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use tsumugi_core::backend::{LoadStore, load_bytes};
use tsumugi_core::mem::{Access, Agent, Need, RegionKey};
use tsumugi_gas::cache::{Cache, Pinned, Target};

/// The global memory, as one rank sees it. A handle: cheap to clone and to
/// send to other threads of the rank.
#[derive(Clone)]
pub struct Global {
    runtime: Runtime,
    driver: Arc<Driver>,
    cache: Cache<'static>,
    /// Whether operations may be in flight after a lookup.
    flies: bool,
}

/// An array of `T` in this rank's memory with a global address. When it is
/// dropped, its address is stale at once for this rank, and for another as soon
/// as that one has been told; the memory is kept until then.
pub struct GlobalArray<T> {
    global: Global,
    block: Option<Block>,
    first: GlobalAddr,
    len: usize,
    of: PhantomData<fn() -> T>,
}

impl Runtime {
    /// Opens the global memory. Collective the first time; whoever has it may
    /// also clone the handle.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`], [`Error::Register`], [`Error::Coll`].
    pub fn global(&self) -> Result<Global, Error> {
        let driver = match self.node().global() {
            Some(driver) => driver,
            None => self.open_global()?,
        };
        let flies = self.queue.is_some() || self.far.is_some();
        let (driver, cache) = (driver.clone(), driver.cache());
        Ok(Global { runtime: self.clone(), driver, cache, flies })
    }

    fn open_global(&self) -> Result<&Arc<Driver>, Error> {
        let mut driver = Driver::new(self.node().member(), self.far.as_ref(), self.workers())?;
        let own = u64::from(driver.key().to_bits());
        // Nobody comes further before everybody's region is registered.
        if self.agree(own)?.is_none() {
            let keys = self.gather(own)?.into_iter();
            driver.connect(Some(keys.map(|key| RegionKey::from_bits(key as u32)).collect()));
        }
        let driver = self.node().open_global(driver);
        // Others may have come before.
        driver.rang();
        Ok(driver)
    }
}

impl Global {
    /// Makes an array of `len` zero values that any rank can reach by its
    /// global address.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`], [`Error::Register`], [`Error::Name`].
    pub fn expose<T: Plain>(&self, len: usize) -> Result<GlobalArray<T>, Error> {
        let block = Block::new::<T>(&self.runtime, len, Access::ReadWrite, Agent::Cpu)?;
        let first = self.driver.name(block.region())?;
        Ok(GlobalArray { global: self.clone(), block: Some(block), first, len, of: PhantomData })
    }

    /// Memory of `rank` that has an address from the start, as words; see
    /// [`Runtime::starter`].
    ///
    /// # Errors
    ///
    /// [`AccessError::Nowhere`] for a rank that the job does not have.
    pub fn starter(&self, rank: Rank) -> Result<GlobalPtr<u64>, AccessError> {
        let place = Place { rank, color: 0, region: STARTER, life: 0, offset: 0 };
        let nowhere = AccessError::Nowhere { addr: GlobalAddr::NULL };
        let known = if rank.0 < self.runtime.size() { self.split().addr(place).ok() } else { None };
        known.map(GlobalPtr::new).ok_or(nowhere)
    }

    /// How addresses are split, and arithmetic on them.
    pub fn split(&self) -> Split {
        self.cache.split()
    }

    /// What a word names that was an address elsewhere.
    pub fn pointer<T: Plain>(&self, bits: u64) -> GlobalPtr<T> {
        GlobalPtr::new(GlobalAddr::from_bits(bits))
    }

    /// The `T` that is `count` further on, or back.
    ///
    /// # Errors
    ///
    /// [`AccessError::OutOfRange`] when the address has no room for it.
    #[inline]
    pub fn index<T: Plain>(
        &self,
        from: GlobalPtr<T>,
        count: i64,
    ) -> Result<GlobalPtr<T>, AccessError> {
        let (addr, bytes) = (from.addr(), size_of::<T>() as u64);
        self.split().index(from, count).map_err(|_| AccessError::OutOfRange { addr, bytes })
    }

    /// Reads the `T` at `from`.
    ///
    /// # Errors
    ///
    /// [`AccessError`].
    #[inline]
    pub fn get<T: Plain>(&self, from: GlobalPtr<T>) -> Result<T, AccessError> {
        self.with(from, 1, Need::Read, |from| self.runtime.get(from))
    }

    /// Writes `value` to `to`.
    ///
    /// # Errors
    ///
    /// [`AccessError`].
    #[inline]
    pub fn put<T: Plain>(&self, to: GlobalPtr<T>, value: T) -> Result<(), AccessError> {
        self.with(to, 1, Need::Write, |to| self.runtime.put(to, value))
    }

    /// Reads `into.len()` values from `from` on.
    ///
    /// # Errors
    ///
    /// [`AccessError`].
    #[inline]
    pub fn get_slice<T: Plain>(
        &self,
        from: GlobalPtr<T>,
        into: &mut [T],
    ) -> Result<(), AccessError> {
        self.with(from, into.len(), Need::Read, |from| self.runtime.get_slice(from, into))
    }

    /// Writes `values` from `to` on.
    ///
    /// # Errors
    ///
    /// [`AccessError`].
    #[inline]
    pub fn put_slice<T: Plain>(&self, to: GlobalPtr<T>, values: &[T]) -> Result<(), AccessError> {
        self.with(to, values.len(), Need::Write, |to| self.runtime.put_slice(to, values))
    }

    /// Adds `value`, wrapping, and answers what was there.
    ///
    /// # Errors
    ///
    /// [`AccessError`].
    #[inline]
    pub fn fetch_add<T: Word>(&self, at: GlobalPtr<T>, value: T) -> Result<T, AccessError> {
        self.with(at, 1, Need::Write, |at| self.runtime.fetch_add(at, value))
    }

    /// Keeps the bits of `mask` and answers what was there.
    ///
    /// # Errors
    ///
    /// [`AccessError`].
    #[inline]
    pub fn fetch_and<T: Word>(&self, at: GlobalPtr<T>, mask: T) -> Result<T, AccessError> {
        self.with(at, 1, Need::Write, |at| self.runtime.fetch_and(at, mask))
    }

    /// Sets the bits of `mask` and answers what was there.
    ///
    /// # Errors
    ///
    /// [`AccessError`].
    #[inline]
    pub fn fetch_or<T: Word>(&self, at: GlobalPtr<T>, mask: T) -> Result<T, AccessError> {
        self.with(at, 1, Need::Write, |at| self.runtime.fetch_or(at, mask))
    }

    /// Flips the bits of `mask` and answers what was there.
    ///
    /// # Errors
    ///
    /// [`AccessError`].
    #[inline]
    pub fn fetch_xor<T: Word>(&self, at: GlobalPtr<T>, mask: T) -> Result<T, AccessError> {
        self.with(at, 1, Need::Write, |at| self.runtime.fetch_xor(at, mask))
    }

    /// Writes `value` and answers what was there.
    ///
    /// # Errors
    ///
    /// [`AccessError`].
    #[inline]
    pub fn swap<T: Word>(&self, at: GlobalPtr<T>, value: T) -> Result<T, AccessError> {
        self.with(at, 1, Need::Write, |at| self.runtime.swap(at, value))
    }

    /// Writes `new` if `expected` is there, and answers what was there: the
    /// swap took place if that is `expected`.
    ///
    /// # Errors
    ///
    /// [`AccessError`].
    #[inline]
    pub fn compare_swap<T: Word>(
        &self,
        at: GlobalPtr<T>,
        expected: T,
        new: T,
    ) -> Result<T, AccessError> {
        self.with(at, 1, Need::Write, |at| self.runtime.compare_swap(at, expected, new))
    }

    /// Copies `count` values from `src` to `dst`, each of which may be any
    /// rank's. Between two ranks of this node the caller does it; else this is
    /// [`begin`](Self::begin) and [`Operation::wait`].
    ///
    /// # Errors
    ///
    /// [`AccessError`].
    pub fn copy<T: Plain>(
        &self,
        dst: GlobalPtr<T>,
        src: GlobalPtr<T>,
        count: usize,
    ) -> Result<(), AccessError> {
        let bytes = bytes_of::<T>(dst.addr(), count)?;
        if !(self.is_near(dst.addr()) && self.is_near(src.addr())) {
            return self.begin(Copy::new(dst.addr(), src.addr(), bytes)).wait().map(drop);
        }
        let (mut search, mut search_dst) = (Search::default(), Search::default());
        let (from, to, _held) = loop {
            let (from, held) = self.pin_anew(src.addr(), bytes, Need::Read, &mut search)?;
            // Nobody waits for a table while it keeps others from giving way.
            match self.cache.pin(dst.addr(), bytes, Need::Write) {
                Ok(to) => break (from, to.target.remote, [held, self.held(to)]),
                Err(miss) => {
                    drop(held);
                    self.driver.bring(dst.addr(), miss, &mut search_dst)?;
                }
            }
        };
        let direct = &self.runtime.direct;
        let refused = |error| AccessError::of(error, dst.addr());
        let to = direct.resolve(to, bytes, Need::Write).map_err(refused)?;
        // SAFETY: as many bytes were resolved; region memory is only ever
        // accessed as plain bytes and atomics.
        unsafe { load_bytes(direct, from, to.as_ptr(), bytes as usize) }
            .map_err(|error| AccessError::of(error, src.addr()))
    }

    /// Whether a copy between two addresses is the caller's own, and over when
    /// it returns.
    #[cfg(feature = "capi")]
    pub(crate) fn is_by_caller(&self, dst: GlobalAddr, src: GlobalAddr) -> bool {
        self.is_near(dst) && self.is_near(src)
    }

    /// Calls with the place that an address has in its backend.
    #[inline(always)]
    fn with<T: Plain, R>(
        &self,
        at: GlobalPtr<T>,
        count: usize,
        need: Need,
        call: impl FnOnce(Remote<T>) -> Result<R, AddrError>,
    ) -> Result<R, AccessError> {
        let addr = at.addr();
        let bytes = bytes_of::<T>(addr, count)?;
        let result = if self.flies && self.may_fly(addr) {
            self.with_pin(addr, bytes, need, |at| call(Remote::new(at)))?
        } else {
            self.with_seat(addr, bytes, need, |at| call(Remote::new(at)))?
        };
        result.map_err(|error| AccessError::of(error, addr))
    }

    /// Calls with the place of an address while this thread does nothing else:
    /// the region stays where it is meanwhile.
    #[inline(always)]
    fn with_seat<R>(
        &self,
        addr: GlobalAddr,
        bytes: u64,
        need: Need,
        call: impl FnOnce(RemoteAddr) -> R,
    ) -> Result<R, AccessError> {
        let Some(seat) = self.runtime.ults().worker() else {
            return self.with_pin(addr, bytes, need, call);
        };
        let (seat, target) = match self.cache.hold(seat, addr, bytes, need) {
            Ok(target) => (seat, target),
            Err(_) => match self.hold_anew(addr, bytes, need)? {
                Some(held) => held,
                None => return self.with_pin(addr, bytes, need, call),
            },
        };
        let _held = Held { global: self, by: By::Seat(seat) };
        Ok(call(target.remote))
    }

    /// The same when the table is not here: then it is brought, and the caller
    /// may be on another worker.
    #[cold]
    #[inline(never)]
    fn hold_anew(
        &self,
        addr: GlobalAddr,
        bytes: u64,
        need: Need,
    ) -> Result<Option<(usize, Target)>, AccessError> {
        let mut search = Search::default();
        loop {
            let Some(seat) = self.runtime.ults().worker() else { return Ok(None) };
            match self.cache.hold(seat, addr, bytes, need) {
                Ok(target) => return Ok(Some((seat, target))),
                Err(miss) => self.driver.bring(addr, miss, &mut search)?,
            }
        }
    }

    /// The same for an operation that is in flight meanwhile: the region stays
    /// where it is until it has ended.
    fn with_pin<R>(
        &self,
        addr: GlobalAddr,
        bytes: u64,
        need: Need,
        call: impl FnOnce(RemoteAddr) -> R,
    ) -> Result<R, AccessError> {
        let (at, _held) = self.pin_anew(addr, bytes, need, &mut Search::default())?;
        Ok(call(at))
    }

    fn pin_anew(
        &self,
        addr: GlobalAddr,
        bytes: u64,
        need: Need,
        search: &mut Search,
    ) -> Result<(RemoteAddr, Held<'_>), AccessError> {
        loop {
            match self.cache.pin(addr, bytes, need) {
                Ok(pinned) => return Ok((pinned.target.remote, self.held(pinned))),
                Err(miss) => self.driver.bring(addr, miss, search)?,
            }
        }
    }

    fn held(&self, pinned: Pinned) -> Held<'_> {
        Held { global: self, by: By::Pin(pinned.slot) }
    }

    /// Whether an access may be in flight when it has begun.
    #[inline]
    fn may_fly(&self, addr: GlobalAddr) -> bool {
        self.runtime.queue.is_some() || !self.is_near(addr)
    }

    /// Whether an address is of this node; one that is nowhere is refused here.
    #[inline]
    fn is_near(&self, addr: GlobalAddr) -> bool {
        match (&self.runtime.far, self.split().rank(addr)) {
            (Some(far), Some(rank)) => !far.leads_to(rank),
            _ => true,
        }
    }
}

impl<T: Plain> GlobalArray<T> {
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

impl<T> Drop for GlobalArray<T> {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            self.global.driver.retire(self.first, Box::new(block));
        }
    }
}

/// A table that stays where it is.
struct Held<'a> {
    global: &'a Global,
    by: By,
}

enum By {
    Seat(usize),
    Pin(Option<u32>),
}

impl Drop for Held<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        let Global { cache, driver, .. } = self.global;
        match self.by {
            By::Seat(seat) if !cache.release(seat) => return,
            By::Seat(_) => {}
            // Somebody may wait for the slot, whoever has its table.
            By::Pin(slot) => _ = cache.unpin(slot),
        }
        driver.tick();
    }
}

/// Bytes of `count` values.
fn bytes_of<T>(addr: GlobalAddr, count: usize) -> Result<u64, AccessError> {
    let bytes = count.checked_mul(size_of::<T>());
    bytes.map(|bytes| bytes as u64).ok_or(AccessError::OutOfRange { addr, bytes: u64::MAX })
}

impl fmt::Debug for Global {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Global({:?})", self.driver)
    }
}

impl<T> fmt::Debug for GlobalArray<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = std::any::type_name::<T>();
        write!(f, "GlobalArray<{of}>({} at {})", self.len, self.first)
    }
}

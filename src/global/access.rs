//! Gets, puts and atomics that are complete when they return.
//!
//! ```text
//!  near    hold the table (two stores of this worker) ─► load or store ─► release
//!  remote  pin it (two atomics) ─► the operation, by the network ─► unpin
//! ```
//!
//! Both cases share one path, so that the operation is compiled into its caller
//! only once: the rare cases are out-of-line functions that return to this path.

use super::{Global, GlobalAddr, GlobalPtr};
use crate::{AddrError, Plain, Remote, Word};
use tsumugi_core::mem::{Agent, Need, RemoteAddr};
use tsumugi_gas::cache::HeldSlot;
use tsumugi_runtime::service::global_memory::TableSearch;

impl Global {
    /// Reads the `T` at `from`.
    ///
    /// # Errors
    ///
    /// - [`AddrError::Nowhere`]: `from` is null, or the address of no rank of the
    ///   job.
    /// - [`AddrError::StaleKey`]: its rank has no region with this address, or has
    ///   unregistered it.
    /// - [`AddrError::OutOfRange`]: the `T` does not lie within the region.
    /// - [`AddrError::Unaligned`]: `T` is a word of 1, 2, 4 or 8 bytes, and
    ///   `from` is not aligned to its size.
    /// - [`AddrError::PeerLost`]: the rank has died.
    /// - [`AddrError::Unsupported`]: the network device that leads to the memory
    ///   cannot carry out the access.
    #[inline]
    pub fn get<T: Plain>(&self, from: GlobalPtr<T>) -> Result<T, AddrError<GlobalAddr>> {
        self.with(from, 1, Need::Read, |from| self.runtime.get(from))
    }

    /// Writes `value` to `to`.
    ///
    /// # Errors
    ///
    /// - [`AddrError::Nowhere`]: `to` is null, or the address of no rank of the
    ///   job.
    /// - [`AddrError::StaleKey`]: its rank has no region with this address, or has
    ///   unregistered it.
    /// - [`AddrError::OutOfRange`]: the `T` does not lie within the region.
    /// - [`AddrError::Unaligned`]: `T` is a word of 1, 2, 4 or 8 bytes, and `to`
    ///   is not aligned to its size.
    /// - [`AddrError::ReadOnly`]: the region is registered for reading only, or
    ///   the job lets ranks only read the memory of others (`TSUMUGI_PEERS`).
    /// - [`AddrError::PeerLost`]: the rank has died. The value may have been
    ///   written.
    /// - [`AddrError::Unsupported`]: the network device that leads to the memory
    ///   cannot carry out the access.
    #[inline]
    pub fn put<T: Plain>(&self, to: GlobalPtr<T>, value: T) -> Result<(), AddrError<GlobalAddr>> {
        self.with(to, 1, Need::Write, |to| self.runtime.put(to, value))
    }

    /// Reads `into.len()` values from `from` on.
    ///
    /// # Errors
    ///
    /// Those of [`get`](Self::get), for all `into.len()` values; they need no
    /// alignment. After an error, some of `into` may have been overwritten.
    #[inline]
    pub fn get_slice<T: Plain>(
        &self,
        from: GlobalPtr<T>,
        into: &mut [T],
    ) -> Result<(), AddrError<GlobalAddr>> {
        self.with(from, into.len(), Need::Read, |from| self.runtime.get_slice(from, into))
    }

    /// Writes all of `values` from `to` on.
    ///
    /// # Errors
    ///
    /// Those of [`put`](Self::put), for all of `values`; they need no alignment.
    /// After an error on another node, some of the values may have been written.
    #[inline]
    pub fn put_slice<T: Plain>(
        &self,
        to: GlobalPtr<T>,
        values: &[T],
    ) -> Result<(), AddrError<GlobalAddr>> {
        self.with(to, values.len(), Need::Write, |to| self.runtime.put_slice(to, values))
    }

    /// Adds `value`, wrapping, and returns the old value.
    ///
    /// # Errors
    ///
    /// Those of [`put`](Self::put), for the word `at`; after
    /// [`AddrError::PeerLost`] the word may have been changed.
    #[inline]
    pub fn fetch_add<T: Word>(
        &self,
        at: GlobalPtr<T>,
        value: T,
    ) -> Result<T, AddrError<GlobalAddr>> {
        self.with(at, 1, Need::Write, |at| self.runtime.fetch_add(at, value))
    }

    /// Keeps only the bits of `mask` and returns the old value.
    ///
    /// # Errors
    ///
    /// Those of [`put`](Self::put), for the word `at`; after
    /// [`AddrError::PeerLost`] the word may have been changed.
    #[inline]
    pub fn fetch_and<T: Word>(
        &self,
        at: GlobalPtr<T>,
        mask: T,
    ) -> Result<T, AddrError<GlobalAddr>> {
        self.with(at, 1, Need::Write, |at| self.runtime.fetch_and(at, mask))
    }

    /// Sets the bits of `mask` and returns the old value.
    ///
    /// # Errors
    ///
    /// Those of [`put`](Self::put), for the word `at`; after
    /// [`AddrError::PeerLost`] the word may have been changed.
    #[inline]
    pub fn fetch_or<T: Word>(&self, at: GlobalPtr<T>, mask: T) -> Result<T, AddrError<GlobalAddr>> {
        self.with(at, 1, Need::Write, |at| self.runtime.fetch_or(at, mask))
    }

    /// Flips the bits of `mask` and returns the old value.
    ///
    /// # Errors
    ///
    /// Those of [`put`](Self::put), for the word `at`; after
    /// [`AddrError::PeerLost`] the word may have been changed.
    #[inline]
    pub fn fetch_xor<T: Word>(
        &self,
        at: GlobalPtr<T>,
        mask: T,
    ) -> Result<T, AddrError<GlobalAddr>> {
        self.with(at, 1, Need::Write, |at| self.runtime.fetch_xor(at, mask))
    }

    /// Writes `value` and returns the old value.
    ///
    /// # Errors
    ///
    /// Those of [`put`](Self::put), for the word `at`; after
    /// [`AddrError::PeerLost`] the word may have been changed.
    #[inline]
    pub fn swap<T: Word>(&self, at: GlobalPtr<T>, value: T) -> Result<T, AddrError<GlobalAddr>> {
        self.with(at, 1, Need::Write, |at| self.runtime.swap(at, value))
    }

    /// Writes `new` if the word is `expected`, and returns the old value: the swap
    /// took place if that is `expected`.
    ///
    /// # Errors
    ///
    /// Those of [`put`](Self::put), for the word `at`; after
    /// [`AddrError::PeerLost`] the word may have been changed.
    #[inline]
    pub fn compare_swap<T: Word>(
        &self,
        at: GlobalPtr<T>,
        expected: T,
        new: T,
    ) -> Result<T, AddrError<GlobalAddr>> {
        self.with(at, 1, Need::Write, |at| self.runtime.compare_swap(at, expected, new))
    }

    /// Adds `value`, wrapping. Does not return the old value, as
    /// [`Runtime::add`](crate::Runtime::add).
    ///
    /// # Errors
    ///
    /// Those of [`put`](Self::put), for the word `at`; after
    /// [`AddrError::PeerLost`] the word may have been changed.
    #[inline]
    pub fn add<T: Word>(&self, at: GlobalPtr<T>, value: T) -> Result<(), AddrError<GlobalAddr>> {
        self.with(at, 1, Need::Write, |at| self.runtime.add(at, value))
    }

    /// Keeps only the bits of `mask`. Does not return the old value.
    ///
    /// # Errors
    ///
    /// Those of [`put`](Self::put), for the word `at`; after
    /// [`AddrError::PeerLost`] the word may have been changed.
    #[inline]
    pub fn and<T: Word>(&self, at: GlobalPtr<T>, mask: T) -> Result<(), AddrError<GlobalAddr>> {
        self.with(at, 1, Need::Write, |at| self.runtime.and(at, mask))
    }

    /// Sets the bits of `mask`. Does not return the old value.
    ///
    /// # Errors
    ///
    /// Those of [`put`](Self::put), for the word `at`; after
    /// [`AddrError::PeerLost`] the word may have been changed.
    #[inline]
    pub fn or<T: Word>(&self, at: GlobalPtr<T>, mask: T) -> Result<(), AddrError<GlobalAddr>> {
        self.with(at, 1, Need::Write, |at| self.runtime.or(at, mask))
    }

    /// Flips the bits of `mask`. Does not return the old value.
    ///
    /// # Errors
    ///
    /// Those of [`put`](Self::put), for the word `at`; after
    /// [`AddrError::PeerLost`] the word may have been changed.
    #[inline]
    pub fn xor<T: Word>(&self, at: GlobalPtr<T>, mask: T) -> Result<(), AddrError<GlobalAddr>> {
        self.with(at, 1, Need::Write, |at| self.runtime.xor(at, mask))
    }

    /// Calls `call` with the remote address behind a global address; the table that
    /// it comes from stays in the cache during the call.
    #[inline(always)]
    pub(super) fn with<T: Plain, R>(
        &self,
        at: GlobalPtr<T>,
        count: usize,
        need: Need,
        call: impl FnOnce(Remote<T>) -> Result<R, AddrError>,
    ) -> Result<R, AddrError<GlobalAddr>> {
        let addr = at.addr();
        let bytes = bytes_of::<T>(addr, count)?;
        let held = match self.try_hazard(addr, bytes, need) {
            Some(held) => held,
            None => self.hold(addr, bytes, need)?,
        };
        // Not a drop guard: no code between can panic, and a guard is not inlined.
        let result = call(Remote::new(held.remote));
        self.let_go::<0>(held.by);
        result.map_err(|error| refused(error, addr))
    }

    /// Holds the table of an address from this worker's hazard pointers, if
    /// the table is in the cache and the access ends before the worker does
    /// anything else.
    #[inline(always)]
    fn try_hazard(&self, addr: GlobalAddr, bytes: u64, need: Need) -> Option<HeldAddr> {
        if self.flies && self.may_fly(addr) {
            return None;
        }
        let worker = self.runtime.ults().worker()?;
        let held = self.cache.try_hold::<0>(worker, addr, bytes, need)?;
        let held = HeldAddr { remote: held.target.remote, by: HeldBy::Worker(worker, held.slot) };
        if self.flies && held.is_devices() {
            self.let_go::<0>(held.by);
            return None;
        }
        Some(held)
    }

    /// Holds or pins the table in all other cases: if the table is not in the
    /// cache, it is fetched, after which the caller may be on another worker; if
    /// the operation may still be in progress on the network, or if the thread is
    /// no worker, the table is pinned.
    #[cold]
    #[inline(never)]
    fn hold(
        &self,
        addr: GlobalAddr,
        bytes: u64,
        need: Need,
    ) -> Result<HeldAddr, AddrError<GlobalAddr>> {
        self.driver.tell_of_miss(addr);
        let (mut search, mut flies) = (TableSearch::default(), self.flies && self.may_fly(addr));
        loop {
            let worker = self.runtime.ults().worker();
            let miss = match worker.filter(|_| !flies) {
                Some(worker) => match self.cache.hold::<0>(worker, addr, bytes, need) {
                    Ok(held) => {
                        let by = HeldBy::Worker(worker, held.slot);
                        let held = HeldAddr { remote: held.target.remote, by };
                        if !held.is_devices() {
                            return Ok(held);
                        }
                        // The device's operation will be in progress on the
                        // network, so it needs a pin.
                        self.let_go::<0>(held.by);
                        flies = true;
                        continue;
                    }
                    Err(miss) => miss,
                },
                None => match self.cache.pin(addr, bytes, need) {
                    Ok(pinned) => {
                        let by = HeldBy::Pin(pinned.slot);
                        return Ok(HeldAddr { remote: pinned.target.remote, by });
                    }
                    Err(miss) => miss,
                },
            };
            self.driver.bring(addr, miss, &mut search)?;
        }
    }

    #[inline(always)]
    pub(super) fn let_go<const HAZARD: usize>(&self, by: HeldBy) {
        match by {
            HeldBy::Worker(worker, slot) => {
                if self.cache.release::<HAZARD>(worker, slot) {
                    self.driver.tick();
                }
            }
            HeldBy::Pin(slot) => self.unpin(slot),
        }
    }

    #[cold]
    #[inline(never)]
    fn unpin(&self, slot: Option<u32>) {
        // A fetch of any table may wait for the slot.
        self.cache.unpin(slot);
        self.driver.tick();
    }

    /// Whether an access may still be in progress after it was begun.
    #[inline]
    fn may_fly(&self, addr: GlobalAddr) -> bool {
        self.runtime.handle().queue().is_some() || !self.is_near(addr)
    }

    /// Whether an address is on this node. An address of no rank counts as near;
    /// the access by this node then refuses it.
    #[inline]
    pub(super) fn is_near(&self, addr: GlobalAddr) -> bool {
        match (self.runtime.handle().net(), self.split().rank(addr)) {
            (Some(net), Some(rank)) => !net.leads_to(rank),
            _ => true,
        }
    }
}

/// A remote address, and the hold that keeps its table in the cache.
pub(super) struct HeldAddr {
    pub(super) remote: RemoteAddr,
    pub(super) by: HeldBy,
}

impl HeldAddr {
    /// Whether the device must carry out the operation, and not a processor.
    #[inline(always)]
    pub(super) fn is_devices(&self) -> bool {
        self.remote.key.agent() == Agent::Device
    }
}

/// The kind of hold: a hazard pointer of a worker, or a pin.
pub(super) enum HeldBy {
    Worker(usize, HeldSlot),
    Pin(Option<u32>),
}

#[cold]
#[inline(never)]
pub(super) fn refused(error: AddrError, addr: GlobalAddr) -> AddrError<GlobalAddr> {
    error.at(addr)
}

/// The size of `count` values in bytes.
#[inline(always)]
pub(super) fn bytes_of<T>(addr: GlobalAddr, count: usize) -> Result<u64, AddrError<GlobalAddr>> {
    let bytes = count.checked_mul(size_of::<T>());
    bytes.map(|bytes| bytes as u64).ok_or(AddrError::OutOfRange {
        addr,
        bytes: u64::MAX,
        region_bytes: None,
    })
}

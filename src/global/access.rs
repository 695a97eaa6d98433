//! Gets, puts and atomics that are complete when they return.
//!
//! ```text
//!  at hand  in the lookaside buffer ─► hold its slot (two stores) ─► load or store ─► release
//!  near     look the address up, and hold the slot ─► load or store ─► release
//!  remote   pin the slot (two atomics) ─► the operation, by the network ─► unpin
//! ```
//!
//! Only the first case is compiled into the caller. The others are out of line, and
//! the second one makes the entry that the next access finds.

use super::at_hand::UNKNOWN;
use super::{Global, GlobalAddr, GlobalPtr};
use crate::ops::{bits_of, value_of, width_of};
use crate::{AddrError, Plain, Remote, Word};
use std::mem::MaybeUninit;
use tsumugi_core::backend::copy_bytes;
use tsumugi_core::mem::{Agent, Need, RemoteAddr};
use tsumugi_core::op::{Kind, Op};
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
        match const { width_of::<T>() } {
            Some(width) => self.carry(from, Op::get_word(UNKNOWN, width)).map(value_of),
            None => {
                let mut value = MaybeUninit::<T>::uninit();
                // SAFETY: `value` has room for a `T`; all bytes were written when this
                // succeeds, and a `Plain` type has no invalid ones.
                unsafe {
                    self.load(from, value.as_mut_ptr(), 1)?;
                    Ok(value.assume_init())
                }
            }
        }
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
        match const { width_of::<T>() } {
            Some(width) => self.carry(to, Op::put_word(UNKNOWN, width, bits_of(value))).map(drop),
            None => self.put_slice(to, std::slice::from_ref(&value)),
        }
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
        // SAFETY: the slice is borrowed for as many values, and any bytes are values
        // of a `Plain` type.
        unsafe { self.load(from, into.as_mut_ptr(), into.len()) }
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
        // SAFETY: the values are borrowed, and `Plain` types have no padding.
        unsafe { self.store(to, values.as_ptr(), values.len()) }
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
        self.carry(at, Op::atomic(Kind::FetchAdd, UNKNOWN, value)).map(T::from_bits)
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
        self.carry(at, Op::atomic(Kind::FetchAnd, UNKNOWN, mask)).map(T::from_bits)
    }

    /// Sets the bits of `mask` and returns the old value.
    ///
    /// # Errors
    ///
    /// Those of [`put`](Self::put), for the word `at`; after
    /// [`AddrError::PeerLost`] the word may have been changed.
    #[inline]
    pub fn fetch_or<T: Word>(&self, at: GlobalPtr<T>, mask: T) -> Result<T, AddrError<GlobalAddr>> {
        self.carry(at, Op::atomic(Kind::FetchOr, UNKNOWN, mask)).map(T::from_bits)
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
        self.carry(at, Op::atomic(Kind::FetchXor, UNKNOWN, mask)).map(T::from_bits)
    }

    /// Writes `value` and returns the old value.
    ///
    /// # Errors
    ///
    /// Those of [`put`](Self::put), for the word `at`; after
    /// [`AddrError::PeerLost`] the word may have been changed.
    #[inline]
    pub fn swap<T: Word>(&self, at: GlobalPtr<T>, value: T) -> Result<T, AddrError<GlobalAddr>> {
        self.carry(at, Op::atomic(Kind::Swap, UNKNOWN, value)).map(T::from_bits)
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
        self.carry(at, Op::compare_swap(UNKNOWN, expected, new)).map(T::from_bits)
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
        self.carry(at, Op::atomic(Kind::FetchAdd, UNKNOWN, value)).map(drop)
    }

    /// Keeps only the bits of `mask`. Does not return the old value.
    ///
    /// # Errors
    ///
    /// Those of [`put`](Self::put), for the word `at`; after
    /// [`AddrError::PeerLost`] the word may have been changed.
    #[inline]
    pub fn and<T: Word>(&self, at: GlobalPtr<T>, mask: T) -> Result<(), AddrError<GlobalAddr>> {
        self.carry(at, Op::atomic(Kind::FetchAnd, UNKNOWN, mask)).map(drop)
    }

    /// Sets the bits of `mask`. Does not return the old value.
    ///
    /// # Errors
    ///
    /// Those of [`put`](Self::put), for the word `at`; after
    /// [`AddrError::PeerLost`] the word may have been changed.
    #[inline]
    pub fn or<T: Word>(&self, at: GlobalPtr<T>, mask: T) -> Result<(), AddrError<GlobalAddr>> {
        self.carry(at, Op::atomic(Kind::FetchOr, UNKNOWN, mask)).map(drop)
    }

    /// Flips the bits of `mask`. Does not return the old value.
    ///
    /// # Errors
    ///
    /// Those of [`put`](Self::put), for the word `at`; after
    /// [`AddrError::PeerLost`] the word may have been changed.
    #[inline]
    pub fn xor<T: Word>(&self, at: GlobalPtr<T>, mask: T) -> Result<(), AddrError<GlobalAddr>> {
        self.carry(at, Op::atomic(Kind::FetchXor, UNKNOWN, mask)).map(drop)
    }

    /// Carries out an operation on the word at `at`; its remote end is not known yet.
    #[inline(always)]
    pub(super) fn carry<T: Plain>(
        &self,
        at: GlobalPtr<T>,
        op: Op,
    ) -> Result<u64, AddrError<GlobalAddr>> {
        let addr = at.addr();
        match self.try_word(addr, &op) {
            Some(done) => {
                if done.must_tick {
                    self.tick();
                }
                Ok(done.old)
            }
            None => self.carry_far(addr, op),
        }
    }

    #[cold]
    #[inline(never)]
    fn carry_far(&self, addr: GlobalAddr, op: Op) -> Result<u64, AddrError<GlobalAddr>> {
        let need = if op.writes() { Need::Write } else { Need::Read };
        let bytes = op.bytes();
        // The word may be at hand after all, of a thread that needs fences.
        let mut done = self.try_word_fenced(addr, &op);
        if done.is_none() && self.note(addr, bytes, need) {
            done = self.try_word_fenced(addr, &op);
        }
        if let Some(done) = done {
            if done.must_tick {
                self.tick();
            }
            return Ok(done.old);
        }
        self.with(GlobalPtr::<u8>::new(addr), bytes as usize, need, |at| {
            let mut op = op;
            op.remote = at.addr();
            self.runtime.handle().carry(&op)
        })
    }

    /// Reads `count` values from `from` on. The memory at `into` need not be aligned nor
    /// initialized; it may overlap the values if processors are the agents of them, and is
    /// written only after the range of `from` was found. For the C interfaces.
    ///
    /// # Errors
    ///
    /// Those of [`get_slice`](Self::get_slice).
    ///
    /// # Safety
    ///
    /// `into` is valid for a write of as many values, until this returns, and for ever
    /// if it does not return because its ULT is cut off. If `count` values do not lie in
    /// the region of `from`, any pointer is allowed.
    #[inline]
    #[doc(hidden)]
    pub unsafe fn load<T: Plain>(
        &self,
        from: GlobalPtr<T>,
        into: *mut T,
        count: usize,
    ) -> Result<(), AddrError<GlobalAddr>> {
        let addr = from.addr();
        let bytes = bytes_of::<T>(addr, count)?;
        let Some(memory) = self.at_hand::<0>(addr, bytes, Need::Read) else {
            // SAFETY: the caller's.
            return unsafe { self.load_far(addr, into.cast(), bytes as usize) };
        };
        // SAFETY: `at_hand` has found as many bytes; the caller's promise. Other ranks may
        // change them meanwhile; then each byte is the old or the new one.
        unsafe { copy_bytes(memory.at().as_ptr(), into.cast(), bytes as usize) };
        if self.end_at_hand(memory) {
            self.tick();
        }
        Ok(())
    }

    /// # Safety
    ///
    /// As of [`load`](Self::load), for as many bytes.
    #[cold]
    #[inline(never)]
    unsafe fn load_far(
        &self,
        addr: GlobalAddr,
        into: *mut u8,
        bytes: usize,
    ) -> Result<(), AddrError<GlobalAddr>> {
        self.note(addr, bytes as u64, Need::Read);
        self.with(GlobalPtr::<u8>::new(addr), bytes, Need::Read, |from| {
            // SAFETY: the caller's.
            unsafe { self.runtime.handle().load(from.addr(), into, bytes) }
        })
    }

    /// Writes `count` values from `to` on. The memory at `from` need not be aligned; it
    /// may overlap the values if processors are the agents of them, and is read only after
    /// the range of `to` was found. For the C interfaces.
    ///
    /// # Errors
    ///
    /// Those of [`put_slice`](Self::put_slice).
    ///
    /// # Safety
    ///
    /// `from` is valid for a read of as many values without padding, until this returns,
    /// and for ever if it does not return because its ULT is cut off. If `count` values do
    /// not lie in the region of `to`, any pointer is allowed.
    #[inline]
    #[doc(hidden)]
    pub unsafe fn store<T: Plain>(
        &self,
        to: GlobalPtr<T>,
        from: *const T,
        count: usize,
    ) -> Result<(), AddrError<GlobalAddr>> {
        let addr = to.addr();
        let bytes = bytes_of::<T>(addr, count)?;
        let Some(memory) = self.at_hand::<0>(addr, bytes, Need::Write) else {
            // SAFETY: the caller's.
            return unsafe { self.store_far(addr, from.cast(), bytes as usize) };
        };
        // SAFETY: `at_hand` has found as many bytes; the caller's promise. Other ranks may
        // read them meanwhile; then each byte has the old or the new value.
        unsafe { copy_bytes(from.cast(), memory.at().as_ptr(), bytes as usize) };
        if self.end_at_hand(memory) {
            self.tick();
        }
        Ok(())
    }

    /// # Safety
    ///
    /// As of [`store`](Self::store), for as many bytes.
    #[cold]
    #[inline(never)]
    unsafe fn store_far(
        &self,
        addr: GlobalAddr,
        from: *const u8,
        bytes: usize,
    ) -> Result<(), AddrError<GlobalAddr>> {
        self.note(addr, bytes as u64, Need::Write);
        self.with(GlobalPtr::<u8>::new(addr), bytes, Need::Write, |to| {
            // SAFETY: the caller's.
            unsafe { self.runtime.handle().store_from(to.addr(), from, bytes) }
        })
    }

    /// Calls `call` with the remote address behind a global address; the table that
    /// it comes from stays in the cache during the call.
    #[inline]
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

    /// Holds the table of an address from this thread's hazard pointers, if
    /// the table is in the cache and the access ends before the worker does
    /// anything else.
    #[inline]
    fn try_hazard(&self, addr: GlobalAddr, bytes: u64, need: Need) -> Option<HeldAddr> {
        if self.flies && self.may_fly(addr) {
            return None;
        }
        let seat = self.seat()?;
        let held = self.cache.try_hold::<0>(seat, addr, bytes, need)?;
        let held = HeldAddr { remote: held.target.remote, by: HeldBy::Seat(seat, held.slot) };
        if self.flies && held.is_devices() {
            self.let_go::<0>(held.by);
            return None;
        }
        Some(held)
    }

    /// Holds or pins the table in all other cases: if the table is not in the
    /// cache, it is fetched, after which the caller may be on another worker; if
    /// the operation may still be in progress on the network, or if the thread has
    /// no seat, the table is pinned.
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
            let seat = self.seat();
            let miss = match seat.filter(|_| !flies) {
                Some(seat) => match self.cache.hold::<0>(seat, addr, bytes, need) {
                    Ok(held) => {
                        let by = HeldBy::Seat(seat, held.slot);
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
            HeldBy::Seat(seat, slot) => {
                if self.cache.release::<HAZARD>(seat, slot) {
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
    pub(super) fn may_fly(&self, addr: GlobalAddr) -> bool {
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

/// The kind of hold: a hazard pointer of a seat, or a pin.
pub(super) enum HeldBy {
    Seat(usize, HeldSlot),
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

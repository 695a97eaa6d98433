//! Copies between any two ranks.

use super::access::{HeldAddr, HeldBy, bytes_of, refused};
use super::{Copy, Global, GlobalAddr, GlobalPtr};
use crate::{AddrError, Plain};
use tsumugi_core::backend::{LoadStore, copy_bytes, load_bytes};
use tsumugi_core::mem::{Need, RemoteAddr};
use tsumugi_gas::cache::Miss;
use tsumugi_runtime::service::global_memory::TableSearch;

impl Global {
    /// Copies `count` values from `src` to `dst`; each may be in any rank's memory.
    /// Between two ranks of this node, the calling thread copies, if processors are
    /// the agents of both memories; otherwise this is [`begin`](Self::begin)
    /// followed by [`Operation::wait`](super::Operation::wait).
    ///
    /// A naturally aligned word of 2, 4 or 8 bytes is written once, as a whole, so
    /// a copy may release a lock that was taken by an atomic. In copies of other
    /// sizes, each byte may be written more than once.
    ///
    /// # Errors
    ///
    /// Those of [`get`](Self::get) for `src`, and of [`put`](Self::put) for `dst`;
    /// the values need no alignment. After an error, some of them may have been
    /// copied.
    pub fn copy<T: Plain>(
        &self,
        dst: GlobalPtr<T>,
        src: GlobalPtr<T>,
        count: usize,
    ) -> Result<(), AddrError<GlobalAddr>> {
        let (dst, src) = (dst.addr(), src.addr());
        let bytes = bytes_of::<T>(dst, count)?;
        match self.try_copy(dst, src, bytes) {
            true => Ok(()),
            false => self.copy_far(dst, src, bytes),
        }
    }

    /// Copies, if both ends are memory of this node that is at hand; false if nothing
    /// was copied. Never waits, so the caller may be a ULT that must not be suspended.
    #[inline(always)]
    #[doc(hidden)]
    pub fn try_copy(&self, dst: GlobalAddr, src: GlobalAddr, bytes: u64) -> bool {
        let Some(from) = self.at_hand::<0>(src, bytes, Need::Read) else { return false };
        let to = self.at_hand::<1>(dst, bytes, Need::Write);
        if let Some(to) = &to {
            // SAFETY: both ends were found for `bytes` bytes. Other ranks may change
            // them meanwhile; then each byte has the old or the new value.
            unsafe { copy_bytes(from.at().as_ptr(), to.at().as_ptr(), bytes as usize) }
        }
        let is_copied = to.is_some();
        let mut must_tick = self.end_at_hand(from);
        if let Some(to) = to {
            must_tick |= self.end_at_hand(to);
        }
        if must_tick {
            self.tick();
        }
        is_copied
    }

    #[cold]
    #[inline(never)]
    fn copy_far(
        &self,
        dst: GlobalAddr,
        src: GlobalAddr,
        bytes: u64,
    ) -> Result<(), AddrError<GlobalAddr>> {
        if self.note(src, bytes, Need::Read)
            && self.note(dst, bytes, Need::Write)
            && self.try_copy(dst, src, bytes)
        {
            return Ok(());
        }
        if !self.is_by_caller(dst, src) {
            return self.begin(Copy::new(dst, src, bytes)).wait().map(drop);
        }
        let (mut search, mut search_dst) = (TableSearch::default(), TableSearch::default());
        let (from, to) = loop {
            // Both holds are taken by the same seat, with its two hazard
            // pointers.
            let seat = self.seat();
            let from = match self.grip::<0>(seat, src, bytes, Need::Read) {
                Ok(from) => from,
                Err(miss) => {
                    self.driver.bring(src, miss, &mut search)?;
                    continue;
                }
            };
            match self.grip::<1>(seat, dst, bytes, Need::Write) {
                Ok(to) => break (from, to),
                Err(miss) => {
                    // The first hold is released before the wait for the second
                    // table, because a held table cannot be evicted while others
                    // wait for its slot.
                    self.let_go::<0>(from.by);
                    self.driver.bring(dst, miss, &mut search_dst)?;
                }
            }
        };
        let is_devices = from.is_devices() || to.is_devices();
        let carried = (!is_devices).then(|| self.carry_over(to.remote, from.remote, bytes));
        self.let_go::<0>(from.by);
        self.let_go::<1>(to.by);
        let Some(result) = carried else {
            return self.begin(Copy::new(dst, src, bytes)).wait().map(drop);
        };
        result.map_err(|(error, is_dst)| refused(error, if is_dst { dst } else { src }))
    }

    /// Whether the calling thread itself copies between two addresses, so that the
    /// copy is complete when the call returns.
    #[inline]
    pub fn is_by_caller(&self, dst: GlobalAddr, src: GlobalAddr) -> bool {
        self.is_near(dst) && self.is_near(src)
    }

    /// Holds a table with one hazard pointer of a seat, or pins it.
    fn grip<const HAZARD: usize>(
        &self,
        seat: Option<usize>,
        addr: GlobalAddr,
        bytes: u64,
        need: Need,
    ) -> Result<HeldAddr, Miss> {
        Ok(match seat {
            Some(seat) => {
                let held = self.cache.hold::<HAZARD>(seat, addr, bytes, need)?;
                HeldAddr { remote: held.target.remote, by: HeldBy::Seat(seat, held.slot) }
            }
            None => {
                let pinned = self.cache.pin(addr, bytes, need)?;
                HeldAddr { remote: pinned.target.remote, by: HeldBy::Pin(pinned.slot) }
            }
        })
    }

    /// Copies between two ranks of this node. An error comes with whether it
    /// concerns the destination.
    #[inline(always)]
    fn carry_over(
        &self,
        to: RemoteAddr,
        from: RemoteAddr,
        bytes: u64,
    ) -> Result<(), (crate::AddrError, bool)> {
        let direct = self.runtime.handle().direct();
        let to = direct.resolve(to, bytes, Need::Write).map_err(|error| (error, true))?;
        // SAFETY: `bytes` bytes were resolved; memory of regions is only accessed
        // as plain bytes and atomics.
        unsafe { load_bytes(direct, from, to.as_ptr(), bytes as usize) }
            .map_err(|error| (error, false))
    }
}

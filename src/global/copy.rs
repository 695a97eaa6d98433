//! Copies between any two ranks.

use super::access::{By, Held, bytes_of, refused};
use super::{AccessError, Copy, Global, GlobalAddr, GlobalPtr};
use crate::Plain;
use crate::gas::Search;
use tsumugi_core::backend::{LoadStore, load_bytes};
use tsumugi_core::mem::{Need, RemoteAddr};
use tsumugi_gas::cache::Miss;

impl Global {
    /// Copies `count` values from `src` to `dst`, each of which may be any
    /// rank's. Between two ranks of this node the caller does it, if both
    /// memories are processors'; else this is
    /// [`begin`](Self::begin) and [`Operation::wait`](super::Operation::wait).
    ///
    /// 2, 4 or 8 bytes that lie as a word of as many does are written once, whole,
    /// so that a copy may give back a lock that an atomic took; of others each
    /// may be written more than once.
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
        let (dst, src) = (dst.addr(), src.addr());
        let bytes = bytes_of::<T>(dst, count)?;
        if !self.is_by_caller(dst, src) {
            return self.begin(Copy::new(dst, src, bytes)).wait().map(drop);
        }
        let (mut search, mut search_dst) = (Search::default(), Search::default());
        let (from, to) = loop {
            // One worker, both hands.
            let seat = self.runtime.ults().worker();
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
                    // Nobody waits for a table while it keeps others from
                    // giving way.
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

    /// Whether a copy between two addresses is the caller's own, and over when
    /// it returns.
    #[inline]
    pub(crate) fn is_by_caller(&self, dst: GlobalAddr, src: GlobalAddr) -> bool {
        self.is_near(dst) && self.is_near(src)
    }

    /// Holds a table with one hand of a worker, or pins it.
    #[inline(always)]
    fn grip<const HAND: usize>(
        &self,
        seat: Option<usize>,
        addr: GlobalAddr,
        bytes: u64,
        need: Need,
    ) -> Result<Held, Miss> {
        Ok(match seat {
            Some(seat) => {
                let held = self.cache.hold::<HAND>(seat, addr, bytes, need)?;
                Held { remote: held.target.remote, by: By::Seat(seat, held.slot) }
            }
            None => {
                let pinned = self.cache.pin(addr, bytes, need)?;
                Held { remote: pinned.target.remote, by: By::Pin(pinned.slot) }
            }
        })
    }

    /// Copies between two ranks of this node; of an error, whether it is the
    /// destination's.
    #[inline(always)]
    fn carry_over(
        &self,
        to: RemoteAddr,
        from: RemoteAddr,
        bytes: u64,
    ) -> Result<(), (crate::AddrError, bool)> {
        let direct = &self.runtime.direct;
        let to = direct.resolve(to, bytes, Need::Write).map_err(|error| (error, true))?;
        // SAFETY: as many bytes were resolved; region memory is only ever
        // accessed as plain bytes and atomics.
        unsafe { load_bytes(direct, from, to.as_ptr(), bytes as usize) }
            .map_err(|error| (error, false))
    }
}

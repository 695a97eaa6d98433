//! The load/store backend: a peer's registered memory is memory.
//!
//! `resolve` is the rank check, a shift and an addition to the head of the
//! target's partition, and the check of its region table: no pointer table,
//! no thread-local state, no call. That a rank is alive costs nothing more,
//! since the keys of a dead rank have been struck out of its table.

use crate::futex::SharedFutex;
use crate::partition::Control;
use crate::space::Space;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;
use tsumugi_core::backend::LoadStore;
use tsumugi_core::mem::{
    Access, AddrError, LocalAddr, Need, Rank, Region, RegionKey, RegisterError, RemoteAddr,
};

/// One rank's way to the memory of all ranks of the node.
#[derive(Clone)]
pub struct Direct {
    base: usize,
    shift: u32,
    size: u32,
    rank: Rank,
    space: Arc<Space>,
}

impl Direct {
    /// The way of `rank`, which is of this process.
    pub(crate) fn new(space: Arc<Space>, rank: Rank) -> Self {
        let shape = space.shape();
        Self { base: shape.base, shift: shape.shift, size: space.size(), rank, space }
    }

    /// This rank.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// Lets peers reach `bytes` bytes at `base` as far as `access` says.
    /// Lock-free. What peers may reach lies in this rank's partition; what is
    /// [`Access::Local`] may lie anywhere.
    ///
    /// # Errors
    ///
    /// [`RegisterError`].
    ///
    /// # Safety
    ///
    /// The contract of [`RegionTable::register`](tsumugi_core::mem::RegionTable::register).
    pub unsafe fn register(
        &self,
        base: NonNull<u8>,
        bytes: u64,
        access: Access,
    ) -> Result<Region, RegisterError> {
        if access != Access::Local && !self.space.contains(self.rank, base, bytes) {
            let base = base.as_ptr() as usize;
            return Err(RegisterError::OutOfReach { base, bytes });
        }
        // SAFETY: the caller's.
        unsafe { self.control(self.rank).regions().register(base, bytes, access) }
    }

    /// Ends a registration; false if it had ended before. Lock-free.
    pub fn unregister(&self, key: RegionKey) -> bool {
        self.control(self.rank).regions().unregister(key)
    }

    /// The caller has checked that `rank < self.size`.
    #[inline(always)]
    fn control(&self, rank: Rank) -> &Control {
        debug_assert!(rank.0 < self.size);
        let at = self.base + ((rank.0 as usize) << self.shift);
        // SAFETY: the head of a partition that `space` keeps mapped.
        unsafe { &*(at as *const Control) }
    }
}

// SAFETY: a region table holds ranges of its own rank's partition, where
// `register` has put them, and `space` keeps all partitions mapped. Local
// registrations are only resolved by their own rank.
unsafe impl LoadStore for Direct {
    #[inline(always)]
    fn size(&self) -> u32 {
        self.size
    }

    #[inline(always)]
    fn resolve(&self, addr: RemoteAddr, bytes: u64, need: Need) -> Result<NonNull<u8>, AddrError> {
        if addr.rank.0 >= self.size {
            return Err(no_such_rank(addr.rank, self.size));
        }
        self.control(addr.rank).regions().resolve(addr, bytes, need)
    }

    #[inline(always)]
    fn local(&self, addr: LocalAddr, bytes: u64) -> Result<NonNull<u8>, AddrError> {
        let addr = RemoteAddr { offset: addr.offset, rank: self.rank, key: addr.key };
        self.control(self.rank).regions().resolve(addr, bytes, Need::Local)
    }

    #[inline(always)]
    fn notify(&self, addr: RemoteAddr, at: NonNull<u8>) {
        if addr.rank.0 < self.size {
            let target = self.control(addr.rank);
            if target.lot().announce(at.as_ptr() as u64) {
                ring(target);
            }
        }
    }
}

impl fmt::Debug for Direct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Direct({} of {})", self.rank, self.size)
    }
}

#[cold]
#[inline(never)]
fn no_such_rank(rank: Rank, size: u32) -> AddrError {
    AddrError::NoSuchRank { rank, size }
}

#[cold]
#[inline(never)]
fn ring(target: &Control) {
    target.bells().ring(&SharedFutex);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attach::Member;
    use crate::config::Config;
    use crate::partition::{COLLECTIVE_KEY, STARTER_KEY, declare_lost};

    fn pair() -> (Member, Member) {
        let config = Config { heap_bytes: 64 << 20, stack_bytes: 16 << 20, ..Config::default() };
        let mut members = Member::threads(2, &config).unwrap();
        let second = members.pop().unwrap();
        (members.pop().unwrap(), second)
    }

    fn starter(rank: u32, offset: u64) -> RemoteAddr {
        RemoteAddr { offset, rank: Rank(rank), key: STARTER_KEY }
    }

    #[test]
    fn both_ranks_mean_the_same_word() {
        let (zero, one) = pair();
        let mine = one.starter().base;
        assert_eq!(zero.direct().resolve(starter(1, 8), 8, Need::Write), Ok(mine_at(mine, 8)));
        assert_eq!(one.direct().resolve(starter(1, 8), 8, Need::Write), Ok(mine_at(mine, 8)));
        let local = LocalAddr { offset: 8, key: STARTER_KEY };
        assert_eq!(one.direct().local(local, 8), Ok(mine_at(mine, 8)));
        let words = RemoteAddr { offset: 0, rank: Rank(0), key: COLLECTIVE_KEY };
        let at = one.direct().resolve(words, 4096, Need::Write).unwrap();
        assert_eq!(at.as_ptr() as usize, zero.control().collective().as_ptr() as usize);
    }

    fn mine_at(base: NonNull<u8>, offset: usize) -> NonNull<u8> {
        NonNull::new((base.as_ptr() as usize + offset) as *mut u8).unwrap()
    }

    #[test]
    fn every_bad_address_is_named() {
        let (zero, _one) = pair();
        let direct = zero.direct();
        assert_eq!(
            direct.resolve(starter(2, 0), 8, Need::Read),
            Err(AddrError::NoSuchRank { rank: Rank(2), size: 2 })
        );
        let addr = starter(1, (64 << 10) - 7);
        assert_eq!(
            direct.resolve(addr, 8, Need::Read),
            Err(AddrError::OutOfRange { addr, bytes: 8, region_bytes: 64 << 10 })
        );
        let addr = RemoteAddr { key: RegionKey::new(7, 1), ..addr };
        assert_eq!(direct.resolve(addr, 8, Need::Read), Err(AddrError::StaleKey { addr }));
    }

    #[test]
    fn a_dead_rank_is_lost() {
        let (zero, _one) = pair();
        declare_lost(Rank(1), zero.space().controls());
        let lost = Err(AddrError::PeerLost { rank: Rank(1) });
        assert_eq!(zero.direct().resolve(starter(1, 0), 8, Need::Read), lost);
        assert!(zero.direct().resolve(starter(0, 0), 8, Need::Read).is_ok());
    }

    #[test]
    fn memory_outside_the_partition_is_out_of_reach() {
        let (zero, one) = pair();
        let mut word = 0u64;
        let base = NonNull::from(&mut word).cast();
        // SAFETY: refused, or local to this test.
        unsafe {
            let refused = zero.direct().register(base, 8, Access::Read).unwrap_err();
            assert!(matches!(refused, RegisterError::OutOfReach { bytes: 8, .. }), "{refused}");
            let region = zero.direct().register(base, 8, Access::Local).unwrap();
            let local = LocalAddr { offset: 0, key: region.key };
            assert_eq!(zero.direct().local(local, 8), Ok(base));
            let remote = RemoteAddr { offset: 0, rank: Rank(0), key: region.key };
            assert!(one.direct().resolve(remote, 8, Need::Read).is_err());
            assert!(zero.direct().unregister(region.key) && !zero.direct().unregister(region.key));
            assert!(zero.direct().local(local, 8).is_err());
        }
    }

    #[test]
    fn a_notice_rings_only_for_waiters() {
        let (zero, one) = pair();
        let at = one.starter().base;
        zero.direct().notify(starter(1, 0), at);
        assert!(!one.control().lot().has_fired(), "nobody waits");
        zero.direct().notify(starter(9, 0), at);
    }
}

//! What Direct adds to the promises of the seam: places, reach, notices.

use std::ptr::NonNull;
use tsumugi_core::backend::LoadStore;
use tsumugi_core::mem::{
    Access, AddrError, LocalAddr, Need, Rank, RegionKey, RegisterError, RemoteAddr,
};
use tsumugi_pvas::partition::{COLLECTIVE_KEY, STARTER_KEY, declare_lost};
use tsumugi_pvas::{Config, Member};

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
        for need in [Need::Local, Need::Read, Need::Write] {
            assert!(one.direct().resolve(remote, 8, need).is_err(), "{need:?}");
        }
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

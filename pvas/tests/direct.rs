//! What `Direct` adds to the promises of the seam: places, reach, notices.

use std::alloc::Layout;
use std::ptr::NonNull;
use tsumugi_core::backend::LoadStore;
use tsumugi_core::mem::{
    Access, AddrError, LocalAddr, MemorySource, Need, Rank, RegionKey, RegisterError, RemoteAddr,
};
use tsumugi_pvas::partition::{COLLECTIVE_KEY, STARTER_KEY, declare_lost};
use tsumugi_pvas::{Member, SpaceConfig};

fn pair() -> (Member, Member) {
    let config =
        SpaceConfig::default().exposed_bytes(16 << 20).heap_bytes(64 << 20).stack_bytes(16 << 20);
    let mut members = Member::threads(2, &config).unwrap();
    let second = members.pop().unwrap();
    (members.pop().unwrap(), second)
}

fn starter(rank: u32, offset: u64) -> RemoteAddr {
    RemoteAddr { offset, rank: Rank(rank), key: STARTER_KEY }
}

#[test]
fn both_ranks_access_the_same_word() {
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
        Err(AddrError::OutOfRange { addr, bytes: 8, region_bytes: Some(64 << 10) })
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
fn memory_that_is_not_exposed_is_out_of_reach() {
    let (zero, one) = pair();
    let mut word = 0u64;
    let base = NonNull::from(&mut word).cast();
    // SAFETY: refused, or local to this test.
    unsafe {
        let refused = zero.direct().register(base, 8, Access::Read).unwrap_err();
        assert!(matches!(refused, RegisterError::OutOfReach { bytes: 8, .. }), "{refused}");
        let own = zero.heap().allocate(Layout::new::<u64>()).unwrap();
        let (stack, _) = zero.stacks();
        let others = one.exposed().allocate(Layout::new::<u64>()).unwrap();
        for base in [own, stack, others] {
            assert!(zero.direct().register(base, 8, Access::ReadWrite).is_err(), "{base:p}");
        }
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

/// An operation that has resolved its address uses it after the region is gone.
#[test]
fn a_late_operation_touches_only_exposed_bytes() {
    let (zero, one) = pair();
    let (area, bytes) = (one.exposed(), 256);
    let layout = Layout::from_size_align(bytes as usize, 64).unwrap();
    let block = area.allocate_zeroed(layout).unwrap();
    // SAFETY: a block of the exposed area.
    let region = unsafe { one.direct().register(block, bytes, Access::ReadWrite) }.unwrap();
    let addr = RemoteAddr { offset: 0, rank: Rank(1), key: region.key };
    let at = zero.direct().resolve(addr, bytes, Need::Write).unwrap();
    assert!(one.direct().unregister(region.key));
    // SAFETY: allocated above, and unregistered.
    unsafe { area.release(block, layout) };
    assert_eq!(zero.direct().resolve(addr, 8, Need::Read), Err(AddrError::StaleKey { addr }));

    let own: Vec<_> = (0..1000).map(|_| one.heap().allocate(layout).unwrap()).collect();
    assert!(!own.contains(&at), "the heap never gets the block");
    // SAFETY: exposed memory is mapped for good and holds plain bytes.
    unsafe { at.as_ptr().write_bytes(0xff, bytes as usize) };
    assert_eq!(area.free_bytes(), area.bytes());
    assert_eq!(area.allocate_zeroed(layout), Some(block));
    // SAFETY: the block is ours again.
    assert!((0..256).all(|index| unsafe { block.as_ptr().add(index).read() } == 0));
    for block in own {
        // SAFETY: allocated above with this layout.
        unsafe { one.heap().release(block, layout) };
    }
}

#[test]
fn a_notice_rings_only_for_waiters() {
    let (zero, one) = pair();
    let at = one.starter().base;
    zero.direct().notify(starter(1, 0), at);
    assert!(!one.control().parking_lot().has_fired(), "no thread waits");
    zero.direct().notify(starter(9, 0), at);
}

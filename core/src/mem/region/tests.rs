//! Tests of the region table, from its owner's and its readers' side.

use super::*;

fn addr(key: RegionKey, offset: u64) -> RemoteAddr {
    RemoteAddr { offset, rank: Rank(3), key }
}

fn registered(table: &RegionTable<2>, memory: &mut [u8], access: Access) -> Region {
    let base = NonNull::from(&mut *memory).cast();
    // SAFETY: the memory outlives the table in every test here.
    unsafe { table.register(base, memory.len() as u64, access) }.unwrap()
}

#[test]
fn a_range_one_byte_beyond_its_region_is_refused() {
    let (table, mut memory) = (RegionTable::new(), [0; 64]);
    let region = registered(&table, &mut memory, Access::ReadWrite);
    let at = table.resolve(addr(region.key, 56), 8, Need::Write).unwrap();
    assert_eq!(at.as_ptr() as usize, memory.as_ptr() as usize + 56);
    assert_eq!(
        table.resolve(addr(region.key, 57), 8, Need::Read),
        Err(AddrError::OutOfRange { addr: addr(region.key, 57), bytes: 8, region_bytes: Some(64) })
    );
    assert!(table.resolve(addr(region.key, u64::MAX), 8, Need::Read).is_err());
    assert!(table.resolve(addr(region.key, 64), 0, Need::Read).is_ok());
}

#[test]
fn a_key_does_not_outlive_its_region() {
    let (table, mut memory) = (RegionTable::new(), [0; 64]);
    let old = registered(&table, &mut memory, Access::ReadWrite);
    assert!(table.unregister(old.key));
    assert!(!table.unregister(old.key));
    let _other = registered(&table, &mut memory, Access::ReadWrite);
    let again = registered(&table, &mut memory, Access::ReadWrite);
    assert_eq!(again.key.index(), old.key.index());
    let stale = Err(AddrError::StaleKey { addr: addr(old.key, 0) });
    assert_eq!(table.resolve(addr(old.key, 0), 8, Need::Read), stale);
    assert!(table.resolve(addr(again.key, 0), 8, Need::Read).is_ok());
}

#[test]
fn a_full_table_refuses_a_region() {
    let (table, mut memory) = (RegionTable::<2>::new(), [0; 64]);
    registered(&table, &mut memory, Access::Read);
    registered(&table, &mut memory, Access::Read);
    let base = NonNull::from(&mut memory).cast();
    // SAFETY: as above.
    let third = unsafe { table.register(base, 64, Access::Read) };
    assert_eq!(third.unwrap_err(), RegisterError::TableFull { slots: 2 });
}

#[test]
fn an_access_needs_the_registered_right() {
    let (table, mut memory) = (RegionTable::new(), [0; 64]);
    let read = registered(&table, &mut memory, Access::Read).key;
    let own = registered(&table, &mut memory, Access::Local).key;
    assert!(table.resolve(addr(read, 0), 8, Need::Read).is_ok());
    let read_only = Err(AddrError::ReadOnly { addr: addr(read, 0) });
    assert_eq!(table.resolve(addr(read, 0), 8, Need::Write), read_only);
    assert!(table.resolve(addr(own, 0), 8, Need::Read).is_err());
}

#[test]
fn a_dead_rank_is_named() {
    let (table, mut memory) = (RegionTable::new(), [0; 64]);
    let key = registered(&table, &mut memory, Access::ReadWrite).key;
    table.mark_dead();
    let lost = Err(AddrError::PeerLost { rank: Rank(3) });
    assert_eq!(table.resolve(addr(key, 0), 8, Need::Read), lost);
}

#[test]
fn a_forged_key_is_refused() {
    let table = RegionTable::<2>::new();
    for bits in [0, 1, 0xfff, 0x1000, 0xffff_ffff] {
        assert!(table.resolve(addr(RegionKey::from_bits(bits), 0), 0, Need::Read).is_err());
    }
}

#[test]
fn a_table_registers_regions_under_keys_of_another() {
    let (leads, mut memory) = (RegionTable::<2>::new(), [0; 64]);
    let follows = RegionTable::<2>::new();
    let follow = |region: &Region| {
        // SAFETY: the memory outlives both tables.
        unsafe { follows.register_as(region.key, region.base, region.bytes, region.access) }
    };
    let first = registered(&leads, &mut memory, Access::ReadWrite);
    follow(&first).unwrap();
    assert!(follows.resolve(addr(first.key, 0), 8, Need::Write).is_ok());
    assert_eq!(follow(&first).unwrap_err(), RegisterError::TableFull { slots: 2 });
    registered(&leads, &mut memory, Access::Read);
    assert!(leads.unregister(first.key) && follows.unregister(first.key));
    let again = registered(&leads, &mut memory, Access::Read);
    assert_eq!(again.key.index(), first.key.index());
    follow(&again).unwrap();
    assert!(follows.resolve(addr(first.key, 0), 8, Need::Read).is_err());
    assert!(follows.resolve(addr(again.key, 0), 8, Need::Read).is_ok());
    let (beyond, memory) = (RegionKey::new(2, 1), first.base);
    // SAFETY: the call is refused, because the table has no such slot.
    let refused = unsafe { follows.register_as(beyond, memory, 8, Access::Read) };
    assert!(refused.is_err());
}

#[test]
fn regions_of_different_agents_have_different_keys() {
    let (table, mut memory) = (RegionTable::<2>::new(), [0; 64]);
    let base = NonNull::from(&mut memory).cast();
    // SAFETY: as above.
    let region = unsafe { table.register_for(Agent::Device, base, 64, Access::Read) }.unwrap();
    let key = region.key;
    assert_eq!((key.agent(), key.generation(), key.index()), (Agent::Device, 1, 0));
    assert!(table.resolve(addr(key, 0), 8, Need::Read).is_ok());
    let other = key.of(Agent::Cpu);
    let stale = Err(AddrError::StaleKey { addr: addr(other, 0) });
    assert_eq!(table.resolve(addr(other, 0), 8, Need::Read), stale);
    assert!(!table.unregister(other) && table.unregister(key));
    let nothing = RegionKey::from_bits(0).of(Agent::Device);
    let stale = Err(AddrError::StaleKey { addr: addr(nothing, 0) });
    assert_eq!(table.resolve(addr(nothing, 0), 8, Need::Read), stale);
    assert!(!table.unregister(nothing));
}

#[test]
fn a_users_key_never_finds_a_region_of_the_runtime() {
    let (table, mut memory) = (RegionTable::<2>::new(), [0; 64]);
    let base = NonNull::from(&mut memory).cast();
    // SAFETY: as above.
    let own = unsafe { table.register_runtime(base, 64, Access::ReadWrite) }.unwrap().key;
    assert!(own.is_of_runtime());
    assert!(table.resolve(addr(own, 0), 8, Need::Write).is_ok());
    let forged = crate::mem::Remote::<u64>::new(addr(own, 0)).addr();
    let stale = Err(AddrError::StaleKey { addr: forged });
    assert_eq!(table.resolve(forged, 8, Need::Write), stale);
    assert!(!table.unregister(own.of_user()) && table.unregister(own));
}

//! Region tables: a key leads to its own region or nowhere.

use crate::check;
use loom::thread;
use std::ptr::NonNull;
use std::sync::Arc;
use tsumugi_core::mem::{Access, AddrError, Need, Rank, RegionKey, RegionTable, RemoteAddr};
use tsumugi_core::sync::{AtomicU32, Ordering};

/// Addresses that are compared and never followed.
fn base(number: usize) -> NonNull<u8> {
    NonNull::new((number * 0x1000) as *mut u8).unwrap()
}

fn register(table: &RegionTable<1>, number: usize, bytes: u64) -> RegionKey {
    // SAFETY: nothing is ever loaded or stored there.
    unsafe { table.register(base(number), bytes, Access::ReadWrite) }.unwrap().key
}

fn resolve(table: &RegionTable<1>, key: RegionKey, bytes: u64) -> Result<NonNull<u8>, AddrError> {
    table.resolve(RemoteAddr { rank: Rank(0), key, offset: 0 }, bytes, Need::Write)
}

#[test]
fn a_key_never_leads_to_the_next_region_of_its_slot() {
    check(&["region_no_second_look"], || {
        let table = Arc::new(RegionTable::<1>::new());
        let old = register(&table, 1, 8);
        let reading = table.clone();
        let reader = thread::spawn(move || {
            if let Ok(place) = resolve(&reading, old, 8) {
                assert_eq!(place, base(1));
            }
            assert!(
                resolve(&reading, old, 64).is_err(),
                "resolved with the length of another region"
            );
        });
        assert!(table.unregister(old));
        let new = register(&table, 2, 64);
        assert_eq!(resolve(&table, new, 64), Ok(base(2)));
        reader.join().unwrap();
        assert!(resolve(&table, old, 8).is_err());
    });
}

#[test]
fn a_thread_that_has_a_key_finds_its_region() {
    check(&["region_publish_relaxed"], || {
        let shared = Arc::new((RegionTable::<1>::new(), AtomicU32::new(0)));
        let hearing = shared.clone();
        let reader = thread::spawn(move || {
            // Relaxed: a key may be communicated without any ordering.
            let bits = hearing.1.load(Ordering::Relaxed);
            if bits != 0
                && let Ok(place) = resolve(&hearing.0, RegionKey::from_bits(bits), 64)
            {
                assert_eq!(place, base(2));
            }
        });
        let (table, told) = &*shared;
        let old = register(table, 1, 8);
        assert!(table.unregister(old));
        told.store(register(table, 2, 64).to_bits(), Ordering::Relaxed);
        reader.join().unwrap();
    });
}

#[test]
fn a_rank_marked_dead_is_dead_to_every_thread() {
    check(&["region_refuse_unfenced"], || {
        let table = Arc::new(RegionTable::<1>::new());
        let key = register(&table, 1, 8);
        let reading = table.clone();
        let reader = thread::spawn(move || match resolve(&reading, key, 8) {
            Ok(place) => assert_eq!(place, base(1)),
            Err(error) => assert_eq!(error, AddrError::PeerLost { rank: Rank(0) }),
        });
        table.mark_dead();
        reader.join().unwrap();
        assert_eq!(resolve(&table, key, 8), Err(AddrError::PeerLost { rank: Rank(0) }));
    });
}

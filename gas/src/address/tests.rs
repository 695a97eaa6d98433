//! Every field, with its smallest and largest values.

extern crate std;
use super::*;
use std::string::ToString;
use tsumugi_core::mem::Rank;

#[test]
fn the_default_split_is_the_one_of_the_paper() {
    let split = Split::DEFAULT;
    assert_eq!((split.last_rank(), split.colors()), (Rank((1 << 21) - 2), 2));
    assert_eq!((split.lives(), split.region_bytes_max()), (1, 1 << 34));
    assert_eq!(Split::fit((1 << 21) - 1, 2, 1 << 34), Ok(split));
}

#[test]
fn every_field_is_read_as_it_was_written() {
    for (ranks, colors, bytes) in
        [(1, 1, 1), (2, 1, 1 << 40), (1000, 2, 1 << 34), (1_000_000, 2, 1 << 34), (4096, 16, 1)]
    {
        let split = Split::fit(ranks, colors, bytes).unwrap();
        let place = AddressParts {
            rank: Rank(ranks - 1),
            color: (colors - 1) as u8,
            region: 254,
            life: (split.lives() - 1) as u8,
            offset: split.region_bytes_max() - 1,
        };
        assert!(split.region_bytes_max() >= bytes);
        let addr = split.addr(place).unwrap();
        assert_eq!(split.place(addr), Some(place), "{ranks} ranks");
        assert_eq!(split.rank(addr), Some(place.rank));
        let zero = AddressParts { rank: Rank(0), color: 0, region: 0, life: 0, offset: 0 };
        let first = split.addr(zero).unwrap();
        assert_eq!(split.place(first), Some(zero));
        assert!(!first.is_null() && (first <= addr || ranks == 1));
    }
}

#[test]
fn a_value_that_does_not_fit_is_named() {
    let split = Split::DEFAULT;
    let place = AddressParts { rank: Rank(0), color: 0, region: 0, life: 0, offset: 0 };
    let rank = Rank(1 << 21);
    assert_eq!(
        split.addr(AddressParts { rank, ..place }),
        Err(SplitError::Rank { rank, last: split.last_rank() })
    );
    assert_eq!(split.addr(AddressParts { color: 2, ..place }), Err(SplitError::Color { color: 2 }));
    assert_eq!(split.addr(AddressParts { life: 1, ..place }), Err(SplitError::Life { life: 1 }));
    let offset = 1 << 34;
    let error = split.addr(AddressParts { offset, ..place }).unwrap_err();
    assert_eq!(error, SplitError::Offset { offset, bytes_max: offset });
    assert!(Split::new(21, 1, 1, 34).is_err());
    assert!(Split::fit(1 << 21, 2, 1 << 35).is_err());
}

#[test]
fn arithmetic_beyond_a_region_is_refused() {
    let split = Split::DEFAULT;
    let place = AddressParts { rank: Rank(3), color: 1, region: 9, life: 0, offset: 16 };
    let addr = split.addr(place).unwrap();
    let moved = split.add(addr, -16).unwrap();
    assert_eq!(split.place(moved), Some(AddressParts { offset: 0, ..place }));
    assert_eq!(split.distance(addr, moved), Some(-16));
    let last = split.add(moved, (1 << 34) - 1).unwrap();
    for (from, bytes) in [
        (moved, -1),
        (last, 1),
        (moved, 1 << 34),
        (addr, i64::MAX),
        (addr, i64::MIN),
        (GlobalAddr::NULL, 0),
    ] {
        assert_eq!(split.add(from, bytes), Err(LeavesRegion { addr: from, bytes }));
    }
    let other = split.addr(AddressParts { region: 10, ..place }).unwrap();
    assert_eq!(split.distance(addr, other), None);
}

#[test]
fn pointers_step_by_the_size_of_their_type() {
    let split = Split::DEFAULT;
    let place = AddressParts { rank: Rank(0), color: 0, region: 0, life: 0, offset: 0 };
    let first = GlobalPtr::<u64>::new(split.addr(place).unwrap());
    let third = split.index(first, 2).unwrap();
    assert_eq!(split.distance(first.addr(), third.addr()), Some(16));
    assert_eq!(split.index(third, -2), Ok(first));
    assert!(split.index(first, i64::MAX).is_err());
    assert!(third > first && GlobalPtr::<u8>::NULL.is_null());
}

#[test]
fn addresses_are_printed_with_and_without_their_split() {
    let split = Split::fit(1000, 1, 1).unwrap();
    let place = AddressParts { rank: Rank(7), color: 0, region: 255, life: 2, offset: 64 };
    let addr = split.addr(place).unwrap();
    assert_eq!(split.show(addr).to_string(), "rank 7 colour 0 starter.2 offset 0x40");
    assert_eq!(split.show(GlobalAddr::NULL).to_string(), "null");
    assert_eq!(GlobalAddr::from_bits(0xabc).to_string(), "0x0000000000000abc");
}

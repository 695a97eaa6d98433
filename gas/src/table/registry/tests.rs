//! Names, and the rounds after which they are free again.

extern crate std;
use super::*;
use core::ptr::NonNull;
use std::boxed::Box;
use std::vec;
use std::vec::Vec;
use tsumugi_core::mem::Access;

const OWN: Rank = Rank(0);
const RANKS: u32 = 130;

struct Rig {
    registry: Registry<'static>,
    words: &'static [AtomicU64],
    control: ControlRegion,
}

/// A registry with hints, or with bitmaps that are read word by word.
fn rig(has_hints: bool, records: Vec<NameRecord>) -> Rig {
    let flat_words = if has_hints { 0 } else { 64 };
    let shape = ControlShape { copies: 4, flat_words, ..ControlShape::of(RANKS, 1) };
    let words = (0..shape.words()).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
    let words = &*Box::leak(words.into_boxed_slice());
    let control = ControlRegion::new(RegionKey::new(0, 1), OWN, shape);
    let starter = Starter { key: RegionKey::new(1, 1), bytes: 64, agent: Agent::Cpu };
    let split = Split::fit(RANKS, 1, 1 << 20).unwrap();
    let awaited = Box::leak(vec![u64::MAX; shape.bitmap_words()].into_boxed_slice());
    let records = Box::leak(records.into_boxed_slice());
    Rig {
        registry: Registry::new(split, control, shape, starter, words, records, awaited),
        words,
        control,
    }
}

fn region(bytes: u64) -> Region {
    let key = RegionKey::new(7, 1);
    Region { key, base: NonNull::dangling(), bytes, access: Access::ReadWrite }
}

impl Rig {
    fn named(&mut self) -> GlobalAddr {
        self.registry.register(0, &region(64), Agent::Cpu).unwrap()
    }

    fn set(&self, first: usize, rank: u32) {
        self.words[first + rank as usize / 64].fetch_or(1 << (rank % 64), Ordering::Relaxed);
    }

    fn holds(&self, ranks: &[u32]) {
        ranks.iter().for_each(|rank| self.set(self.control.holder_words(), *rank));
    }

    /// A rank reports that it has dropped its copy.
    fn acks(&mut self, rank: u32) {
        self.set(self.control.ack_words(), rank);
        let (hints, count) = self.control.ack_hint_words();
        if count > 0 {
            self.set(hints, rank / 64);
        }
        self.registry.take_acks();
    }

    fn asked(&mut self) -> Vec<u32> {
        core::iter::from_fn(|| self.registry.poll_ask()).map(|rank| rank.0).collect()
    }

    fn retired(&mut self) -> Vec<GlobalAddr> {
        core::iter::from_fn(|| self.registry.poll_retired()).map(|it| it.addr).collect()
    }

    fn name(&self, addr: GlobalAddr) -> (u8, u8) {
        let place = self.registry.split.place(addr).unwrap();
        (place.region, place.life)
    }
}

#[test]
fn bits_are_found_in_their_order() {
    let words = [1 << 63, 0, 5];
    assert_eq!(next_bit(&words, 0), Some(63));
    assert_eq!(next_bit(&words, 64), Some(128));
    assert_eq!(next_bit(&words, 129), Some(130));
    assert_eq!(next_bit(&words, 131), None);
}

/// The name that has been free for the longest time is given first; each time with
/// another life.
#[test]
fn names_are_given_in_turn() {
    let mut rig = rig(false, vec![NameRecord::FREE; REGIONS]);
    let all: Vec<GlobalAddr> = (0..REGIONS).map(|_| rig.named()).collect();
    let names: Vec<(u8, u8)> = all.iter().map(|addr| rig.name(*addr)).collect();
    assert!(names.iter().enumerate().all(|(at, name)| *name == (at as u8, 0)));
    let full = Err(NameError::Full { color: 0 });
    assert_eq!(rig.registry.register(0, &region(8), Agent::Cpu), full);
    for index in [9, 7, 250] {
        rig.registry.unregister(all[index]).unwrap();
        assert_eq!(rig.words[entry_word(0, index)].load(Ordering::Relaxed), 0);
        let addr = all[index];
        assert_eq!(rig.registry.unregister(addr), Err(AddrError::StaleKey { addr }));
    }
    assert!(rig.asked().is_empty());
    assert_eq!(rig.retired(), [all[7], all[9], all[250]]);
    assert_eq!(rig.registry.len(), REGIONS - 3);
    for (name, life) in [(7, 1), (9, 1), (250, 1)] {
        let addr = rig.named();
        assert_eq!(rig.name(addr), (name, life));
        let at = entry_word(0, name.into());
        let words = [0, 1].map(|word| rig.words[at + word].load(Ordering::Relaxed));
        let entry = RegionEntry::decode(words).expect("the entry exists");
        assert_eq!((entry.life, entry.bytes, entry.key), (life, 64, region(64).key));
    }
}

#[test]
fn a_region_that_cannot_be_named_is_refused() {
    let mut rig = rig(false, vec![NameRecord::FREE; REGIONS]);
    let none = NameError::NoSuchColor { color: 1, colors: 1 };
    assert_eq!(rig.registry.register(1, &region(8), Agent::Cpu), Err(none));
    let bytes_max = rig.registry.split.region_bytes_max();
    let long = NameError::TooLong { bytes: bytes_max + 1, bytes_max };
    assert_eq!(rig.registry.register(0, &region(bytes_max + 1), Agent::Cpu), Err(long));
    assert!(rig.registry.register(0, &region(bytes_max), Agent::Cpu).is_ok());
}

/// Old contents of the memory are ignored.
#[test]
fn a_new_table_is_empty() {
    let used = NameRecord { state: NameState::Live, life: 3, ..NameRecord::FREE };
    let mut rig = rig(false, vec![used; REGIONS]);
    assert_eq!(rig.registry.len(), 0);
    let addr = rig.named();
    assert_eq!(rig.name(addr), (0, 0));
    let place = AddressParts { rank: OWN, color: 0, region: STARTER, life: 0, offset: 0 };
    let starter = rig.registry.split.addr(place).unwrap();
    let live: Vec<(GlobalAddr, u64)> =
        rig.registry.live().map(|(addr, entry)| (addr, entry.bytes)).collect();
    assert_eq!(live, [(addr, 64), (starter, 64)]);
}

#[test]
fn own_memory_is_found_by_its_address() {
    let mut rig = rig(false, vec![NameRecord::FREE; REGIONS]);
    let addr = rig.named();
    let split = rig.registry.split;
    for (first, record) in [(addr, Some(0)), (rig.registry.live().last().unwrap().0, None)] {
        let last = split.add(first, 56).unwrap();
        let found = rig.registry.local(last, 8);
        assert_eq!(found.map(|(local, of)| (local.offset, of)), Ok((56, record)));
        let error = Err(AddrError::OutOfRange { addr: last, bytes: 9, region_bytes: Some(64) });
        assert_eq!(rig.registry.local(last, 9).map(|(local, _)| local.offset), error);
    }
    let other = AddressParts { rank: Rank(1), ..split.place(addr).unwrap() };
    let addr = split.addr(other).unwrap();
    assert_eq!(rig.registry.unregister(addr), Err(AddrError::Nowhere { addr }));
}

/// The ranks with a bit get one request each, and all of them are waited for.
#[test]
fn a_round_sends_to_all_holders_and_waits_for_each() {
    for has_hints in [false, true] {
        let mut rig = rig(has_hints, vec![NameRecord::FREE; REGIONS]);
        let (first, second) = (rig.named(), rig.named());
        rig.holds(&[1, 63, 64, 129]);
        assert!(rig.asked().is_empty(), "no region was unregistered");
        rig.registry.unregister(first).unwrap();
        assert_eq!(rig.asked(), [1, 63, 64, 129]);
        // A region that is unregistered now waits for the next round, and so do new
        // holders.
        rig.registry.unregister(second).unwrap();
        rig.holds(&[5]);
        for rank in [64, 1, 129] {
            rig.acks(rank);
            assert!(rig.retired().is_empty() && rig.asked().is_empty());
            rig.acks(rank);
        }
        rig.acks(63);
        assert_eq!(rig.retired(), [first]);
        assert_eq!(rig.asked(), [5]);
        assert!(rig.retired().is_empty());
        rig.acks(5);
        assert_eq!(rig.retired(), [second]);
        assert_eq!(rig.registry.len(), 0);
        // No rank holds a copy now.
        let third = rig.named();
        rig.registry.unregister(third).unwrap();
        assert!(rig.asked().is_empty());
        assert_eq!(rig.retired(), [third]);
    }
}

/// A rank that has died does not answer; a number that is no rank is ignored.
#[test]
fn dead_ranks_are_not_waited_for() {
    let mut rig = rig(false, vec![NameRecord::FREE; REGIONS]);
    for lost in [0, 63, 64, 65, 129] {
        let addr = rig.named();
        rig.holds(&[lost]);
        rig.registry.unregister(addr).unwrap();
        assert_eq!(rig.asked(), [lost]);
        for other in [1, 66, 128, 192, 195, 1 << 20] {
            rig.registry.forget(Rank(other));
            assert!(rig.retired().is_empty(), "{lost} {other}");
        }
        rig.registry.forget(Rank(lost));
        rig.registry.forget(Rank(lost));
        assert_eq!(rig.retired(), [addr]);
    }
}

/// A hint for words that do not exist is ignored.
#[test]
fn a_hint_beyond_the_bitmap_is_ignored() {
    let mut rig = rig(true, vec![NameRecord::FREE; REGIONS]);
    let (hints, count) = rig.control.ack_hint_words();
    assert_eq!((count, rig.registry.awaited.len()), (1, 3));
    rig.words[hints].store(!0b111, Ordering::Relaxed);
    rig.registry.take_acks();
    assert_eq!(rig.words[hints].load(Ordering::Relaxed), 0);
}

/// An operation in flight keeps its region in place.
#[test]
fn a_region_in_use_is_not_retired() {
    let mut rig = rig(false, vec![NameRecord::FREE; REGIONS]);
    let addr = rig.named();
    let (_, record) = rig.registry.resolve(addr, 8, Need::Write).unwrap();
    let record = record.expect("the region has a name");
    rig.registry.pin(record);
    rig.registry.pin(record);
    rig.registry.unregister(addr).unwrap();
    assert!(rig.asked().is_empty());
    for _ in 0..2 {
        assert!(rig.retired().is_empty());
        rig.registry.unpin(record);
    }
    assert_eq!(rig.retired(), [addr]);
}

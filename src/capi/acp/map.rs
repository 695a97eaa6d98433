//! Maps: see [`Map`].

use super::job::{NULL, with};
use super::{acp_element_t, acp_ga_t, acp_pair_t};
use crate::global::GlobalAddr;
use crate::global::container::{Element, Entry, Keyed, Map, Reach, Table};
use std::ffi::c_int;

/// A map.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct acp_map_t {
    /// Its directory, a word for each of its ranks; `ACP_GA_NULL` is none.
    pub ga: acp_ga_t,
    /// How many ranks have slots.
    pub num_ranks: u64,
    /// How many slots each of them has.
    pub num_slots: u64,
}

/// An element of a map, or its end.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct acp_map_it_t {
    /// Of which.
    pub map: acp_map_t,
    /// On which of its ranks.
    pub rank: c_int,
    /// In which slot.
    pub slot: c_int,
    /// Which; `ACP_GA_NULL` at the end.
    pub elem: acp_ga_t,
}

/// An element, and whether it was put in.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct acp_map_ib_t {
    /// Which.
    pub it: acp_map_it_t,
    /// 1 if it was.
    pub success: c_int,
}

impl acp_map_t {
    fn of(self) -> Map {
        let (ranks, slots) = (self.num_ranks as u32, self.num_slots as u32);
        Map::from(Table { addr: GlobalAddr::from_bits(self.ga), ranks, slots, kind: Map::KIND })
    }

    fn end(self) -> acp_map_it_t {
        self.it(self.of().end())
    }

    fn it(self, entry: Entry) -> acp_map_it_t {
        let (rank, slot) = (entry.rank as c_int, entry.slot as c_int);
        acp_map_it_t { map: self, rank, slot, elem: entry.addr.to_bits() }
    }
}

impl acp_map_it_t {
    fn entry(self) -> Entry {
        let addr = GlobalAddr::from_bits(self.elem);
        Entry { rank: self.rank as u32, slot: self.slot as u32, addr }
    }
}

/// `map1` becomes a copy of the elements of `map2` that lie on this rank.
#[unsafe(no_mangle)]
pub extern "C" fn acp_assign_local_map(map1: acp_map_t, map2: acp_map_t) {
    with((), |life| Ok(Keyed::assign(map1.of(), &life.pool, map2.of(), Reach::Local)?));
}

/// The first of the elements that lie on this rank, or the end.
#[unsafe(no_mangle)]
pub extern "C" fn acp_begin_local_map(map: acp_map_t) -> acp_map_it_t {
    with(map.end(), |life| Ok(map.it(map.of().local_range(&life.pool)?.0)))
}

/// Takes all elements that lie on this rank out.
#[unsafe(no_mangle)]
pub extern "C" fn acp_clear_local_map(map: acp_map_t) {
    with((), |life| Ok(map.of().clear(&life.pool, Reach::Local)?));
}

/// 1 if there are no elements that lie on this rank, otherwise 0.
#[unsafe(no_mangle)]
pub extern "C" fn acp_empty_local_map(map: acp_map_t) -> c_int {
    with(1, |life| Ok(c_int::from(map.of().is_empty(&life.pool, Reach::Local)?)))
}

/// Behind the last of the elements that lie on this rank.
#[unsafe(no_mangle)]
pub extern "C" fn acp_end_local_map(map: acp_map_t) -> acp_map_it_t {
    with(map.end(), |life| Ok(map.it(map.of().local_range(&life.pool)?.1)))
}

/// Copies of the elements of `map2` that lie on this rank come into `map1`, where
/// its keys are not.
#[unsafe(no_mangle)]
pub extern "C" fn acp_merge_local_map(map1: acp_map_t, map2: acp_map_t) {
    with((), |life| Ok(Keyed::merge(map1.of(), &life.pool, map2.of(), Reach::Local)?));
}

/// The elements of `map2` that lie on this rank come into `map1`, and `map2` has
/// none of them any more.
#[unsafe(no_mangle)]
pub extern "C" fn acp_move_local_map(map1: acp_map_t, map2: acp_map_t) {
    with((), |life| Ok(Keyed::take_all(map1.of(), &life.pool, map2.of(), Reach::Local)?));
}

/// How many elements that lie on this rank there are.
#[unsafe(no_mangle)]
pub extern "C" fn acp_size_local_map(map: acp_map_t) -> usize {
    with(0, |life| Ok(map.of().size(&life.pool, Reach::Local)? as usize))
}

/// `map1` becomes a copy of the elements of `map2`.
#[unsafe(no_mangle)]
pub extern "C" fn acp_assign_map(map1: acp_map_t, map2: acp_map_t) {
    with((), |life| Ok(Keyed::assign(map1.of(), &life.pool, map2.of(), Reach::All)?));
}

/// The first of the elements, or the end.
#[unsafe(no_mangle)]
pub extern "C" fn acp_begin_map(map: acp_map_t) -> acp_map_it_t {
    with(map.end(), |life| Ok(map.it(map.of().begin(&life.pool, Reach::All)?)))
}

/// Takes all elements out.
#[unsafe(no_mangle)]
pub extern "C" fn acp_clear_map(map: acp_map_t) {
    with((), |life| Ok(map.of().clear(&life.pool, Reach::All)?));
}

/// 1 if there are no elements, otherwise 0.
#[unsafe(no_mangle)]
pub extern "C" fn acp_empty_map(map: acp_map_t) -> c_int {
    with(1, |life| Ok(c_int::from(map.of().is_empty(&life.pool, Reach::All)?)))
}

/// Behind the last of the elements.
#[unsafe(no_mangle)]
pub extern "C" fn acp_end_map(map: acp_map_t) -> acp_map_it_t {
    map.end()
}

/// Copies of the elements of `map2` come into `map1`, where
/// its keys are not.
#[unsafe(no_mangle)]
pub extern "C" fn acp_merge_map(map1: acp_map_t, map2: acp_map_t) {
    with((), |life| Ok(Keyed::merge(map1.of(), &life.pool, map2.of(), Reach::All)?));
}

/// The elements of `map2` come into `map1`, and `map2` has
/// none of them any more.
#[unsafe(no_mangle)]
pub extern "C" fn acp_move_map(map1: acp_map_t, map2: acp_map_t) {
    with((), |life| Ok(Keyed::take_all(map1.of(), &life.pool, map2.of(), Reach::All)?));
}

/// How many elements there are.
#[unsafe(no_mangle)]
pub extern "C" fn acp_size_map(map: acp_map_t) -> usize {
    with(0, |life| Ok(map.of().size(&life.pool, Reach::All)? as usize))
}

/// Makes an empty one with `num_slots` slots on each of `num_ranks` ranks, its
/// header on `rank`; its address is `ACP_GA_NULL` if that could not be.
///
/// # Safety
///
/// There are `num_ranks` ranks at `ranks`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_create_map(
    num_ranks: c_int,
    ranks: *const c_int,
    num_slots: c_int,
    rank: c_int,
) -> acp_map_t {
    with(acp_map_t { ga: NULL, num_ranks: 0, num_slots: 0 }, |life| {
        // SAFETY: the caller's.
        let ranks = unsafe { super::element::ranks(life, num_ranks, ranks)? };
        let slots = u32::try_from(num_slots)?;
        let made = Map::create(&life.pool, &ranks, slots, life.rank_of(rank)?)?;
        let (ranks, slots) = (u64::from(made.ranks), u64::from(made.slots));
        Ok(acp_map_t { ga: made.addr.to_bits(), num_ranks: ranks, num_slots: slots })
    })
}

/// Gives all of its memory back. Nobody uses it any more.
#[unsafe(no_mangle)]
pub extern "C" fn acp_destroy_map(map: acp_map_t) {
    with((), |life| Ok(map.of().destroy(&life.pool)?));
}

/// The element of a key, or the end.
#[unsafe(no_mangle)]
pub extern "C" fn acp_find_map(map: acp_map_t, key: acp_element_t) -> acp_map_it_t {
    with(map.end(), |life| Ok(map.it(map.of().find(&life.pool, key.data())?)))
}

/// Puts a key in with its value. 1 if it was not there, otherwise 0, and the
/// value that is there stays.
#[unsafe(no_mangle)]
pub extern "C" fn acp_insert_map(map: acp_map_t, pair: acp_pair_t) -> c_int {
    with(0, |life| {
        let (key, value) = (pair.first.data(), pair.second.data());
        Ok(c_int::from(map.of().insert(&life.pool, key, value)?))
    })
}

/// Copies the value of the first to the second, as far as that has room. How
/// many bytes were copied; 0 if the key is not there.
#[unsafe(no_mangle)]
pub extern "C" fn acp_retrieve_map(map: acp_map_t, pair: acp_pair_t) -> usize {
    with(0, |life| {
        let into =
            Element { addr: GlobalAddr::from_bits(pair.second.ga), bytes: pair.second.size as u64 };
        let bytes = map.of().copy_value(&life.pool, pair.first.data(), into)?;
        Ok(bytes.map_or(0, |bytes| bytes.min(into.bytes) as usize))
    })
}

/// Takes a key out, if it is there.
#[unsafe(no_mangle)]
pub extern "C" fn acp_remove_map(map: acp_map_t, key: acp_element_t) {
    with((), |life| {
        map.of().remove(&life.pool, key.data())?;
        Ok(())
    });
}

/// The two change places.
#[unsafe(no_mangle)]
pub extern "C" fn acp_swap_map(map1: acp_map_t, map2: acp_map_t) {
    with((), |life| Ok(map1.of().swap(&life.pool, *map2.of())?));
}

/// The key and the value of an element; none at the end.
#[unsafe(no_mangle)]
pub extern "C" fn acp_dereference_map_it(it: acp_map_it_t) -> acp_pair_t {
    with(acp_pair_t { first: acp_element_t::NONE, second: acp_element_t::NONE }, |life| {
        let (map, entry) = (it.map.of(), it.entry());
        let (key, value) = (map.key(&life.pool, entry)?, map.value(&life.pool, entry)?);
        Ok(acp_pair_t { first: key.into(), second: value.into() })
    })
}

/// The element behind.
#[unsafe(no_mangle)]
pub extern "C" fn acp_increment_map_it(it: acp_map_it_t) -> acp_map_it_t {
    with(it.map.end(), |life| {
        let next = it.map.of().next(&life.pool, it.entry(), Reach::All)?;
        Ok(it.map.it(next))
    })
}

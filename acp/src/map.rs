//! Maps: see [`Map`].

use super::life::{NULL, with};
use super::{acp_element_t, acp_ga_t, acp_pair_t};
use std::ffi::c_int;
use tsumugi::global::GlobalAddr;
use tsumugi::global::container::{Element, HashTable, Keyed, Map, Reach, TableCursor};

/// A map.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct acp_map_t {
    /// The address of the directory, which has a word for each of the ranks;
    /// `ACP_GA_NULL` is no map.
    pub ga: acp_ga_t,
    /// The number of ranks that have slots.
    pub num_ranks: u64,
    /// The number of slots of each of these ranks.
    pub num_slots: u64,
}

/// An element of a map, or its end.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct acp_map_it_t {
    /// The map.
    pub map: acp_map_t,
    /// Which of the ranks of the directory has the element, from 0.
    pub rank: c_int,
    /// The slot on that rank.
    pub slot: c_int,
    /// The address of the element; `ACP_GA_NULL` at the end.
    pub elem: acp_ga_t,
}

/// An element, and whether an insertion has added it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct acp_map_ib_t {
    /// The element.
    pub it: acp_map_it_t,
    /// 1 if the insertion has added the element.
    pub success: c_int,
}

impl acp_map_t {
    fn of(self) -> Map {
        let (ranks, slots) = (self.num_ranks as u32, self.num_slots as u32);
        Map::from(HashTable { addr: GlobalAddr::from_bits(self.ga), ranks, slots, kind: Map::KIND })
    }

    fn end(self) -> acp_map_it_t {
        self.it(self.of().end())
    }

    fn it(self, entry: TableCursor) -> acp_map_it_t {
        let (rank, slot) = (entry.rank as c_int, entry.slot as c_int);
        acp_map_it_t { map: self, rank, slot, elem: entry.addr.to_bits() }
    }
}

impl acp_map_it_t {
    fn entry(self) -> TableCursor {
        let addr = GlobalAddr::from_bits(self.elem);
        TableCursor { rank: self.rank as u32, slot: self.slot as u32, addr }
    }
}

/// `map1` becomes a copy of the elements of `map2` that lie on this rank.
#[unsafe(no_mangle)]
pub extern "C" fn acp_assign_local_map(map1: acp_map_t, map2: acp_map_t) {
    with((), |life| Ok(Keyed::assign(map1.of(), &life.pool, map2.of(), Reach::Local)?));
}

/// The iterator of the first of the elements on this rank, or the end.
#[unsafe(no_mangle)]
pub extern "C" fn acp_begin_local_map(map: acp_map_t) -> acp_map_it_t {
    with(map.end(), |life| Ok(map.it(map.of().local_range(&life.pool)?.0)))
}

/// Removes all elements that lie on this rank.
#[unsafe(no_mangle)]
pub extern "C" fn acp_clear_local_map(map: acp_map_t) {
    with((), |life| Ok(map.of().clear(&life.pool, Reach::Local)?));
}

/// Returns 1 if no elements of the map lie on this rank, otherwise 0.
#[unsafe(no_mangle)]
pub extern "C" fn acp_empty_local_map(map: acp_map_t) -> c_int {
    with(1, |life| Ok(c_int::from(map.of().is_empty(&life.pool, Reach::Local)?)))
}

/// The iterator behind the last of the elements on this rank.
#[unsafe(no_mangle)]
pub extern "C" fn acp_end_local_map(map: acp_map_t) -> acp_map_it_t {
    with(map.end(), |life| Ok(map.it(map.of().local_range(&life.pool)?.1)))
}

/// Inserts copies of those elements of `map2` on this rank into `map1` that have
/// keys which `map1` does not have.
#[unsafe(no_mangle)]
pub extern "C" fn acp_merge_local_map(map1: acp_map_t, map2: acp_map_t) {
    with((), |life| Ok(Keyed::merge(map1.of(), &life.pool, map2.of(), Reach::Local)?));
}

/// Moves the elements of `map2` that lie on this rank into `map1`; afterwards
/// `map2` has none of them.
#[unsafe(no_mangle)]
pub extern "C" fn acp_move_local_map(map1: acp_map_t, map2: acp_map_t) {
    with((), |life| Ok(Keyed::take_all(map1.of(), &life.pool, map2.of(), Reach::Local)?));
}

/// The number of elements that lie on this rank.
#[unsafe(no_mangle)]
pub extern "C" fn acp_size_local_map(map: acp_map_t) -> usize {
    with(0, |life| Ok(map.of().size(&life.pool, Reach::Local)? as usize))
}

/// `map1` becomes a copy of the elements of `map2`.
#[unsafe(no_mangle)]
pub extern "C" fn acp_assign_map(map1: acp_map_t, map2: acp_map_t) {
    with((), |life| Ok(Keyed::assign(map1.of(), &life.pool, map2.of(), Reach::All)?));
}

/// The iterator of the first element, or the end.
#[unsafe(no_mangle)]
pub extern "C" fn acp_begin_map(map: acp_map_t) -> acp_map_it_t {
    with(map.end(), |life| Ok(map.it(map.of().begin(&life.pool, Reach::All)?)))
}

/// Removes all elements.
#[unsafe(no_mangle)]
pub extern "C" fn acp_clear_map(map: acp_map_t) {
    with((), |life| Ok(map.of().clear(&life.pool, Reach::All)?));
}

/// Returns 1 if the map has no elements, otherwise 0.
#[unsafe(no_mangle)]
pub extern "C" fn acp_empty_map(map: acp_map_t) -> c_int {
    with(1, |life| Ok(c_int::from(map.of().is_empty(&life.pool, Reach::All)?)))
}

/// The iterator behind the last element.
#[unsafe(no_mangle)]
pub extern "C" fn acp_end_map(map: acp_map_t) -> acp_map_it_t {
    map.end()
}

/// Inserts copies of those elements of `map2` into `map1` that have keys which
/// `map1` does not have.
#[unsafe(no_mangle)]
pub extern "C" fn acp_merge_map(map1: acp_map_t, map2: acp_map_t) {
    with((), |life| Ok(Keyed::merge(map1.of(), &life.pool, map2.of(), Reach::All)?));
}

/// Moves the elements of `map2` into `map1`; afterwards `map2` has none of them.
#[unsafe(no_mangle)]
pub extern "C" fn acp_move_map(map1: acp_map_t, map2: acp_map_t) {
    with((), |life| Ok(Keyed::take_all(map1.of(), &life.pool, map2.of(), Reach::All)?));
}

/// The number of elements.
#[unsafe(no_mangle)]
pub extern "C" fn acp_size_map(map: acp_map_t) -> usize {
    with(0, |life| Ok(map.of().size(&life.pool, Reach::All)? as usize))
}

/// Makes an empty map with `num_slots` slots on each of `num_ranks` ranks, and its
/// header on `rank`. On failure the address of the map is `ACP_GA_NULL`.
///
/// # Safety
///
/// `ranks` is valid for a read of `num_ranks` numbers.
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

/// Frees all memory of the map. No rank may use it any more.
#[unsafe(no_mangle)]
pub extern "C" fn acp_destroy_map(map: acp_map_t) {
    with((), |life| Ok(map.of().destroy(&life.pool)?));
}

/// The iterator of the element with this key, or the end.
#[unsafe(no_mangle)]
pub extern "C" fn acp_find_map(map: acp_map_t, key: acp_element_t) -> acp_map_it_t {
    with(map.end(), |life| Ok(map.it(map.of().find(&life.pool, key.data())?)))
}

/// Inserts a key with its value. Returns 1 if the key was not there before,
/// otherwise 0, and the old value stays.
#[unsafe(no_mangle)]
pub extern "C" fn acp_insert_map(map: acp_map_t, pair: acp_pair_t) -> c_int {
    with(0, |life| {
        let (key, value) = (pair.first.data(), pair.second.data());
        Ok(c_int::from(map.of().insert(&life.pool, key, value)?))
    })
}

/// Copies the value of the key `pair.first` to the memory `pair.second`, as far as
/// there is room. Returns the number of bytes copied; 0 if the key is not there.
#[unsafe(no_mangle)]
pub extern "C" fn acp_retrieve_map(map: acp_map_t, pair: acp_pair_t) -> usize {
    with(0, |life| {
        let into =
            Element { addr: GlobalAddr::from_bits(pair.second.ga), bytes: pair.second.size as u64 };
        let bytes = map.of().copy_value(&life.pool, pair.first.data(), into)?;
        Ok(bytes.map_or(0, |bytes| bytes.min(into.bytes) as usize))
    })
}

/// Removes a key, if it is there.
#[unsafe(no_mangle)]
pub extern "C" fn acp_remove_map(map: acp_map_t, key: acp_element_t) {
    with((), |life| {
        map.of().remove(&life.pool, key.data())?;
        Ok(())
    });
}

/// Exchanges the contents of the two maps.
#[unsafe(no_mangle)]
pub extern "C" fn acp_swap_map(map1: acp_map_t, map2: acp_map_t) {
    with((), |life| Ok(map1.of().swap(&life.pool, *map2.of())?));
}

/// The key and the value of an element; no bytes at the end.
#[unsafe(no_mangle)]
pub extern "C" fn acp_dereference_map_it(it: acp_map_it_t) -> acp_pair_t {
    with(acp_pair_t { first: acp_element_t::NONE, second: acp_element_t::NONE }, |life| {
        let (map, entry) = (it.map.of(), it.entry());
        let (key, value) = (map.key(&life.pool, entry)?, map.value(&life.pool, entry)?);
        Ok(acp_pair_t { first: key.into(), second: value.into() })
    })
}

/// The iterator of the next element.
#[unsafe(no_mangle)]
pub extern "C" fn acp_increment_map_it(it: acp_map_it_t) -> acp_map_it_t {
    with(it.map.end(), |life| {
        let next = it.map.of().next(&life.pool, it.entry(), Reach::All)?;
        Ok(it.map.it(next))
    })
}

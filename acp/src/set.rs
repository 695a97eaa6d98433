//! Sets: see [`Set`].

use super::life::{NULL, with};
use super::{acp_element_t, acp_ga_t};
use std::ffi::c_int;
use tsumugi::global::GlobalAddr;
use tsumugi::global::container::{HashTable, Keyed, Reach, Set, TableCursor};

/// A set.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct acp_set_t {
    /// The address of the directory, which has a word for each of the ranks;
    /// `ACP_GA_NULL` is no set.
    pub ga: acp_ga_t,
    /// The number of ranks that have slots.
    pub num_ranks: u64,
    /// The number of slots of each of these ranks.
    pub num_slots: u64,
}

/// An element of a set, or its end.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct acp_set_it_t {
    /// The set.
    pub set: acp_set_t,
    /// Which of the ranks of the directory has the element, from 0.
    pub rank: c_int,
    /// The slot on that rank.
    pub slot: c_int,
    /// The address of the element; `ACP_GA_NULL` at the end.
    pub elem: acp_ga_t,
}

impl acp_set_t {
    fn of(self) -> Set {
        let (ranks, slots) = (self.num_ranks as u32, self.num_slots as u32);
        Set::from(HashTable { addr: GlobalAddr::from_bits(self.ga), ranks, slots, kind: Set::KIND })
    }

    fn end(self) -> acp_set_it_t {
        self.it(self.of().end())
    }

    fn it(self, entry: TableCursor) -> acp_set_it_t {
        let (rank, slot) = (entry.rank as c_int, entry.slot as c_int);
        acp_set_it_t { set: self, rank, slot, elem: entry.addr.to_bits() }
    }
}

impl acp_set_it_t {
    fn entry(self) -> TableCursor {
        let addr = GlobalAddr::from_bits(self.elem);
        TableCursor { rank: self.rank as u32, slot: self.slot as u32, addr }
    }
}

/// `set1` becomes a copy of the elements of `set2` that lie on this rank.
#[unsafe(no_mangle)]
pub extern "C" fn acp_assign_local_set(set1: acp_set_t, set2: acp_set_t) {
    with((), |life| Ok(Keyed::assign(set1.of(), &life.pool, set2.of(), Reach::Local)?));
}

/// The iterator of the first of the elements on this rank, or the end.
#[unsafe(no_mangle)]
pub extern "C" fn acp_begin_local_set(set: acp_set_t) -> acp_set_it_t {
    with(set.end(), |life| Ok(set.it(set.of().local_range(&life.pool)?.0)))
}

/// Returns 1 if no elements of the set lie on this rank, otherwise 0.
#[unsafe(no_mangle)]
pub extern "C" fn acp_empty_local_set(set: acp_set_t) -> c_int {
    with(1, |life| Ok(c_int::from(set.of().is_empty(&life.pool, Reach::Local)?)))
}

/// The iterator behind the last of the elements on this rank.
#[unsafe(no_mangle)]
pub extern "C" fn acp_end_local_set(set: acp_set_t) -> acp_set_it_t {
    with(set.end(), |life| Ok(set.it(set.of().local_range(&life.pool)?.1)))
}

/// Inserts copies of those elements of `set2` on this rank into `set1` that have
/// keys which `set1` does not have.
#[unsafe(no_mangle)]
pub extern "C" fn acp_merge_local_set(set1: acp_set_t, set2: acp_set_t) {
    with((), |life| Ok(Keyed::merge(set1.of(), &life.pool, set2.of(), Reach::Local)?));
}

/// Moves the elements of `set2` that lie on this rank into `set1`; afterwards
/// `set2` has none of them.
#[unsafe(no_mangle)]
pub extern "C" fn acp_move_local_set(set1: acp_set_t, set2: acp_set_t) {
    with((), |life| Ok(Keyed::take_all(set1.of(), &life.pool, set2.of(), Reach::Local)?));
}

/// The number of elements that lie on this rank.
#[unsafe(no_mangle)]
pub extern "C" fn acp_size_local_set(set: acp_set_t) -> usize {
    with(0, |life| Ok(set.of().size(&life.pool, Reach::Local)? as usize))
}

/// `set1` becomes a copy of the elements of `set2`.
#[unsafe(no_mangle)]
pub extern "C" fn acp_assign_set(set1: acp_set_t, set2: acp_set_t) {
    with((), |life| Ok(Keyed::assign(set1.of(), &life.pool, set2.of(), Reach::All)?));
}

/// The iterator of the first element, or the end.
#[unsafe(no_mangle)]
pub extern "C" fn acp_begin_set(set: acp_set_t) -> acp_set_it_t {
    with(set.end(), |life| Ok(set.it(set.of().begin(&life.pool, Reach::All)?)))
}

/// Removes all elements.
#[unsafe(no_mangle)]
pub extern "C" fn acp_clear_set(set: acp_set_t) {
    with((), |life| Ok(set.of().clear(&life.pool, Reach::All)?));
}

/// Returns 1 if the set has no elements, otherwise 0.
#[unsafe(no_mangle)]
pub extern "C" fn acp_empty_set(set: acp_set_t) -> c_int {
    with(1, |life| Ok(c_int::from(set.of().is_empty(&life.pool, Reach::All)?)))
}

/// The iterator behind the last element.
#[unsafe(no_mangle)]
pub extern "C" fn acp_end_set(set: acp_set_t) -> acp_set_it_t {
    set.end()
}

/// Inserts copies of those elements of `set2` into `set1` that have keys which
/// `set1` does not have.
#[unsafe(no_mangle)]
pub extern "C" fn acp_merge_set(set1: acp_set_t, set2: acp_set_t) {
    with((), |life| Ok(Keyed::merge(set1.of(), &life.pool, set2.of(), Reach::All)?));
}

/// Moves the elements of `set2` into `set1`; afterwards `set2` has none of them.
#[unsafe(no_mangle)]
pub extern "C" fn acp_move_set(set1: acp_set_t, set2: acp_set_t) {
    with((), |life| Ok(Keyed::take_all(set1.of(), &life.pool, set2.of(), Reach::All)?));
}

/// The number of elements.
#[unsafe(no_mangle)]
pub extern "C" fn acp_size_set(set: acp_set_t) -> usize {
    with(0, |life| Ok(set.of().size(&life.pool, Reach::All)? as usize))
}

/// Makes an empty set with `num_slots` slots on each of `num_ranks` ranks, and its
/// header on `rank`. On failure the address of the set is `ACP_GA_NULL`.
///
/// # Safety
///
/// `ranks` is valid for a read of `num_ranks` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_create_set(
    num_ranks: c_int,
    ranks: *const c_int,
    num_slots: c_int,
    rank: c_int,
) -> acp_set_t {
    with(acp_set_t { ga: NULL, num_ranks: 0, num_slots: 0 }, |life| {
        // SAFETY: the caller's.
        let ranks = unsafe { super::element::ranks(life, num_ranks, ranks)? };
        let slots = u32::try_from(num_slots)?;
        let made = Set::create(&life.pool, &ranks, slots, life.rank_of(rank)?)?;
        let (ranks, slots) = (u64::from(made.ranks), u64::from(made.slots));
        Ok(acp_set_t { ga: made.addr.to_bits(), num_ranks: ranks, num_slots: slots })
    })
}

/// Frees all memory of the set. No rank may use it any more.
#[unsafe(no_mangle)]
pub extern "C" fn acp_destroy_set(set: acp_set_t) {
    with((), |life| Ok(set.of().destroy(&life.pool)?));
}

/// The iterator of the element with this key, or the end.
#[unsafe(no_mangle)]
pub extern "C" fn acp_find_set(set: acp_set_t, key: acp_element_t) -> acp_set_it_t {
    with(set.end(), |life| Ok(set.it(set.of().find(&life.pool, key.data())?)))
}

/// Inserts a key. Returns 1 if the key was not there before, otherwise 0.
#[unsafe(no_mangle)]
pub extern "C" fn acp_insert_set(set: acp_set_t, key: acp_element_t) -> c_int {
    with(0, |life| Ok(c_int::from(set.of().insert(&life.pool, key.data())?)))
}

/// Removes a key, if it is there.
#[unsafe(no_mangle)]
pub extern "C" fn acp_remove_set(set: acp_set_t, key: acp_element_t) {
    with((), |life| {
        set.of().remove(&life.pool, key.data())?;
        Ok(())
    });
}

/// Exchanges the contents of the two sets.
#[unsafe(no_mangle)]
pub extern "C" fn acp_swap_set(set1: acp_set_t, set2: acp_set_t) {
    with((), |life| Ok(set1.of().swap(&life.pool, *set2.of())?));
}

/// The key of an element; no bytes at the end.
#[unsafe(no_mangle)]
pub extern "C" fn acp_dereference_set_it(it: acp_set_it_t) -> acp_element_t {
    with(acp_element_t::NONE, |life| Ok(it.set.of().key(&life.pool, it.entry())?.into()))
}

/// The iterator of the next element.
#[unsafe(no_mangle)]
pub extern "C" fn acp_increment_set_it(it: acp_set_it_t) -> acp_set_it_t {
    with(it.set.end(), |life| {
        let next = it.set.of().next(&life.pool, it.entry(), Reach::All)?;
        Ok(it.set.it(next))
    })
}

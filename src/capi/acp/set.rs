//! Sets: see [`Set`].

use super::job::{NULL, with};
use super::{acp_element_t, acp_ga_t};
use crate::global::GlobalAddr;
use crate::global::container::{Entry, Keyed, Reach, Set, Table};
use std::ffi::c_int;

/// A set.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct acp_set_t {
    /// Its directory, a word for each of its ranks; `ACP_GA_NULL` is none.
    pub ga: acp_ga_t,
    /// How many ranks have slots.
    pub num_ranks: u64,
    /// How many slots each of them has.
    pub num_slots: u64,
}

/// An element of a set, or its end.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct acp_set_it_t {
    /// Of which.
    pub set: acp_set_t,
    /// On which of its ranks.
    pub rank: c_int,
    /// In which slot.
    pub slot: c_int,
    /// Which; `ACP_GA_NULL` at the end.
    pub elem: acp_ga_t,
}

impl acp_set_t {
    fn of(self) -> Set {
        let (ranks, slots) = (self.num_ranks as u32, self.num_slots as u32);
        Set::from(Table { addr: GlobalAddr::from_bits(self.ga), ranks, slots, kind: Set::KIND })
    }

    fn end(self) -> acp_set_it_t {
        self.it(self.of().end())
    }

    fn it(self, entry: Entry) -> acp_set_it_t {
        let (rank, slot) = (entry.rank as c_int, entry.slot as c_int);
        acp_set_it_t { set: self, rank, slot, elem: entry.addr.to_bits() }
    }
}

impl acp_set_it_t {
    fn entry(self) -> Entry {
        let addr = GlobalAddr::from_bits(self.elem);
        Entry { rank: self.rank as u32, slot: self.slot as u32, addr }
    }
}

/// `set1` becomes a copy of the elements of `set2` that lie on this rank.
#[unsafe(no_mangle)]
pub extern "C" fn acp_assign_local_set(set1: acp_set_t, set2: acp_set_t) {
    with((), |life| Ok(Keyed::assign(set1.of(), &life.pool, set2.of(), Reach::Local)?));
}

/// The first of the elements that lie on this rank, or the end.
#[unsafe(no_mangle)]
pub extern "C" fn acp_begin_local_set(set: acp_set_t) -> acp_set_it_t {
    with(set.end(), |life| Ok(set.it(set.of().local_range(&life.pool)?.0)))
}

/// 1 if there are no elements that lie on this rank, otherwise 0.
#[unsafe(no_mangle)]
pub extern "C" fn acp_empty_local_set(set: acp_set_t) -> c_int {
    with(1, |life| Ok(c_int::from(set.of().is_empty(&life.pool, Reach::Local)?)))
}

/// Behind the last of the elements that lie on this rank.
#[unsafe(no_mangle)]
pub extern "C" fn acp_end_local_set(set: acp_set_t) -> acp_set_it_t {
    with(set.end(), |life| Ok(set.it(set.of().local_range(&life.pool)?.1)))
}

/// Copies of the elements of `set2` that lie on this rank come into `set1`, where
/// its keys are not.
#[unsafe(no_mangle)]
pub extern "C" fn acp_merge_local_set(set1: acp_set_t, set2: acp_set_t) {
    with((), |life| Ok(Keyed::merge(set1.of(), &life.pool, set2.of(), Reach::Local)?));
}

/// The elements of `set2` that lie on this rank come into `set1`, and `set2` has
/// none of them any more.
#[unsafe(no_mangle)]
pub extern "C" fn acp_move_local_set(set1: acp_set_t, set2: acp_set_t) {
    with((), |life| Ok(Keyed::take_all(set1.of(), &life.pool, set2.of(), Reach::Local)?));
}

/// How many elements that lie on this rank there are.
#[unsafe(no_mangle)]
pub extern "C" fn acp_size_local_set(set: acp_set_t) -> usize {
    with(0, |life| Ok(set.of().size(&life.pool, Reach::Local)? as usize))
}

/// `set1` becomes a copy of the elements of `set2`.
#[unsafe(no_mangle)]
pub extern "C" fn acp_assign_set(set1: acp_set_t, set2: acp_set_t) {
    with((), |life| Ok(Keyed::assign(set1.of(), &life.pool, set2.of(), Reach::All)?));
}

/// The first of the elements, or the end.
#[unsafe(no_mangle)]
pub extern "C" fn acp_begin_set(set: acp_set_t) -> acp_set_it_t {
    with(set.end(), |life| Ok(set.it(set.of().begin(&life.pool, Reach::All)?)))
}

/// Takes all elements out.
#[unsafe(no_mangle)]
pub extern "C" fn acp_clear_set(set: acp_set_t) {
    with((), |life| Ok(set.of().clear(&life.pool, Reach::All)?));
}

/// 1 if there are no elements, otherwise 0.
#[unsafe(no_mangle)]
pub extern "C" fn acp_empty_set(set: acp_set_t) -> c_int {
    with(1, |life| Ok(c_int::from(set.of().is_empty(&life.pool, Reach::All)?)))
}

/// Behind the last of the elements.
#[unsafe(no_mangle)]
pub extern "C" fn acp_end_set(set: acp_set_t) -> acp_set_it_t {
    set.end()
}

/// Copies of the elements of `set2` come into `set1`, where
/// its keys are not.
#[unsafe(no_mangle)]
pub extern "C" fn acp_merge_set(set1: acp_set_t, set2: acp_set_t) {
    with((), |life| Ok(Keyed::merge(set1.of(), &life.pool, set2.of(), Reach::All)?));
}

/// The elements of `set2` come into `set1`, and `set2` has
/// none of them any more.
#[unsafe(no_mangle)]
pub extern "C" fn acp_move_set(set1: acp_set_t, set2: acp_set_t) {
    with((), |life| Ok(Keyed::take_all(set1.of(), &life.pool, set2.of(), Reach::All)?));
}

/// How many elements there are.
#[unsafe(no_mangle)]
pub extern "C" fn acp_size_set(set: acp_set_t) -> usize {
    with(0, |life| Ok(set.of().size(&life.pool, Reach::All)? as usize))
}

/// Makes an empty one with `num_slots` slots on each of `num_ranks` ranks, its
/// header on `rank`; its address is `ACP_GA_NULL` if that could not be.
///
/// # Safety
///
/// There are `num_ranks` ranks at `ranks`.
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

/// Gives all of its memory back. Nobody uses it any more.
#[unsafe(no_mangle)]
pub extern "C" fn acp_destroy_set(set: acp_set_t) {
    with((), |life| Ok(set.of().destroy(&life.pool)?));
}

/// The element of a key, or the end.
#[unsafe(no_mangle)]
pub extern "C" fn acp_find_set(set: acp_set_t, key: acp_element_t) -> acp_set_it_t {
    with(set.end(), |life| Ok(set.it(set.of().find(&life.pool, key.data())?)))
}

/// Puts a key in. 1 if it was not there, otherwise 0.
#[unsafe(no_mangle)]
pub extern "C" fn acp_insert_set(set: acp_set_t, key: acp_element_t) -> c_int {
    with(0, |life| Ok(c_int::from(set.of().insert(&life.pool, key.data())?)))
}

/// Takes a key out, if it is there.
#[unsafe(no_mangle)]
pub extern "C" fn acp_remove_set(set: acp_set_t, key: acp_element_t) {
    with((), |life| {
        set.of().remove(&life.pool, key.data())?;
        Ok(())
    });
}

/// The two change places.
#[unsafe(no_mangle)]
pub extern "C" fn acp_swap_set(set1: acp_set_t, set2: acp_set_t) {
    with((), |life| Ok(set1.of().swap(&life.pool, *set2.of())?));
}

/// The key of an element; none at the end.
#[unsafe(no_mangle)]
pub extern "C" fn acp_dereference_set_it(it: acp_set_it_t) -> acp_element_t {
    with(acp_element_t::NONE, |life| Ok(it.set.of().key(&life.pool, it.entry())?.into()))
}

/// The element behind.
#[unsafe(no_mangle)]
pub extern "C" fn acp_increment_set_it(it: acp_set_it_t) -> acp_set_it_t {
    with(it.set.end(), |life| {
        let next = it.set.of().next(&life.pool, it.entry(), Reach::All)?;
        Ok(it.set.it(next))
    })
}

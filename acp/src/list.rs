//! Lists: see [`List`].

use super::life::{NULL, with};
use super::{acp_element_t, acp_ga_t};
use std::cmp::Ordering;
use std::ffi::c_int;
use tsumugi::global::GlobalAddr;
use tsumugi::global::container::{Cursor, Element, List};

/// A list.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct acp_list_t {
    /// The address of the header; `ACP_GA_NULL` is no list.
    pub ga: acp_ga_t,
}

/// An element of a list, or its end.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct acp_list_it_t {
    /// The list.
    pub list: acp_list_t,
    /// The address of the element; `ACP_GA_NULL` after a failure.
    pub elem: acp_ga_t,
}

/// Compares two elements: returns a number below, equal to or above 0.
pub type acp_list_comp_t =
    Option<extern "C" fn(elem1: acp_element_t, elem2: acp_element_t) -> c_int>;

impl acp_list_t {
    fn of(self) -> List {
        List::at_addr(GlobalAddr::from_bits(self.ga))
    }

    fn at(self, elem: acp_ga_t) -> acp_list_it_t {
        acp_list_it_t { list: self, elem }
    }

    fn it(self, cursor: Cursor) -> acp_list_it_t {
        self.at(cursor.addr().to_bits())
    }
}

impl acp_list_it_t {
    fn cursor(self) -> Cursor {
        Cursor::at_addr(GlobalAddr::from_bits(self.elem))
    }
}

/// `list1` becomes a copy of `list2`.
#[unsafe(no_mangle)]
pub extern "C" fn acp_assign_list(list1: acp_list_t, list2: acp_list_t) {
    with((), |life| Ok(list1.of().assign(&life.pool, list2.of())?));
}

/// `list` becomes a copy of the elements from `start` up to `end`.
#[unsafe(no_mangle)]
pub extern "C" fn acp_assign_range_list(
    list: acp_list_t,
    start: acp_list_it_t,
    end: acp_list_it_t,
) {
    with((), |life| {
        let range = (start.cursor(), end.cursor());
        Ok(list.of().assign_range(&life.pool, start.list.of(), range)?)
    });
}

/// The iterator of the first element, or the end.
#[unsafe(no_mangle)]
pub extern "C" fn acp_begin_list(list: acp_list_t) -> acp_list_it_t {
    with(list.at(NULL), |life| Ok(list.it(list.of().begin(&life.pool)?)))
}

/// Removes all elements.
#[unsafe(no_mangle)]
pub extern "C" fn acp_clear_list(list: acp_list_t) {
    with((), |life| Ok(list.of().clear(&life.pool)?));
}

/// Makes an empty list with its header on `rank`. On failure the address of the
/// list is `ACP_GA_NULL`.
#[unsafe(no_mangle)]
pub extern "C" fn acp_create_list(rank: c_int) -> acp_list_t {
    with(acp_list_t { ga: NULL }, |life| {
        let made = List::create(&life.pool, life.rank_of(rank)?)?;
        Ok(acp_list_t { ga: made.addr().to_bits() })
    })
}

/// Frees all memory of the list. No rank may use it any more.
#[unsafe(no_mangle)]
pub extern "C" fn acp_destroy_list(list: acp_list_t) {
    with((), |life| Ok(list.of().destroy(&life.pool)?));
}

/// Returns 1 if the list has no elements, otherwise 0.
#[unsafe(no_mangle)]
pub extern "C" fn acp_empty_list(list: acp_list_t) -> c_int {
    with(1, |life| Ok(c_int::from(list.of().is_empty(&life.pool)?)))
}

/// The iterator behind the last element.
#[unsafe(no_mangle)]
pub extern "C" fn acp_end_list(list: acp_list_t) -> acp_list_it_t {
    with(list.at(NULL), |life| Ok(list.it(list.of().end(&life.pool))))
}

/// Removes an element. Returns the iterator of the element that followed it.
#[unsafe(no_mangle)]
pub extern "C" fn acp_erase_list(it: acp_list_it_t) -> acp_list_it_t {
    with(it.list.at(NULL), |life| Ok(it.list.it(it.list.of().erase(&life.pool, it.cursor())?)))
}

/// Removes the elements from `start` up to `end`. Returns the iterator of the
/// element that followed them.
#[unsafe(no_mangle)]
pub extern "C" fn acp_erase_range_list(start: acp_list_it_t, end: acp_list_it_t) -> acp_list_it_t {
    with(start.list.at(NULL), |life| {
        let list = start.list;
        Ok(list.it(list.of().erase_range(&life.pool, start.cursor(), end.cursor())?))
    })
}

/// Inserts a copy of `elem` before `it`, in memory of `rank`. Returns the iterator
/// of the copy.
#[unsafe(no_mangle)]
pub extern "C" fn acp_insert_list(
    it: acp_list_it_t,
    elem: acp_element_t,
    rank: c_int,
) -> acp_list_it_t {
    with(it.list.at(NULL), |life| {
        let rank = life.rank_of(rank)?;
        Ok(it.list.it(it.list.of().insert(&life.pool, it.cursor(), elem.data(), rank)?))
    })
}

/// Inserts copies of the elements from `start` up to `end` before `it`. Returns the
/// iterator of the first of them.
#[unsafe(no_mangle)]
pub extern "C" fn acp_insert_range_list(
    it: acp_list_it_t,
    start: acp_list_it_t,
    end: acp_list_it_t,
) -> acp_list_it_t {
    with(it.list.at(NULL), |life| {
        let (other, range) = (start.list.of(), (start.cursor(), end.cursor()));
        Ok(it.list.it(it.list.of().insert_range(&life.pool, it.cursor(), other, range)?))
    })
}

/// Moves all elements of `list2` into `list1`; if both lists are sorted by `comp`,
/// so is the result. `comp` returns a number below, equal to or above 0, and must
/// use neither list.
#[unsafe(no_mangle)]
pub extern "C" fn acp_merge_list(list1: acp_list_t, list2: acp_list_t, comp: acp_list_comp_t) {
    with((), |life| {
        let comp = comp.ok_or("the comparison function is NULL")?;
        Ok(list1.of().merge(&life.pool, list2.of(), order(comp))?)
    });
}

/// Removes the last element, if there is one.
#[unsafe(no_mangle)]
pub extern "C" fn acp_pop_back_list(list: acp_list_t) {
    with((), |life| Ok(list.of().pop_back(&life.pool)?));
}

/// Removes the first element, if there is one.
#[unsafe(no_mangle)]
pub extern "C" fn acp_pop_front_list(list: acp_list_t) {
    with((), |life| Ok(list.of().pop_front(&life.pool)?));
}

/// Appends a copy of `elem`, in memory of `rank`.
#[unsafe(no_mangle)]
pub extern "C" fn acp_push_back_list(list: acp_list_t, elem: acp_element_t, rank: c_int) {
    with((), |life| {
        list.of().push_back(&life.pool, elem.data(), life.rank_of(rank)?)?;
        Ok(())
    });
}

/// Inserts a copy of `elem` before the first element, in memory of `rank`.
#[unsafe(no_mangle)]
pub extern "C" fn acp_push_front_list(list: acp_list_t, elem: acp_element_t, rank: c_int) {
    with((), |life| {
        list.of().push_front(&life.pool, elem.data(), life.rank_of(rank)?)?;
        Ok(())
    });
}

/// Removes all elements that are equal to `elem`, byte by byte.
#[unsafe(no_mangle)]
pub extern "C" fn acp_remove_list(list: acp_list_t, elem: acp_element_t) {
    with((), |life| {
        list.of().remove(&life.pool, elem.data())?;
        Ok(())
    });
}

/// Reverses the order of the elements.
#[unsafe(no_mangle)]
pub extern "C" fn acp_reverse_list(list: acp_list_t) {
    with((), |life| Ok(list.of().reverse(&life.pool)?));
}

/// The number of elements.
#[unsafe(no_mangle)]
pub extern "C" fn acp_size_list(list: acp_list_t) -> usize {
    with(0, |life| Ok(list.of().size(&life.pool)? as usize))
}

/// Sorts the elements by `comp`. The sort is stable.
#[unsafe(no_mangle)]
pub extern "C" fn acp_sort_list(list: acp_list_t, comp: acp_list_comp_t) {
    with((), |life| {
        let comp = comp.ok_or("the comparison function is NULL")?;
        Ok(list.of().sort(&life.pool, order(comp))?)
    });
}

/// Moves the element `it2` to before `it1`.
#[unsafe(no_mangle)]
pub extern "C" fn acp_splice_list(it1: acp_list_it_t, it2: acp_list_it_t) {
    with((), |life| {
        let (list, other) = (it1.list.of(), it2.list.of());
        Ok(list.splice(&life.pool, it1.cursor(), other, it2.cursor())?)
    });
}

/// Moves the elements from `start` up to `end` to before `it`.
#[unsafe(no_mangle)]
pub extern "C" fn acp_splice_range_list(
    it: acp_list_it_t,
    start: acp_list_it_t,
    end: acp_list_it_t,
) {
    with((), |life| {
        let (other, range) = (start.list.of(), (start.cursor(), end.cursor()));
        Ok(it.list.of().splice_range(&life.pool, it.cursor(), other, range)?)
    });
}

/// Exchanges the contents of the two lists.
#[unsafe(no_mangle)]
pub extern "C" fn acp_swap_list(list1: acp_list_t, list2: acp_list_t) {
    with((), |life| Ok(list1.of().swap(&life.pool, list2.of())?));
}

/// Removes each element that is equal, byte by byte, to the element before it.
#[unsafe(no_mangle)]
pub extern "C" fn acp_unique_list(list: acp_list_t) {
    with((), |life| {
        list.of().unique(&life.pool)?;
        Ok(())
    });
}

/// The iterator `n` elements further, or back if `n` is negative; it does not pass
/// the end.
#[unsafe(no_mangle)]
pub extern "C" fn acp_advance_list_it(it: acp_list_it_t, n: c_int) -> acp_list_it_t {
    with(it.list.at(NULL), |life| {
        Ok(it.list.it(it.list.of().advance(&life.pool, it.cursor(), i64::from(n))?))
    })
}

/// The iterator of the element before.
#[unsafe(no_mangle)]
pub extern "C" fn acp_decrement_list_it(it: acp_list_it_t) -> acp_list_it_t {
    with(it.list.at(NULL), |life| Ok(it.list.it(it.list.of().before(&life.pool, it.cursor())?)))
}

/// The bytes of an element; no bytes at the end.
#[unsafe(no_mangle)]
pub extern "C" fn acp_dereference_list_it(it: acp_list_it_t) -> acp_element_t {
    with(acp_element_t::NONE, |life| Ok(it.list.of().element(&life.pool, it.cursor())?.into()))
}

/// The number of steps from `first` to `last`, or -1 if no number of steps leads
/// there.
#[unsafe(no_mangle)]
pub extern "C" fn acp_distance_list_it(first: acp_list_it_t, last: acp_list_it_t) -> c_int {
    with(-1, |life| {
        let steps = first.list.of().distance(&life.pool, first.cursor(), last.cursor())?;
        Ok(steps.map_or(-1, |steps| steps as c_int))
    })
}

/// The iterator of the next element.
#[unsafe(no_mangle)]
pub extern "C" fn acp_increment_list_it(it: acp_list_it_t) -> acp_list_it_t {
    with(it.list.at(NULL), |life| Ok(it.list.it(it.list.of().next(&life.pool, it.cursor())?)))
}

fn order(
    comp: extern "C" fn(acp_element_t, acp_element_t) -> c_int,
) -> impl FnMut(Element, Element) -> Ordering {
    move |one, other| comp(one.into(), other.into()).cmp(&0)
}

//! Deques of bytes: see [`Deque`].

use super::element::{acp_element_t, data};
use super::life::{NULL, with};
use super::{acp_ga_t, acp_pair_t};
use std::ffi::c_int;
use tsumugi::global::GlobalAddr;
use tsumugi::global::container::{Deque, Sequence};

/// A deque of bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct acp_deque_t {
    /// The address of the header, which holds the address of the ring of bytes, the
    /// place in the ring where the bytes begin, their number, and the number of
    /// bytes for which there is room. `ACP_GA_NULL` is no deque.
    pub ga: acp_ga_t,
}

/// A byte of a deque, or its end.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct acp_deque_it_t {
    /// The deque.
    pub deque: acp_deque_t,
    /// The index of the byte.
    pub index: c_int,
}

impl acp_deque_t {
    fn of(self) -> Deque {
        Deque::at_addr(GlobalAddr::from_bits(self.ga))
    }
}

impl acp_deque_it_t {
    fn at(self) -> u64 {
        self.index.max(0) as u64
    }
}

/// `deque1` becomes a copy of `deque2`.
#[unsafe(no_mangle)]
pub extern "C" fn acp_assign_deque(deque1: acp_deque_t, deque2: acp_deque_t) {
    with((), |life| {
        let all = (0, u64::MAX);
        Ok(deque1.of().assign(&life.pool, *deque2.of(), all)?)
    });
}

/// `deque` becomes a copy of the bytes from `start` up to `end`.
#[unsafe(no_mangle)]
pub extern "C" fn acp_assign_range_deque(
    deque: acp_deque_t,
    start: acp_deque_it_t,
    end: acp_deque_it_t,
) {
    with((), |life| {
        let range = (start.at(), end.at());
        Ok(deque.of().assign(&life.pool, *start.deque.of(), range)?)
    });
}

/// The global address of the byte at `index`, or `ACP_GA_NULL` if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn acp_at_deque(deque: acp_deque_t, index: c_int) -> acp_ga_t {
    with(NULL, |life| {
        let index = u64::try_from(index)?;
        Ok(deque.of().pieces(&life.pool, index, 1)?[0].addr.to_bits())
    })
}

/// The iterator of the first byte.
#[unsafe(no_mangle)]
pub extern "C" fn acp_begin_deque(deque: acp_deque_t) -> acp_deque_it_t {
    acp_deque_it_t { deque, index: 0 }
}

/// The number of bytes for which there is room.
#[unsafe(no_mangle)]
pub extern "C" fn acp_capacity_deque(deque: acp_deque_t) -> usize {
    with(0, |life| Ok(deque.of().capacity(&life.pool)? as usize))
}

/// Removes all bytes.
#[unsafe(no_mangle)]
pub extern "C" fn acp_clear_deque(deque: acp_deque_t) {
    with((), |life| Ok(deque.of().clear(&life.pool)?));
}

/// Makes an empty deque with room for `size` bytes, on `rank`. On failure the
/// address of the deque is `ACP_GA_NULL`.
#[unsafe(no_mangle)]
pub extern "C" fn acp_create_deque(size: usize, rank: c_int) -> acp_deque_t {
    with(acp_deque_t { ga: NULL }, |life| {
        let made = Deque::create(&life.pool, 0, life.rank_of(rank)?)?;
        // ACP rounds the capacity up to whole words here, and only here.
        let room = size.checked_next_multiple_of(8).unwrap_or(size);
        made.reserve(&life.pool, room as u64).inspect_err(|_| {
            let _ = made.destroy(&life.pool);
        })?;
        Ok(acp_deque_t { ga: made.addr().to_bits() })
    })
}

/// Frees the memory of the deque. No rank may use it any more.
#[unsafe(no_mangle)]
pub extern "C" fn acp_destroy_deque(deque: acp_deque_t) {
    with((), |life| Ok(deque.of().destroy(&life.pool)?));
}

/// Returns 1 if the deque has no bytes, otherwise 0.
#[unsafe(no_mangle)]
pub extern "C" fn acp_empty_deque(deque: acp_deque_t) -> c_int {
    with(1, |life| Ok(c_int::from(deque.of().is_empty(&life.pool)?)))
}

/// The iterator behind the last byte.
#[unsafe(no_mangle)]
pub extern "C" fn acp_end_deque(deque: acp_deque_t) -> acp_deque_it_t {
    let index = with(0, |life| Ok(deque.of().size(&life.pool)?));
    acp_deque_it_t { deque, index: index as c_int }
}

/// Removes `size` bytes at `it`. Returns the iterator of the byte that followed
/// them.
#[unsafe(no_mangle)]
pub extern "C" fn acp_erase_deque(it: acp_deque_it_t, size: usize) -> acp_deque_it_t {
    with(it, |life| {
        it.deque.of().erase(&life.pool, it.at(), size as u64)?;
        Ok(it)
    })
}

/// Removes the bytes from `start` up to `end`. Returns the iterator of the byte
/// that followed them.
#[unsafe(no_mangle)]
pub extern "C" fn acp_erase_range_deque(
    start: acp_deque_it_t,
    end: acp_deque_it_t,
) -> acp_deque_it_t {
    acp_erase_deque(start, end.at().saturating_sub(start.at()) as usize)
}

/// Inserts the `size` bytes at `ga` before `it`. Returns the iterator of the first
/// of them.
#[unsafe(no_mangle)]
pub extern "C" fn acp_insert_deque(
    it: acp_deque_it_t,
    ga: acp_ga_t,
    size: usize,
) -> acp_deque_it_t {
    with(it, |life| {
        it.deque.of().insert(&life.pool, it.at(), data(ga, size))?;
        Ok(it)
    })
}

/// Inserts copies of the bytes from `start` up to `end` before `it`. Returns the
/// iterator of the first of them.
#[unsafe(no_mangle)]
pub extern "C" fn acp_insert_range_deque(
    it: acp_deque_it_t,
    start: acp_deque_it_t,
    end: acp_deque_it_t,
) -> acp_deque_it_t {
    with(it, |life| {
        let range = (start.at(), end.at());
        let other: Sequence = *start.deque.of();
        it.deque.of().insert_range(&life.pool, it.at(), other, range)?;
        Ok(it)
    })
}

/// Removes the last `size` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn acp_pop_back_deque(deque: acp_deque_t, size: usize) {
    with((), |life| Ok(deque.of().pop_back(&life.pool, size as u64)?));
}

/// Removes the first `size` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn acp_pop_front_deque(deque: acp_deque_t, size: usize) {
    with((), |life| Ok(deque.of().pop_front(&life.pool, size as u64)?));
}

/// Appends the `size` bytes at `ga`.
#[unsafe(no_mangle)]
pub extern "C" fn acp_push_back_deque(deque: acp_deque_t, ga: acp_ga_t, size: usize) {
    with((), |life| {
        deque.of().push_back(&life.pool, data(ga, size))?;
        Ok(())
    });
}

/// Inserts the `size` bytes at `ga` before the first byte.
#[unsafe(no_mangle)]
pub extern "C" fn acp_push_front_deque(deque: acp_deque_t, ga: acp_ga_t, size: usize) {
    with((), |life| Ok(deque.of().push_front(&life.pool, data(ga, size))?));
}

/// Makes room for `size` bytes in total.
#[unsafe(no_mangle)]
pub extern "C" fn acp_reserve_deque(deque: acp_deque_t, size: usize) {
    with((), |life| Ok(deque.of().reserve(&life.pool, size as u64)?));
}

/// The number of bytes.
#[unsafe(no_mangle)]
pub extern "C" fn acp_size_deque(deque: acp_deque_t) -> usize {
    with(0, |life| Ok(deque.of().size(&life.pool)? as usize))
}

/// Exchanges the contents of the two deques. Afterwards neither has more room than
/// it needs.
#[unsafe(no_mangle)]
pub extern "C" fn acp_swap_deque(deque1: acp_deque_t, deque2: acp_deque_t) {
    with((), |life| {
        deque1.of().swap(&life.pool, *deque2.of())?;
        deque1.of().shrink_to_fit(&life.pool)?;
        Ok(deque2.of().shrink_to_fit(&life.pool)?)
    });
}

/// The iterator `n` bytes further, or back if `n` is negative.
#[unsafe(no_mangle)]
pub extern "C" fn acp_advance_deque_it(it: acp_deque_it_t, n: c_int) -> acp_deque_it_t {
    acp_deque_it_t { index: it.index.saturating_add(n), ..it }
}

/// The addresses of the `size` bytes from `it` on, as far as the deque has them:
/// one piece or two.
#[unsafe(no_mangle)]
pub extern "C" fn acp_dereference_deque_it(it: acp_deque_it_t, size: usize) -> acp_pair_t {
    with(acp_pair_t { first: acp_element_t::NONE, second: acp_element_t::NONE }, |life| {
        let [first, second] = it.deque.of().pieces(&life.pool, it.at(), size as u64)?;
        Ok(acp_pair_t { first: first.into(), second: second.into() })
    })
}

/// The number of bytes from `first` to `last`.
#[unsafe(no_mangle)]
pub extern "C" fn acp_distance_deque_it(first: acp_deque_it_t, last: acp_deque_it_t) -> c_int {
    last.index.saturating_sub(first.index)
}

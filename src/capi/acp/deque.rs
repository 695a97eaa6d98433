//! Deques of bytes: see [`Deque`].

use super::element::{acp_element_t, data};
use super::job::{NULL, with};
use super::{acp_ga_t, acp_pair_t};
use crate::global::GlobalAddr;
use crate::global::container::{Deque, Sequence};
use std::ffi::c_int;

/// A deque of bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct acp_deque_t {
    /// Its header: the address of its ring of bytes, where in the ring they begin,
    /// their number, and how many there is room for. `ACP_GA_NULL` is none.
    pub ga: acp_ga_t,
}

/// A byte of a deque, or its end.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct acp_deque_it_t {
    /// Of which.
    pub deque: acp_deque_t,
    /// Which byte.
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

/// Where a byte is, or `ACP_GA_NULL` if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn acp_at_deque(deque: acp_deque_t, index: c_int) -> acp_ga_t {
    with(NULL, |life| {
        let index = u64::try_from(index)?;
        Ok(deque.of().pieces(&life.pool, index, 1)?[0].addr.to_bits())
    })
}

/// The first byte.
#[unsafe(no_mangle)]
pub extern "C" fn acp_begin_deque(deque: acp_deque_t) -> acp_deque_it_t {
    acp_deque_it_t { deque, index: 0 }
}

/// How many bytes there is room for.
#[unsafe(no_mangle)]
pub extern "C" fn acp_capacity_deque(deque: acp_deque_t) -> usize {
    with(0, |life| Ok(deque.of().capacity(&life.pool)? as usize))
}

/// Takes all bytes out.
#[unsafe(no_mangle)]
pub extern "C" fn acp_clear_deque(deque: acp_deque_t) {
    with((), |life| Ok(deque.of().clear(&life.pool)?));
}

/// Makes an empty one with room for `size` bytes, on `rank`; its address is
/// `ACP_GA_NULL` if that could not be.
#[unsafe(no_mangle)]
pub extern "C" fn acp_create_deque(size: usize, rank: c_int) -> acp_deque_t {
    with(acp_deque_t { ga: NULL }, |life| {
        let made = Deque::create(&life.pool, 0, life.rank_of(rank)?)?;
        // ACP has room for whole words here, and for what is asked elsewhere.
        let room = size.checked_next_multiple_of(8).unwrap_or(size);
        made.reserve(&life.pool, room as u64).inspect_err(|_| {
            let _ = made.destroy(&life.pool);
        })?;
        Ok(acp_deque_t { ga: made.addr().to_bits() })
    })
}

/// Gives its memory back. Nobody uses it any more.
#[unsafe(no_mangle)]
pub extern "C" fn acp_destroy_deque(deque: acp_deque_t) {
    with((), |life| Ok(deque.of().destroy(&life.pool)?));
}

/// 1 if it has no bytes, otherwise 0.
#[unsafe(no_mangle)]
pub extern "C" fn acp_empty_deque(deque: acp_deque_t) -> c_int {
    with(1, |life| Ok(c_int::from(deque.of().is_empty(&life.pool)?)))
}

/// Behind the last byte.
#[unsafe(no_mangle)]
pub extern "C" fn acp_end_deque(deque: acp_deque_t) -> acp_deque_it_t {
    let index = with(0, |life| Ok(deque.of().size(&life.pool)?));
    acp_deque_it_t { deque, index: index as c_int }
}

/// Takes `size` bytes out; what followed them.
#[unsafe(no_mangle)]
pub extern "C" fn acp_erase_deque(it: acp_deque_it_t, size: usize) -> acp_deque_it_t {
    with(it, |life| {
        it.deque.of().erase(&life.pool, it.at(), size as u64)?;
        Ok(it)
    })
}

/// Takes the bytes from `start` up to `end` out; what followed them.
#[unsafe(no_mangle)]
pub extern "C" fn acp_erase_range_deque(
    start: acp_deque_it_t,
    end: acp_deque_it_t,
) -> acp_deque_it_t {
    acp_erase_deque(start, end.at().saturating_sub(start.at()) as usize)
}

/// Puts the `size` bytes at `ga` in before `it`; the first of them.
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

/// Puts copies of the bytes from `start` up to `end` in before `it`; the first
/// of them.
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

/// Takes the last `size` bytes out.
#[unsafe(no_mangle)]
pub extern "C" fn acp_pop_back_deque(deque: acp_deque_t, size: usize) {
    with((), |life| Ok(deque.of().pop_back(&life.pool, size as u64)?));
}

/// Takes the first `size` bytes out.
#[unsafe(no_mangle)]
pub extern "C" fn acp_pop_front_deque(deque: acp_deque_t, size: usize) {
    with((), |life| Ok(deque.of().pop_front(&life.pool, size as u64)?));
}

/// Puts the `size` bytes at `ga` in behind the last.
#[unsafe(no_mangle)]
pub extern "C" fn acp_push_back_deque(deque: acp_deque_t, ga: acp_ga_t, size: usize) {
    with((), |life| {
        deque.of().push_back(&life.pool, data(ga, size))?;
        Ok(())
    });
}

/// Puts the `size` bytes at `ga` in before the first.
#[unsafe(no_mangle)]
pub extern "C" fn acp_push_front_deque(deque: acp_deque_t, ga: acp_ga_t, size: usize) {
    with((), |life| Ok(deque.of().push_front(&life.pool, data(ga, size))?));
}

/// Makes room for `size` bytes in all.
#[unsafe(no_mangle)]
pub extern "C" fn acp_reserve_deque(deque: acp_deque_t, size: usize) {
    with((), |life| Ok(deque.of().reserve(&life.pool, size as u64)?));
}

/// How many bytes it has.
#[unsafe(no_mangle)]
pub extern "C" fn acp_size_deque(deque: acp_deque_t) -> usize {
    with(0, |life| Ok(deque.of().size(&life.pool)? as usize))
}

/// The two change places. Neither has more room than it needs after that.
#[unsafe(no_mangle)]
pub extern "C" fn acp_swap_deque(deque1: acp_deque_t, deque2: acp_deque_t) {
    with((), |life| {
        deque1.of().swap(&life.pool, *deque2.of())?;
        deque1.of().shrink_to_fit(&life.pool)?;
        Ok(deque2.of().shrink_to_fit(&life.pool)?)
    });
}

/// `n` bytes on, or back.
#[unsafe(no_mangle)]
pub extern "C" fn acp_advance_deque_it(it: acp_deque_it_t, n: c_int) -> acp_deque_it_t {
    acp_deque_it_t { index: it.index.saturating_add(n), ..it }
}

/// Where the `size` bytes from `it` on are, as far as there are any: in one
/// piece, or in two.
#[unsafe(no_mangle)]
pub extern "C" fn acp_dereference_deque_it(it: acp_deque_it_t, size: usize) -> acp_pair_t {
    with(acp_pair_t { first: acp_element_t::NONE, second: acp_element_t::NONE }, |life| {
        let [first, second] = it.deque.of().pieces(&life.pool, it.at(), size as u64)?;
        Ok(acp_pair_t { first: first.into(), second: second.into() })
    })
}

/// Bytes from `first` to `last`.
#[unsafe(no_mangle)]
pub extern "C" fn acp_distance_deque_it(first: acp_deque_it_t, last: acp_deque_it_t) -> c_int {
    last.index.saturating_sub(first.index)
}

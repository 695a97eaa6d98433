//! Vectors of bytes: see [`Vector`].

use super::acp_ga_t;
use super::element::data;
use super::life::{NULL, with};
use std::ffi::c_int;
use tsumugi::global::GlobalAddr;
use tsumugi::global::container::{Sequence, Vector};

/// A vector of bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct acp_vector_t {
    /// The address of the header, which holds the address of the bytes, their
    /// number, and the number of bytes for which there is room. `ACP_GA_NULL` is no
    /// vector.
    pub ga: acp_ga_t,
}

/// A byte of a vector, or its end.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct acp_vector_it_t {
    /// The vector.
    pub vector: acp_vector_t,
    /// The index of the byte.
    pub index: c_int,
}

impl acp_vector_t {
    fn of(self) -> Vector {
        Vector::at_addr(GlobalAddr::from_bits(self.ga))
    }
}

impl acp_vector_it_t {
    fn at(self) -> u64 {
        self.index.max(0) as u64
    }
}

/// `vector1` becomes a copy of `vector2`.
#[unsafe(no_mangle)]
pub extern "C" fn acp_assign_vector(vector1: acp_vector_t, vector2: acp_vector_t) {
    with((), |life| {
        let all = (0, u64::MAX);
        Ok(vector1.of().assign(&life.pool, *vector2.of(), all)?)
    });
}

/// `vector` becomes a copy of the bytes from `start` up to `end`.
#[unsafe(no_mangle)]
pub extern "C" fn acp_assign_range_vector(
    vector: acp_vector_t,
    start: acp_vector_it_t,
    end: acp_vector_it_t,
) {
    with((), |life| {
        let range = (start.at(), end.at());
        Ok(vector.of().assign(&life.pool, *start.vector.of(), range)?)
    });
}

/// The global address of the byte at `index`, or `ACP_GA_NULL` if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn acp_at_vector(vector: acp_vector_t, index: c_int) -> acp_ga_t {
    with(NULL, |life| {
        let index = u64::try_from(index)?;
        Ok(vector.of().pieces(&life.pool, index, 1)?[0].addr.to_bits())
    })
}

/// The iterator of the first byte.
#[unsafe(no_mangle)]
pub extern "C" fn acp_begin_vector(vector: acp_vector_t) -> acp_vector_it_t {
    acp_vector_it_t { vector, index: 0 }
}

/// The number of bytes for which there is room.
#[unsafe(no_mangle)]
pub extern "C" fn acp_capacity_vector(vector: acp_vector_t) -> usize {
    with(0, |life| Ok(vector.of().capacity(&life.pool)? as usize))
}

/// Removes all bytes.
#[unsafe(no_mangle)]
pub extern "C" fn acp_clear_vector(vector: acp_vector_t) {
    with((), |life| Ok(vector.of().clear(&life.pool)?));
}

/// Makes a vector of `size` bytes, on `rank`. On failure the address of the vector
/// is `ACP_GA_NULL`.
#[unsafe(no_mangle)]
pub extern "C" fn acp_create_vector(size: usize, rank: c_int) -> acp_vector_t {
    with(acp_vector_t { ga: NULL }, |life| {
        let made = Vector::create(&life.pool, size as u64, life.rank_of(rank)?)?;
        Ok(acp_vector_t { ga: made.addr().to_bits() })
    })
}

/// Frees the memory of the vector. No rank may use it any more.
#[unsafe(no_mangle)]
pub extern "C" fn acp_destroy_vector(vector: acp_vector_t) {
    with((), |life| Ok(vector.of().destroy(&life.pool)?));
}

/// Returns 1 if the vector has no bytes, otherwise 0.
#[unsafe(no_mangle)]
pub extern "C" fn acp_empty_vector(vector: acp_vector_t) -> c_int {
    with(1, |life| Ok(c_int::from(vector.of().is_empty(&life.pool)?)))
}

/// The iterator behind the last byte.
#[unsafe(no_mangle)]
pub extern "C" fn acp_end_vector(vector: acp_vector_t) -> acp_vector_it_t {
    let index = with(0, |life| Ok(vector.of().size(&life.pool)?));
    acp_vector_it_t { vector, index: index as c_int }
}

/// Removes `size` bytes at `it`. Returns the iterator of the byte that followed
/// them.
#[unsafe(no_mangle)]
pub extern "C" fn acp_erase_vector(it: acp_vector_it_t, size: usize) -> acp_vector_it_t {
    with(it, |life| {
        it.vector.of().erase(&life.pool, it.at(), size as u64)?;
        Ok(it)
    })
}

/// Removes the bytes from `start` up to `end`. Returns the iterator of the byte
/// that followed them.
#[unsafe(no_mangle)]
pub extern "C" fn acp_erase_range_vector(
    start: acp_vector_it_t,
    end: acp_vector_it_t,
) -> acp_vector_it_t {
    acp_erase_vector(start, end.at().saturating_sub(start.at()) as usize)
}

/// Inserts the `size` bytes at `ga` before `it`. Returns the iterator of the first
/// of them.
#[unsafe(no_mangle)]
pub extern "C" fn acp_insert_vector(
    it: acp_vector_it_t,
    ga: acp_ga_t,
    size: usize,
) -> acp_vector_it_t {
    with(it, |life| {
        it.vector.of().insert(&life.pool, it.at(), data(ga, size))?;
        Ok(it)
    })
}

/// Inserts copies of the bytes from `start` up to `end` before `it`. Returns the
/// iterator of the first of them.
#[unsafe(no_mangle)]
pub extern "C" fn acp_insert_range_vector(
    it: acp_vector_it_t,
    start: acp_vector_it_t,
    end: acp_vector_it_t,
) -> acp_vector_it_t {
    with(it, |life| {
        let range = (start.at(), end.at());
        let other: Sequence = *start.vector.of();
        it.vector.of().insert_range(&life.pool, it.at(), other, range)?;
        Ok(it)
    })
}

/// Removes the last `size` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn acp_pop_back_vector(vector: acp_vector_t, size: usize) {
    with((), |life| Ok(vector.of().pop_back(&life.pool, size as u64)?));
}

/// Appends the `size` bytes at `ga`.
#[unsafe(no_mangle)]
pub extern "C" fn acp_push_back_vector(vector: acp_vector_t, ga: acp_ga_t, size: usize) {
    with((), |life| {
        vector.of().push_back(&life.pool, data(ga, size))?;
        Ok(())
    });
}

/// Makes room for `size` bytes in total.
#[unsafe(no_mangle)]
pub extern "C" fn acp_reserve_vector(vector: acp_vector_t, size: usize) {
    with((), |life| Ok(vector.of().reserve(&life.pool, size as u64)?));
}

/// The number of bytes.
#[unsafe(no_mangle)]
pub extern "C" fn acp_size_vector(vector: acp_vector_t) -> usize {
    with(0, |life| Ok(vector.of().size(&life.pool)? as usize))
}

/// Exchanges the contents of the two vectors.
#[unsafe(no_mangle)]
pub extern "C" fn acp_swap_vector(vector1: acp_vector_t, vector2: acp_vector_t) {
    with((), |life| Ok(vector1.of().swap(&life.pool, *vector2.of())?));
}

/// The iterator `n` bytes further, or back if `n` is negative.
#[unsafe(no_mangle)]
pub extern "C" fn acp_advance_vector_it(it: acp_vector_it_t, n: c_int) -> acp_vector_it_t {
    acp_vector_it_t { index: it.index.saturating_add(n), ..it }
}

/// The global address of the byte, or `ACP_GA_NULL` if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn acp_dereference_vector_it(it: acp_vector_it_t) -> acp_ga_t {
    acp_at_vector(it.vector, it.index)
}

/// The number of bytes from `first` to `last`.
#[unsafe(no_mangle)]
pub extern "C" fn acp_distance_vector_it(first: acp_vector_it_t, last: acp_vector_it_t) -> c_int {
    last.index.saturating_sub(first.index)
}

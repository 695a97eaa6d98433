//! Allocation from the heap of any rank.

use super::life::with;
use super::{ACP_GA_NULL, acp_ga_t};
use std::ffi::c_int;
use tsumugi::global::GlobalAddr;
use tsumugi::global::container::Store;

/// Allocates `size` bytes from the heap of `rank`; returns `ACP_GA_NULL` on
/// failure. Lock-free.
#[unsafe(no_mangle)]
pub extern "C" fn acp_malloc(size: usize, rank: c_int) -> acp_ga_t {
    with(ACP_GA_NULL, |life| Ok(life.pool.allocate(life.rank_of(rank)?, size as u64)?.to_bits()))
}

/// Frees memory that `acp_malloc` allocated, on any rank; `ACP_GA_NULL` is allowed.
/// Lock-free.
#[unsafe(no_mangle)]
pub extern "C" fn acp_free(ga: acp_ga_t) {
    with((), |life| {
        if ga != ACP_GA_NULL {
            life.pool.free(GlobalAddr::from_bits(ga))?;
        }
        Ok(())
    });
}

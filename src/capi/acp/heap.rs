//! Remote malloc and free.

use super::job::with;
use super::{ACP_GA_NULL, acp_ga_t};
use crate::global::GlobalAddr;
use crate::global::container::Store;
use std::ffi::c_int;

/// Takes `size` bytes of `rank`'s heap, or answers `ACP_GA_NULL`. Lock-free.
#[unsafe(no_mangle)]
pub extern "C" fn acp_malloc(size: usize, rank: c_int) -> acp_ga_t {
    with(ACP_GA_NULL, |life| Ok(life.pool.allocate(life.rank_of(rank)?, size as u64)?.to_bits()))
}

/// Gives back what `acp_malloc` gave to whichever rank; `ACP_GA_NULL` is no
/// harm. Lock-free.
#[unsafe(no_mangle)]
pub extern "C" fn acp_free(ga: acp_ga_t) {
    with((), |life| {
        if ga != ACP_GA_NULL {
            life.pool.free(GlobalAddr::from_bits(ga))?;
        }
        Ok(())
    });
}

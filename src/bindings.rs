//! What the C interface and ACP's interface (the packages `tsumugi-capi` and
//! `tsumugi-acp`) need of a rank beside the public interface.
//!
//! Hidden, because it offers the inside of a rank without its rules: exposed memory
//! with no owner, names of another colour, a counter of the launcher's. It is no part
//! of the public interface, and changes without notice.

pub use crate::global::bases::Bases;

use crate::global::{Global, GlobalBlock, Pool};
use crate::{Error, Runtime};
use tsumugi_core::sync::AtomicU32;
use tsumugi_pvas::ExposedArea;

/// The exposed area, for memory that peers may access.
pub fn exposed(runtime: &Runtime) -> &ExposedArea {
    runtime.exposed()
}

/// The number of threads, timers and handles outside of the workers that may still
/// wake a worker: while it is not 0, the rank does not count as quiet.
pub fn outside(runtime: &Runtime) -> &'static AtomicU32 {
    let outside: *const AtomicU32 = runtime.node().member().control().outside();
    // SAFETY: a space that has a heap is never unmapped, and a rank's space has one.
    unsafe { &*outside }
}

/// Opens the global memory with names of `colors` colours, if it is not open yet. The
/// registrations of the handle get names of `color`. The first call is collective.
///
/// # Errors
///
/// As for [`Runtime::global`].
pub fn global_of(runtime: &Runtime, colors: u32, color: u8) -> Result<Global, Error> {
    runtime.global_of(colors, color)
}

/// The memory of a pool on this rank.
pub fn pool_memory(pool: &Pool) -> &GlobalBlock<u64> {
    pool.own()
}

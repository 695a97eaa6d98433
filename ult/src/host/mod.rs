//! The system that ULTs run on: its services, in two implementations.
//!
//! | feature | file | the host |
//! |---|---|---|
//! | `std`, the default | `os` | Linux and the standard library |
//! | without it | `bare` | the embedding program: [`Host`](crate::Host) |
//!
//! Both files have the same names: `Instant`, `PanicPayload`, `catch`, `resume`,
//! `JoinHandle`, `ThreadError`, `start_thread`, `cores`, `wait`, `wake`,
//! `yield_thread`, `page_bytes`, `keep_from_children`, `unmap`, `hand_back`,
//! `guard`, `membarrier`, `say`, `abort`.

#[cfg(feature = "std")]
#[cfg_attr(tsumugi_loom, allow(dead_code, reason = "the model has its own"))]
mod os;
#[cfg(not(feature = "std"))]
mod bare;

#[cfg(not(feature = "std"))]
pub(crate) use bare::*;
#[cfg(not(feature = "std"))]
pub use bare::{Host, NoThreads, set_host};
#[cfg(feature = "std")]
pub(crate) use os::*;

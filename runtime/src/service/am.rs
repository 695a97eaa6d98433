//! Active messages between the ranks of a job: drives the state machine of
//! [`tsumugi_core::am`] over the partitions of its node, and by a
//! [`Transport`](crate::net::Transport) between nodes.
//!
//! ```text
//!  call, cast ─► lock: machine ─► operations: on this node, carried out by
//!                     ▲  │        the caller; on others, begun by the caller,
//!                     │  │        and their ends wake the thread that pumps
//!   a worker that polls, │ or the helper: one at a time
//!                     │  ▼
//!                   pump ─► handlers, in order · callers woken · room given
//! ```
//!
//! The lock of the machine is held for a few hundred instructions, and never while
//! an operation is carried out, a handler runs or a thread is woken. Handlers run
//! one at a time on each rank, on the stack of a worker or of the helper.
//!
//! Memory of each rank, from its exposed area: `2 * CELLS * 256` bytes of lanes (8
//! KiB) for each rank of its node, and as much, in a large job down to a quarter of
//! it, for each rank of another node with which it exchanges calls, 64 ranks at a
//! time; 16 KiB of staging cells, and landing buffers for long payloads. The memory
//! stays until the job ends, because a last write of a peer may come late. A rank of
//! another node without such calls costs nothing. `tsumugi info --memory` lists all
//! of it.

mod footprint;
mod greeting;
mod lanes;
mod meet;
mod onward;
mod outbound;
mod outside;
mod pump;
#[cfg(any(test, feature = "testing"))]
mod seen;
mod send;
mod state;

pub use footprint::{Footprint, footprint};
pub use outbound::RemoteOps;
pub(crate) use outside::Outside;
pub use state::{Am, Function};

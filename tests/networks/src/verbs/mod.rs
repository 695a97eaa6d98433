//! libibverbs inside of the process: simulated devices of one thread, with as many
//! pairs as memory holds, for tests and for counting instructions on a machine
//! without a device.
//!
//! ```text
//!  post_send ─► pair.requests ─┐ a poll of any queue carries some out:
//!                              ├─► bytes moved, words added, buffers filled
//!  poll_cq ◄─ queue.entries ◄──┘   refused: this pair ends, the rest is flushed
//! ```
//!
//! The simulation follows the standard for reliable pairs: requests of a pair are
//! carried out in their order; a request that finds no buffer waits, with all
//! requests after it, without a limit; a key that names nothing or forbids the
//! access ends both pairs; a request to a pair that has ended gets no answer.
//! Datagrams are lost where there is no buffer.

mod calls;
mod dct;
mod devices;

pub use devices::{alive_max, libraries, restrict};

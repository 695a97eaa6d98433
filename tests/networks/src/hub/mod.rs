//! A network inside of one process: tests of the layers above a wire run over it,
//! without a library. It makes rare behaviour of devices frequent.
//!
//! ```text
//!  put, get, word ─► under way ─ due ─► the peer's memory ─► Done
//!  send ───────────► under way ─ due ─► the peer's packets ─► Done
//!     │                  └─ Again: not done, post it once more
//!     └─ no room (EAGAIN), not yet (EINPROGRESS)
//! ```
//!
//! Operations that are under way are carried out by polls of the rank that posted
//! them, in any order. The polling thread copies memory itself, and changes words
//! by atomic instructions. An endpoint that is shut does not answer any more:
//! operations on it fail.
//!
//! Progress: nothing here waits, except for short locks.

mod domain;
mod network;
mod wire;
mod station;

pub use domain::{HubConfig, HubDomain, HubEndpoint};
pub use network::{FaultPlan, Hub};
pub use wire::{HubDescription, HubWire};

//! How bytes move: the interface to devices and to shared memory.
//!
//! There are three interfaces. A device implements the first two, and memory that
//! this processor reaches implements the third:
//!
//! - [`Domain`] (`&self`): an opened device. Capabilities as data, register memory,
//!   make endpoints. Slow path.
//! - [`Endpoint`] (`&mut self`): one queue of a device. Post a batch, poll, arm the
//!   device's event before sleeping. One owner at a time; an executor provides the
//!   owner.
//! - [`LoadStore`] (`&self`): memory that this processor can load and store. The
//!   whole same-node path: no ring, no tag, no queue.
//!
//! `tests/conformance` has one suite for [`Domain`] and [`Endpoint`] and one for
//! [`LoadStore`], which every implementation passes; the loopback needs no hardware
//! and passes both. A network library does not implement these traits itself: it
//! implements `NetWire` of the crate `tsumugi-backends`, which makes the first two of it
//! (`docs/architecture.md`, *Adding a network*). [`Fault`] and [`Trace`] wrap any
//! endpoint: the former injects faults drawn from a seed, the latter keeps a log.

mod access;
mod bytes;
mod device;
mod fault;
mod load_store;
mod loopback;
mod queued;
mod trace;

pub use access::{execute, load_bytes, store_bytes};
pub use bytes::copy_bytes;
pub use device::{Capabilities, Completion, Domain, Endpoint};
pub use fault::{Fault, FaultDomain, FaultPlan, Faults};
pub use load_store::LoadStore;
pub use loopback::{Delivery, Loopback, LoopbackEndpoint, LoopbackRank};
pub use queued::Queued;
pub use trace::{Trace, TraceLog, TraceRecord, TraceStage};

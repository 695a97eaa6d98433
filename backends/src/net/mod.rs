//! The common part of all networks: everything between the interface of `core` and
//! the calls of a library. Another crate adds a network by these steps: it implements
//! [`NetWire`], opens a [`NicEndpoint`] over each wire, and makes a [`NetDomain`] of
//! them with [`NetDomain::assemble`]. `tests/networks` has an example.
//!
//! ```text
//!  NetDomain<W> ── shared: region table, cards, who is dead
//!     │
//!     ├─ nic 0: wire W + directory + operations  ◄─ NetEndpoint
//!     └─ nic 1: the same, with nothing in common ◄─ NetEndpoint
//! ```
//!
//! | file | what is in it |
//! |---|---|
//! | `wire` | the interface to a library |
//! | `domain` | the NIC endpoints of a rank |
//! | `card` | the data that ranks exchange at start |
//! | `memory` | the directory of own regions, and the cache of peers' regions |
//! | `packet` | the form of packets, and the buffers for them |
//! | `send`, `receive` | packets down, packets and doorbells up |
//! | `secret_rng` | keys that other programs cannot guess |
//! | `immediate` | doorbells that a put carries itself (immediate data) |
//! | `nic_endpoint`, `scratch` | the parts of one endpoint |
//! | `first_contact` | peers that cannot be reached yet |
//! | `failure` | failures of a device |
//! | `in_flight` | an operation under way |
//! | `endpoint` | one queue, as its user holds it |
//! | `post` | operations down |
//! | `poll` | completions up |
//! | `lookup` | slots of directories, read on demand |
//! | `probe_report` | the results of trials of a library |
//! | `assemble_error` | why a domain cannot be opened |
//!
//! A NIC endpoint has one owner at a time, so that nothing below it needs a lock.
//! Endpoint k of a rank communicates with endpoint k of its peers. A registration takes
//! every NIC endpoint for a moment; an endpoint that is posted to or polled meanwhile
//! does nothing.

mod card;
mod domain;
mod first_contact;
mod endpoint;
mod failure;
mod in_flight;
mod lookup;
mod memory;
mod secret_rng;
mod immediate;
mod packet;
mod poll;
mod post;
mod probe_report;
mod nic_endpoint;
mod receive;
mod scratch;
mod send;
mod assemble_error;
mod wire;

pub use assemble_error::AssembleError;
pub use card::{CardError, ENDPOINTS_MAX};
pub use domain::{NetDomain, Traits};
pub use endpoint::NetEndpoint;
pub use failure::{DeviceFailure, DeviceFailures};
pub use nic_endpoint::{CardSource, Limits, NicEndpoint, PEER_BYTES, Sizes, footprint_of};
pub use packet::{Arrival, PACKETS_AT_ONCE, PacketError};
pub use probe_report::{ProbeReport, TrialResult, TrialRow};
pub use scratch::contexts_of;
pub use secret_rng::SecretRng;
pub use wire::{
    ADDRESS_BYTES_MAX, CompletionEntry, CompletionStatus, ENTRIES_MAX, KEY_WORDS, LocalBuffer, Mr,
    NetWire, PostResult, RemoteBuffer, ShutOut, WireKey, WordBuffers,
};

pub(crate) use scratch::ZeroedPages;

#[cfg(test)]
mod tests;

//! The common part of all networks: everything between the interface of `core` and
//! the calls of a library.
//!
//! ```text
//!  NetDomain<W> ── shared: region table, cards, who is dead
//!     │
//!     ├─ rail 0: wire W + directory + operations  ◄─ NetEndpoint
//!     └─ rail 1: the same, with nothing in common ◄─ NetEndpoint
//! ```
//!
//! | file | what is in it |
//! |---|---|
//! | `wire` | the interface to a library |
//! | `domain` | the rails of a rank |
//! | `card` | the data that ranks exchange at start |
//! | `memory` | the directory of own regions, and the cache of peers' regions |
//! | `packet` | the form of packets, and the buffers for them |
//! | `send`, `receive` | packets down, packets and doorbells up |
//! | `noise` | keys that other programs cannot guess |
//! | `number` | doorbells that a put carries itself (immediate data) |
//! | `rail`, `scratch` | the parts of one endpoint |
//! | `early` | peers that cannot be reached yet |
//! | `failure` | failures of a device |
//! | `flight` | an operation under way |
//! | `endpoint` | one queue, as its user holds it |
//! | `post` | operations down |
//! | `poll` | completions up |
//! | `lookup` | slots of directories, read on demand |
//! | `probed` | the results of trials of a library |
//! | `unfit` | why a domain cannot be opened |
//!
//! A rail has one owner at a time, so that nothing below it needs a lock. Endpoint
//! k of a rank communicates with endpoint k of its peers. A registration takes
//! every rail for a moment; an endpoint that is posted to or polled meanwhile does
//! nothing.

mod card;
mod domain;
mod early;
mod endpoint;
mod failure;
mod flight;
mod lookup;
mod memory;
mod noise;
mod number;
mod packet;
mod poll;
mod post;
mod probed;
mod rail;
mod receive;
mod scratch;
mod send;
mod unfit;
mod wire;

pub use card::CardError;
pub use domain::NetDomain;
pub use endpoint::NetEndpoint;
pub use failure::{Failure, Failures};
pub use packet::{Arrival, PACKETS_AT_ONCE, SendError};
pub use probed::{Probed, Row, Verdict};
pub use rail::{Cards, PEER_BYTES};
pub use wire::Wire;

pub(crate) use card::ENDPOINTS_MAX;
pub(crate) use domain::Traits;
pub(crate) use noise::Noise;
pub(crate) use rail::{Limits, Rail, Sizes, footprint_of};
pub(crate) use scratch::{Area, contexts_of};
pub(crate) use unfit::Unfit;
pub(crate) use wire::{
    ADDRESS_BYTES_MAX, Answer, ENTRIES_MAX, End, Entry, Far, Key, Mr, Near, Nears,
};

#[cfg(test)]
mod tests;

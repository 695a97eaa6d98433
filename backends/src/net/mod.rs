//! What all networks have in common: everything between the seam of `core`
//! and the calls of a library.
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
//! | `wire` | what a rail asks of a library |
//! | `domain` | the rails of a rank |
//! | `card` | what ranks tell each other at start |
//! | `memory` | what peers reach, and what is known of theirs |
//! | `packet` | bells and messages |
//! | `noise` | keys that a stranger does not guess |
//! | `number` | bells that a put brings itself |
//! | `rail`, `scratch` | what one endpoint has |
//! | `early` | peers that cannot be reached yet |
//! | `failure` | what a device refused |
//! | `flight` | an operation under way |
//! | `endpoint` | one queue, as its user holds it |
//! | `post` | operations down |
//! | `poll` | completions up |
//! | `lookup` | slots of directories, read on demand |
//! | `probed` | what a library was seen to do |
//! | `unfit` | why there is no domain |
//!
//! A rail has one owner at a time, so that nothing below needs a lock.
//! Endpoint k of a rank talks to endpoint k of its peers. Registering takes
//! every rail for a moment; an endpoint that is posted to or polled meanwhile
//! does nothing.

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
mod scratch;
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

pub(crate) use domain::Traits;
pub(crate) use noise::Noise;
pub(crate) use rail::{Limits, Rail, Sizes, footprint_of};
pub(crate) use scratch::{Area, contexts_of};
pub(crate) use unfit::Unfit;
pub(crate) use wire::{
    ADDRESS_BYTES_MAX, Answer, ENTRIES_MAX, End, Entry, Far, Key, Mr, Near, Nears,
};

/// Endpoints that a card has room for.
pub(crate) const ENDPOINTS_MAX: usize = 16;

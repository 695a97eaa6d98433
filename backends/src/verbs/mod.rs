//! libibverbs: InfiniBand and RoCE, without a further layer.
//!
//! ```text
//!  VerbsDomain
//!     ├─ rail 0: line (context, cq, srq, door, pairs)          ◄─ VerbsEndpoint
//!     └─ rail 1: the same, with nothing in common but the card ◄─ VerbsEndpoint
//! ```
//!
//! | file | what is in it |
//! |---|---|
//! | `config` | the options of a domain, and the errors of opening it |
//! | `sys` | libibverbs' functions and structures |
//! | `address` | the address of a rank, as it crosses the network |
//! | `device` | a device, opened |
//! | `dynamic` | the dynamically connected transport: many peers by few pairs |
//! | `pair` | queue pairs, from state to state |
//! | `door` | the connection manager: calls between ranks about their pairs |
//! | `link` | connections to peers: made on first use, bounded in number, remade |
//! | `guest` | the passive side of connections |
//! | `talk` | the handling of calls |
//! | `line` | requests down, completions up |
//! | `probe` | trials of the device |
//! | `sim` | libibverbs inside of the process, for tests |
//!
//! A batch that is posted at once goes out with one doorbell for each peer. Short
//! puts and packets are copied into their requests. A put that must notify its
//! target is one request with immediate data: the word's region and offset, where
//! they fit in 32 bits.
//!
//! # Progress
//!
//! Puts, gets and atomics need no thread at the target once the link is open. To
//! open the link, the target has to poll once: a rank that never does keeps others
//! waiting, for at most [`Config::patience_ms`]. Packets wait for receive buffers
//! at the target, and then the requests to the same peer after them wait too.
//!
//! # Atomics
//!
//! A device does fetch-and-add and compare-and-swap on words of 8 bytes. They are
//! atomic among its own requests alone ([`Atomics::Device`]): the device and the
//! processor lose each other's updates of the same word. Therefore
//! [`Capabilities::device_atomics`] is false, every word has one agent, and an
//! operation that this device does not support ([`AddrError::Unsupported`]) is
//! emulated by the target's processor (an *errand*).
//!
//! [`Capabilities::device_atomics`]: tsumugi_core::backend::Capabilities
//! [`AddrError::Unsupported`]: tsumugi_core::mem::AddrError::Unsupported
//!
//! # The process
//!
//! - Registered memory is locked: `ulimit -l` bounds it.
//! - A forked child must not use, nor drop, an open domain.
//! - When a registration ends, requests of peers on it that are under way fail, and
//!   each failure ends the link of the request, which is then made again.

mod about;
mod address;
mod config;
mod device;
mod domain;
mod door;
mod dynamic;
mod guest;
mod line;
mod link;
mod pair;
mod probe;
#[cfg(any(test, feature = "sim"))]
pub mod sim;
pub mod sys;

pub use crate::net::{
    Arrival, CardError, Cards, Failure, Failures, Probed, Row, SendError, Verdict,
};
pub use about::{About, Counts};
pub use config::{Config, OpenError};
pub use device::{Atomics, Facts};
pub use domain::{VerbsDomain, VerbsEndpoint, footprint};
pub use dynamic::support::Dynamic;
pub use line::Line;

//! libibverbs: InfiniBand and RoCE, without a further layer.
//!
//! ```text
//!  VerbsDomain
//!     ├─ nic 0: wire (context, cq, srq, CM endpoint, pairs)   ◄─ VerbsEndpoint
//!     └─ nic 1: the same, with nothing in common but the card ◄─ VerbsEndpoint
//! ```
//!
//! | file | what is in it |
//! |---|---|
//! | `config` | the options of a domain, and the errors of opening it |
//! | `libraries` | the libraries whose functions are called |
//! | `sys` | libibverbs' functions and structures |
//! | `address` | the address of a rank, as it crosses the network |
//! | `device` | a device, opened |
//! | `dct` | the dynamically connected transport: many peers by few pairs |
//! | `pair` | queue pairs, from state to state |
//! | `cm` | the connection manager: messages between ranks about their pairs |
//! | `connection` | connections to peers: made on first use, bounded in number, remade |
//! | `passive` | the pairs by which peers reach this rank |
//! | `wire` | requests down, completions up, connections made and closed |
//! | `description`, `domain` | what a domain reports, and how it is opened |
//! | `probe` | trials of the device |
//!
//! A batch that is posted at once goes out with one doorbell for each peer. Short
//! puts and packets are copied into their requests. A put that must notify its
//! target is one request with immediate data: the word's region and offset, where
//! they fit in 32 bits.
//!
//! # Progress
//!
//! Puts, gets and atomics need no thread at the target once the connection is open. To
//! open the connection, the target has to poll once: a rank that never does keeps others
//! waiting, for at most [`VerbsConfig::connect_timeout_ms`]. Packets wait for receive
//! buffers at the target, and then the requests to the same peer after them wait too.
//!
//! # Atomics
//!
//! A device does fetch-and-add and compare-and-swap on words of 8 bytes. They are
//! atomic among its own requests alone ([`Atomics::VerbsDevice`]): the device and the
//! processor lose each other's updates of the same word. Therefore
//! [`Capabilities::device_atomics`] is false, every word has one agent, and an
//! operation that this device does not support ([`AddrError::Unsupported`]) is
//! emulated by the target's processor (an *emulated operation*).
//!
//! [`Capabilities::device_atomics`]: tsumugi_core::backend::Capabilities
//! [`AddrError::Unsupported`]: tsumugi_core::mem::AddrError::Unsupported
//!
//! # The process
//!
//! - Registered memory is locked: `ulimit -l` bounds it.
//! - A forked child must not use, nor drop, an open domain.
//! - When a registration ends, requests of peers on it that are under way fail, and
//!   each failure ends the connection of the request, which is then made again.

mod description;
mod address;
mod config;
mod device;
mod domain;
mod cm;
pub mod dct;
mod libraries;
mod passive;
mod wire;
mod connection;
mod pair;
mod probe;
pub mod sys;

pub use crate::net::{
    Arrival, CardError, CardSource, DeviceFailure, DeviceFailures, PacketError, ProbeReport,
    TrialResult, TrialRow,
};
pub use config::{OpenError, VerbsConfig};
pub use dct::support::DctSupport;
pub use description::{QpCounters, VerbsDescription};
pub use device::{Atomics, Facts};
pub use domain::{VerbsDomain, VerbsEndpoint, footprint};
pub use libraries::VerbsLibraries;
pub use wire::VerbsWire;

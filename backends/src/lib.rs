//! The networks between nodes, and the bootstrap of ranks on many nodes.
//!
//! `net` is common to all networks: operations down (`endpoint`), completions up
//! (`poll`), registered memory (`memory`), packets, cards. Each backend is a folder
//! with one implementation of `NetWire`, in `wire`, which maps the
//! calls of `net` to those of its library. A folder for a library also has `config`,
//! `sys` (the foreign functions) and `probe` (trials of the device). The library is
//! loaded when a job requests it: the build needs none. The steps of adding a backend
//! are in `docs/architecture.md`, *Adding a network*.
//!
//! | backend | what it drives |
//! |---|---|
//! | [`ofi`] | libfabric: tcp, udp, verbs, EFA, Slingshot, ... |
//! | [`verbs`] | libibverbs: InfiniBand, RoCE |
//!
//! [`boot`] is the bootstrap of ranks that any launcher has started.

pub mod boot;
mod foreign;
pub mod net;

pub mod ofi;
pub mod verbs;
#[cfg(all(test, any(tsumugi_asan, tsumugi_tsan)))]
mod planted;

pub use net::{NetDomain, NetEndpoint, PACKETS_AT_ONCE, PEER_BYTES};

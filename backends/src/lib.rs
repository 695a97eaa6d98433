//! The networks between nodes, and the bootstrap of ranks on many nodes.
//!
//! `net` is common to all networks: operations down (`endpoint`), completions up
//! (`poll`), registered memory (`memory`), packets, cards. Each backend is a folder
//! that maps this to the calls of its library: `config`, `sys` (the foreign
//! functions), `wire`, `probe`. The library is loaded when a job requests it: the
//! build needs none.
//!
//! | backend | what it drives |
//! |---|---|
//! | [`ofi`] | libfabric: tcp, udp, verbs, EFA, Slingshot, ... |
//! | [`verbs`] | libibverbs: InfiniBand, RoCE |
//! | [`hub`] | threads of this very process, for tests |
//!
//! [`boot`] is the bootstrap of ranks that any launcher has started.

pub mod boot;
mod foreign;
mod net;

pub mod hub;
pub mod ofi;
pub mod verbs;
#[cfg(all(test, any(tsumugi_asan, tsumugi_tsan)))]
mod planted;

#[doc(hidden)]
pub use net::Wire;
pub use net::{NetDomain, NetEndpoint, PACKETS_AT_ONCE, PEER_BYTES};

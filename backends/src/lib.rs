//! How bytes leave the node, and how ranks on many nodes find each other.
//!
//! `net` is what all networks have in common: operations down (`endpoint`),
//! completions up (`poll`), what peers reach (`memory`), packets, cards. Each
//! backend is a folder, which says how its library is asked for that: `config`,
//! `sys` (the foreign functions), `wire`, `probe`. The library is loaded when
//! a job asks for it: the build needs none.
//!
//! | backend | what it drives |
//! |---|---|
//! | [`ofi`] | libfabric: tcp, udp, verbs, EFA, Slingshot, ... |
//! | [`verbs`] | libibverbs: InfiniBand, RoCE |
//! | [`hub`] | threads of this very process, for tests |
//!
//! [`boot`] is how ranks that some launcher started find each other.

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

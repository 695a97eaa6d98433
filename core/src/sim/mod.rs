//! Deterministic simulation: many nodes in one thread, from one seed. The code is
//! the same as on a real network; the simulated network does its worst, and repeats
//! it when the seed is run again.
//!
//! A [`Net`] consists of nodes with memory and of the operations in flight between
//! them. Each [`SimNode`] is a [`Domain`] with [`Endpoint`]s, for the engine and the
//! layers above it, or an [`Actor`], for state machines that do no IO themselves:
//!
//! ```text
//!                     ┌──── Event: Completed, Bell, Timer, PeerLost ◄──┐
//!   Actor ────────────┘                                                │
//!     └─► node.post(op), node.wake_at(time) ─► [ what is due, by time ]┘
//!                                                       ▲
//!   engine ─► endpoint.post(op) ────────────────────────┘ step()
//!          ◄─ endpoint.poll(..) ◄─ completions
//! ```
//!
//! Only [`Net::step`] and [`Net::run_until`] move time. Events that are due at the
//! same time happen in the order in which they were scheduled; their order depends
//! on nothing else, so on no address and no hash. [`SimConfig`] says what the network
//! may do: delay, reorder, lose and send again, tear puts, complete early, complete
//! twice. [`Net::kill`], [`Net::cut`] and [`Net::give_up`] do the rest, and a
//! [`NetPartition`] is a sequence of the three.
//!
//! An operation that finds a full queue is refused. An operation that was taken ends
//! exactly once or, with `duplicate`, at least once; it always ends. A dead node
//! receives no events any more, but the operations that it had posted may still take
//! effect.
//!
//! Cost: O(log n) for each event, and no allocation once buffers have grown; some
//! 650 bytes for each node.
//!
//! # Example
//!
//! ```
//! use tsumugi_core::mem::{Access, Rank, RemoteAddr, Width};
//! use tsumugi_core::op::{Kind, Op};
//! use tsumugi_core::sim::{SimConfig, SimEvent, Net, SimNode};
//!
//! let net = Net::new(SimConfig::drawn(5, 7));
//! let sum = net.node(Rank(0)).allocate(8, Access::ReadWrite).unwrap();
//! let at = RemoteAddr { rank: Rank(0), key: sum.key, offset: 0 };
//! // Every node adds 1 to a word of node 0.
//! net.run(&mut [|node: &SimNode<'_>, event: SimEvent| {
//!     if event == SimEvent::Start {
//!         node.post(&Op::atomic(Kind::FetchAdd, at, 1u64));
//!     }
//! }; 5]);
//! assert_eq!(net.node(Rank(0)).load(sum.key, 0), Ok(5));
//! ```

mod actor;
mod config;
mod event;
mod flight;
mod cost_model;
mod memory;
mod net;
mod node;
mod partition;
mod router;
#[cfg(feature = "std")]
mod seed;
#[cfg(feature = "std")]
mod shrink;
mod exclusive;
mod state;

pub use actor::Actor;
pub use config::SimConfig;
pub use cost_model::CostModel;
pub use event::SimEvent;
pub use net::Net;
pub use node::{NodeEndpoint, SimNode};
pub use partition::NetPartition;
#[cfg(feature = "std")]
pub use seed::{Seeds, check};
#[cfg(feature = "std")]
pub use shrink::few;

#[cfg(doc)]
use crate::backend::{Domain, Endpoint};

#[cfg(not(feature = "std"))]
mod shrink {
    /// Always true: this build does not make failing runs smaller.
    pub(super) fn strikes(_number: u64) -> bool {
        true
    }
}

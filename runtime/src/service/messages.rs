//! Messages between the ranks of a job: drives the state machine of
//! [`tsumugi_core::msg`] over the partitions of a node, and over parcels of a
//! [`Transport`](crate::net::Transport) to ranks of other nodes.
//!
//! The machine uses indices of its peers, not ranks. So its tables
//! have entries for the ranks of the node, and for the ranks of other nodes with
//! which a message was exchanged or for which a receive was posted.

mod label;
mod orphans;
mod wire;
mod post;
mod route;
mod state;
mod lookers;
mod drive;
mod footprint;
mod wait;
mod watch;
mod begin;
mod in_flight;

pub use begin::ShortReceive;
pub use drive::{ContextName, Messages, Under};
pub use footprint::{footprint, net_footprint, tables_bytes};
pub use in_flight::{EndOf, MessageBegun, MessageCall, MessageEnd, MessageInFlight};
pub use label::{Received, SendMode, Source, Tags, pattern};
pub(crate) use wait::MessageWait;
pub(crate) use wire::MessageLanes;

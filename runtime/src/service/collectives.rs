//! Collectives of groups: drives the schedules of [`tsumugi_core::coll::schedule`] over
//! messages that no receive of the program can match.
//!
//! ```text
//!  a blocking call ──► Exchange ──► messages with the group's context, tag = number of
//!  a begun one ─────►    │          the collective in the group
//!    driven by workers   └─ copies, combines
//! ```
//!
//! A short message of a node is one line of a lane, so a step costs one trip of a line;
//! a long one is copied once. Between nodes the same messages are parcels and fetches.
//!
//! Short values of a group on one node take no message: each member writes
//! its value to its own row, and the others read it there (`rows`).
//!
//! # Deaths
//!
//! A death breaks every group of the job, because each was split from the one of all
//! ranks, and a member that failed to split would be waited for. Every rank learns of
//! a death by itself. Its collectives make no further step, their receives are
//! cancelled, and from then on the rank takes all that still comes to its groups, so
//! that the sends of other survivors end.

mod buffers;
mod contexts;
mod broken;
mod row_table;
mod service;
mod rows;
mod group;
mod row_turn;
mod exchange;
mod run;
mod split;
mod message_context;
mod begun;

pub use begun::{CollBegun, CollCall, CollInFlight, CollOwner};
pub(crate) use begun::{IN_FLIGHT, NO_NAME};
pub use buffers::{CollBuffers, CollScratch, Combine, CombineFn};
pub(crate) use contexts::WORLD;
pub use group::GroupHandle;
pub use message_context::MessageContext;
pub use service::Collectives;

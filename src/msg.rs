//! Messages between the ranks of a job: drives the machine of
//! [`tsumugi_core::msg`] over the partitions of a node, and over parcels where
//! a rank is on another one.
//!
//! The machine knows [seats](crate::seats), not ranks: so its tables have
//! entries for the ranks of the node and for those of other nodes to which or
//! from which there was a message, or a receive was posted for one.

mod label;
mod wire;
mod parcels;
mod post;
mod route;
mod state;
mod drive;
mod wait;
mod begin;

pub use drive::{Messages, Under};
pub(crate) use label::pattern;
pub use label::{Received, Source, Tags};
pub(crate) use parcels::Parcels;
pub(crate) use wire::{Lanes, far_footprint, footprint, tables_bytes};

#[cfg(test)]
mod tests;

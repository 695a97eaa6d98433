//! Messages between the ranks of a node: drives the machine of
//! [`tsumugi_core::msg`] over the partitions.

mod label;
mod wire;
mod state;
mod drive;
mod wait;
mod begin;

pub use drive::{Messages, Under};
pub(crate) use label::pattern;
pub use label::{Received, Source, Tags};
pub(crate) use wire::{Lanes, footprint};

//! The partitions of all ranks of a node, mapped at their places.
//!
//! Each partition is a memory file of its own, which is mapped at its place and
//! nowhere else. Nothing is reserved around it, because a reservation counts
//! against the address space limit. Rank r's place is `base + (r << shift)`, so
//! that translation is a shift and an addition.
//!
//! The files are handed over as descriptors and have no name: they vanish with the
//! last process that maps them, however that process ends.

mod allocators;
mod error;
mod files;
mod mapped;
mod pages;
mod reach;
mod retired;
mod taken;
mod windows;

pub use error::SpaceError;
pub use files::{ControlMapping, Files, limits};
pub use mapped::Space;
pub use pages::Pages;
pub use taken::OccupiedRange;
pub use windows::windows_bytes;

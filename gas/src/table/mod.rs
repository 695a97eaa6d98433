//! The registration table of a rank, and the reuse of the names in it.
//!
//! A table has 255 entries of 16 bytes for each colour. Another rank reads all
//! entries of a colour at once when it first needs one:
//!
//! ```text
//!  word 0   check (16) | flags (8) | life (8) | key (32)
//!  word 1   bytes of the region
//! ```
//!
//! The key is the region's key in `core`; the backends check its generation at every
//! access. The table adds the name of 8 bits, the length and the access rights, so
//! that an address is refused before it reaches a device. The check covers both
//! words: an entry that was half written when it was read is ignored, whatever the
//! order of its bytes was.

mod entry;
mod registry;

pub(crate) use entry::entry_word;
pub use entry::{RegionEntry, Starter};
pub use registry::{NameError, NameRecord, RetiredRegion};
pub(crate) use registry::{Registry, take};
pub use tsumugi_core::mem::Agent;

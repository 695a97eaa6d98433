//! Copies of other ranks' tables: a bounded, set-associative cache in which all
//! workers look up addresses, and which one machine fills.
//!
//! ```text
//!   addr ─► table (rank, colour) ─► set of four slots, one cache line:
//!
//!   slot:  table (32) | version (30) | state (2)      pins      used
//!             │
//!             ▼
//!   copy:  256 entries of 16 bytes, as the rank's own table has them
//!
//!   Empty ──► Filling ──read──► Ready ──asked to drop, or evicted──► Draining
//!     ▲         ▲                 │ refresh                             │
//!     │         └─────────────────┘                                     │
//!     └───────────────────── no pins, and the rank was told ◄───────────┘
//! ```
//!
//! A rank reports to another rank that it has dropped the other's table only when no
//! access is under way that took its key from the table (hazards A1, A4). An
//! operation that will be in flight [pins](TableCache::pin) the slot; an operation that a
//! worker carries out inside the call [holds](TableCache::hold) the slot from the
//! worker's [`HazardPointers`], in which the slot's number is a hazard pointer. Both announce
//! this first and then read the slot's word again (O1's check-then-flag).
//!
//! Progress: [`hold`](TableCache::hold), [`pin`](TableCache::pin) and their ends are wait-free
//! and send nothing. A miss is reported at once; filling the cache takes a round
//! trip of the machine.

mod fetch;
mod lookup;
mod hazard;
mod slot;

pub use fetch::{Fetch, TableWanted};
pub(crate) use fetch::{FetchStep, Fetcher};
pub(crate) use hazard::HazardDomain;
pub use hazard::{HAZARDS, HazardPointers, LightFence};
pub use lookup::{HeldSlot, HeldTarget, KeptSlot, Miss, Pinned, ResolvedAddr, TableCache};
pub use slot::CacheSlot;

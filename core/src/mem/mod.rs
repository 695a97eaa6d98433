//! Registered memory, and how ranks name it.
//!
//! Every byte that moves lies in a *region* that its rank has registered. Both ends
//! of a transfer are named by region and offset, never by a bare pointer:
//!
//! ```text
//!  RemoteAddr { rank, key, offset }     LocalAddr { key, offset }
//!                    │                                │
//!                    ▼ index | generation             ▼
//!  RegionTable of that rank:  [ generation, access, base, bytes ] ...
//! ```
//!
//! A key carries the generation of its table slot. So a key that outlived its region
//! gives [`AddrError::StaleKey`], and never leads to another region's memory. When a
//! rank has died, the generations in its table are cleared, so that one
//! comparison on the data path checks both the key and the rank.

mod rank;
mod plain;
mod addr;
mod addr_error;
mod error_code;
mod region_view;
mod region;

pub use addr::{Agent, LocalAddr, Overflow, RegionKey, Remote, RemoteAddr};
pub use addr_error::AddrError;
pub use plain::{Plain, Width, Word};
pub use rank::{LocalRank, PeerIndex, Rank};
pub use region::{Access, Need, Region, RegionTable, RegisterError};
pub use region_view::RegionView;

use core::alloc::Layout;
use core::ptr::NonNull;

/// A source of memory for stacks, queues and tables: an interface to a partition's
/// heap, to the system's allocator, or to a static array.
///
/// # Safety
///
/// `allocate` must return memory of at least the layout's size and alignment, and no
/// other code may use this memory until it is released with the same layout.
pub unsafe trait MemorySource: Sync {
    /// Allocates memory of this layout, with unspecified content; `None` if there is
    /// no memory left.
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>>;

    /// Gives memory back.
    ///
    /// # Safety
    ///
    /// `memory` came from `allocate` of the same object with the same layout
    /// and is not used afterwards.
    unsafe fn release(&self, memory: NonNull<u8>, layout: Layout);
}

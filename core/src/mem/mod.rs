//! What is communicated and how it is named.
//!
//! Every byte that moves lies in a *region* that its rank has registered.
//! Both ends name it, region and offset, never a bare pointer:
//!
//! ```text
//!  RemoteAddr { rank, key, offset }     LocalAddr { key, offset }
//!                    │                                │
//!                    ▼ index | generation             ▼
//!  RegionTable of that rank:  [ generation, access, base, bytes ] ...
//! ```
//!
//! A key carries the generation of its table slot, so a key that outlived its
//! region is answered with [`AddrError::StaleKey`] and never reaches another
//! region's memory. A rank that died has its generations struck out: one
//! comparison on the data path asks for both.

mod addr;
mod plain;
mod region;

pub use addr::{AddrError, Agent, LocalAddr, Overflow, Rank, RegionKey, Remote, RemoteAddr};
pub use plain::{Plain, Width, Word};
pub use region::{Access, Need, Region, RegionTable, RegisterError};

use core::alloc::Layout;
use core::ptr::NonNull;

/// Where stacks, queues and tables come from: the seam to a partition's heap,
/// to the system's allocator, or to a static array.
///
/// # Safety
///
/// `allocate` must return memory of at least the layout's size and alignment
/// that nobody else holds until it is given back with the same layout.
pub unsafe trait Memory: Sync {
    /// Memory of this layout, its content unspecified; `None` when there is
    /// no more.
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>>;

    /// Gives memory back.
    ///
    /// # Safety
    ///
    /// `memory` came from `allocate` of the same object with the same layout
    /// and is not used afterwards.
    unsafe fn release(&self, memory: NonNull<u8>, layout: Layout);
}

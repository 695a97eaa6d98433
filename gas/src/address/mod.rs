//! Global addresses: 64 bits that name a byte of any rank.
//!
//! One word, so that a remote compare-and-swap can exchange pointers:
//!
//! ```text
//!  63                                                              0
//!  ┌──────────┬────────┬────────┬──────┬──────────────────────────┐
//!  │ rank + 1 │ colour │ region │ life │          offset          │
//!  └──────────┴────────┴────────┴──────┴──────────────────────────┘
//!      21         1        8       0               34    Split::DEFAULT
//!      10         1        8       8               37    1,000 ranks
//! ```
//!
//! The number of bits of each field is a [`Split`], the same on every rank and
//! chosen at the start for the job's shape. All zeroes is the null address: the rank
//! is stored plus one.
//!
//! In a small job, the bits that the rank does not need go to the *life* of a
//! region's name: a count of how often the name was given away before, modulo its
//! width. So an address that outlived its region does not name the next region of
//! that name. With a life of 0 bits it does, after every rank has given up its copy
//! of the old entry.
//!
//! Arithmetic is done by the split: it stays inside the offset's field or returns an
//! error. An address that stays in the field but leaves the region is refused at the
//! access. Addresses are ordered by rank, then colour, region, life and offset.
//!
//! # Example
//!
//! ```
//! use tsumugi_core::mem::Rank;
//! use tsumugi_gas::address::{Place, Split};
//!
//! let split = Split::DEFAULT;
//! let place = Place { rank: Rank(7), color: 0, region: 3, life: 0, offset: 0x40 };
//! let addr = split.addr(place).unwrap();
//! let next = split.add(addr, 8).unwrap();
//! assert_eq!(split.show(next).to_string(), "rank 7 colour 0 region 3 offset 0x48");
//! assert!(next > addr);
//! assert!(split.add(addr, -0x41).is_err(), "before the region's first byte");
//! ```

mod split;

pub use split::{LeavesRegion, Shown, Split, SplitError};

use core::fmt;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;
use tsumugi_core::mem::{Plain, Rank};

/// A byte of any rank, or null.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct GlobalAddr(u64);

/// The address of a `T` in any rank's memory, or null.
#[repr(transparent)]
pub struct GlobalPtr<T> {
    addr: GlobalAddr,
    of: PhantomData<fn() -> T>,
}

/// The parts of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The rank that has the memory.
    pub rank: Rank,
    /// The device of that rank by which the memory is accessed.
    pub color: u8,
    /// The name of the region in that rank's table of that colour.
    pub region: u8,
    /// The life of that name.
    pub life: u8,
    /// Bytes from the region's start.
    pub offset: u64,
}

/// Names of regions: 0 to 254 are given away by registration.
pub const REGIONS: usize = 255;
/// The name of the starter memory, which every rank has from the start.
pub const STARTER: u8 = 255;

impl GlobalAddr {
    /// The null address, which names no byte.
    pub const NULL: Self = Self(0);

    /// Whether the address is null.
    #[inline(always)]
    pub const fn is_null(self) -> bool {
        self.0 == 0
    }

    /// The address as a word, for a compare-and-swap or a message.
    #[inline(always)]
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// The address in such a word. A word that is no address is refused at its first
    /// use.
    #[inline(always)]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}

impl<T: Plain> GlobalPtr<T> {
    /// The null pointer.
    pub const NULL: Self = Self::new(GlobalAddr::NULL);

    /// A pointer to the bytes at `addr`, taken as a `T`. Every access checks region,
    /// range and alignment.
    #[inline(always)]
    pub const fn new(addr: GlobalAddr) -> Self {
        Self { addr, of: PhantomData }
    }

    /// The untyped address.
    #[inline(always)]
    pub const fn addr(self) -> GlobalAddr {
        self.addr
    }

    /// Whether the pointer is null.
    #[inline(always)]
    pub const fn is_null(self) -> bool {
        self.addr.is_null()
    }

    /// A pointer to the same bytes, taken as a `U`.
    #[inline(always)]
    pub const fn cast<U: Plain>(self) -> GlobalPtr<U> {
        GlobalPtr::new(self.addr)
    }
}

// SAFETY: the type is one word (`repr(transparent)` over `u64`), and every value of
// it is valid: a value that is no address is refused at its use.
unsafe impl Plain for GlobalAddr {}
// SAFETY: as above, one word; the `PhantomData` has no bytes.
unsafe impl<T: 'static> Plain for GlobalPtr<T> {}

impl<T> Clone for GlobalPtr<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for GlobalPtr<T> {}

impl<T> PartialEq for GlobalPtr<T> {
    fn eq(&self, other: &Self) -> bool {
        self.addr == other.addr
    }
}

impl<T> Eq for GlobalPtr<T> {}

impl<T> PartialOrd for GlobalPtr<T> {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for GlobalPtr<T> {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        self.addr.cmp(&other.addr)
    }
}

impl<T> Hash for GlobalPtr<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.addr.hash(state);
    }
}

impl fmt::Display for GlobalAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_null() { f.write_str("null") } else { write!(f, "{:#018x}", self.0) }
    }
}

impl fmt::Debug for GlobalAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GlobalAddr({self})")
    }
}

impl<T> fmt::Debug for GlobalPtr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GlobalPtr<{}>({})", core::any::type_name::<T>(), self.addr)
    }
}

#[cfg(test)]
mod tests;

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
//! How many bits each field has is a [`Split`], the same on every rank and
//! chosen at start for the job's shape. All zeroes is the null address: the
//! rank is stored plus one.
//!
//! What a small job has left over in the rank's field goes to the *life* of a
//! region's name: how often it was given away before, modulo its width. So an
//! address that outlived its region does not name the one that got its name
//! next; with a life of 0 bits it does, once every rank has let go of the old.
//!
//! Arithmetic is the split's: it stays inside the offset's field or answers
//! with an error, and what stays in the field and leaves the region is found
//! out by the access. Addresses are ordered by rank, then colour, region, life
//! and offset.
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

/// What an address is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Whose memory.
    pub rank: Rank,
    /// By which of its devices.
    pub color: u8,
    /// The name of the region in that rank's table of that colour.
    pub region: u8,
    /// Which holder of that name.
    pub life: u8,
    /// Bytes from the region's start.
    pub offset: u64,
}

/// Names of regions: 0 to 254 are given away by registration.
pub const REGIONS: usize = 255;
/// The name of the starter memory, which every rank has from the start.
pub const STARTER: u8 = 255;

impl GlobalAddr {
    /// No byte.
    pub const NULL: Self = Self(0);

    /// Whether it is null.
    #[inline(always)]
    pub const fn is_null(self) -> bool {
        self.0 == 0
    }

    /// As a word, for a compare-and-swap or a message.
    #[inline(always)]
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// From such a word. A word that is no address is found out at its first
    /// use.
    #[inline(always)]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}

impl<T: Plain> GlobalPtr<T> {
    /// No `T`.
    pub const NULL: Self = Self::new(GlobalAddr::NULL);

    /// What lies at `addr`, taken as a `T`. Whether it is one, every access
    /// checks: region, range and alignment.
    #[inline(always)]
    pub const fn new(addr: GlobalAddr) -> Self {
        Self { addr, of: PhantomData }
    }

    /// The untyped address.
    #[inline(always)]
    pub const fn addr(self) -> GlobalAddr {
        self.addr
    }

    /// Whether it is null.
    #[inline(always)]
    pub const fn is_null(self) -> bool {
        self.addr.is_null()
    }

    /// The same bytes taken as a `U`.
    #[inline(always)]
    pub const fn cast<U: Plain>(self) -> GlobalPtr<U> {
        GlobalPtr::new(self.addr)
    }
}

// SAFETY: one word, whose every value is an address or is refused.
unsafe impl Plain for GlobalAddr {}
// SAFETY: the same.
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

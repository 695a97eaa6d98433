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

/// How many bits of an address each field has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    rank_shift: u8,
    color_shift: u8,
    region_shift: u8,
    life_shift: u8,
}

/// Why there is no such split, or no such address in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitError {
    /// The fields do not add up to 64 bits, or one is too wide.
    Widths {
        /// Of the rank.
        rank: u8,
        /// Of the colour.
        color: u8,
        /// Of the life.
        life: u8,
        /// Of the offset.
        offset: u8,
    },
    /// The job and its regions need more than 64 bits.
    TooLarge {
        /// Ranks of the job.
        ranks: u32,
        /// Colours of a rank.
        colors: u32,
        /// Bytes of the largest region.
        region_bytes: u64,
    },
    /// A rank that the split has no room for.
    Rank {
        /// Which.
        rank: Rank,
        /// The last there is room for.
        last: Rank,
    },
    /// A colour that the split has no room for.
    Color {
        /// Which.
        color: u8,
    },
    /// A life that the split has no room for.
    Life {
        /// Which.
        life: u8,
    },
    /// An offset that the split has no room for.
    Offset {
        /// What was asked for.
        offset: u64,
        /// What a region can have.
        bytes_max: u64,
    },
}

/// An address that was to leave the field of its offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeavesRegion {
    /// From where.
    pub addr: GlobalAddr,
    /// By how much.
    pub bytes: i64,
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

impl Split {
    /// 2,097,151 ranks of 2 colours with regions of up to 16 GiB.
    pub const DEFAULT: Self = match Self::new(21, 1, 0, 34) {
        Ok(split) => split,
        Err(_) => unreachable!(),
    };

    /// A split of these widths, which with the region's 8 bits make 64.
    ///
    /// # Errors
    ///
    /// [`SplitError::Widths`].
    pub const fn new(rank: u8, color: u8, life: u8, offset: u8) -> Result<Self, SplitError> {
        let sum = rank as u32 + color as u32 + REGION_BITS + life as u32 + offset as u32;
        let fits =
            rank >= 2 && color <= 8 && rank + color <= 32 && life <= LIFE_BITS_MAX && offset > 0;
        if sum != 64 || !fits {
            return Err(SplitError::Widths { rank, color, life, offset });
        }
        let region_shift = life + offset;
        Ok(Self {
            rank_shift: 64 - rank,
            color_shift: region_shift + REGION_BITS as u8,
            region_shift,
            life_shift: offset,
        })
    }

    /// The split for a job of `ranks` with `colors` devices a rank and regions
    /// of up to `region_bytes` bytes. Bits that are left go to the life of
    /// names, then to the offset. All ranks must ask for the same.
    ///
    /// # Errors
    ///
    /// [`SplitError::TooLarge`].
    pub const fn fit(ranks: u32, colors: u32, region_bytes: u64) -> Result<Self, SplitError> {
        let error = SplitError::TooLarge { ranks, colors, region_bytes };
        let rank = bits_for(ranks as u64 + 1);
        let rank = if rank < 2 { 2 } else { rank };
        let color = bits_for(colors as u64);
        let least = bits_for(region_bytes);
        let least = if least < OFFSET_BITS_LEAST { OFFSET_BITS_LEAST } else { least };
        if ranks == 0 || colors == 0 || color > 8 || rank + color > 32 {
            return Err(error);
        }
        let needed = rank + color + REGION_BITS + least;
        if needed > 64 {
            return Err(error);
        }
        let spare = 64 - needed;
        let life = if spare < LIFE_BITS_MAX as u32 { spare } else { LIFE_BITS_MAX as u32 };
        let offset = least + spare - life;
        Self::new(rank as u8, color as u8, life as u8, offset as u8)
    }

    /// The last rank there is room for.
    pub const fn last_rank(self) -> Rank {
        let values = 1u64 << (64 - self.rank_shift as u32);
        Rank((values - 2) as u32)
    }

    /// Colours of a rank.
    pub const fn colors(self) -> u32 {
        1 << (self.rank_shift - self.color_shift)
    }

    /// Bytes that a region can have.
    pub const fn region_bytes_max(self) -> u64 {
        1 << self.life_shift
    }

    /// How many holders of a name are told apart.
    pub const fn lives(self) -> u32 {
        1 << (self.region_shift - self.life_shift)
    }

    /// The address of a place.
    ///
    /// # Errors
    ///
    /// [`SplitError`]: the field that is too narrow.
    pub const fn addr(self, place: Place) -> Result<GlobalAddr, SplitError> {
        let Place { rank, color, region, life, offset } = place;
        let last = self.last_rank();
        if rank.0 > last.0 {
            return Err(SplitError::Rank { rank, last });
        }
        if color as u32 >= self.colors() {
            return Err(SplitError::Color { color });
        }
        if life as u32 >= self.lives() {
            return Err(SplitError::Life { life });
        }
        if offset >= self.region_bytes_max() {
            return Err(SplitError::Offset { offset, bytes_max: self.region_bytes_max() });
        }
        Ok(GlobalAddr(
            (rank.0 as u64 + 1) << self.rank_shift
                | shl(color as u64, self.color_shift)
                | (region as u64) << self.region_shift
                | shl(life as u64, self.life_shift)
                | offset,
        ))
    }

    /// What an address is made of; `None` for null and for words that name no
    /// rank. Wait-free.
    #[inline(always)]
    pub const fn place(self, addr: GlobalAddr) -> Option<Place> {
        let rank = addr.0 >> self.rank_shift;
        if rank == 0 {
            return None;
        }
        Some(Place {
            rank: Rank((rank - 1) as u32),
            color: field(addr.0, self.color_shift, self.rank_shift) as u8,
            region: (addr.0 >> self.region_shift) as u8,
            life: field(addr.0, self.life_shift, self.region_shift) as u8,
            offset: addr.0 & (self.region_bytes_max() - 1),
        })
    }

    /// Whose memory; `None` for null.
    #[inline(always)]
    pub const fn rank(self, addr: GlobalAddr) -> Option<Rank> {
        match addr.0 >> self.rank_shift {
            0 => None,
            rank => Some(Rank((rank - 1) as u32)),
        }
    }

    /// The name of its region.
    #[inline(always)]
    pub(crate) const fn region(self, addr: GlobalAddr) -> u8 {
        (addr.0 >> self.region_shift) as u8
    }

    /// Which holder of that name.
    #[inline(always)]
    pub(crate) const fn life(self, addr: GlobalAddr) -> u8 {
        field(addr.0, self.life_shift, self.region_shift) as u8
    }

    /// What is above it is the rank plus one.
    #[inline(always)]
    pub(crate) const fn rank_shift(self) -> u32 {
        self.rank_shift as u32
    }

    /// What the tables of a rank and colour are known by: all above the region's
    /// field. 0 is no rank's.
    #[inline(always)]
    pub(crate) const fn table(self, addr: GlobalAddr) -> u32 {
        (addr.0 >> self.color_shift) as u32
    }

    /// The table of that name is that rank's, of that colour.
    pub(crate) const fn owner(self, table: u32) -> Option<(Rank, u8)> {
        match self.place(GlobalAddr((table as u64) << self.color_shift)) {
            Some(place) => Some((place.rank, place.color)),
            None => None,
        }
    }

    /// The table of that rank and colour.
    pub(crate) const fn table_of(self, rank: Rank, color: u8) -> u32 {
        ((rank.0 as u64 + 1) << (self.rank_shift - self.color_shift) | color as u64) as u32
    }

    /// The address `bytes` further on, or back, in the same region.
    ///
    /// # Errors
    ///
    /// [`LeavesRegion`] when the offset has no room for it, or `addr` is null.
    #[inline]
    pub const fn add(self, addr: GlobalAddr, bytes: i64) -> Result<GlobalAddr, LeavesRegion> {
        let mask = self.region_bytes_max() - 1;
        let offset = (addr.0 & mask).wrapping_add(bytes as u64);
        // Wrapped round below zero, or past the end: both are above the mask.
        if addr.is_null() || offset > mask || bytes.unsigned_abs() > mask {
            return Err(LeavesRegion { addr, bytes });
        }
        Ok(GlobalAddr(addr.0 & !mask | offset))
    }

    /// How many bytes `to` is further on than `from`; `None` when they are not
    /// of one region.
    #[inline]
    pub const fn distance(self, from: GlobalAddr, to: GlobalAddr) -> Option<i64> {
        let mask = self.region_bytes_max() - 1;
        if from.is_null() || (from.0 ^ to.0) & !mask != 0 {
            return None;
        }
        Some((to.0 & mask) as i64 - (from.0 & mask) as i64)
    }

    /// The `T` that is `count` further on, or back.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub const fn index<T: Plain>(
        self,
        ptr: GlobalPtr<T>,
        count: i64,
    ) -> Result<GlobalPtr<T>, LeavesRegion> {
        let Some(bytes) = count.checked_mul(size_of::<T>() as i64) else {
            return Err(LeavesRegion { addr: ptr.addr, bytes: i64::MAX });
        };
        match self.add(ptr.addr, bytes) {
            Ok(addr) => Ok(GlobalPtr::new(addr)),
            Err(error) => Err(error),
        }
    }

    /// The address in words.
    pub const fn show(self, addr: GlobalAddr) -> Shown {
        Shown { split: self, addr }
    }
}

/// An address that is printed field by field.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    split: Split,
    addr: GlobalAddr,
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

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(place) = self.split.place(self.addr) else { return self.addr.fmt(f) };
        let Place { rank, color, region, life, offset } = place;
        write!(f, "{rank} colour {color} ")?;
        match region {
            STARTER => f.write_str("starter")?,
            _ => write!(f, "region {region}")?,
        }
        if self.split.lives() > 1 {
            write!(f, ".{life}")?;
        }
        write!(f, " offset {offset:#x}")
    }
}

impl fmt::Display for SplitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Widths { rank, color, life, offset } => write!(
                f,
                "an address of {rank} + {color} + {REGION_BITS} + {life} + {offset} bits is none of 64"
            ),
            Self::TooLarge { ranks, colors, region_bytes } => write!(
                f,
                "64 bits are too few for {ranks} ranks of {colors} colours with regions of {region_bytes} bytes"
            ),
            Self::Rank { rank, last } => write!(f, "{rank}: an address has room up to {last}"),
            Self::Color { color } => write!(f, "an address has no room for colour {color}"),
            Self::Life { life } => write!(f, "an address has no room for life {life}"),
            Self::Offset { offset, bytes_max } => {
                write!(f, "offset {offset:#x}: an address has room for {bytes_max:#x} bytes")
            }
        }
    }
}

impl core::error::Error for SplitError {}

impl fmt::Display for LeavesRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:+} leaves the region", self.addr, self.bytes)
    }
}

impl core::error::Error for LeavesRegion {}

/// Bits that tell `values` values apart.
const fn bits_for(values: u64) -> u32 {
    if values <= 1 { 0 } else { 64 - (values - 1).leading_zeros() }
}

/// A field of no bits may stand at bit 64.
const fn shl(value: u64, shift: u8) -> u64 {
    if value == 0 { 0 } else { value << shift }
}

/// The bits of `word` from `low` up to `high`.
#[inline(always)]
const fn field(word: u64, low: u8, high: u8) -> u64 {
    word >> low & ((1 << (high - low)) - 1)
}

const REGION_BITS: u32 = 8;
/// A table's entry has as many.
const LIFE_BITS_MAX: u8 = 8;
/// As wide as the default's: a small job gains lives before it gains bytes.
const OFFSET_BITS_LEAST: u32 = 34;

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn the_default_is_the_papers() {
        let split = Split::DEFAULT;
        assert_eq!((split.last_rank(), split.colors()), (Rank((1 << 21) - 2), 2));
        assert_eq!((split.lives(), split.region_bytes_max()), (1, 1 << 34));
        assert_eq!(Split::fit((1 << 21) - 1, 2, 1 << 34), Ok(split));
    }

    #[test]
    fn every_field_comes_back() {
        for (ranks, colors, bytes) in
            [(1, 1, 1), (2, 1, 1 << 40), (1000, 2, 1 << 34), (1_000_000, 2, 1 << 34), (4096, 16, 1)]
        {
            let split = Split::fit(ranks, colors, bytes).unwrap();
            let place = Place {
                rank: Rank(ranks - 1),
                color: (colors - 1) as u8,
                region: 254,
                life: (split.lives() - 1) as u8,
                offset: split.region_bytes_max() - 1,
            };
            assert!(split.region_bytes_max() >= bytes);
            let addr = split.addr(place).unwrap();
            assert_eq!(split.place(addr), Some(place), "{ranks} ranks");
            assert_eq!(split.rank(addr), Some(place.rank));
            let zero = Place { rank: Rank(0), color: 0, region: 0, life: 0, offset: 0 };
            let first = split.addr(zero).unwrap();
            assert_eq!(split.place(first), Some(zero));
            assert!(!first.is_null() && (first <= addr || ranks == 1));
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_with_its_value() {
        let split = Split::DEFAULT;
        let place = Place { rank: Rank(0), color: 0, region: 0, life: 0, offset: 0 };
        let rank = Rank(1 << 21);
        assert_eq!(
            split.addr(Place { rank, ..place }),
            Err(SplitError::Rank { rank, last: split.last_rank() })
        );
        assert_eq!(split.addr(Place { color: 2, ..place }), Err(SplitError::Color { color: 2 }));
        assert_eq!(split.addr(Place { life: 1, ..place }), Err(SplitError::Life { life: 1 }));
        let offset = 1 << 34;
        let error = split.addr(Place { offset, ..place }).unwrap_err();
        assert_eq!(error, SplitError::Offset { offset, bytes_max: offset });
        assert!(Split::new(21, 1, 1, 34).is_err());
        assert!(Split::fit(1 << 21, 2, 1 << 35).is_err());
    }

    #[test]
    fn arithmetic_stays_in_the_region_or_says_so() {
        let split = Split::DEFAULT;
        let place = Place { rank: Rank(3), color: 1, region: 9, life: 0, offset: 16 };
        let addr = split.addr(place).unwrap();
        let moved = split.add(addr, -16).unwrap();
        assert_eq!(split.place(moved), Some(Place { offset: 0, ..place }));
        assert_eq!(split.distance(addr, moved), Some(-16));
        let last = split.add(moved, (1 << 34) - 1).unwrap();
        for (from, bytes) in [
            (moved, -1),
            (last, 1),
            (moved, 1 << 34),
            (addr, i64::MAX),
            (addr, i64::MIN),
            (GlobalAddr::NULL, 0),
        ] {
            assert_eq!(split.add(from, bytes), Err(LeavesRegion { addr: from, bytes }));
        }
        let other = split.addr(Place { region: 10, ..place }).unwrap();
        assert_eq!(split.distance(addr, other), None);
    }

    #[test]
    fn pointers_step_by_their_type() {
        let split = Split::DEFAULT;
        let place = Place { rank: Rank(0), color: 0, region: 0, life: 0, offset: 0 };
        let first = GlobalPtr::<u64>::new(split.addr(place).unwrap());
        let third = split.index(first, 2).unwrap();
        assert_eq!(split.distance(first.addr(), third.addr()), Some(16));
        assert_eq!(split.index(third, -2), Ok(first));
        assert!(split.index(first, i64::MAX).is_err());
        assert!(third > first && GlobalPtr::<u8>::NULL.is_null());
    }

    #[test]
    fn addresses_are_printed_with_and_without_their_split() {
        let split = Split::fit(1000, 1, 1).unwrap();
        let place = Place { rank: Rank(7), color: 0, region: 255, life: 2, offset: 64 };
        let addr = split.addr(place).unwrap();
        assert_eq!(split.show(addr).to_string(), "rank 7 colour 0 starter.2 offset 0x40");
        assert_eq!(split.show(GlobalAddr::NULL).to_string(), "null");
        assert_eq!(GlobalAddr::from_bits(0xabc).to_string(), "0x0000000000000abc");
    }
}

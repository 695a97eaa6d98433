//! The number of bits of each field of an address, and all arithmetic on addresses.

use super::parts::{AddressParts, STARTER};
use super::pointer::{GlobalAddr, GlobalPtr};
use core::fmt;
use tsumugi_core::mem::{Plain, Rank};

/// The number of bits of each field of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    rank_shift: u8,
    color_shift: u8,
    region_shift: u8,
    life_shift: u8,
}

/// Why a split, or an address in it, is not possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SplitError {
    /// The fields do not add up to 64 bits, or a field is too wide.
    Widths {
        /// Bits of the rank.
        rank: u8,
        /// Bits of the colour.
        color: u8,
        /// Bits of the life.
        life: u8,
        /// Bits of the offset.
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
        /// The rank.
        rank: Rank,
        /// The last rank for which there is room.
        last: Rank,
    },
    /// A colour that the split has no room for.
    Color {
        /// The colour.
        color: u8,
    },
    /// A life that the split has no room for.
    Life {
        /// The life.
        life: u8,
    },
    /// An offset that the split has no room for.
    Offset {
        /// The offset.
        offset: u64,
        /// The largest number of bytes of a region.
        bytes_max: u64,
    },
}

/// An addition that would have left the field of the offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeavesRegion {
    /// The address to which the bytes were to be added.
    pub addr: GlobalAddr,
    /// The number of bytes to add.
    pub bytes: i64,
}

impl Split {
    /// 2,097,151 ranks of 2 colours with regions of up to 16 GiB.
    pub const DEFAULT: Self = match Self::new(21, 1, 0, 34) {
        Ok(split) => split,
        Err(_) => unreachable!(),
    };

    /// A split of these widths, which must add up to 64 with the region's 8 bits.
    ///
    /// # Errors
    ///
    /// [`SplitError::Widths`] if the sum is not 64, if `rank` is less than 2 or
    /// `offset` is 0, if `color` or `life` is more than 8, or if `rank` and `color`
    /// together are more than 32.
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

    /// The split for a job of `ranks` ranks with `colors` devices each and regions
    /// of up to `region_bytes` bytes. Spare bits go to the life of names, then to
    /// the offset. All ranks must pass the same values.
    ///
    /// # Errors
    ///
    /// [`SplitError::TooLarge`] if `ranks` or `colors` is 0, if `colors` is more than
    /// 256, if ranks and colours need more than 32 bits, or if all fields need more
    /// than 64.
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

    /// The last rank for which there is room.
    pub const fn last_rank(self) -> Rank {
        let values = 1u64 << (64 - self.rank_shift as u32);
        Rank((values - 2) as u32)
    }

    /// The number of colours of a rank.
    pub const fn colors(self) -> u32 {
        1 << (self.rank_shift - self.color_shift)
    }

    /// The largest number of bytes of a region.
    pub const fn region_bytes_max(self) -> u64 {
        1 << self.life_shift
    }

    /// The number of lives of a name that are distinguished.
    pub const fn lives(self) -> u32 {
        1 << (self.region_shift - self.life_shift)
    }

    /// The address of a place.
    ///
    /// # Errors
    ///
    /// - [`SplitError::Rank`], [`SplitError::Color`], [`SplitError::Life`]: the field
    ///   of the split is too narrow for this number of `place`.
    /// - [`SplitError::Offset`]: the offset is not below
    ///   [`region_bytes_max`](Self::region_bytes_max).
    pub const fn addr(self, place: AddressParts) -> Result<GlobalAddr, SplitError> {
        let AddressParts { rank, color, region, life, offset } = place;
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

    /// The parts of an address; `None` for null and for words that name no rank.
    /// Wait-free.
    #[inline(always)]
    pub const fn place(self, addr: GlobalAddr) -> Option<AddressParts> {
        let rank = addr.0 >> self.rank_shift;
        if rank == 0 {
            return None;
        }
        Some(AddressParts {
            rank: Rank((rank - 1) as u32),
            color: field(addr.0, self.color_shift, self.rank_shift) as u8,
            region: (addr.0 >> self.region_shift) as u8,
            life: field(addr.0, self.life_shift, self.region_shift) as u8,
            offset: addr.0 & (self.region_bytes_max() - 1),
        })
    }

    /// The rank of an address; `None` for null.
    #[inline(always)]
    pub const fn rank(self, addr: GlobalAddr) -> Option<Rank> {
        match addr.0 >> self.rank_shift {
            0 => None,
            rank => Some(Rank((rank - 1) as u32)),
        }
    }

    /// The name of an address's region.
    #[inline(always)]
    pub(crate) const fn region(self, addr: GlobalAddr) -> u8 {
        (addr.0 >> self.region_shift) as u8
    }

    /// The life of that name.
    #[inline(always)]
    pub(crate) const fn life(self, addr: GlobalAddr) -> u8 {
        field(addr.0, self.life_shift, self.region_shift) as u8
    }

    /// The position of the rank plus one, which is the highest field.
    #[inline(always)]
    pub(crate) const fn rank_shift(self) -> u32 {
        self.rank_shift as u32
    }

    /// The number of the table of an address's rank and colour: all bits above the
    /// region's field. 0 is no table.
    #[inline(always)]
    pub(crate) const fn table(self, addr: GlobalAddr) -> u32 {
        (addr.0 >> self.color_shift) as u32
    }

    /// The rank and the colour of a table.
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

    /// The address `bytes` after `addr`, or before it, in the same region.
    ///
    /// # Errors
    ///
    /// [`LeavesRegion`] if the field of the offset has no room for the result, or
    /// `addr` is null.
    #[inline]
    pub const fn add(self, addr: GlobalAddr, bytes: i64) -> Result<GlobalAddr, LeavesRegion> {
        let mask = self.region_bytes_max() - 1;
        let offset = (addr.0 & mask).wrapping_add(bytes as u64);
        // An offset that wraps below zero, or lies past the end, is above the mask.
        if addr.is_null() || offset > mask || bytes.unsigned_abs() > mask {
            return Err(LeavesRegion { addr, bytes });
        }
        Ok(GlobalAddr(addr.0 & !mask | offset))
    }

    /// The number of bytes from `from` to `to`; `None` if they are not in one
    /// region.
    #[inline]
    pub const fn distance(self, from: GlobalAddr, to: GlobalAddr) -> Option<i64> {
        let mask = self.region_bytes_max() - 1;
        if from.is_null() || (from.0 ^ to.0) & !mask != 0 {
            return None;
        }
        Some((to.0 & mask) as i64 - (from.0 & mask) as i64)
    }

    /// The pointer to the `T` that is `count` places after, or before.
    ///
    /// # Errors
    ///
    /// [`LeavesRegion`] if the offset has no room for the distance, or `ptr` is null.
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

    /// The address for printing, field by field.
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

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(place) = self.split.place(self.addr) else { return self.addr.fmt(f) };
        let AddressParts { rank, color, region, life, offset } = place;
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
                "{rank} rank, {color} colour, {REGION_BITS} region, {life} life and {offset} \
                 offset bits: the sum must be 64, with rank from 2, colour and life up to 8 each, \
                 and rank and colour up to 32 together"
            ),
            Self::TooLarge { ranks, colors, region_bytes } => write!(
                f,
                "an address of 64 bits cannot name {ranks} ranks of {colors} colours with regions \
                 of {region_bytes} bytes"
            ),
            Self::Rank { rank, last } => {
                write!(f, "{rank}: an address can name ranks up to {last}")
            }
            Self::Color { color } => write!(f, "an address has too few bits for colour {color}"),
            Self::Life { life } => write!(f, "an address has too few bits for life {life}"),
            Self::Offset { offset, bytes_max } => {
                write!(
                    f,
                    "offset {offset:#x}: an address can name {bytes_max:#x} bytes of a region"
                )
            }
        }
    }
}

impl core::error::Error for SplitError {}

impl fmt::Display for LeavesRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:+} bytes: no address of the same region", self.addr, self.bytes)
    }
}

impl core::error::Error for LeavesRegion {}

/// The number of bits that distinguish `values` values.
const fn bits_for(values: u64) -> u32 {
    if values <= 1 { 0 } else { 64 - (values - 1).leading_zeros() }
}

/// Shifts to the left. A field of no bits may stand at bit 64.
const fn shl(value: u64, shift: u8) -> u64 {
    if value == 0 { 0 } else { value << shift }
}

/// The bits of `word` from `low` up to `high`.
#[inline(always)]
const fn field(word: u64, low: u8, high: u8) -> u64 {
    word >> low & ((1 << (high - low)) - 1)
}

const REGION_BITS: u32 = 8;
/// The number of bits for the life in a table's entry.
const LIFE_BITS_MAX: u8 = 8;
/// As many as in the default: a small job gets lives before it gets larger regions.
const OFFSET_BITS_LEAST: u32 = 34;

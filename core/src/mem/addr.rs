//! Ranks, keys and addresses.

use super::Plain;
use core::fmt;
use core::marker::PhantomData;

/// A process (or thread) of the job: `0 .. size`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Rank(pub u32);

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {}", self.0)
    }
}

/// Who carries out the atomics on a region's words. One for each region:
/// updates of one word by both would be lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Agent {
    /// Processors: ranks of other nodes ask one of the owner's.
    #[default]
    Cpu = 0,
    /// The device: ranks of the same node go through it, too.
    Device = 1,
}

/// Names one registered region of one rank: a slot of its table, the
/// generation that the slot had at registration, and whose its words are.
///
/// ```text
///  agent 1 | generation 19 | index 12
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct RegionKey(u32);

impl RegionKey {
    /// Slots of a table that a key can name.
    pub const INDEX_MAX: usize = 1 << Self::INDEX_BITS;
    /// Lives of a slot; one that has had them all is not used again.
    pub const GENERATION_MAX: u32 = (1 << (Self::AGENT_BIT - Self::INDEX_BITS)) - 1;
    const INDEX_BITS: u32 = 12;
    const AGENT_BIT: u32 = 31;

    /// The key of slot `index` in its life `generation` (1 or more).
    ///
    /// # Panics
    ///
    /// If either does not fit.
    pub const fn new(index: usize, generation: u32) -> Self {
        assert!(index < Self::INDEX_MAX);
        assert!(generation >= 1 && generation <= Self::GENERATION_MAX);
        Self(generation << Self::INDEX_BITS | index as u32)
    }

    /// The same, of a region whose words are this agent's.
    #[must_use]
    pub const fn of(self, agent: Agent) -> Self {
        Self(self.0 & !(1 << Self::AGENT_BIT) | (agent as u32) << Self::AGENT_BIT)
    }

    /// Whose the region's words are.
    #[inline(always)]
    pub const fn agent(self) -> Agent {
        if self.0 >> Self::AGENT_BIT == 0 { Agent::Cpu } else { Agent::Device }
    }

    /// The slot.
    #[inline(always)]
    pub const fn index(self) -> usize {
        (self.0 & (Self::INDEX_MAX as u32 - 1)) as usize
    }

    /// The life of the slot; 0 only in a key that names nothing.
    #[inline(always)]
    pub const fn generation(self) -> u32 {
        self.life() & Self::GENERATION_MAX
    }

    /// All that two keys of a slot differ in: 0 only in a key that names
    /// nothing.
    #[inline(always)]
    pub(super) const fn life(self) -> u32 {
        self.0 >> Self::INDEX_BITS
    }

    /// As a word that another rank may be told.
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// From such a word. A word that is no key is found out at its first use.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }
}

/// A byte of the caller's own registered memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LocalAddr {
    /// Bytes from the start of the region.
    pub offset: u64,
    /// The region.
    pub key: RegionKey,
}

/// A byte of some rank's registered memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RemoteAddr {
    /// Bytes from the start of the region.
    pub offset: u64,
    /// Whose memory.
    pub rank: Rank,
    /// The region.
    pub key: RegionKey,
}

impl RemoteAddr {
    /// The byte `bytes` further on in the same region.
    #[must_use]
    #[inline(always)]
    pub const fn add(self, bytes: u64) -> Self {
        Self { offset: self.offset.wrapping_add(bytes), ..self }
    }
}

impl fmt::Display for RemoteAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} region {}.{} offset {:#x}",
            self.rank,
            self.key.index(),
            self.key.generation(),
            self.offset
        )
    }
}

/// The address of a `T` in some rank's registered memory.
pub struct Remote<T> {
    addr: RemoteAddr,
    of: PhantomData<fn() -> T>,
}

impl<T: Plain> Remote<T> {
    /// What lies at `addr`, taken as a `T`. Whether it is one, every
    /// operation checks: range, alignment, key and rank.
    #[inline(always)]
    pub const fn new(addr: RemoteAddr) -> Self {
        Self { addr, of: PhantomData }
    }

    /// The untyped address.
    #[inline(always)]
    pub const fn addr(self) -> RemoteAddr {
        self.addr
    }

    /// The `T` that is `count` further on.
    #[must_use]
    #[inline(always)]
    pub const fn add(self, count: u64) -> Self {
        Self::new(self.addr.add(count.wrapping_mul(size_of::<T>() as u64)))
    }
}

impl<T> Clone for Remote<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Remote<T> {}

impl<T> fmt::Debug for Remote<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Remote<{}>({})", core::any::type_name::<T>(), self.addr)
    }
}

/// Why an address was refused at the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddrError {
    /// No such rank in a job of `size`.
    NoSuchRank {
        /// What was asked for.
        rank: Rank,
        /// Ranks of the job.
        size: u32,
    },
    /// The key names no region, or one that was unregistered.
    StaleKey {
        /// What was asked for.
        addr: RemoteAddr,
    },
    /// Some of the bytes lie outside the region.
    OutOfRange {
        /// What was asked for.
        addr: RemoteAddr,
        /// How much of it.
        bytes: u64,
        /// What the region has.
        region_bytes: u64,
    },
    /// A typed or atomic access off its natural alignment.
    Unaligned {
        /// What was asked for.
        addr: RemoteAddr,
        /// What the access needs.
        align: u64,
    },
    /// A write to a region that is registered for reading only.
    ReadOnly {
        /// What was asked for.
        addr: RemoteAddr,
    },
    /// The rank has died.
    PeerLost {
        /// Which.
        rank: Rank,
    },
    /// Somebody else's memory, where only the own will do.
    NotOwn {
        /// What was asked for.
        addr: RemoteAddr,
    },
    /// The device that leads to the rank has no such operation.
    Unsupported {
        /// What was asked for.
        addr: RemoteAddr,
    },
    /// The rank is on another node and this path ends at the node's edge.
    OtherNode {
        /// Which.
        rank: Rank,
    },
}

impl fmt::Display for AddrError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchRank { rank, size } => {
                write!(f, "{rank} does not exist: the job has {size} ranks")
            }
            Self::StaleKey { addr } => write!(f, "{addr}: no region is registered under this key"),
            Self::OutOfRange { addr, bytes, region_bytes } => {
                write!(f, "{addr}: {bytes} bytes do not fit in a region of {region_bytes}")
            }
            Self::Unaligned { addr, align } => write!(f, "{addr}: not aligned to {align} bytes"),
            Self::ReadOnly { addr } => write!(f, "{addr}: the region is registered read-only"),
            Self::PeerLost { rank } => write!(f, "{rank} has died"),
            Self::NotOwn { addr } => write!(f, "{addr}: only this rank itself can wait there"),
            Self::Unsupported { addr } => {
                write!(f, "{addr}: the device that leads there has no such operation")
            }
            Self::OtherNode { rank } => write!(f, "{rank} is on another node"),
        }
    }
}

impl core::error::Error for AddrError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_its_index_and_generation() {
        let key = RegionKey::new(4095, RegionKey::GENERATION_MAX);
        assert_eq!((key.index(), key.generation()), (4095, RegionKey::GENERATION_MAX));
        assert_eq!(RegionKey::from_bits(key.to_bits()), key);
    }

    #[test]
    fn addresses_stay_small() {
        assert_eq!(size_of::<RemoteAddr>(), 16);
        assert_eq!(size_of::<LocalAddr>(), 16);
        assert_eq!(size_of::<Remote<u64>>(), 16);
    }
}

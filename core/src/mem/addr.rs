//! Keys and addresses.

use super::{Plain, Rank};
use core::fmt;
use core::marker::PhantomData;

/// The agent that carries out the atomics on a region's words: the CPU or the
/// device. A region has exactly one agent, because updates of one word by both would
/// get lost. The enum is exhaustive: a backend decides for each agent who does an atomic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Agent {
    /// CPUs: a rank of another node sends the operation to the owner, and a CPU of
    /// the owner carries it out.
    #[default]
    Cpu = 0,
    /// The device: ranks of the same node also use it.
    Device = 1,
}

/// The name of one registered region of one rank: a slot of the rank's table, the
/// generation that the slot had at registration, the agent of the region's words,
/// and whether the runtime keeps the region for itself.
///
/// ```text
///  agent 1 | runtime 1 | generation 18 | index 12
/// ```
///
/// A key is a name and no secret, and a program can make up any key. The runtime's
/// own regions are protected by two rules: a [`Remote`] never carries the bit
/// `runtime`, and a table compares this bit together with the generation. Regions
/// with words on which a device carries out atomics have no such protection: a
/// program that makes up their keys can spoil the locks and directories that it has
/// placed there itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct RegionKey(u32);

impl RegionKey {
    /// Slots that a key can name.
    pub const INDEX_MAX: usize = 1 << Self::INDEX_BITS;
    /// Lives of a slot; after the last one the slot is not used again.
    pub const GENERATION_MAX: u32 = (1 << (Self::RUNTIME_BIT - Self::INDEX_BITS)) - 1;
    const INDEX_BITS: u32 = 12;
    const RUNTIME_BIT: u32 = 30;
    const AGENT_BIT: u32 = 31;

    /// The key of slot `index` in its life `generation` (1 or more).
    ///
    /// # Panics
    ///
    /// If `index` or `generation` does not fit into the key.
    pub const fn new(index: usize, generation: u32) -> Self {
        assert!(index < Self::INDEX_MAX, "the index of a region key is at most 4095");
        assert!(
            generation >= 1 && generation <= Self::GENERATION_MAX,
            "the generation of a region key is 1 to 2^18 - 1"
        );
        Self(generation << Self::INDEX_BITS | index as u32)
    }

    /// The same key with `agent` as the agent of the region's words.
    #[must_use]
    pub const fn of(self, agent: Agent) -> Self {
        Self(self.0 & !(1 << Self::AGENT_BIT) | (agent as u32) << Self::AGENT_BIT)
    }

    /// The agent of the region's words.
    #[inline(always)]
    pub const fn agent(self) -> Agent {
        if self.0 >> Self::AGENT_BIT == 0 { Agent::Cpu } else { Agent::Device }
    }

    /// The same key for a region that the runtime keeps for itself.
    #[must_use]
    pub const fn of_runtime(self) -> Self {
        Self(self.0 | 1 << Self::RUNTIME_BIT)
    }

    /// The same key without the bit `runtime`: the key of a runtime's region becomes
    /// a key that names nothing.
    #[must_use]
    #[inline(always)]
    pub const fn of_user(self) -> Self {
        Self(self.0 & !(1 << Self::RUNTIME_BIT))
    }

    /// Whether the runtime keeps the region for itself.
    #[inline(always)]
    pub const fn is_of_runtime(self) -> bool {
        self.0 >> Self::RUNTIME_BIT & 1 != 0
    }

    /// The slot's index.
    #[inline(always)]
    pub const fn index(self) -> usize {
        (self.0 & (Self::INDEX_MAX as u32 - 1)) as usize
    }

    /// The generation of the slot; 0 only in a key that names nothing.
    #[inline(always)]
    pub const fn generation(self) -> u32 {
        self.life() & Self::GENERATION_MAX
    }

    /// All bits in which two keys of one slot can differ: 0 only in a key that names
    /// nothing.
    #[inline(always)]
    pub(super) const fn life(self) -> u32 {
        self.0 >> Self::INDEX_BITS
    }

    /// The key as a word that may be sent to another rank.
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// The key from such a word. A word that is no key is refused at its first use.
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

/// A byte of a rank's registered memory.
///
/// No region has 2^63 bytes. So if an index leads beyond that, the offset field
/// holds the index instead, for the error of the operation that uses the address:
///
/// ```text
///  offset  0 | bytes 63           of a region, or beyond its end
///          1 | index 63, signed   none: the index led to 2^63 bytes or more
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RemoteAddr {
    /// Bytes from the start of the region. A value of 2^63 or more names no byte of
    /// any region: it encodes the result of [`overflow`](Self::overflow).
    pub offset: u64,
    /// The rank that owns the memory.
    pub rank: Rank,
    /// The region.
    pub key: RegionKey,
}

impl RemoteAddr {
    /// The byte `bytes` further on in the same region. If that is 2^63 bytes or more
    /// from the start of the region, the result names no byte of any region, and
    /// further additions keep it so: it never wraps to another byte of this region.
    #[must_use]
    #[inline(always)]
    pub const fn add(self, bytes: u64) -> Self {
        self.add_values(bytes, 1)
    }

    /// The byte after `count` values of `bytes` bytes each.
    #[inline(always)]
    const fn add_values(self, count: u64, bytes: u64) -> Self {
        if let Some(bytes) = count.checked_mul(bytes)
            && let Some(offset) = self.offset.checked_add(bytes)
            && offset < BEYOND
        {
            return Self { offset, ..self };
        }
        self.beyond(count)
    }

    /// An address that names no byte, because of `index`. If this address names no
    /// byte already, it keeps its first index.
    #[cold]
    const fn beyond(self, index: u64) -> Self {
        if self.offset >= BEYOND {
            return self;
        }
        let is_kept = index < INDEX_SIGN || index > UNKEPT;
        Self { offset: if is_kept { BEYOND | index } else { UNKEPT }, ..self }
    }

    /// The index that led too far, if the address names no byte for that reason.
    #[inline]
    pub const fn overflow(self) -> Option<Overflow> {
        match self.offset {
            0..BEYOND => None,
            UNKEPT => Some(Overflow { index: None }),
            kept if kept & INDEX_SIGN == 0 => Some(Overflow { index: Some(kept & !BEYOND) }),
            kept => Some(Overflow { index: Some(kept) }),
        }
    }
}

/// An index, or a number of bytes, that led 2^63 bytes or more into a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Overflow {
    /// The index as the program gave it. `None` for an index from 2^62 to 2^64 -
    /// 2^62, for which an address has no room; these are neither small nor, as
    /// signed numbers, slightly negative.
    pub index: Option<u64>,
}

impl fmt::Display for Overflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.index {
            Some(index) => write!(f, "index {index}, which leads beyond 2^63 bytes"),
            None => f.write_str("an index from 2^62 to 2^64 - 2^62, which leads beyond 2^63 bytes"),
        }
    }
}

impl fmt::Display for RemoteAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { offset, rank, key } = self;
        write!(f, "{rank} region {}.{} ", key.index(), key.generation())?;
        match self.overflow() {
            None => write!(f, "offset {offset:#x}"),
            Some(overflow) => fmt::Display::fmt(&overflow, f),
        }
    }
}

/// The address of a `T` in a rank's registered memory.
pub struct Remote<T> {
    addr: RemoteAddr,
    of: PhantomData<fn() -> T>,
}

impl<T: Plain> Remote<T> {
    /// The bytes at `addr`, taken as a `T`. Every operation checks that the address
    /// is valid: range, alignment, key and rank. The address never names a region
    /// that the runtime keeps for itself, whatever the key: operations then return
    /// [`StaleKey`](crate::mem::AddrError::StaleKey).
    #[inline(always)]
    pub const fn new(addr: RemoteAddr) -> Self {
        Self::of_any(RemoteAddr { key: addr.key.of_user(), ..addr })
    }

    const fn of_any(addr: RemoteAddr) -> Self {
        Self { addr, of: PhantomData }
    }

    /// The address of a `T` in any region, also in one of the runtime.
    ///
    /// # Safety
    ///
    /// The caller is the runtime, or accesses the runtime's regions only as the
    /// runtime does.
    #[inline(always)]
    pub const unsafe fn of_runtime(addr: RemoteAddr) -> Self {
        Self::of_any(addr)
    }

    /// The untyped address.
    #[inline(always)]
    pub const fn addr(self) -> RemoteAddr {
        self.addr
    }

    /// The `T` that is `count` further on. If that is 2^63 bytes or more from the
    /// start of the region, the address names no byte, as after [`RemoteAddr::add`]:
    /// the operation that uses the address returns
    /// [`OutOfRange`](crate::mem::AddrError::OutOfRange), which names `count`.
    #[must_use]
    #[inline(always)]
    pub const fn add(self, count: u64) -> Self {
        Self::of_any(self.addr.add_values(count, size_of::<T>() as u64))
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

/// Offsets from this value on name no byte.
const BEYOND: u64 = 1 << 63;
/// An index that is kept is signed, and this bit is its sign.
const INDEX_SIGN: u64 = 1 << 62;
/// The offset that stands for every index that is not kept.
const UNKEPT: u64 = BEYOND | INDEX_SIGN;

#[cfg(test)]
mod tests;

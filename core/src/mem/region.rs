//! The table of the regions that one rank has registered. Every rank that can load
//! the owner's memory can read it.
//!
//! ```text
//!  slot:  live | last | access | base | bytes      (one half of a cache line)
//!
//!  free ──register──► live = last = generation     (owner only)
//!  live ──unregister► live = 0                     (owner only)
//!  any  ──mark_dead─► live = 0, and dead is set    (the rank that sees the death)
//! ```
//!
//! A reader compares `live` with its key's generation before *and* after it loads
//! `base` and `bytes` (a seqlock of two loads). So a reader can never combine the
//! base of one region with the length of another when the slot gets a new region
//! meanwhile.
//!
//! Progress: `resolve` is wait-free, `register` and `unregister` are lock-free.

use super::{AddrError, Agent, Rank, RegionKey, RegionView, RemoteAddr};
use crate::mutate;
use crate::sync::{AtomicU32, AtomicU64, Ordering, fence};
use core::fmt;
use core::ptr::NonNull;

/// The accesses that other ranks may make to a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Access {
    /// None: the region is a buffer for the rank's own operations.
    Local = 0,
    /// Get.
    Read = 1,
    /// Get, put and atomics.
    ReadWrite = 3,
}

/// The access that an operation is about to make to a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Need {
    /// Use it as the local end of the owner's own operation.
    Local = 0,
    /// Load from it.
    Read = 1,
    /// Change it.
    Write = 2,
}

/// One registration, as its owner keeps it.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// The key by which peers name the region.
    pub key: RegionKey,
    /// The start of the region.
    pub base: NonNull<u8>,
    /// The length of the region.
    pub bytes: u64,
    /// The accesses that peers may make.
    pub access: Access,
}

// SAFETY: a description only; code that accesses memory through `base` must prove
// that the access is sound.
unsafe impl Send for Region {}
// SAFETY: the same.
unsafe impl Sync for Region {}

/// Why a registration was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegisterError {
    /// All slots are in use, or worn out.
    TableFull {
        /// The number of slots.
        slots: usize,
    },
    /// The backend cannot make this memory accessible to peers.
    OutOfReach {
        /// The start of the memory.
        base: usize,
        /// The length of the memory.
        bytes: u64,
    },
}

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TableFull { slots } => {
                write!(f, "no region slot of {slots} is free: unregister a region first")
            }
            Self::OutOfReach { base, bytes } => {
                write!(
                    f,
                    "peers cannot reach the {bytes} bytes at {base:#x}: they are not in the memory \
                     that this rank exposes"
                )
            }
        }
    }
}

impl core::error::Error for RegisterError {}

/// The regions of one rank: `N` slots, a power of two of at most
/// [`RegionKey::INDEX_MAX`]. All zeroes is an empty table, so fresh shared memory is
/// one.
#[repr(C)]
pub struct RegionTable<const N: usize> {
    dead: AtomicU32,
    cursor: AtomicU32,
    _line: [u32; 14],
    slots: [RegionSlot; N],
}

#[repr(C, align(32))]
struct RegionSlot {
    live: AtomicU32,
    last: AtomicU32,
    access: AtomicU32,
    claimed: AtomicU32,
    base: AtomicU64,
    bytes: AtomicU64,
}

impl<const N: usize> RegionTable<N> {
    /// An empty table.
    #[cfg(not(tsumugi_loom))]
    pub const fn new() -> Self {
        Self {
            dead: AtomicU32::new(0),
            cursor: AtomicU32::new(0),
            _line: [0; 14],
            slots: [const { RegionSlot::new() }; N],
        }
    }

    /// An empty table.
    #[cfg(tsumugi_loom)]
    pub fn new() -> Self {
        Self {
            dead: AtomicU32::new(0),
            cursor: AtomicU32::new(0),
            _line: [0; 14],
            slots: core::array::from_fn(|_| RegionSlot::new()),
        }
    }

    const SIZE_IS_VALID: () = assert!(
        N.is_power_of_two() && N <= RegionKey::INDEX_MAX,
        "N is a power of two of at most 4096 slots"
    );

    /// Registers `bytes` bytes at `base`, so that peers can access them until
    /// [`unregister`].
    ///
    /// # Errors
    ///
    /// [`RegisterError::TableFull`] if all slots are in use or worn out.
    ///
    /// # Safety
    ///
    /// The memory must stay mapped, and must hold only plain bytes that any thread
    /// of any rank may change at any time (as far as `access` allows). This must
    /// hold until `unregister`, and after it until all operations that had looked
    /// the address up before are over; no event reports when that is. So memory that
    /// peers may change must come from an area that never holds anything else: a
    /// late operation can then touch bytes that meanwhile belong to another region
    /// of the same area, but nothing else. Only the table's owner registers.
    ///
    /// [`unregister`]: Self::unregister
    pub unsafe fn register(
        &self,
        base: NonNull<u8>,
        bytes: u64,
        access: Access,
    ) -> Result<Region, RegisterError> {
        // SAFETY: the caller's.
        unsafe { self.register_for(Agent::Cpu, base, bytes, access) }
    }

    /// Like [`register`](Self::register), for a region with `agent` as the agent of
    /// its words.
    ///
    /// # Errors
    ///
    /// [`RegisterError::TableFull`] if all slots are in use or worn out.
    ///
    /// # Safety
    ///
    /// As of [`register`](Self::register).
    pub unsafe fn register_for(
        &self,
        agent: Agent,
        base: NonNull<u8>,
        bytes: u64,
        access: Access,
    ) -> Result<Region, RegisterError> {
        // SAFETY: the caller's.
        unsafe { self.register_marked(|key| key.of(agent), base, bytes, access) }
    }

    /// Like [`register`](Self::register), for a region that the runtime keeps for
    /// itself: no [`Remote`](super::Remote) of a user leads there, whatever key it
    /// is made of.
    ///
    /// # Errors
    ///
    /// [`RegisterError::TableFull`] if all slots are in use or worn out.
    ///
    /// # Safety
    ///
    /// As of [`register`](Self::register).
    pub unsafe fn register_runtime(
        &self,
        base: NonNull<u8>,
        bytes: u64,
        access: Access,
    ) -> Result<Region, RegisterError> {
        // SAFETY: the caller's.
        unsafe { self.register_marked(RegionKey::of_runtime, base, bytes, access) }
    }

    /// # Safety
    ///
    /// As of [`register`](Self::register).
    unsafe fn register_marked(
        &self,
        mark: impl Fn(RegionKey) -> RegionKey,
        base: NonNull<u8>,
        bytes: u64,
        access: Access,
    ) -> Result<Region, RegisterError> {
        let () = Self::SIZE_IS_VALID;
        // Relaxed: the start of the search is a hint. The moving start spreads the
        // wear of the generations over all slots.
        let start = self.cursor.fetch_add(1, Ordering::Relaxed) as usize;
        for step in 0..N {
            let index = (start + step) & (N - 1);
            let slot = &self.slots[index];
            // Acquire: pairs with the Release in `unregister`.
            if slot.claimed.load(Ordering::Relaxed) != 0
                || slot.claimed.swap(1, Ordering::Acquire) != 0
            {
                continue;
            }
            let generation = slot.last.load(Ordering::Relaxed) + 1;
            if generation > RegionKey::GENERATION_MAX {
                continue; // worn out: the slot stays claimed, so that no old key fits again
            }
            let key = mark(RegionKey::new(index, generation));
            slot.publish(key, base, bytes, access);
            return Ok(Region { key, base, bytes, access });
        }
        Err(RegisterError::TableFull { slots: N })
    }

    /// Like [`register`](Self::register), under a key that another table of the same
    /// owner has made: this table then follows the other one, and makes no keys of
    /// its own.
    ///
    /// # Errors
    ///
    /// [`RegisterError::TableFull`] if another region has the key's slot, if there
    /// is no such slot, or if the key's generation is 0.
    ///
    /// # Safety
    ///
    /// As of [`register`](Self::register).
    pub unsafe fn register_as(
        &self,
        key: RegionKey,
        base: NonNull<u8>,
        bytes: u64,
        access: Access,
    ) -> Result<Region, RegisterError> {
        let full = Err(RegisterError::TableFull { slots: N });
        let Some(slot) = self.slots.get(key.index()) else { return full };
        // Acquire: pairs with the Release in `unregister`.
        if key.generation() == 0 || slot.claimed.swap(1, Ordering::Acquire) != 0 {
            return full;
        }
        slot.publish(key, base, bytes, access);
        Ok(Region { key, base, bytes, access })
    }

    /// Ends a registration: from here on its key is stale. Returns false if the key
    /// was stale already. Only the table's owner unregisters.
    pub fn unregister(&self, key: RegionKey) -> bool {
        let Some(slot) = self.slots.get(key.index()) else { return false };
        // Relaxed on failure: the only information is that the key is stale.
        let ended = slot.live.compare_exchange(key.life(), 0, Ordering::AcqRel, Ordering::Relaxed);
        if ended.is_err() || key.generation() == 0 {
            return false;
        }
        // Release: pairs with the Acquire of the next `register`.
        slot.claimed.store(0, Ordering::Release);
        true
    }

    /// Makes every key of this rank stale and records the cause: the rank has died.
    pub fn mark_dead(&self) {
        // SeqCst, and so Release: `dead` is set before the keys become stale,
        // because a reader that finds a stale key then reads `dead`.
        self.dead.store(1, Ordering::SeqCst);
        for slot in &self.slots {
            slot.live.store(0, Ordering::SeqCst);
        }
    }

    /// Whether the rank was declared dead by [`mark_dead`](Self::mark_dead).
    pub fn is_marked_dead(&self) -> bool {
        self.dead.load(Ordering::SeqCst) != 0
    }

    /// The place of `bytes` bytes at `addr`, if the region exists, contains them and
    /// allows the access `need`. Wait-free.
    ///
    /// # Errors
    ///
    /// - [`AddrError::PeerLost`]: the rank has died.
    /// - [`AddrError::StaleKey`]: no region is registered under the key, or the region is
    ///   [`Access::Local`] and `need` is not [`Need::Local`].
    /// - [`AddrError::OutOfRange`]: the region does not contain all bytes.
    /// - [`AddrError::ReadOnly`]: `need` is [`Need::Write`], and the region is
    ///   [`Access::Read`].
    #[inline(always)]
    pub fn resolve(
        &self,
        addr: RemoteAddr,
        bytes: u64,
        need: Need,
    ) -> Result<NonNull<u8>, AddrError> {
        let () = Self::SIZE_IS_VALID;
        let index = addr.key.index();
        if N < RegionKey::INDEX_MAX && index >= N {
            return Err(AddrError::StaleKey { addr });
        }
        let slot = &self.slots[index & (N - 1)];
        // Acquire: pairs with the Release store in `publish`.
        let before = slot.live.load(Ordering::Acquire);
        let base = slot.base.load(Ordering::Relaxed);
        let region_bytes = slot.bytes.load(Ordering::Relaxed);
        let access = slot.access.load(Ordering::Relaxed);
        // Acquire: pairs with the Release fence in `publish`.
        fence(Ordering::Acquire);
        let after = mutate!("region_no_second_look": slot.live.load(Ordering::Relaxed) => before);
        let life = addr.key.life();
        if before != life
            || after != life
            || life == 0
            || bytes > region_bytes
            || addr.offset > region_bytes - bytes
            || access & need as u32 != need as u32
        {
            return Err(self.refuse(addr, bytes, life == before && life == after));
        }
        // SAFETY: `publish` stored the address of a NonNull, and an offset within
        // the region does not wrap.
        Ok(unsafe { NonNull::new_unchecked((base + addr.offset) as *mut u8) })
    }

    /// Looks up a region; `None` if none is registered under the key. Wait-free.
    pub fn view(&self, key: RegionKey) -> Option<RegionView<'_>> {
        let slot = self.slots.get(key.index())?;
        let life = key.life();
        // Acquire: pairs with the Release store in `publish`.
        let before = slot.live.load(Ordering::Acquire);
        let base = slot.base.load(Ordering::Relaxed);
        let bytes = slot.bytes.load(Ordering::Relaxed);
        let access = slot.access.load(Ordering::Relaxed);
        // Acquire: pairs with the Release fence in `publish`.
        fence(Ordering::Acquire);
        let after = slot.live.load(Ordering::Relaxed);
        if before != life || after != life || life == 0 {
            return None;
        }
        let base = NonNull::new(base as *mut u8)?;
        Some(RegionView { base, bytes, access, life, live: &slot.live })
    }

    #[cold]
    #[inline(never)]
    fn refuse(&self, addr: RemoteAddr, bytes: u64, live: bool) -> AddrError {
        // Acquire: pairs with `mark_dead`. The second load of `live` was relaxed; if it
        // returned a value that `mark_dead` wrote, this fence makes `dead` visible.
        mutate!("region_refuse_unfenced": fence(Ordering::Acquire) => ());
        if self.is_marked_dead() {
            return AddrError::PeerLost { rank: addr.rank };
        }
        if !live || addr.key.generation() == 0 {
            return AddrError::StaleKey { addr };
        }
        let slot = &self.slots[addr.key.index()];
        let region_bytes = slot.bytes.load(Ordering::Relaxed);
        if bytes > region_bytes || addr.offset > region_bytes - bytes {
            return AddrError::OutOfRange { addr, bytes, region_bytes: Some(region_bytes) };
        }
        match slot.access.load(Ordering::Relaxed) {
            0 => AddrError::StaleKey { addr },
            _ => AddrError::ReadOnly { addr },
        }
    }

    /// The number of regions registered now.
    pub fn len(&self) -> usize {
        self.slots.iter().filter(|slot| slot.live.load(Ordering::Relaxed) != 0).count()
    }

    /// Whether no region is registered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Checks that `rank` is one of `size` ranks, the first of all checks.
    ///
    /// # Errors
    ///
    /// [`AddrError::NoSuchRank`] if it is not.
    #[inline(always)]
    pub fn check_rank(rank: Rank, size: u32) -> Result<(), AddrError> {
        if rank.0 < size { Ok(()) } else { Err(AddrError::NoSuchRank { rank, size }) }
    }
}

impl RegionSlot {
    /// Publishes a region in a claimed slot.
    fn publish(&self, key: RegionKey, base: NonNull<u8>, bytes: u64, access: Access) {
        self.last.store(key.generation(), Ordering::Relaxed);
        // Release: pairs with the Acquire fence in `resolve`. A reader that loads
        // the new base then sees that the old generation is gone.
        fence(Ordering::Release);
        self.base.store(base.as_ptr() as u64, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
        self.access.store(access as u32, Ordering::Relaxed);
        // Release: pairs with the first Acquire in `resolve`.
        let publish = mutate!("region_publish_relaxed": Ordering::Release => Ordering::Relaxed);
        self.live.store(key.life(), publish);
    }

    #[cfg(not(tsumugi_loom))]
    const fn new() -> Self {
        Self {
            live: AtomicU32::new(0),
            last: AtomicU32::new(0),
            access: AtomicU32::new(0),
            claimed: AtomicU32::new(0),
            base: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    #[cfg(tsumugi_loom)]
    fn new() -> Self {
        Self {
            live: AtomicU32::new(0),
            last: AtomicU32::new(0),
            access: AtomicU32::new(0),
            claimed: AtomicU32::new(0),
            base: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }
    }
}

impl<const N: usize> Default for RegionTable<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> fmt::Debug for RegionTable<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RegionTable({} of {N} slots)", self.len())
    }
}

#[cfg(not(tsumugi_loom))]
const _: () = assert!(size_of::<RegionSlot>() == 32 && size_of::<RegionTable<4>>() == 64 + 4 * 32);

#[cfg(all(test, not(tsumugi_loom)))]
mod tests;

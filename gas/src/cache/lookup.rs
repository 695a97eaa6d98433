//! The cache as workers use it: lookups of addresses, which hold or pin the slot of
//! their table.

use super::hazard::{HazardDomain, HazardPointers, LightFence};
use super::slot::{CacheSlot, SlotState, SlotWord};
use crate::address::{GlobalAddr, STARTER, Split};
use crate::control::{TABLE_BYTES, WAYS};
use crate::table::{Agent, RegionEntry, Starter, entry_word};
use core::fmt;
use tsumugi_core::mem::{AddrError, Need, Rank, RegionKey, RemoteAddr};
use tsumugi_core::mutate;
use tsumugi_core::sync::mapped;
use tsumugi_core::sync::{Ordering, edge, fence};

/// The cache as workers use it: a view, cheap to copy and to send.
#[derive(Clone, Copy)]
pub struct TableCache<'m> {
    pub(super) slots: &'m [CacheSlot],
    pub(super) copies: &'m [mapped::AtomicU64],
    pub(super) hazards: HazardDomain<'m>,
    pub(super) split: Split,
    /// The entry of the starter memory, as an entry's words.
    pub(super) starter: [u64; 2],
    pub(super) sets_mask: u32,
    pub(super) offset_mask: u64,
}

/// The place that an address stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResolvedAddr {
    /// The address in the backends.
    pub remote: RemoteAddr,
    /// The agent that carries out atomics there.
    pub agent: Agent,
}

/// A target. Its table stays until the slot is [released](TableCache::release).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a slot that is not released keeps its table"]
pub struct HeldTarget {
    /// The target of the address.
    pub target: ResolvedAddr,
    /// The slot, for its release.
    pub slot: HeldSlot,
}

/// A slot that a worker holds; for starter memory, no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldSlot(u32);

/// A slot, the table that it had, and the hazard pointers of the worker: what a thread
/// keeps of a lookup so as to [hold it again](KeptSlot::hold).
// It is used by reference: each word is loaded where it is used, so that few registers are
// in use at a time.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct KeptSlot<'m> {
    hazards: &'m HazardPointers,
    /// Of starter memory, a slot that never changes.
    slot: &'m CacheSlot,
    word: u64,
    /// What the hazard pointer is while the slot is held.
    number: u32,
    /// For the keeper: a word that it keeps with the slot. 0 after the lookup.
    pub note: u32,
}

/// A target. Its table stays until the slot is [unpinned](TableCache::unpin).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a slot that is not unpinned keeps its table"]
pub struct Pinned {
    /// The target of the address.
    pub target: ResolvedAddr,
    /// The slot; `None` for starter memory, which needs no slot.
    pub slot: Option<u32>,
}

/// Why a lookup returns no target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Miss {
    /// The rank's table is not here.
    NoTable,
    /// The copy that is here has no such region: it may be older than the region.
    NotListed {
        /// The version of the copy.
        version: u32,
    },
    /// The access is wrong, whatever the table says.
    Refused(AddrError<GlobalAddr>),
}

impl<'m> TableCache<'m> {
    /// A cache of `slots`, with their copies in `copies`. The number of slots must
    /// be a power of two of at least four.
    pub(crate) fn new(
        slots: &'m [CacheSlot],
        copies: &'m [mapped::AtomicU64],
        hazards: HazardDomain<'m>,
        split: Split,
        starter: Starter,
    ) -> Self {
        let count = slots.len();
        assert!(
            count.is_power_of_two() && count >= WAYS as usize,
            "{count} slots: the cache needs a power of two of at least {WAYS}"
        );
        assert_eq!(copies.len(), count * TABLE_WORDS, "words of the copies for {count} slots");
        let sets_mask = slots.len() as u32 / WAYS - 1;
        let offset_mask = split.region_bytes_max() - 1;
        let starter = starter.entry().encode();
        Self { slots, copies, hazards, split, starter, sets_mask, offset_mask }
    }

    /// How addresses are split.
    pub const fn split(&self) -> Split {
        self.split
    }

    /// Looks up `bytes` bytes at `addr`, for an operation that the worker of this
    /// worker carries out at once. The slot stays until [`release`](Self::release);
    /// before that, the worker must not hold anything else with the same hand, of
    /// [`HAZARDS`](super::HAZARDS). Wait-free.
    ///
    /// # Errors
    ///
    /// A [`Miss`] if there is no target:
    ///
    /// - [`Miss::NoTable`]: the table of the address's rank is not in the cache, or has
    ///   just been replaced.
    /// - [`Miss::NotListed`]: the cached table has no such region.
    /// - [`Miss::Refused`]: the address is null, some of the bytes lie outside the
    ///   region, or the region does not allow the access.
    ///
    /// Nothing is held then, but the machine may [have waited](Self::is_waited_for) for
    /// this lookup.
    ///
    /// # Panics
    ///
    /// If there is no such worker.
    #[inline(always)]
    pub fn hold<const HAZARD: usize>(
        &self,
        worker: usize,
        addr: GlobalAddr,
        bytes: u64,
        need: Need,
    ) -> Result<HeldTarget, Miss> {
        match self.try_hold::<HAZARD>(worker, addr, bytes, need) {
            Some(held) => Ok(held),
            None => Err(self.missed(addr, bytes, need)),
        }
    }

    /// Looks up an address like [`hold`](Self::hold), for a caller that does not need
    /// the reason of a miss. The result stays in registers: a result that may be an
    /// error would lie in memory, and would be read again in other pieces than it was
    /// written.
    ///
    /// # Panics
    ///
    /// If there is no such worker.
    #[inline(always)]
    pub fn try_hold<const HAZARD: usize>(
        &self,
        worker: usize,
        addr: GlobalAddr,
        bytes: u64,
        need: Need,
    ) -> Option<HeldTarget> {
        self.hold_keeping::<HAZARD>(worker, addr, bytes, need).map(|(held, _)| held)
    }

    /// Looks up an address like [`try_hold`](Self::try_hold), and returns what is needed
    /// to hold the same slot again.
    ///
    /// # Panics
    ///
    /// If there is no such worker.
    #[inline(always)]
    pub fn hold_keeping<const HAZARD: usize>(
        &self,
        worker: usize,
        addr: GlobalAddr,
        bytes: u64,
        need: Need,
    ) -> Option<(HeldTarget, KeptSlot<'m>)> {
        let hazards = self.hazards.of(worker);
        if self.split.region(addr) == STARTER {
            let target = self.target(addr, bytes, need, self.starter, SlotWord(0))?;
            let kept = KeptSlot { hazards, slot: &hazards.no_slot, word: 0, number: 0, note: 0 };
            return Some((HeldTarget { target, slot: HeldSlot(u32::MAX) }, kept));
        }
        let (slot, word) = self.find(addr)?;
        let (number, light) = (slot as u32 + 1, self.hazards.light());
        hazards.take::<HAZARD>(number, light);
        let entry = self.read(slot, addr);
        // Acquire: pairs with the Release fence in `Fetcher::begin`.
        fence(Ordering::Acquire);
        let after = SlotWord(self.slots[slot].word.load(Ordering::Relaxed));
        if mutate!("gas_no_second_look": after == word => true)
            && let Some(target) = self.target(addr, bytes, need, entry, word)
        {
            let (slot_of, word) = (&self.slots[slot], word.0);
            let kept = KeptSlot { hazards, slot: slot_of, word, number, note: 0 };
            return Some((HeldTarget { target, slot: HeldSlot(slot as u32) }, kept));
        }
        hazards.leave::<HAZARD>(light);
        None
    }

    /// The fence that [`KeptSlot::hold`] and [`KeptSlot::end`] need.
    #[inline(always)]
    pub fn light(&self) -> LightFence {
        self.hazards.light()
    }

    /// Ends the access. True: the machine waits for that, and the caller must let it
    /// poll. Wait-free.
    #[inline(always)]
    pub fn release<const HAZARD: usize>(&self, worker: usize, slot: HeldSlot) -> bool {
        // Starter memory needs no hazard pointer.
        let Some(held) = self.slots.get(slot.0 as usize) else { return false };
        self.hazards.of(worker).leave::<HAZARD>(self.hazards.light());
        SlotWord(held.word.load(Ordering::Relaxed)).state() == SlotState::Draining
    }

    /// Looks up an address for an operation that will be in flight, or of a thread
    /// that has no hazard pointers: the slot stays until [`unpin`](Self::unpin).
    /// Wait-free.
    ///
    /// # Errors
    ///
    /// A [`Miss`] if there is no target:
    ///
    /// - [`Miss::NoTable`]: the table of the address's rank is not in the cache, or has
    ///   just been replaced.
    /// - [`Miss::NotListed`]: the cached table has no such region.
    /// - [`Miss::Refused`]: the address is null, some of the bytes lie outside the
    ///   region, or the region does not allow the access.
    ///
    /// No slot is pinned then, but the machine may [have waited](Self::is_waited_for)
    /// for this lookup.
    pub fn pin(&self, addr: GlobalAddr, bytes: u64, need: Need) -> Result<Pinned, Miss> {
        if self.split.region(addr) == STARTER {
            let target = self.target(addr, bytes, need, self.starter, SlotWord(0));
            let refuse = || self.refuse(addr, bytes, need, self.starter, SlotWord(0));
            return Ok(Pinned { target: target.ok_or_else(refuse)?, slot: None });
        }
        let Some((index, word)) = self.find(addr) else { return Err(self.miss(addr)) };
        let slot = &self.slots[index];
        slot.pins.fetch_add(1, Ordering::SeqCst);
        edge("gas_pin_unordered");
        // SeqCst: after the count was raised; pairs with `Fetcher::drain`, which
        // changes the word before the count is read.
        let after = SlotWord(slot.word.load(Ordering::SeqCst));
        let found = if mutate!("gas_pin_unchecked": after != word => false) {
            Err(Miss::NoTable)
        } else {
            let entry = self.read(index, addr);
            let target = self.target(addr, bytes, need, entry, word);
            target.ok_or_else(|| self.refuse(addr, bytes, need, entry, word))
        };
        match found {
            Ok(target) => Ok(Pinned { target, slot: Some(index as u32) }),
            Err(miss) => {
                self.unpin(Some(index as u32));
                Err(miss)
            }
        }
    }

    /// Ends the access. True: the machine waits for that, and the caller must let it
    /// poll. Wait-free.
    pub fn unpin(&self, slot: Option<u32>) -> bool {
        let Some(index) = slot else { return false };
        let slot = &self.slots[index as usize];
        // Release: the operation is ordered before a load that finds no pins.
        // SeqCst, because the machine may have read the count and gone to sleep.
        let before = slot.pins.fetch_sub(1, Ordering::SeqCst);
        edge("gas_unpin_unordered");
        before == 1 && SlotWord(slot.word.load(Ordering::SeqCst)).state() == SlotState::Draining
    }

    /// To be called after a [`hold`](Self::hold) or a [`pin`](Self::pin) of `addr`
    /// that found nothing. True: the machine waited for the lookup, and the caller
    /// must let it poll, as after the end of an operation. Wait-free.
    pub fn is_waited_for(&self, addr: GlobalAddr) -> bool {
        let first = self.set(self.split.table(addr));
        // SeqCst: after the hazard pointer or pin was given back, as in `release` and
        // `unpin`.
        let drains = |slot: &CacheSlot| {
            SlotWord(slot.word.load(Ordering::SeqCst)).state() == SlotState::Draining
        };
        let set = &self.slots[first..first + WAYS as usize];
        mutate!("gas_miss_untold": set.iter().any(drains) => false)
    }

    /// The slot that has the table of an address. All ways are compared without a
    /// branch, because no processor could predict which way has the table.
    #[inline(always)]
    fn find(&self, addr: GlobalAddr) -> Option<(usize, SlotWord)> {
        let table = self.split.table(addr);
        let first = self.set(table);
        let set = self.slots.get(first..first + WAYS as usize)?;
        let wanted = SlotWord::new(table, 0, SlotState::Ready);
        let (mut found, mut at) = (SlotWord(0), 0);
        for (way, slot) in set.iter().enumerate() {
            // Acquire: pairs with the Release in `Fetcher::publish`.
            let word = SlotWord(slot.word.load(Ordering::Acquire));
            let is_it = word.without_version() == wanted;
            found = if is_it { word } else { found };
            at = if is_it { way } else { at };
        }
        if found.0 == 0 {
            return None;
        }
        let slot = &set[at];
        // Relaxed: a hint. It is stored only if it is not set, because each store
        // costs a cache line transfer.
        if slot.used.load(Ordering::Relaxed) == 0 {
            slot.used.store(1, Ordering::Relaxed);
        }
        Some((first + at, found))
    }

    /// The index of the first slot of the table's set.
    #[inline(always)]
    pub(super) fn set(&self, table: u32) -> usize {
        let hash = table.wrapping_mul(0x9e37_79b9) >> 8;
        ((hash & self.sets_mask) * WAYS) as usize
    }

    /// The words of the entry of an address, in a slot's copy.
    #[inline(always)]
    fn read(&self, slot: usize, addr: GlobalAddr) -> [u64; 2] {
        let at = slot * TABLE_WORDS + entry_word(0, self.split.region(addr) as usize);
        let entry = &self.copies[at..at + 2];
        // Relaxed: the callers have the fences.
        [entry[0].load(Ordering::Relaxed), entry[1].load(Ordering::Relaxed)]
    }

    /// The target of an address by such an entry, if the access is allowed. The
    /// entry was checked when its table came.
    #[inline(always)]
    fn target(
        &self,
        addr: GlobalAddr,
        bytes: u64,
        need: Need,
        entry: [u64; 2],
        word: SlotWord,
    ) -> Option<ResolvedAddr> {
        let offset = addr.to_bits() & self.offset_mask;
        // Starter memory has no lives.
        let life = if word.0 == 0 { 0 } else { self.split.life(addr) };
        let rank = addr.to_bits() >> self.split.rank_shift();
        let access = RegionEntry::access_bits(entry);
        let is_right = rank != 0
            && RegionEntry::is_live(entry, life)
            && bytes <= entry[1]
            && offset <= entry[1] - bytes
            && access & need as u32 == need as u32;
        if !is_right {
            return None;
        }
        let rank = Rank(rank as u32 - 1);
        let key = RegionKey::from_bits(entry[0] as u32);
        Some(ResolvedAddr {
            remote: RemoteAddr { offset, rank, key },
            agent: RegionEntry::agent_of(entry),
        })
    }

    /// The reason why nothing was held, by the present state.
    #[cold]
    #[inline(never)]
    fn missed(&self, addr: GlobalAddr, bytes: u64, need: Need) -> Miss {
        if self.split.region(addr) == STARTER {
            return self.refuse(addr, bytes, need, self.starter, SlotWord(0));
        }
        let Some((slot, word)) = self.find(addr) else { return self.miss(addr) };
        let entry = self.read(slot, addr);
        // Acquire: as in `try_hold`.
        fence(Ordering::Acquire);
        let after = SlotWord(self.slots[slot].word.load(Ordering::Relaxed));
        if after != word || self.target(addr, bytes, need, entry, word).is_some() {
            return Miss::NoTable;
        }
        self.refuse(addr, bytes, need, entry, word)
    }

    #[cold]
    #[inline(never)]
    fn refuse(
        &self,
        addr: GlobalAddr,
        bytes: u64,
        need: Need,
        entry: [u64; 2],
        word: SlotWord,
    ) -> Miss {
        let life = if word.0 == 0 { 0 } else { self.split.life(addr) };
        match RegionEntry::access_bits(entry) {
            _ if self.split.rank(addr).is_none() => Miss::Refused(AddrError::Nowhere { addr }),
            _ if !RegionEntry::is_live(entry, life) => Miss::NotListed { version: word.version() },
            0 => Miss::Refused(AddrError::StaleKey { addr }),
            access if access & need as u32 != need as u32 => {
                Miss::Refused(AddrError::ReadOnly { addr })
            }
            _ => Miss::Refused(AddrError::OutOfRange {
                addr,
                bytes,
                region_bytes: Some(RegionEntry::bytes_of(entry)),
            }),
        }
    }

    #[cold]
    #[inline(never)]
    fn miss(&self, addr: GlobalAddr) -> Miss {
        match self.split.rank(addr) {
            None => Miss::Refused(AddrError::Nowhere { addr }),
            Some(_) => Miss::NoTable,
        }
    }
}

impl KeptSlot<'_> {
    /// Holds the slot that an earlier lookup has held, if it has the same copy of the same
    /// table; then that lookup would find the same target now. Otherwise nothing is
    /// held, and the machine may [have waited](TableCache::is_waited_for). The caller is
    /// the worker of the lookup, with the [fence](TableCache::light) of the same cache. The
    /// slot stays until the [`end`](Self::end); before that, the worker must not hold
    /// anything else with the same hand. Wait-free.
    #[inline(always)]
    #[must_use = "a hold that does not end keeps its table"]
    pub fn hold<const HAZARD: usize>(&self, light: LightFence) -> bool {
        self.hazards.take::<HAZARD>(self.number, light);
        // Acquire: pairs with the Release in `Fetcher::publish`, as in `find`.
        let now = self.slot.word.load(Ordering::Acquire);
        if mutate!("gas_kept_unchecked": now == self.word => true) {
            return true;
        }
        self.hazards.leave::<HAZARD>(light);
        false
    }

    /// Ends the access that [`hold`](Self::hold) has begun, with the same fence. True: the
    /// machine may wait for that, and the caller must let it poll. Wait-free.
    #[inline(always)]
    #[must_use = "the machine may wait"]
    pub fn end<const HAZARD: usize>(&self, light: LightFence) -> bool {
        self.hazards.leave::<HAZARD>(light);
        // A slot that drains has another word than when it was held.
        self.slot.word.load(Ordering::Relaxed) != self.word
    }
}

impl fmt::Debug for TableCache<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_ready = |slot: &&CacheSlot| {
            SlotWord(slot.word.load(Ordering::Relaxed)).state() == SlotState::Ready
        };
        let ready = self.slots.iter().filter(is_ready).count();
        write!(f, "TableCache({ready} of {} tables)", self.slots.len())
    }
}

pub(super) const TABLE_WORDS: usize = TABLE_BYTES / 8;

//! Fills the cache, and drops tables when their owners ask for that.
//!
//! ```text
//!   a fetch:   Announce ─► Announcing ─► Read ─► Reading ─► Ended
//!                 set the bit at the owner         one get of 4 KiB
//!              (left out while it is set from an earlier fetch)
//! ```
//!
//! The bit comes first, then the read (hazard A1): an owner that clears an entry
//! after the read finds the bit. When a table is evicted, its bit stays set, so that
//! the next fetch is only one read; a rank that then holds no table answers the
//! owner at once.
//!
//! When an owner asks, it has cleared the bit, so the bit is noted as cleared here.
//! A copy is dropped, a copy that is being read is not installed, and the answer
//! goes out when nothing is pinned.

mod drop;

use super::lookup::{TABLE_WORDS, TableCache};
use super::slot::{CacheSlot, SlotState, SlotWord, VERSION};
use crate::control::{ControlRegion, TABLE_BYTES, WAYS};
use crate::table::{RegionEntry, take};
use core::fmt;
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_core::mutate;
use tsumugi_core::op::{Kind, Op};
use tsumugi_core::sync::mapped;
use tsumugi_core::sync::{Ordering, edge, fence};

/// One table on its way here.
#[derive(Clone, Copy, Debug)]
pub struct Fetch {
    table: u32,
    slot: u32,
    step: FetchState,
    /// The owner has asked to drop the table meanwhile.
    is_poisoned: bool,
    result: Result<(), AddrError>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FetchState {
    Free,
    Announce,
    Announcing,
    Read,
    Reading,
    Ended,
}

/// The operation that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FetchStep {
    Announce { fetch: u32 },
    Read { fetch: u32 },
    Ack { rank: Rank },
}

/// The result of a request for a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableWanted {
    /// The table is here.
    Here,
    /// The table is on its way.
    Coming,
    /// All fetches, or all slots of the set, are in use: ask again later.
    Later,
}

/// A fetch has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FetchedTable {
    pub(crate) table: u32,
    pub(crate) result: Result<(), AddrError>,
}

pub(crate) struct Fetcher<'m> {
    cache: TableCache<'m>,
    control: ControlRegion,
    words: &'m [mapped::AtomicU64],
    /// One bit per rank: this rank's bit is set in that rank's list of holders.
    told: &'m mut [u64],
    fetches: &'m mut [Fetch],
    colors: u32,
    version: u32,
    /// Slots that are draining.
    draining: u32,
    /// Whether the hazard pointers were fenced since the last of these slots began to
    /// drain.
    is_fenced: bool,
    /// The next word of the drops to read, and the rest of the words that were read
    /// last.
    scan: Option<usize>,
    hinted: (usize, u64),
    asked: (usize, u64),
    evicted: u64,
    reads: u64,
}

impl Fetch {
    /// A fetch that is not in use.
    pub const FREE: Self =
        Self { table: 0, slot: 0, step: FetchState::Free, is_poisoned: false, result: Ok(()) };
}

impl<'m> Fetcher<'m> {
    pub(crate) fn new(
        cache: TableCache<'m>,
        control: ControlRegion,
        colors: u32,
        words: &'m [mapped::AtomicU64],
        told: &'m mut [u64],
        fetches: &'m mut [Fetch],
    ) -> Self {
        told.fill(0);
        fetches.fill(Fetch::FREE);
        Self {
            cache,
            control,
            words,
            told,
            fetches,
            colors,
            version: 0,
            draining: 0,
            is_fenced: true,
            scan: None,
            hinted: (0, 0),
            asked: (0, 0),
            evicted: 0,
            reads: 0,
        }
    }

    /// Requests a table.
    pub(crate) fn want(&mut self, table: u32) -> TableWanted {
        if self.ready(table).is_some() {
            return TableWanted::Here;
        }
        let is_under_way = |fetch: &Fetch| fetch.step != FetchState::Free && fetch.table == table;
        if self.fetches.iter().any(is_under_way) {
            return TableWanted::Coming;
        }
        let Some(index) = self.fetches.iter().position(|fetch| fetch.step == FetchState::Free)
        else {
            return TableWanted::Later;
        };
        let Some(slot) = self.make_room(table) else { return TableWanted::Later };
        self.begin(index, table, slot);
        TableWanted::Coming
    }

    /// Requests a table that is newer than the copy `version`.
    pub(crate) fn refresh(&mut self, table: u32, version: u32) -> TableWanted {
        match self.ready(table) {
            Some((slot, word)) if word.version() == version => {
                let free = self.fetches.iter().position(|fetch| fetch.step == FetchState::Free);
                let Some(index) = free else { return TableWanted::Later };
                self.begin(index, table, slot);
                TableWanted::Coming
            }
            _ => self.want(table),
        }
    }

    /// Notes that owners may have asked.
    pub(crate) fn rang(&mut self) {
        self.scan = Some(0);
    }

    /// The next operation to post, and the step that it belongs to.
    pub(crate) fn poll_op(&mut self) -> Option<(Op, FetchStep)> {
        if let Some(rank) = self.poll_ack() {
            let (word, bit) = self.control.ack(rank);
            let op = Op::atomic(Kind::FetchOr, word, bit);
            let is_last = self.control.ack_hint(rank).is_none();
            return Some((if is_last { op.notifying() } else { op }, FetchStep::Ack { rank }));
        }
        for index in 0..self.fetches.len() {
            let Fetch { table, slot, step, .. } = self.fetches[index];
            let Some((rank, color)) = self.cache.split.owner(table) else { continue };
            let fetch = index as u32;
            match step {
                FetchState::Announce => {
                    self.fetches[index].step = FetchState::Announcing;
                    let (word, bit) = self.control.holder(rank);
                    return Some((
                        Op::atomic(Kind::FetchOr, word, bit),
                        FetchStep::Announce { fetch },
                    ));
                }
                FetchState::Read => {
                    self.fetches[index].step = FetchState::Reading;
                    self.reads += 1;
                    let (from, to) =
                        (self.control.table(rank, color), self.control.copy(slot as usize));
                    return Some((
                        Op::get(from, to, TABLE_BYTES as u64),
                        FetchStep::Read { fetch },
                    ));
                }
                _ => {}
            }
        }
        None
    }

    /// Handles the end of an operation.
    pub(crate) fn handle(&mut self, step: FetchStep, result: Result<u64, AddrError>) {
        let (index, is_read) = match step {
            FetchStep::Announce { fetch } => (fetch as usize, false),
            FetchStep::Read { fetch } => (fetch as usize, true),
            // A rank that died needs no answer.
            FetchStep::Ack { .. } => return,
        };
        let Fetch { table, is_poisoned, .. } = self.fetches[index];
        if let Err(error) = result {
            return self.end(index, Err(error));
        }
        if mutate!("gas_install_after_drop": is_poisoned => false) {
            // The table that was read may be older than the change that the owner
            // has made.
            return self.end(index, Ok(()));
        }
        if is_read {
            mutate!("gas_interest_after_read":
                self.end(index, Ok(())) => self.announce_late(index, table));
        } else {
            self.tell(table);
            mutate!("gas_interest_after_read":
                self.fetches[index].step = FetchState::Read => self.end(index, Ok(())));
        }
    }

    /// The planted defect `gas_interest_after_read`: the table is in use before the
    /// owner knows of the copy.
    fn announce_late(&mut self, index: usize, table: u32) {
        if self.is_told(table) {
            return self.end(index, Ok(()));
        }
        let slot = self.fetches[index].slot as usize;
        self.publish(slot, table);
        self.fetches[index].step = FetchState::Announce;
    }

    /// The next fetch that has ended.
    pub(crate) fn poll(&mut self) -> Option<FetchedTable> {
        let ended = |fetch: &&mut Fetch| fetch.step == FetchState::Ended;
        let fetch = self.fetches.iter_mut().find(ended)?;
        fetch.step = FetchState::Free;
        Some(FetchedTable { table: fetch.table, result: fetch.result })
    }

    /// The number of tables that were evicted, and of reads of tables.
    pub(crate) const fn counts(&self) -> (u64, u64) {
        (self.evicted, self.reads)
    }

    fn begin(&mut self, index: usize, table: u32, slot: usize) {
        self.version = (self.version + 1) & VERSION;
        self.store(slot, SlotWord::new(table, self.version, SlotState::Filling));
        // Release: pairs with the fence in `TableCache::hold`. A reader of the bytes that
        // come now sees that the slot has changed.
        fence(Ordering::Release);
        let is_first = mutate!("gas_interest_after_read": !self.is_told(table) => false);
        let step = if is_first { FetchState::Announce } else { FetchState::Read };
        let slot = slot as u32;
        self.fetches[index] = Fetch { table, slot, step, is_poisoned: false, result: Ok(()) };
    }

    /// Ends a fetch, with the copy or with an error.
    fn end(&mut self, index: usize, result: Result<(), AddrError>) {
        let Fetch { table, slot, is_poisoned, .. } = self.fetches[index];
        let slot = slot as usize;
        let fresh = mutate!("gas_install_after_drop": !is_poisoned => true);
        if result.is_ok() && fresh {
            self.sift(slot);
            self.publish(slot, table);
        } else {
            self.drain(slot, is_poisoned);
        }
        (self.fetches[index].step, self.fetches[index].result) = (FetchState::Ended, result);
    }

    /// Clears entries that were read while they were half written, because lookups
    /// do not check entries.
    fn sift(&self, slot: usize) {
        let first = self.control.copy_words() + slot * TABLE_WORDS;
        for entry in self.words[first..first + TABLE_WORDS].chunks(2) {
            let words = [0, 1].map(|word: usize| entry[word].load(Ordering::Relaxed));
            if words[0] != 0 && RegionEntry::decode(words).is_none() {
                entry[0].store(0, Ordering::Relaxed);
            }
        }
    }

    fn publish(&mut self, slot: usize, table: u32) {
        // Release: pairs with the Acquire in `TableCache::find`.
        let word = SlotWord::new(table, self.version_of(slot), SlotState::Ready);
        self.slot(slot).word.store(word.0, Ordering::Release);
        self.slot(slot).used.store(1, Ordering::Relaxed);
    }

    /// A slot for a table: an empty slot, or a slot that was not used lately.
    fn make_room(&mut self, table: u32) -> Option<usize> {
        let ways = mutate!("gas_direct_mapped": WAYS as usize => 1);
        let first = self.cache.set(table);
        let slots = self.cache.slots;
        let state = |slot: usize| SlotWord(slots[slot].word.load(Ordering::Relaxed)).state();
        let set = first..first + ways;
        if let Some(slot) = set.clone().find(|&slot| state(slot) == SlotState::Empty) {
            return (!self.is_pinned(slot)).then_some(slot);
        }
        // Two rounds: the first one clears the marks of use.
        for _ in 0..2 {
            for slot in set.clone().filter(|&slot| state(slot) == SlotState::Ready) {
                let was_used = self.slot(slot).used.swap(0, Ordering::Relaxed) != 0;
                if !was_used && !self.is_news(slot) && self.evict(slot) {
                    return Some(slot);
                }
            }
        }
        None
    }

    /// Whether jobs that wait for the slot's table have not been woken yet. If the
    /// table was evicted now, two tables that share one slot would evict each other
    /// for ever.
    fn is_news(&self, slot: usize) -> bool {
        let is_it = |fetch: &Fetch| fetch.step == FetchState::Ended && fetch.slot as usize == slot;
        mutate!("gas_tables_chase_each_other": self.fetches.iter().any(is_it) => false)
    }

    /// Evicts the table of a slot, unless the table is pinned. If only a worker
    /// holds it, by its hazard pointers, the worker will soon end: then the slot
    /// drains.
    fn evict(&mut self, slot: usize) -> bool {
        let word = SlotWord(self.slot(slot).word.load(Ordering::Relaxed));
        self.store(slot, SlotWord::new(word.table(), word.version(), SlotState::Draining));
        edge("gas_drain_unordered");
        if self.is_pinned(slot) {
            // The machine is informed of the end of an operation in flight anyway.
            self.store(slot, word);
            return false;
        }
        self.evicted += 1;
        self.cache.hazards.heavy();
        let is_free = !self.cache.hazards.has(slot);
        if !is_free {
            self.draining += 1;
        }
        is_free
    }

    fn ready(&self, table: u32) -> Option<(usize, SlotWord)> {
        let first = self.cache.set(table);
        let word = |slot: usize| SlotWord(self.slot(slot).word.load(Ordering::Relaxed));
        let is_ready =
            |slot: &usize| word(*slot).table() == table && word(*slot).state() == SlotState::Ready;
        (first..first + WAYS as usize).find(is_ready).map(|slot| (slot, word(slot)))
    }

    fn slot(&self, slot: usize) -> &'m CacheSlot {
        &self.cache.slots[slot]
    }

    fn store(&self, slot: usize, word: SlotWord) {
        // SeqCst: see `settle`.
        self.slot(slot).word.store(word.0, Ordering::SeqCst);
    }

    /// Whether an access is under way that found its key in the slot. The caller
    /// must have fenced the hazard pointers after it changed the word.
    fn is_held(&self, slot: usize) -> bool {
        self.is_pinned(slot) || self.cache.hazards.has(slot)
    }

    fn is_pinned(&self, slot: usize) -> bool {
        // SeqCst: after the word was changed; pairs with `TableCache::pin`.
        self.slot(slot).pins.load(Ordering::SeqCst) > 0
    }

    fn version_of(&self, slot: usize) -> u32 {
        SlotWord(self.slot(slot).word.load(Ordering::Relaxed)).version()
    }

    fn is_told(&self, table: u32) -> bool {
        let Some((rank, _)) = self.cache.split.owner(table) else { return false };
        self.told[rank.0 as usize / 64] >> (rank.0 % 64) & 1 != 0
    }

    fn tell(&mut self, table: u32) {
        if let Some((rank, _)) = self.cache.split.owner(table) {
            self.told[rank.0 as usize / 64] |= 1 << (rank.0 % 64);
        }
    }

    fn forget(&mut self, rank: Rank) {
        if let Some(word) = self.told.get_mut(rank.0 as usize / 64) {
            *word &= !(1 << (rank.0 % 64));
        }
    }
}

impl fmt::Debug for Fetcher<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { evicted, reads, draining, .. } = self;
        write!(
            f,
            "Fetcher({:?}, {reads} reads, {evicted} evicted, {draining} draining)",
            self.cache
        )
    }
}

const _: () = assert!(TABLE_WORDS * 8 == TABLE_BYTES);

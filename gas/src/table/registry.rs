//! The registry of this rank: its regions, and when their names can be used again.
//!
//! Peers keep copies of the table, and have operations in flight with keys from it.
//! So unregistering takes a round trip to all ranks that may have a copy:
//!
//! ```text
//!   Free ──register──► Live ──unregister──► Marked ─── a round begins ───┐
//!    ▲ life + 1        the entry is cleared: no copy read from now on    │
//!    │                 has it                                            ▼
//!    └──── Ended ◄── every one of those ranks has dropped its copy ── Revoking
//!        the region      and nothing of theirs is in flight
//!        is taken from
//!        the device
//! ```
//!
//! A round takes the holders' bits (each is read and cleared by one atomic: hazard
//! A2), sends a request to those ranks (hazard A3: no rank that sets its bit later
//! gets one), and waits for as many acks. One round runs at a time; regions that are
//! unregistered meanwhile wait for the next round. The device deregisters the region
//! only at the end (hazard A4), and only then may the caller use the memory for
//! something else. A rank that has died is not waited for: the generation of core's
//! key keeps operations that it still had under way from touching other memory.
//!
//! Progress: wait-free, on one thread; a round reads a word for each 64 ranks.

use super::entry::{RegionEntry, Starter, entry_word};
use crate::address::{AddressParts, GlobalAddr, REGIONS, STARTER, Split};
use crate::control::{ControlRegion, ControlShape};
use core::fmt;
use tsumugi_core::mem::{AddrError, Agent, LocalAddr, Need, Rank, Region, RegionKey};
use tsumugi_core::mutate;
use tsumugi_core::sync::mapped::{AtomicU64, Ordering};

/// Memory for one name of one colour.
#[derive(Clone, Copy, Debug)]
pub struct NameRecord {
    entry: Option<RegionEntry>,
    state: NameState,
    life: u8,
    /// Own operations in flight that use the region.
    pins: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NameState {
    Free,
    Live,
    Marked,
    Revoking,
    Ended,
}

/// Why a registration was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameError {
    /// All names of that colour are in use, or not free again yet.
    Full {
        /// The colour.
        color: u8,
    },
    /// No such colour.
    NoSuchColor {
        /// The colour.
        color: u8,
        /// The number of colours.
        colors: u32,
    },
    /// An address has no room for all of its bytes.
    TooLong {
        /// The length of the region.
        bytes: u64,
        /// The largest length.
        bytes_max: u64,
    },
}

/// A region that no rank can reach any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetiredRegion {
    /// The address that the region had.
    pub addr: GlobalAddr,
    /// The key that the backend must deregister now.
    pub key: RegionKey,
}

/// The registry of this rank.
pub(crate) struct Registry<'m> {
    split: Split,
    control: ControlRegion,
    colors: u32,
    starter: Starter,
    words: &'m [AtomicU64],
    records: &'m mut [NameRecord],
    awaited: &'m mut [u64],
    awaiting: u32,
    round: RevocationRound,
    /// The name at which the search for a free name begins: the one that has been
    /// free for the longest time.
    cursor: usize,
    counts: NameCounts,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RevocationRound {
    None,
    /// The ranks below this number were asked.
    Asking(u32),
    Waiting,
}

#[derive(Clone, Copy, Default)]
struct NameCounts {
    marked: u32,
    revoking: u32,
    ended: u32,
}

impl NameRecord {
    /// A name that was never given away.
    pub const FREE: Self = Self { entry: None, state: NameState::Free, life: 0, pins: 0 };
}

impl<'m> Registry<'m> {
    pub(crate) fn new(
        split: Split,
        control: ControlRegion,
        shape: ControlShape,
        starter: Starter,
        words: &'m [AtomicU64],
        records: &'m mut [NameRecord],
        awaited: &'m mut [u64],
    ) -> Self {
        records.fill(NameRecord::FREE);
        awaited.fill(0);
        Self {
            split,
            control,
            colors: shape.colors,
            starter,
            words,
            records,
            awaited,
            awaiting: 0,
            round: RevocationRound::None,
            cursor: 0,
            counts: NameCounts::default(),
        }
    }

    /// Gives a region a name.
    pub(crate) fn register(
        &mut self,
        color: u8,
        region: &Region,
        agent: Agent,
    ) -> Result<GlobalAddr, NameError> {
        if u32::from(color) >= self.colors {
            return Err(NameError::NoSuchColor { color, colors: self.colors });
        }
        let (bytes, bytes_max) = (region.bytes, self.split.region_bytes_max());
        if bytes > bytes_max {
            return Err(NameError::TooLong { bytes, bytes_max });
        }
        let first = usize::from(color) * REGIONS;
        let start = self.cursor;
        let name = (0..REGIONS)
            .map(|step| (start + step) % REGIONS)
            .find(|&name| self.records[first + name].state == NameState::Free)
            .ok_or(NameError::Full { color })?;
        self.cursor = name + 1;
        let record = &mut self.records[first + name];
        let (life, access) = (record.life, region.access);
        let entry = RegionEntry { key: region.key, bytes, life, access, agent };
        (record.entry, record.state) = (Some(entry), NameState::Live);
        let at = entry_word(color, name);
        let [word, bytes] = entry.encode();
        self.words[at + 1].store(bytes, Ordering::Relaxed);
        // Release: a reader of the entry on this node finds the region registered.
        self.words[at].store(word, Ordering::Release);
        Ok(self.addr(color, name))
    }

    /// Takes a region's name away. It is [retired](Self::poll_retired) later.
    pub(crate) fn unregister(&mut self, addr: GlobalAddr) -> Result<(), AddrError<GlobalAddr>> {
        let index = self.find(addr)?.ok_or(AddrError::StaleKey { addr })?;
        self.records[index].state = NameState::Marked;
        self.counts.marked += 1;
        // SeqCst: before the holders' bits are taken, see `begin`.
        self.words[entry_word((index / REGIONS) as u8, index % REGIONS)].store(0, Ordering::SeqCst);
        mutate!("gas_retire_at_once": () => self.retire_at_once(index));
        Ok(())
    }

    /// The planted defect `gas_retire_at_once`: no rank is asked to drop its copy.
    fn retire_at_once(&mut self, index: usize) {
        self.records[index].state = NameState::Ended;
        self.counts.marked -= 1;
        self.counts.ended += 1;
    }

    /// The entry for `addr`, which is an address of this rank, and the record to
    /// pin, unless it is the starter memory.
    pub(crate) fn resolve(
        &self,
        addr: GlobalAddr,
        bytes: u64,
        need: Need,
    ) -> Result<(RegionEntry, Option<usize>), AddrError<GlobalAddr>> {
        let found = self.find(addr)?;
        let entry = match found {
            Some(index) => self.records[index].entry.ok_or(AddrError::StaleKey { addr })?,
            None => self.starter.entry(),
        };
        let offset = addr.to_bits() & (self.split.region_bytes_max() - 1);
        entry.admit(addr, offset, bytes, need)?;
        Ok((entry, found))
    }

    /// The local address for the near end of an operation, and the record to pin.
    pub(crate) fn local(
        &self,
        addr: GlobalAddr,
        bytes: u64,
    ) -> Result<(LocalAddr, Option<usize>), AddrError<GlobalAddr>> {
        let (entry, record) = self.resolve(addr, bytes, Need::Local)?;
        let offset = addr.to_bits() & (self.split.region_bytes_max() - 1);
        Ok((LocalAddr { offset, key: entry.key }, record))
    }

    /// All regions that have an address now, and the starter memory: the address of
    /// the first byte, and the entry.
    pub(crate) fn live(&self) -> impl Iterator<Item = (GlobalAddr, RegionEntry)> + '_ {
        let own = self.records.iter().enumerate().filter_map(|(index, record)| {
            let entry = record.entry.filter(|_| record.state == NameState::Live)?;
            Some((self.addr((index / REGIONS) as u8, index % REGIONS), entry))
        });
        let place =
            AddressParts { rank: self.control.rank, color: 0, region: STARTER, life: 0, offset: 0 };
        let starter = self.split.addr(place).ok().map(|addr| (addr, self.starter.entry()));
        own.chain(starter)
    }

    pub(crate) fn pin(&mut self, record: usize) {
        self.records[record].pins += 1;
    }

    pub(crate) fn unpin(&mut self, record: usize) {
        self.records[record].pins -= 1;
    }

    /// The next rank that must drop its copy.
    pub(crate) fn poll_ask(&mut self) -> Option<Rank> {
        if self.round == RevocationRound::None && self.counts.marked > 0 {
            self.begin();
        }
        let RevocationRound::Asking(from) = self.round else { return None };
        let found = next_bit(self.awaited, from);
        self.round =
            found.map_or(RevocationRound::Waiting, |rank| RevocationRound::Asking(rank + 1));
        found.map(Rank)
    }

    /// Takes acks that may have come.
    pub(crate) fn take_acks(&mut self) {
        let (hints, count) = self.control.ack_hint_words();
        if count == 0 {
            return (0..self.awaited.len()).for_each(|index| self.take_ack_word(index));
        }
        let words = self.words;
        for (word, hint) in words[hints..hints + count].iter().enumerate() {
            // Acquire: a peer sets the hint after the bit.
            let mut bits = take(hint);
            while bits != 0 {
                let index = word * 64 + bits.trailing_zeros() as usize;
                if index < self.awaited.len() {
                    self.take_ack_word(index);
                }
                bits &= bits - 1;
            }
        }
    }

    fn take_ack_word(&mut self, index: usize) {
        // Acquire: orders all accesses of the peers by their copies before this.
        let bits = take(&self.words[self.control.ack_words() + index]);
        self.strike(index, bits);
    }

    /// Does not wait for a rank any more, which has died or could not be asked.
    pub(crate) fn forget(&mut self, rank: Rank) {
        if (rank.0 as usize) < self.awaited.len() * 64 {
            self.strike(rank.0 as usize / 64, 1 << (rank.0 % 64));
        }
    }

    /// The next region that no rank can reach any more.
    pub(crate) fn poll_retired(&mut self) -> Option<RetiredRegion> {
        self.settle();
        if self.counts.ended == 0 {
            return None;
        }
        let index = self.records.iter().position(|record| record.state == NameState::Ended)?;
        self.counts.ended -= 1;
        let addr = self.addr((index / REGIONS) as u8, index % REGIONS);
        let lives = self.split.lives();
        let record = &mut self.records[index];
        record.state = NameState::Free;
        record.life = ((u32::from(record.life) + 1) % lives) as u8;
        record.entry.take().map(|entry| RetiredRegion { addr, key: entry.key })
    }

    /// The number of names that are not free.
    pub(crate) fn len(&self) -> usize {
        self.records.iter().filter(|record| record.state != NameState::Free).count()
    }

    /// Begins a round. A rank that has set its bit before this has read, or may
    /// read, a table with the marked entries; a rank that sets its bit later reads a
    /// table without them.
    fn begin(&mut self) {
        for record in self.records.iter_mut().filter(|record| record.state == NameState::Marked) {
            record.state = NameState::Revoking;
        }
        self.counts.revoking = core::mem::take(&mut self.counts.marked);
        let first = self.control.holder_words();
        for (index, awaited) in self.awaited.iter_mut().enumerate() {
            let word = &self.words[first + index];
            // SeqCst: after the entries were cleared. A holder sets its bit by an
            // atomic before it reads the table.
            *awaited = mutate!("gas_holders_cleared_late":
                word.swap(0, Ordering::SeqCst) => word.load(Ordering::SeqCst));
            self.awaiting += awaited.count_ones();
        }
        self.round = RevocationRound::Asking(0);
    }

    fn settle(&mut self) {
        let done = self.round == RevocationRound::Waiting && self.awaiting == 0;
        let is_held = |record: &NameRecord| record.state == NameState::Revoking && record.pins > 0;
        if !done || self.records.iter().any(is_held) {
            return;
        }
        let first = self.control.holder_words();
        let holders = || &self.words[first..first + self.awaited.len()];
        let has_newcomers = mutate!("gas_wait_for_newcomers":
            false => holders().iter().any(|word| word.load(Ordering::Relaxed) != 0));
        if has_newcomers {
            return;
        }
        mutate!("gas_holders_cleared_late":
            () => holders().iter().for_each(|word| word.store(0, Ordering::Relaxed)));
        self.round = RevocationRound::None;
        for record in self.records.iter_mut().filter(|record| record.state == NameState::Revoking) {
            record.state = NameState::Ended;
        }
        self.counts.ended += core::mem::take(&mut self.counts.revoking);
    }

    fn strike(&mut self, index: usize, bits: u64) {
        let gone = self.awaited[index] & bits;
        self.awaited[index] &= !gone;
        self.awaiting -= gone.count_ones();
    }

    /// The record of an address of this rank; `None` for the starter memory.
    fn find(&self, addr: GlobalAddr) -> Result<Option<usize>, AddrError<GlobalAddr>> {
        let place = self.split.place(addr).ok_or(AddrError::Nowhere { addr })?;
        if place.rank != self.control.rank || u32::from(place.color) >= self.colors {
            return Err(AddrError::Nowhere { addr });
        }
        if place.region == STARTER {
            return Ok(None);
        }
        let index = usize::from(place.color) * REGIONS + usize::from(place.region);
        let record = &self.records[index];
        if record.state != NameState::Live || record.life != place.life {
            return Err(AddrError::StaleKey { addr });
        }
        Ok(Some(index))
    }

    fn addr(&self, color: u8, name: usize) -> GlobalAddr {
        let life = self.records[usize::from(color) * REGIONS + name].life;
        let rank = self.control.rank;
        let place = AddressParts { rank, color, region: name as u8, life, offset: 0 };
        self.split.addr(place).expect("the split has room for this rank and colour")
    }
}

/// Takes the bits that other ranks have set in a word.
pub(crate) fn take(word: &AtomicU64) -> u64 {
    if word.load(Ordering::Relaxed) == 0 {
        return 0;
    }
    // Acquire: pairs with the operation that set the bits.
    word.swap(0, Ordering::AcqRel)
}

/// The first bit set from `from` on.
fn next_bit(words: &[u64], from: u32) -> Option<u32> {
    let mut index = from as usize / 64;
    let mut mask = u64::MAX << (from % 64);
    while let Some(&word) = words.get(index) {
        if word & mask != 0 {
            return Some(index as u32 * 64 + (word & mask).trailing_zeros());
        }
        (index, mask) = (index + 1, u64::MAX);
    }
    None
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full { color } => {
                write!(
                    f,
                    "all {REGIONS} regions of colour {color} are in use: unregister one first"
                )
            }
            Self::NoSuchColor { color, colors } => {
                write!(f, "colour {color} does not exist: a rank has {colors} colours, from 0 on")
            }
            Self::TooLong { bytes, bytes_max } => {
                write!(f, "a region of {bytes} bytes: an address can name {bytes_max}")
            }
        }
    }
}

impl core::error::Error for NameError {}

#[cfg(test)]
mod tests;

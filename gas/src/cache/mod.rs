//! Copies of other ranks' tables: a bounded, set-associative cache that all
//! workers look into, and that one machine fills.
//!
//! ```text
//!   addr ─► table (rank, colour) ─► set of four slots, one cache line:
//!
//!   slot:  table (32) | version (30) | state (2)      pins      used
//!             │
//!             ▼
//!   copy:  256 entries of 16 bytes, as the rank's own table has them
//!
//!   Empty ──► Filling ──read──► Ready ──asked to drop, or evicted──► Draining
//!     ▲         ▲                 │ refresh                             │
//!     │         └─────────────────┘                                     │
//!     └───────────────────── no pins, and the rank was told ◄───────────┘
//! ```
//!
//! A rank tells another that its table was dropped only when no access is under
//! way whose key came from it (hazards A1, A4). An operation that will be in
//! flight [pins](Cache::pin) the slot; one that is carried out inside the call,
//! on a worker, [holds](Cache::hold) it from the worker's [`Seat`]. Both say so
//! first and then look at the slot's word again (O1's check-then-flag).
//!
//! Progress: [`hold`](Cache::hold), [`pin`](Cache::pin) and their ends are
//! wait-free and send nothing; a miss is answered at once, and what it needs
//! is a round trip of the machine's.

mod fetch;
mod seat;

pub use fetch::{Fetch, Wanted};
pub(crate) use fetch::{Fetcher, Step};
pub(crate) use seat::Seats;
pub use seat::{HANDS, Seat};

use crate::address::{GlobalAddr, STARTER, Split};
use crate::control::{TABLE_BYTES, WAYS};
use crate::error::AccessError;
use crate::table::{Agent, Entry, Starter, entry_word};
use core::fmt;
use tsumugi_core::mem::{Need, Rank, RegionKey, RemoteAddr};
use tsumugi_core::sync::mapped;
use tsumugi_core::sync::{AtomicU8, AtomicU32, AtomicU64, Ordering, edge, fence, mutant};

/// One slot of the cache. All zeroes is an empty one.
#[derive(Debug)]
#[repr(C)]
pub struct Slot {
    word: AtomicU64,
    pins: AtomicU32,
    used: AtomicU8,
    /// Draining because the owner asked: it is to be told. The machine's own.
    asked: AtomicU8,
}

/// The cache as lookups see it: a view, cheap to copy and to send.
#[derive(Clone, Copy)]
pub struct Cache<'m> {
    slots: &'m [Slot],
    copies: &'m [mapped::AtomicU64],
    seats: Seats<'m>,
    split: Split,
    /// As an entry's words.
    starter: [u64; 2],
    sets_mask: u32,
    offset_mask: u64,
}

/// Where an address leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// What a backend calls it.
    pub remote: RemoteAddr,
    /// Who does the atomics there.
    pub agent: Agent,
}

/// A target whose table stays until it is [released](Cache::release).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "what is held is to be given back"]
pub struct Held {
    /// Where the address leads.
    pub target: Target,
    /// The slot, for its release.
    pub slot: HeldSlot,
}

/// A slot that a worker holds; of starter memory none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldSlot(u32);

/// A target whose table stays until it is [unpinned](Cache::unpin).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a pin is to be given back"]
pub struct Pinned {
    /// Where the address leads.
    pub target: Target,
    /// The slot; `None` for starter memory, which needs none.
    pub slot: Option<u32>,
}

/// Why there is no target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Miss {
    /// The rank's table is not here.
    NoTable,
    /// The copy that is here has no such region: it may be older than that.
    NotListed {
        /// Which copy.
        version: u32,
    },
    /// The access is wrong, whatever the table says.
    Refused(AccessError),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Empty = 0,
    Filling = 1,
    Ready = 2,
    Draining = 3,
}

/// The word of a slot.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Word(u64);

impl Slot {
    /// Empty.
    pub fn new() -> Self {
        let (used, asked) = (AtomicU8::new(0), AtomicU8::new(0));
        Self { word: AtomicU64::new(0), pins: AtomicU32::new(0), used, asked }
    }
}

impl Default for Slot {
    fn default() -> Self {
        Self::new()
    }
}

impl<'m> Cache<'m> {
    /// A cache of `slots`, as many as a power of two of at least four, with
    /// their copies in `copies`.
    pub(crate) fn new(
        slots: &'m [Slot],
        copies: &'m [mapped::AtomicU64],
        seats: Seats<'m>,
        split: Split,
        starter: Starter,
    ) -> Self {
        assert!(slots.len().is_power_of_two() && slots.len() >= WAYS as usize);
        assert_eq!(copies.len(), slots.len() * TABLE_WORDS);
        let sets_mask = slots.len() as u32 / WAYS - 1;
        let offset_mask = split.region_bytes_max() - 1;
        let starter = starter.entry().encode();
        Self { slots, copies, seats, split, starter, sets_mask, offset_mask }
    }

    /// How addresses are split.
    pub const fn split(&self) -> Split {
        self.split
    }

    /// Where `bytes` bytes at `addr` are, for an operation that the worker of
    /// this seat carries out at once: its slot stays until
    /// [`release`](Self::release), before which the worker holds nothing else
    /// with the same hand, of [`HANDS`]. Wait-free.
    ///
    /// # Errors
    ///
    /// [`Miss`]; nothing is held, but somebody may
    /// [have waited](Self::is_waited_for).
    ///
    /// # Panics
    ///
    /// If there is no such seat.
    #[inline(always)]
    pub fn hold<const HAND: usize>(
        &self,
        seat: usize,
        addr: GlobalAddr,
        bytes: u64,
        need: Need,
    ) -> Result<Held, Miss> {
        match self.try_hold::<HAND>(seat, addr, bytes, need) {
            Some(held) => Ok(held),
            None => Err(self.missed(addr, bytes, need)),
        }
    }

    /// The same for who does not ask why not. What is held is in registers: a
    /// result that may be an error instead would lie in memory, and be read
    /// again in other pieces than it was written.
    ///
    /// # Panics
    ///
    /// If there is no such seat.
    #[inline(always)]
    pub fn try_hold<const HAND: usize>(
        &self,
        seat: usize,
        addr: GlobalAddr,
        bytes: u64,
        need: Need,
    ) -> Option<Held> {
        if self.split.region(addr) == STARTER {
            let target = self.target(addr, bytes, need, self.starter, Word(0))?;
            return Some(Held { target, slot: HeldSlot(u32::MAX) });
        }
        let (slot, word) = self.find(addr)?;
        self.seats.take::<HAND>(seat, slot as u32);
        let entry = self.read(slot, addr);
        // Acquire: pairs with the Release fence in `Fetcher::begin`.
        fence(Ordering::Acquire);
        let after = Word(self.slots[slot].word.load(Ordering::Relaxed));
        if (after == word || mutant("gas_no_second_look"))
            && let Some(target) = self.target(addr, bytes, need, entry, word)
        {
            return Some(Held { target, slot: HeldSlot(slot as u32) });
        }
        self.seats.leave::<HAND>(seat);
        None
    }

    /// The operation has ended. True: somebody waits for that, let the machine
    /// poll. Wait-free.
    #[inline(always)]
    pub fn release<const HAND: usize>(&self, seat: usize, slot: HeldSlot) -> bool {
        // Starter memory needs no seat.
        let Some(held) = self.slots.get(slot.0 as usize) else { return false };
        self.seats.leave::<HAND>(seat);
        Word(held.word.load(Ordering::Relaxed)).state() == State::Draining
    }

    /// The same for an operation that will be in flight, or of a thread that has
    /// no seat: its slot stays until
    /// [`unpin`](Self::unpin). Wait-free.
    ///
    /// # Errors
    ///
    /// [`Miss`]; as of [`hold`](Self::hold).
    pub fn pin(&self, addr: GlobalAddr, bytes: u64, need: Need) -> Result<Pinned, Miss> {
        if self.split.region(addr) == STARTER {
            let target = self.target(addr, bytes, need, self.starter, Word(0));
            let refuse = || self.refuse(addr, bytes, need, self.starter, Word(0));
            return Ok(Pinned { target: target.ok_or_else(refuse)?, slot: None });
        }
        let Some((index, word)) = self.find(addr) else { return Err(self.miss(addr)) };
        let slot = &self.slots[index];
        slot.pins.fetch_add(1, Ordering::SeqCst);
        edge("gas_pin_unordered");
        // SeqCst: after the count was raised; pairs with `Fetcher::drain`,
        // which changes the word and then looks at the count.
        let after = Word(slot.word.load(Ordering::SeqCst));
        let found = if after != word && !mutant("gas_pin_unchecked") {
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

    /// The operation has ended. True: somebody waits for that, let the machine
    /// poll. Wait-free.
    pub fn unpin(&self, slot: Option<u32>) -> bool {
        let Some(index) = slot else { return false };
        let slot = &self.slots[index as usize];
        // Release: the operation before whoever sees no pins; SeqCst, since
        // the machine may have looked at the count and gone to sleep.
        let before = slot.pins.fetch_sub(1, Ordering::SeqCst);
        edge("gas_unpin_unordered");
        before == 1 && Word(slot.word.load(Ordering::SeqCst)).state() == State::Draining
    }

    /// After a [`hold`](Self::hold) or a [`pin`](Self::pin) of `addr` that found
    /// nothing. True: somebody waited for who looked, let the machine poll, as
    /// after the end of an operation. Wait-free.
    pub fn is_waited_for(&self, addr: GlobalAddr) -> bool {
        let first = self.set(self.split.table(addr));
        // SeqCst: after seat or pin were given back, which are as their ends.
        let drains =
            |slot: &Slot| Word(slot.word.load(Ordering::SeqCst)).state() == State::Draining;
        self.slots[first..first + WAYS as usize].iter().any(drains) && !mutant("gas_miss_untold")
    }

    /// The slot that has the table of an address. All ways are looked at, and
    /// none is a branch: which one it is no processor could guess.
    #[inline(always)]
    fn find(&self, addr: GlobalAddr) -> Option<(usize, Word)> {
        let table = self.split.table(addr);
        let first = self.set(table);
        let set = self.slots.get(first..first + WAYS as usize)?;
        let wanted = Word::new(table, 0, State::Ready);
        let (mut found, mut at) = (Word(0), 0);
        for (way, slot) in set.iter().enumerate() {
            // Acquire: pairs with the Release in `Fetcher::publish`.
            let word = Word(slot.word.load(Ordering::Acquire));
            let is_it = word.without_version() == wanted;
            found = if is_it { word } else { found };
            at = if is_it { way } else { at };
        }
        if found.0 == 0 {
            return None;
        }
        let slot = &set[at];
        // Relaxed: a hint. A store where it is set would cost a line.
        if slot.used.load(Ordering::Relaxed) == 0 {
            slot.used.store(1, Ordering::Relaxed);
        }
        Some((first + at, found))
    }

    /// The first slot of the table's set.
    #[inline(always)]
    fn set(&self, table: u32) -> usize {
        let hash = table.wrapping_mul(0x9e37_79b9) >> 8;
        ((hash & self.sets_mask) * WAYS) as usize
    }

    /// The words of the entry of an address, in a slot.
    #[inline(always)]
    fn read(&self, slot: usize, addr: GlobalAddr) -> [u64; 2] {
        let at = slot * TABLE_WORDS + entry_word(0, self.split.region(addr) as usize);
        let entry = &self.copies[at..at + 2];
        // Relaxed: fenced by the callers.
        [entry[0].load(Ordering::Relaxed), entry[1].load(Ordering::Relaxed)]
    }

    /// Where an address leads by such an entry, which was checked when its
    /// table came, if it leads anywhere.
    #[inline(always)]
    fn target(
        &self,
        addr: GlobalAddr,
        bytes: u64,
        need: Need,
        entry: [u64; 2],
        word: Word,
    ) -> Option<Target> {
        let offset = addr.to_bits() & self.offset_mask;
        // Starter memory has no lives.
        let life = if word.0 == 0 { 0 } else { self.split.life(addr) };
        let rank = addr.to_bits() >> self.split.rank_shift();
        let access = Entry::access_bits(entry);
        let is_right = rank != 0
            && Entry::is_live(entry, life)
            && bytes <= entry[1]
            && offset <= entry[1] - bytes
            && access & need as u32 == need as u32;
        if !is_right {
            return None;
        }
        let rank = Rank(rank as u32 - 1);
        let key = RegionKey::from_bits(entry[0] as u32);
        Some(Target { remote: RemoteAddr { offset, rank, key }, agent: Entry::agent_of(entry) })
    }

    /// Why nothing was held, as it is now.
    #[cold]
    #[inline(never)]
    fn missed(&self, addr: GlobalAddr, bytes: u64, need: Need) -> Miss {
        if self.split.region(addr) == STARTER {
            return self.refuse(addr, bytes, need, self.starter, Word(0));
        }
        let Some((slot, word)) = self.find(addr) else { return self.miss(addr) };
        let entry = self.read(slot, addr);
        // Acquire: as in `try_hold`.
        fence(Ordering::Acquire);
        let after = Word(self.slots[slot].word.load(Ordering::Relaxed));
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
        word: Word,
    ) -> Miss {
        let life = if word.0 == 0 { 0 } else { self.split.life(addr) };
        match Entry::access_bits(entry) {
            _ if self.split.rank(addr).is_none() => Miss::Refused(AccessError::Nowhere { addr }),
            _ if !Entry::is_live(entry, life) => Miss::NotListed { version: word.version() },
            0 => Miss::Refused(AccessError::Stale { addr }),
            access if access & need as u32 != need as u32 => {
                Miss::Refused(AccessError::ReadOnly { addr })
            }
            _ => Miss::Refused(AccessError::OutOfRange { addr, bytes }),
        }
    }

    #[cold]
    #[inline(never)]
    fn miss(&self, addr: GlobalAddr) -> Miss {
        match self.split.rank(addr) {
            None => Miss::Refused(AccessError::Nowhere { addr }),
            Some(_) => Miss::NoTable,
        }
    }
}

impl Word {
    const fn new(table: u32, version: u32, state: State) -> Self {
        Self((table as u64) << 32 | ((version & VERSION) as u64) << 2 | state as u64)
    }

    #[inline(always)]
    const fn without_version(self) -> Self {
        Self(self.0 & !((VERSION as u64) << 2))
    }

    #[inline(always)]
    const fn table(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline(always)]
    const fn version(self) -> u32 {
        self.0 as u32 >> 2
    }

    #[inline(always)]
    const fn state(self) -> State {
        match self.0 & 3 {
            0 => State::Empty,
            1 => State::Filling,
            2 => State::Ready,
            _ => State::Draining,
        }
    }
}

impl fmt::Debug for Cache<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_ready =
            |slot: &&Slot| Word(slot.word.load(Ordering::Relaxed)).state() == State::Ready;
        let ready = self.slots.iter().filter(is_ready).count();
        write!(f, "Cache({ready} of {} tables)", self.slots.len())
    }
}

const TABLE_WORDS: usize = TABLE_BYTES / 8;
const VERSION: u32 = u32::MAX >> 2;

#[cfg(not(tsumugi_loom))]
const _: () = assert!(size_of::<Slot>() * WAYS as usize == 64);

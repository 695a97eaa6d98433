//! Chains by hash, on the ranks given: all that sets, multisets and maps have
//! in common.
//!
//! ```text
//!  header    ranks, slots │ where each rank's slots are ...
//!
//!  slot      lock (5 words), first, count, 0          a line
//!              │
//!              ▼
//!  element   next, key bytes, value bytes, times │ key, to whole words │ value
//! ```
//!
//! A key's hash says the rank and the slot; the element lies on that rank. Only
//! a map's have values, and only in a multiset can a key be there more than one
//! time. The header never changes, a slot's words under its lock.
//!
//! Calls on one key are atomic. What goes from slot to slot ([`Table::size`],
//! [`Table::clear`], copies, moves, and what an iteration sees) takes each slot
//! as it is when it comes there.

use super::data::{Data, Element};
use super::guard::lock;
use super::store::{Store, after, set_words, words};
use super::{ContainerError, Mode};
use crate::address::GlobalAddr;
use element::{COUNT_AT, FIRST_AT, HEAD_BYTES, Head, TIMES_AT, count, head, search, value_offset};
use tsumugi_core::mem::Rank;

mod element;
mod whole;

/// A hash table, by the address of its header, and its shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Table {
    /// Where its header is.
    pub addr: GlobalAddr,
    /// How many ranks have slots.
    pub ranks: u32,
    /// How many slots each of them has.
    pub slots: u32,
}

/// An element of a table, or its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// On which of the table's ranks.
    pub rank: u32,
    /// In which slot.
    pub slot: u32,
    /// The element; null at the end.
    pub addr: GlobalAddr,
}

/// Which slots a call goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reach {
    /// All of them.
    All,
    /// Those of the rank that calls.
    Local,
}

/// What becomes of an element whose key is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing.
    Keep,
    /// It is there so many times more.
    Add,
}

/// What is taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Removed {
    /// One of as many times as it is there.
    One,
    /// The element.
    All,
}

impl Table {
    /// Makes an empty one: `slots` slots on each of `ranks`, the header on
    /// `rank`.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    pub fn create<S: Store + ?Sized>(
        store: &S,
        ranks: &[Rank],
        slots: u32,
        rank: Rank,
    ) -> Result<Self, ContainerError> {
        if ranks.is_empty() || slots == 0 {
            return Err(ContainerError::NoSlots);
        }
        let count = ranks.len() as u32;
        let addr = store.allocate(rank, 16 + u64::from(count) * 8)?;
        let mut made = Self { addr, ranks: 0, slots };
        set_words(store, addr, [u64::from(count), u64::from(slots)])?;
        for &rank in ranks {
            if let Err(error) = made.add_rank(store, rank) {
                made.destroy(store)?;
                return Err(error);
            }
        }
        Ok(made)
    }

    fn add_rank<S: Store + ?Sized>(&mut self, store: &S, rank: Rank) -> Result<(), ContainerError> {
        let slots = store.allocate(rank, u64::from(self.slots) * SLOT_BYTES)?;
        set_words(store, self.entry_of(store, self.ranks), [slots.to_bits()])?;
        self.ranks += 1;
        for slot in 0..self.slots {
            set_words(store, slot_at(store, slots, slot), [0; SLOT_BYTES as usize / 8])?;
        }
        Ok(())
    }

    /// The one whose header is at `addr`.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    pub fn at_addr<S: Store + ?Sized>(store: &S, addr: GlobalAddr) -> Result<Self, ContainerError> {
        let [ranks, slots] = words(store, addr)?;
        Ok(Self { addr, ranks: ranks as u32, slots: slots as u32 })
    }

    /// Gives all of its memory back. Nobody uses it any more.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    pub fn destroy<S: Store + ?Sized>(self, store: &S) -> Result<(), ContainerError> {
        self.clear(store, Reach::All)?;
        for rank in 0..self.ranks {
            store.free(self.slots_of(store, rank)?)?;
        }
        Ok(store.free(self.addr)?)
    }

    /// The element of a key, or the end.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    pub fn find<S: Store + ?Sized>(
        self,
        store: &S,
        key: Data<'_>,
    ) -> Result<Entry, ContainerError> {
        let (rank, slot) = self.place_of(key.hash(store)?);
        let at = slot_at(store, self.slots_of(store, rank)?, slot);
        let _shared = lock(store, at, Mode::Shared)?;
        let found = search(store, at, key)?;
        Ok(found.map_or(self.end(), |(_, addr, _)| Entry { rank, slot, addr }))
    }

    /// Calls with the value of a key, under its lock; how many times it is
    /// there.
    pub(super) fn retrieve<S: Store + ?Sized>(
        self,
        store: &S,
        key: Data<'_>,
        into: impl FnOnce(Element) -> Result<(), ContainerError>,
    ) -> Result<u64, ContainerError> {
        let (rank, slot) = self.place_of(key.hash(store)?);
        let at = slot_at(store, self.slots_of(store, rank)?, slot);
        let _shared = lock(store, at, Mode::Shared)?;
        let Some((_, _, head)) = search(store, at, key)? else { return Ok(0) };
        into(head.value)?;
        Ok(head.times)
    }

    /// Puts an element in, if its key is not there; whether it was not.
    pub(super) fn insert<S: Store + ?Sized>(
        self,
        store: &S,
        key: Data<'_>,
        value: Data<'_>,
        found: Found,
    ) -> Result<bool, ContainerError> {
        self.admit(store, key, (found, 1), |rank| {
            let bytes = value_offset(key.bytes()) + value.bytes();
            let addr = store.allocate(rank, bytes)?;
            let write = || {
                set_words(store, addr, [0, key.bytes(), value.bytes(), 1])?;
                key.write(store, after(store, addr, HEAD_BYTES))?;
                value.write(store, after(store, addr, value_offset(key.bytes())))
            };
            write().inspect_err(|_| {
                let _ = store.free(addr);
            })?;
            Ok(addr)
        })
    }

    /// Takes a key out; whether it was there.
    pub(super) fn remove<S: Store + ?Sized>(
        self,
        store: &S,
        key: Data<'_>,
        removed: Removed,
    ) -> Result<bool, ContainerError> {
        let (rank, slot) = self.place_of(key.hash(store)?);
        let at = slot_at(store, self.slots_of(store, rank)?, slot);
        let _alone = lock(store, at, Mode::Exclusive)?;
        let Some((before, addr, head)) = search(store, at, key)? else { return Ok(false) };
        if removed == Removed::One && head.times > 1 {
            set_words(store, after(store, addr, TIMES_AT), [head.times - 1])?;
            return Ok(true);
        }
        set_words(store, before, [head.next.to_bits()])?;
        count(store, at, -1)?;
        store.free(addr)?;
        Ok(true)
    }

    /// The first element, or the end.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    pub fn begin<S: Store + ?Sized>(
        self,
        store: &S,
        reach: Reach,
    ) -> Result<Entry, ContainerError> {
        self.first_from(store, reach, (0, 0))
    }

    /// Behind the last element.
    pub const fn end(self) -> Entry {
        Entry { rank: self.ranks, slot: 0, addr: GlobalAddr::NULL }
    }

    /// What follows an element.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    pub fn next<S: Store + ?Sized>(
        self,
        store: &S,
        entry: Entry,
        reach: Reach,
    ) -> Result<Entry, ContainerError> {
        if entry.addr.is_null() {
            return Ok(self.end());
        }
        let at = slot_at(store, self.slots_of(store, entry.rank)?, entry.slot);
        let next = {
            let _shared = lock(store, at, Mode::Shared)?;
            head(store, entry.addr)?.next
        };
        if !next.is_null() {
            return Ok(Entry { addr: next, ..entry });
        }
        self.first_from(store, reach, (entry.rank, entry.slot + 1))
    }

    /// The key of an element; none at the end.
    ///
    /// # Errors
    ///
    /// [`ContainerError`].
    pub fn key<S: Store + ?Sized>(
        self,
        store: &S,
        entry: Entry,
    ) -> Result<Element, ContainerError> {
        if entry.addr.is_null() { Ok(Element::NONE) } else { Ok(head(store, entry.addr)?.key) }
    }

    /// The value of an element of a map; none at the end.
    pub(super) fn value<S: Store + ?Sized>(
        self,
        store: &S,
        entry: Entry,
    ) -> Result<Element, ContainerError> {
        if entry.addr.is_null() { Ok(Element::NONE) } else { Ok(head(store, entry.addr)?.value) }
    }

    /// Puts in what `make` gives on a rank, if the key is not there; whether it
    /// was not.
    fn admit<S: Store + ?Sized>(
        self,
        store: &S,
        key: Data<'_>,
        (found, times): (Found, u64),
        make: impl FnOnce(Rank) -> Result<GlobalAddr, ContainerError>,
    ) -> Result<bool, ContainerError> {
        let (rank, slot) = self.place_of(key.hash(store)?);
        let slots = self.slots_of(store, rank)?;
        let at = slot_at(store, slots, slot);
        let _alone = lock(store, at, Mode::Exclusive)?;
        if let Some((_, addr, head)) = search(store, at, key)? {
            if found == Found::Add {
                set_words(store, after(store, addr, TIMES_AT), [head.times + times])?;
            }
            return Ok(false);
        }
        let addr = make(store.split().rank(slots).unwrap_or(Rank(u32::MAX)))?;
        let [first] = words(store, after(store, at, FIRST_AT))?;
        set_words(store, addr, [first])?;
        set_words(store, after(store, at, FIRST_AT), [addr.to_bits()])?;
        count(store, at, 1)?;
        Ok(true)
    }

    /// The first element of the slots from this one on, or the end.
    fn first_from<S: Store + ?Sized>(
        self,
        store: &S,
        reach: Reach,
        from: (u32, u32),
    ) -> Result<Entry, ContainerError> {
        let mut found = self.end();
        self.each_slot(store, reach, from, |rank, slot, first, _| {
            found = Entry { rank, slot, addr: first };
            Ok(!first.is_null())
        })?;
        Ok(if found.addr.is_null() { self.end() } else { found })
    }

    /// Looks at one slot after the other, several in one read, until told to
    /// stop: its first element and how many it has.
    fn each_slot<S: Store + ?Sized>(
        self,
        store: &S,
        reach: Reach,
        (from_rank, from_slot): (u32, u32),
        mut each: impl FnMut(u32, u32, GlobalAddr, u64) -> Result<bool, ContainerError>,
    ) -> Result<(), ContainerError> {
        for rank in from_rank..self.ranks {
            let slots = self.slots_of(store, rank)?;
            if reach == Reach::Local && store.split().rank(slots) != Some(store.rank()) {
                continue;
            }
            let mut slot = if rank == from_rank { from_slot } else { 0 };
            while slot < self.slots {
                let mut lines = [[[0; 8]; SLOT_BYTES as usize / 8]; SLOTS_READ];
                let some = SLOTS_READ.min((self.slots - slot) as usize);
                let lines = &mut lines[..some];
                let bytes = lines.as_flattened_mut().as_flattened_mut();
                store.read(slot_at(store, slots, slot), bytes)?;
                for line in lines {
                    let word = |at: u64| u64::from_le_bytes(line[at as usize / 8]);
                    let first = GlobalAddr::from_bits(word(FIRST_AT));
                    if each(rank, slot, first, word(COUNT_AT))? {
                        return Ok(());
                    }
                    slot += 1;
                }
            }
        }
        Ok(())
    }

    const fn place_of(self, hash: u64) -> (u32, u32) {
        let (slots, ranks) = (self.slots as u64, self.ranks as u64);
        ((hash / slots % ranks) as u32, (hash % slots) as u32)
    }

    /// Where the header says where a rank's slots are.
    fn entry_of<S: Store + ?Sized>(self, store: &S, rank: u32) -> GlobalAddr {
        after(store, self.addr, 16 + u64::from(rank) * 8)
    }

    fn slots_of<S: Store + ?Sized>(
        self,
        store: &S,
        rank: u32,
    ) -> Result<GlobalAddr, ContainerError> {
        let [at] = words(store, self.entry_of(store, rank))?;
        Ok(GlobalAddr::from_bits(at))
    }
}

fn slot_at<S: Store + ?Sized>(store: &S, slots: GlobalAddr, slot: u32) -> GlobalAddr {
    after(store, slots, u64::from(slot) * SLOT_BYTES)
}

const SLOT_BYTES: u64 = 64;
/// Slots that are looked at in one read.
const SLOTS_READ: usize = 16;

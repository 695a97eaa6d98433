//! Chains by hash, on the ranks given: the common part of sets, multisets and maps.
//!
//! ```text
//!  header    ranks, slots │ directory: where each rank's slots are ...
//!                         ▲ the table's address
//!
//!  slot      0, first, last, count
//!                │
//!                ▼
//!  element   next, before, its lengths │ key │ value
//! ```
//!
//! A key's hash determines the rank and the slot; the element lies on that rank, at
//! the end of the slot's chain. Only elements of a map have values, and only in a
//! multiset can a key have a count above one. The header never changes; the words of
//! a slot change under its lock.
//!
//! Calls on one key are atomic. Calls that go from slot to slot ([`HashTable::size`],
//! [`HashTable::clear`], copies, moves, and iterations) use each slot in the state that
//! it has when they come to it.

use super::data::{Data, Element};
use super::error::ContainerError;
use super::guard::lock;
use super::store::{Store, after, clear, set_words, words};
use crate::address::GlobalAddr;
use crate::lock::LockMode;
pub use kind::TableKind;

use element::{ElementHead, ElementLinks};
use slot::{Chain, SLOT_BYTES, TableSlot, slots_bytes};
use tsumugi_core::mem::Rank;

mod element;
mod kind;
mod slot;
pub(super) mod held;
mod whole;

/// A hash table, by the address of its directory, and its shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HashTable {
    /// The address of the directory.
    pub addr: GlobalAddr,
    /// The number of ranks that have slots.
    pub ranks: u32,
    /// The number of slots on each rank.
    pub slots: u32,
    /// The kind of the elements.
    pub kind: TableKind,
}

/// An element of a table, or its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TableCursor {
    /// The index of the rank, among the table's ranks.
    pub rank: u32,
    /// The slot on that rank.
    pub slot: u32,
    /// The address of the element; null at the end.
    pub addr: GlobalAddr,
}

/// The slots that a call visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reach {
    /// All slots.
    All,
    /// The slots of the calling rank.
    Local,
}

/// How much of an element is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Removed {
    /// One from its count.
    One,
    /// The whole element.
    All,
}

impl HashTable {
    /// Creates an empty table: `slots` slots on each of the ranks, the header on
    /// `rank`.
    ///
    /// # Errors
    ///
    /// - [`ContainerError::NoSlots`]: there are no ranks or no slots.
    /// - [`ContainerError::Heap`]: there is no memory.
    /// - [`ContainerError::Access`]: some of the memory is out of reach.
    pub fn create<S: Store + ?Sized>(
        store: &S,
        kind: TableKind,
        (ranks, slots): (&[Rank], u32),
        rank: Rank,
    ) -> Result<Self, ContainerError> {
        if ranks.is_empty() || slots == 0 {
            return Err(ContainerError::NoSlots);
        }
        let count = ranks.len() as u32;
        let block = store.allocate(rank, DIRECTORY_AT + u64::from(count) * 8)?;
        let addr = after(store, block, DIRECTORY_AT);
        let mut made = Self { addr, ranks: 0, slots, kind };
        set_words(store, block, [u64::from(count), u64::from(slots)])?;
        for &rank in ranks {
            if let Err(error) = made.add_rank(store, rank) {
                // The first error counts.
                let _ = made.destroy(store);
                return Err(error);
            }
        }
        Ok(made)
    }

    fn add_rank<S: Store + ?Sized>(&mut self, store: &S, rank: Rank) -> Result<(), ContainerError> {
        let slots = store.allocate(rank, slots_bytes(self.slots))?;
        set_words(store, self.entry_of(store, self.ranks), [slots.to_bits()])?;
        // Empty chains, and locks that are free.
        clear(store, slots, slots_bytes(self.slots))?;
        self.ranks += 1;
        Ok(())
    }

    /// The table that has its directory at `addr`.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach.
    pub fn at_addr<S: Store + ?Sized>(
        store: &S,
        kind: TableKind,
        addr: GlobalAddr,
    ) -> Result<Self, ContainerError> {
        let [ranks, slots] = words(store, block_of(store, addr))?;
        Ok(Self { addr, ranks: ranks as u32, slots: slots as u32, kind })
    }

    /// Frees all memory of the table. No thread may use it any more.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::Heap`] if a block to free is no block.
    pub fn destroy<S: Store + ?Sized>(self, store: &S) -> Result<(), ContainerError> {
        self.clear(store, Reach::All)?;
        for rank in 0..self.ranks {
            store.free(self.slots_of(store, rank)?)?;
        }
        Ok(store.free(block_of(store, self.addr))?)
    }

    /// The element of a key, or the end.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach.
    pub fn find<S: Store + ?Sized>(
        self,
        store: &S,
        key: Data<'_>,
    ) -> Result<TableCursor, ContainerError> {
        let (rank, number) = self.place_of(key.hash(store)?);
        let slot = self.slot(store, self.slots_of(store, rank)?, number);
        let _shared = lock(store, slot.lock, LockMode::Shared)?;
        let found = slot.chain(store)?.search(store, self.kind, key)?;
        Ok(found.map_or(self.end(), |(addr, _)| TableCursor { rank, slot: number, addr }))
    }

    /// Calls `into` with the value of a key, under the slot's lock, and returns the
    /// count of the key.
    pub(super) fn retrieve<S: Store + ?Sized>(
        self,
        store: &S,
        key: Data<'_>,
        into: impl FnOnce(Element) -> Result<(), ContainerError>,
    ) -> Result<u64, ContainerError> {
        let slot = self.slot_of(store, key)?;
        let _shared = lock(store, slot.lock, LockMode::Shared)?;
        let found = slot.chain(store)?.search(store, self.kind, key)?;
        let Some((_, head)) = found else { return Ok(0) };
        into(head.value)?;
        Ok(head.times)
    }

    /// Inserts an element if its key is not in the table, and returns whether it was
    /// not.
    pub(super) fn insert<S: Store + ?Sized>(
        self,
        store: &S,
        key: Data<'_>,
        value: Data<'_>,
    ) -> Result<bool, ContainerError> {
        self.admit(store, key, 1, |rank, links| self.make(store, rank, links, (key, value)))
    }

    /// Removes a key, or one from its count, and returns whether it was in the
    /// table.
    pub(super) fn remove<S: Store + ?Sized>(
        self,
        store: &S,
        key: Data<'_>,
        removed: Removed,
    ) -> Result<bool, ContainerError> {
        let held = self.hold(store, key)?;
        match held.times() {
            2.. if removed == Removed::One => held.count(-1).map(|()| true),
            _ => held.remove(),
        }
    }

    /// The rank to which a key belongs, whether or not it is in the table.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach.
    pub fn home<S: Store + ?Sized>(self, store: &S, key: Data<'_>) -> Result<Rank, ContainerError> {
        let (rank, _) = self.place_of(key.hash(store)?);
        Ok(rank_at(store, self.slots_of(store, rank)?))
    }

    /// The first element, or the end.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach.
    pub fn begin<S: Store + ?Sized>(
        self,
        store: &S,
        reach: Reach,
    ) -> Result<TableCursor, ContainerError> {
        self.first_from(store, reach, (0, 0))
    }

    /// The end: the place behind the last element.
    pub const fn end(self) -> TableCursor {
        TableCursor { rank: self.ranks, slot: 0, addr: GlobalAddr::NULL }
    }

    /// The element after `entry`.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach.
    pub fn next<S: Store + ?Sized>(
        self,
        store: &S,
        entry: TableCursor,
        reach: Reach,
    ) -> Result<TableCursor, ContainerError> {
        if entry.addr.is_null() {
            return Ok(self.end());
        }
        let slot = self.slot(store, self.slots_of(store, entry.rank)?, entry.slot);
        let next = {
            let _shared = lock(store, slot.lock, LockMode::Shared)?;
            self.kind.head(store, entry.addr)?.next
        };
        if !next.is_null() {
            return Ok(TableCursor { addr: next, ..entry });
        }
        self.first_from(store, reach, (entry.rank, entry.slot + 1))
    }

    /// The key of an element; no bytes at the end.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach.
    pub fn key<S: Store + ?Sized>(
        self,
        store: &S,
        entry: TableCursor,
    ) -> Result<Element, ContainerError> {
        if entry.addr.is_null() {
            Ok(Element::NONE)
        } else {
            Ok(self.kind.head(store, entry.addr)?.key)
        }
    }

    /// The value of an element of a map; no bytes at the end.
    pub(super) fn value<S: Store + ?Sized>(
        self,
        store: &S,
        entry: TableCursor,
    ) -> Result<Element, ContainerError> {
        if entry.addr.is_null() {
            Ok(Element::NONE)
        } else {
            Ok(self.kind.head(store, entry.addr)?.value)
        }
    }

    /// Inserts the element that `make` creates on a rank, with the given links, if
    /// the key is not in the table, and returns whether it was not. In a multiset,
    /// `times` is added to the key's count.
    fn admit<S: Store + ?Sized>(
        self,
        store: &S,
        key: Data<'_>,
        times: u64,
        make: impl FnOnce(Rank, ElementLinks) -> Result<GlobalAddr, ContainerError>,
    ) -> Result<bool, ContainerError> {
        let held = self.hold(store, key)?;
        if held.times() > 0 {
            if self.kind == TableKind::Multiset {
                held.count(times as i64)?;
            }
            return Ok(false);
        }
        held.append(make)?;
        Ok(true)
    }

    /// Makes an element that is in no chain yet.
    fn make<S: Store + ?Sized>(
        self,
        store: &S,
        rank: Rank,
        links: ElementLinks,
        (key, value): (Data<'_>, Data<'_>),
    ) -> Result<GlobalAddr, ContainerError> {
        let lengths = (key.bytes(), value.bytes());
        let addr = store.allocate(rank, self.kind.element_bytes(lengths.0, lengths.1))?;
        let write = || {
            let at = self.kind.write_head(store, addr, links, lengths)?;
            key.write(store, at)?;
            value.write(store, after(store, at, key.bytes()))
        };
        write().inspect_err(|_| {
            let _ = store.free(addr);
        })?;
        Ok(addr)
    }

    /// The first element in the slots from `from` on, or the end.
    fn first_from<S: Store + ?Sized>(
        self,
        store: &S,
        reach: Reach,
        from: (u32, u32),
    ) -> Result<TableCursor, ContainerError> {
        let mut found = self.end();
        self.each_slot(store, reach, from, |(rank, slot), _, chain| {
            found = TableCursor { rank, slot, addr: chain.first };
            Ok(!chain.first.is_null())
        })?;
        Ok(if found.addr.is_null() { self.end() } else { found })
    }

    /// Calls `each` with one slot after the other, until it returns true: the slot's
    /// rank and number, the address of the rank's slots, and the slot's chain.
    /// Several slots are read at a time.
    fn each_slot<S: Store + ?Sized>(
        self,
        store: &S,
        reach: Reach,
        (from_rank, from_slot): (u32, u32),
        mut each: impl FnMut((u32, u32), GlobalAddr, Chain) -> Result<bool, ContainerError>,
    ) -> Result<(), ContainerError> {
        for rank in from_rank..self.ranks {
            let slots = self.slots_of(store, rank)?;
            if reach == Reach::Local && store.split().rank(slots) != Some(store.rank()) {
                continue;
            }
            let mut slot = if rank == from_rank { from_slot } else { 0 };
            while slot < self.slots {
                let mut some = [[[0; 8]; SLOT_BYTES as usize / 8]; SLOTS_READ];
                let count = SLOTS_READ.min((self.slots - slot) as usize);
                let some = &mut some[..count];
                let bytes = some.as_flattened_mut().as_flattened_mut();
                store.read(self.slot(store, slots, slot).at, bytes)?;
                for words in some {
                    let [_, first, last, count] = words.map(u64::from_le_bytes);
                    if each((rank, slot), slots, Chain::of([first, last, count]))? {
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

    /// The slot of a key.
    fn slot_of<S: Store + ?Sized>(
        self,
        store: &S,
        key: Data<'_>,
    ) -> Result<TableSlot, ContainerError> {
        let (rank, slot) = self.place_of(key.hash(store)?);
        Ok(self.slot(store, self.slots_of(store, rank)?, slot))
    }

    /// A slot of the rank that has its slots at `first`.
    fn slot<S: Store + ?Sized>(self, store: &S, first: GlobalAddr, slot: u32) -> TableSlot {
        TableSlot::new(store, first, (self.slots, slot))
    }

    /// The address of the directory's entry for a rank, which is the address of that
    /// rank's slots.
    fn entry_of<S: Store + ?Sized>(self, store: &S, rank: u32) -> GlobalAddr {
        after(store, self.addr, u64::from(rank) * 8)
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

/// The rank of an address. If it has none, an access to it is refused.
fn rank_at<S: Store + ?Sized>(store: &S, addr: GlobalAddr) -> Rank {
    store.split().rank(addr).unwrap_or(Rank(u32::MAX))
}

/// The address of the block that contains a directory.
fn block_of<S: Store + ?Sized>(store: &S, directory: GlobalAddr) -> GlobalAddr {
    store.split().add(directory, -(DIRECTORY_AT as i64)).unwrap_or(GlobalAddr::NULL)
}

const DIRECTORY_AT: u64 = 16;
/// The number of slots that are read at a time.
const SLOTS_READ: usize = 32;

//! A key of a table while its slot is locked: several steps that no other call on the key
//! comes between.

use super::element::{ElementHead, ElementLinks, set_times};
use super::slot::{Chain, TableSlot};
use super::{HashTable, rank_at};
use crate::address::GlobalAddr;
use crate::container::data::{Data, Element};
use crate::container::error::ContainerError;
use crate::container::guard::{ContainerGuard, lock};
use crate::container::store::Store;
use crate::lock::LockMode;
use core::fmt;
use tsumugi_core::mem::Rank;

/// A key, in the table or not, in a slot that is locked until this is dropped. Calls on
/// other keys of the slot wait; the holder must make none.
pub struct HeldKey<'s, 'k, S: Store + ?Sized> {
    table: HashTable,
    store: &'s S,
    key: Data<'k>,
    slot: TableSlot,
    chain: Chain,
    found: Option<(GlobalAddr, ElementHead)>,
    _alone: ContainerGuard<'s, S>,
}

impl HashTable {
    /// Locks the slot of a key, and searches it for the key.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach.
    pub fn hold<'s, 'k, S: Store + ?Sized>(
        self,
        store: &'s S,
        key: Data<'k>,
    ) -> Result<HeldKey<'s, 'k, S>, ContainerError> {
        let slot = self.slot_of(store, key)?;
        let _alone = lock(store, slot.lock, LockMode::Exclusive)?;
        let chain = slot.chain(store)?;
        let found = chain.search(store, self.kind, key)?;
        Ok(HeldKey { table: self, store, key, slot, chain, found, _alone })
    }
}

impl<S: Store + ?Sized> HeldKey<'_, '_, S> {
    /// The value of the key, if it is in the table; no bytes if the table is not a map.
    pub fn value(&self) -> Option<Element> {
        self.found.map(|(_, head)| head.value)
    }

    /// The count of the key: 0 if it is not in the table.
    pub fn times(&self) -> u64 {
        self.found.map_or(0, |(_, head)| head.times)
    }

    /// Writes the value of the key, which is inserted if it is not in the table. After an
    /// error for lack of memory the table is as before.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::Heap`] if there is no memory.
    pub fn put(self, value: Data<'_>) -> Result<(), ContainerError> {
        let (table, store, both) = (self.table, self.store, (self.key, value));
        let Some((addr, head)) = self.found else {
            return self.append(|rank, links| table.make(store, rank, links, both));
        };
        if head.value.bytes == value.bytes() {
            return value.write(store, head.value.addr);
        }
        let links = ElementLinks { next: head.next, before: head.before };
        let new = table.make(store, rank_at(store, self.slot.at), links, both)?;
        self.slot.replace(store, self.chain, head, new)?;
        Ok(store.free(addr)?)
    }

    /// Removes the key, with its value or its whole count, and returns whether it was in
    /// the table.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Access`] if some of the memory is out of reach,
    /// [`ContainerError::Heap`] if a block to free is no block.
    pub fn remove(self) -> Result<bool, ContainerError> {
        let Some((addr, head)) = self.found else { return Ok(false) };
        self.slot.unlink(self.store, self.chain, head)?;
        self.store.free(addr)?;
        Ok(true)
    }

    /// Adds `more` to the count of a key that is in the table.
    pub(super) fn count(self, more: i64) -> Result<(), ContainerError> {
        let Some((addr, head)) = self.found else { return Ok(()) };
        set_times(self.store, addr, head.times.wrapping_add_signed(more))
    }

    /// Appends the element that `make` creates on a rank, with the given links.
    pub(super) fn append(
        self,
        make: impl FnOnce(Rank, ElementLinks) -> Result<GlobalAddr, ContainerError>,
    ) -> Result<(), ContainerError> {
        let rank = rank_at(self.store, self.slot.at);
        let addr = make(rank, ElementLinks::behind(self.chain.last))?;
        self.slot.append(self.store, self.chain, addr)
    }
}

impl<S: Store + ?Sized> fmt::Debug for HeldKey<'_, '_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldKey").field("table", &self.table).field("found", &self.times()).finish()
    }
}

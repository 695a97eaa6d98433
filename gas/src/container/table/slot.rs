//! A slot: a chain of elements, and its lock.
//!
//! A rank's slots lie in a row, four words each; their locks follow, one cache line
//! each. The first word of a slot is ACP's own lock, which is not used here: it is
//! 0.

use super::element::{ElementHead, set_before, set_next};
use super::kind::TableKind;
use crate::address::GlobalAddr;
use crate::container::data::Data;
use crate::container::error::ContainerError;
use crate::container::store::{Store, after, set_words, words};
use crate::lock::LOCK_BYTES;

/// The address of a slot, and of its lock.
#[derive(Clone, Copy)]
pub(super) struct TableSlot {
    pub(super) at: GlobalAddr,
    pub(super) lock: GlobalAddr,
}

/// The elements of a slot.
#[derive(Clone, Copy)]
pub(super) struct Chain {
    pub(super) first: GlobalAddr,
    pub(super) last: GlobalAddr,
    pub(super) count: u64,
}

impl TableSlot {
    /// The slot with number `slot`, of a rank's `slots` slots that begin at `first`.
    pub(super) fn new<S: Store + ?Sized>(
        store: &S,
        first: GlobalAddr,
        (slots, slot): (u32, u32),
    ) -> Self {
        let lock = locks_at(slots) + u64::from(slot) * LOCK_BYTES;
        let at = after(store, first, u64::from(slot) * SLOT_BYTES);
        Self { at, lock: after(store, first, lock) }
    }

    pub(super) fn chain<S: Store + ?Sized>(self, store: &S) -> Result<Chain, ContainerError> {
        let [_, first, last, count] = words(store, self.at)?;
        Ok(Chain::of([first, last, count]))
    }

    pub(super) fn set_chain<S: Store + ?Sized>(
        self,
        store: &S,
        Chain { first, last, count }: Chain,
    ) -> Result<(), ContainerError> {
        set_words(store, self.at, [0, first.to_bits(), last.to_bits(), count])
    }

    /// Appends an element, which has its links already, to the chain.
    pub(super) fn append<S: Store + ?Sized>(
        self,
        store: &S,
        chain: Chain,
        addr: GlobalAddr,
    ) -> Result<(), ContainerError> {
        let first = if chain.first.is_null() { addr } else { chain.first };
        if !chain.last.is_null() {
            set_next(store, chain.last, addr)?;
        }
        self.set_chain(store, Chain { first, last: addr, count: chain.count + 1 })
    }

    /// Puts `new`, which has the links of an element, in the place of that element.
    pub(super) fn replace<S: Store + ?Sized>(
        self,
        store: &S,
        mut chain: Chain,
        head: ElementHead,
        new: GlobalAddr,
    ) -> Result<(), ContainerError> {
        match head.before.is_null() {
            true => chain.first = new,
            false => set_next(store, head.before, new)?,
        }
        match head.next.is_null() {
            true => chain.last = new,
            false => set_before(store, head.next, new)?,
        }
        self.set_chain(store, chain)
    }

    /// Takes an element out of the chain.
    pub(super) fn unlink<S: Store + ?Sized>(
        self,
        store: &S,
        mut chain: Chain,
        head: ElementHead,
    ) -> Result<(), ContainerError> {
        match head.before.is_null() {
            true => chain.first = head.next,
            false => set_next(store, head.before, head.next)?,
        }
        match head.next.is_null() {
            true => chain.last = head.before,
            false => set_before(store, head.next, head.before)?,
        }
        chain.count -= 1;
        self.set_chain(store, chain)
    }
}

impl Chain {
    pub(super) const EMPTY: Self =
        Self { first: GlobalAddr::NULL, last: GlobalAddr::NULL, count: 0 };

    /// The chain in the words of a slot.
    pub(super) const fn of([first, last, count]: [u64; 3]) -> Self {
        let (first, last) = (GlobalAddr::from_bits(first), GlobalAddr::from_bits(last));
        Self { first, last, count }
    }

    /// The element of a key.
    pub(super) fn search<S: Store + ?Sized>(
        self,
        store: &S,
        kind: TableKind,
        key: Data<'_>,
    ) -> Result<Option<(GlobalAddr, ElementHead)>, ContainerError> {
        let mut addr = self.first;
        while !addr.is_null() {
            let head = kind.head(store, addr)?;
            if key.equals(store, head.key)? {
                return Ok(Some((addr, head)));
            }
            addr = head.next;
        }
        Ok(None)
    }
}

/// The number of bytes of a rank's slots and their locks.
pub(super) const fn slots_bytes(slots: u32) -> u64 {
    locks_at(slots) + slots as u64 * LOCK_BYTES
}

const fn locks_at(slots: u32) -> u64 {
    (slots as u64 * SLOT_BYTES).next_multiple_of(LOCK_BYTES)
}

pub(super) const SLOT_BYTES: u64 = 32;

//! An element of a table, and the chain that it is in.

use crate::address::GlobalAddr;
use crate::container::ContainerError;
use crate::container::data::{Data, Element};
use crate::container::store::{Store, after, set_words, words};

/// What an element says of itself.
#[derive(Clone, Copy)]
pub(super) struct Head {
    pub(super) next: GlobalAddr,
    pub(super) key: Element,
    pub(super) value: Element,
    pub(super) times: u64,
}

/// What an element says of itself.
pub(super) fn head<S: Store + ?Sized>(store: &S, addr: GlobalAddr) -> Result<Head, ContainerError> {
    let [next, bytes, value_bytes, times] = words(store, addr)?;
    let key = Element { addr: after(store, addr, HEAD_BYTES), bytes };
    let value = Element { addr: after(store, addr, value_offset(bytes)), bytes: value_bytes };
    Ok(Head { next: GlobalAddr::from_bits(next), key, value, times })
}

/// Looks for a key in the chain of the slot at `at`: the word that leads to its
/// element, and the element.
pub(super) fn search<S: Store + ?Sized>(
    store: &S,
    at: GlobalAddr,
    key: Data<'_>,
) -> Result<Option<(GlobalAddr, GlobalAddr, Head)>, ContainerError> {
    let mut before = after(store, at, FIRST_AT);
    let [first] = words(store, before)?;
    let mut addr = GlobalAddr::from_bits(first);
    while !addr.is_null() {
        let head = head(store, addr)?;
        if key.equals(store, head.key)? {
            return Ok(Some((before, addr, head)));
        }
        // The link is an element's first word.
        (before, addr) = (addr, head.next);
    }
    Ok(None)
}

/// More elements in a slot, or fewer.
pub(super) fn count<S: Store + ?Sized>(
    store: &S,
    slot: GlobalAddr,
    more: i64,
) -> Result<(), ContainerError> {
    let at = after(store, slot, COUNT_AT);
    let [count] = words(store, at)?;
    set_words(store, at, [count.wrapping_add_signed(more)])
}

pub(super) const fn value_offset(key_bytes: u64) -> u64 {
    HEAD_BYTES + key_bytes.next_multiple_of(8)
}

/// A lock has five words of its line.
pub(super) const FIRST_AT: u64 = 40;
pub(super) const COUNT_AT: u64 = 48;
pub(super) const HEAD_BYTES: u64 = 32;
pub(super) const TIMES_AT: u64 = 24;

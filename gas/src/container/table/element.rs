//! The layout of an element of a table.
//!
//! ```text
//!  set        next, before, key bytes                        │ key
//!  multiset   next, before, times, key bytes                 │ key
//!  map        next, before, 8 + key and value bytes, key bytes │ key, value
//! ```

use super::kind::TableKind;
use crate::address::GlobalAddr;
use crate::container::data::Element;
use crate::container::error::ContainerError;
use crate::container::store::{Store, after, set_words};

/// The contents of an element's head.
#[derive(Clone, Copy)]
pub(super) struct ElementHead {
    pub(super) next: GlobalAddr,
    pub(super) before: GlobalAddr,
    pub(super) key: Element,
    pub(super) value: Element,
    pub(super) times: u64,
}

/// The neighbours of an element in its chain.
#[derive(Clone, Copy)]
pub(super) struct ElementLinks {
    pub(super) next: GlobalAddr,
    pub(super) before: GlobalAddr,
}

impl TableKind {
    const fn head_bytes(self) -> u64 {
        match self {
            Self::Set => 24,
            Self::Multiset | Self::Map => 32,
        }
    }

    /// The number of bytes of an element with such a key and value; `u64::MAX` if
    /// the sum overflows.
    pub(super) const fn element_bytes(self, key_bytes: u64, value_bytes: u64) -> u64 {
        self.head_bytes().saturating_add(key_bytes).saturating_add(value_bytes)
    }

    /// Reads the head of the element at `addr`.
    pub(super) fn head<S: Store + ?Sized>(
        self,
        store: &S,
        addr: GlobalAddr,
    ) -> Result<ElementHead, ContainerError> {
        let mut words = [[0; 8]; 4];
        store.read(addr, &mut words.as_flattened_mut()[..self.head_bytes() as usize])?;
        let [next, before, third, fourth] = words.map(u64::from_le_bytes);
        let (key_bytes, value_bytes, times) = match self {
            Self::Set => (third, 0, 1),
            Self::Multiset => (fourth, 0, third),
            Self::Map => (fourth, third.saturating_sub(8).saturating_sub(fourth), 1),
        };
        let key = Element { addr: after(store, addr, self.head_bytes()), bytes: key_bytes };
        let value = Element { addr: after(store, key.addr, key_bytes), bytes: value_bytes };
        let (next, before) = (GlobalAddr::from_bits(next), GlobalAddr::from_bits(before));
        Ok(ElementHead { next, before, key, value, times })
    }

    /// Writes the head of the element at `addr`, with a count of one, and returns
    /// the address of its key.
    pub(super) fn write_head<S: Store + ?Sized>(
        self,
        store: &S,
        addr: GlobalAddr,
        ElementLinks { next, before }: ElementLinks,
        (key_bytes, value_bytes): (u64, u64),
    ) -> Result<GlobalAddr, ContainerError> {
        let (third, fourth) = match self {
            Self::Set => (key_bytes, 0),
            Self::Multiset => (1, key_bytes),
            Self::Map => (8 + key_bytes + value_bytes, key_bytes),
        };
        let words = [next.to_bits(), before.to_bits(), third, fourth].map(u64::to_le_bytes);
        store.write(addr, &words.as_flattened()[..self.head_bytes() as usize])?;
        Ok(after(store, addr, self.head_bytes()))
    }
}

impl ElementLinks {
    /// The links of a new last element, behind `before`.
    pub(super) const fn behind(before: GlobalAddr) -> Self {
        Self { next: GlobalAddr::NULL, before }
    }

    pub(super) fn write<S: Store + ?Sized>(
        self,
        store: &S,
        addr: GlobalAddr,
    ) -> Result<(), ContainerError> {
        set_words(store, addr, [self.next.to_bits(), self.before.to_bits()])
    }
}

/// Writes the link to the next element.
pub(super) fn set_next<S: Store + ?Sized>(
    store: &S,
    addr: GlobalAddr,
    next: GlobalAddr,
) -> Result<(), ContainerError> {
    set_words(store, addr, [next.to_bits()])
}

/// Writes the link to the element before.
pub(super) fn set_before<S: Store + ?Sized>(
    store: &S,
    addr: GlobalAddr,
    before: GlobalAddr,
) -> Result<(), ContainerError> {
    set_words(store, after(store, addr, 8), [before.to_bits()])
}

/// Writes the count of a multiset's element.
pub(super) fn set_times<S: Store + ?Sized>(
    store: &S,
    addr: GlobalAddr,
    times: u64,
) -> Result<(), ContainerError> {
    set_words(store, after(store, addr, 16), [times])
}

//! Bytes to insert into a container, wherever they are, and bytes of elements.

use super::error::ContainerError;
use super::hash::Hash;
use super::store::{Store, after};
use crate::address::GlobalAddr;

/// Bytes in the global memory. ACP calls this an element.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Element {
    /// The address of the first byte.
    pub addr: GlobalAddr,
    /// The number of bytes.
    pub bytes: u64,
}

/// Bytes to store or to search for. The enum is exhaustive: memory is local or global.
#[derive(Clone, Copy, Debug)]
pub enum Data<'a> {
    /// The bytes are in the caller's memory.
    Here(&'a [u8]),
    /// The bytes lie in the global memory, of any rank.
    There(Element),
}

impl Element {
    /// No bytes.
    pub const NONE: Self = Self { addr: GlobalAddr::NULL, bytes: 0 };
}

impl Data<'_> {
    /// The number of bytes.
    pub const fn bytes(&self) -> u64 {
        match self {
            Self::Here(bytes) => bytes.len() as u64,
            Self::There(element) => element.bytes,
        }
    }

    /// Reads bytes from `from` on.
    pub(super) fn read<S: Store + ?Sized>(
        &self,
        store: &S,
        from: u64,
        into: &mut [u8],
    ) -> Result<(), ContainerError> {
        match self {
            Self::Here(bytes) => {
                into.copy_from_slice(&bytes[from as usize..from as usize + into.len()]);
                Ok(())
            }
            Self::There(element) => Ok(store.read(after(store, element.addr, from), into)?),
        }
    }

    /// Writes `count` of the bytes, from `from` on, to `to`.
    pub(super) fn write_part<S: Store + ?Sized>(
        &self,
        store: &S,
        (from, count): (u64, u64),
        to: GlobalAddr,
    ) -> Result<(), ContainerError> {
        match self {
            Self::Here(bytes) => {
                Ok(store.write(to, &bytes[from as usize..(from + count) as usize])?)
            }
            Self::There(element) => Ok(store.copy(to, after(store, element.addr, from), count)?),
        }
    }

    /// Writes all bytes to `to`.
    pub(super) fn write<S: Store + ?Sized>(
        &self,
        store: &S,
        to: GlobalAddr,
    ) -> Result<(), ContainerError> {
        if self.bytes() == 0 { Ok(()) } else { self.write_part(store, (0, self.bytes()), to) }
    }

    /// Whether the bytes are equal to those at `other`.
    pub(super) fn equals<S: Store + ?Sized>(
        &self,
        store: &S,
        other: Element,
    ) -> Result<bool, ContainerError> {
        if self.bytes() != other.bytes {
            return Ok(false);
        }
        let other = Data::There(other);
        self.chunks(store, |at, own| {
            let mut theirs = [0; CHUNK];
            let theirs = &mut theirs[..own.len()];
            other.read(store, at, theirs)?;
            Ok(own == theirs)
        })
    }

    /// The hash that determines the place of these bytes in a table.
    pub(super) fn hash<S: Store + ?Sized>(&self, store: &S) -> Result<u64, ContainerError> {
        let mut hash = Hash::new();
        self.chunks(store, |_, bytes| {
            hash.add(bytes);
            Ok(true)
        })?;
        Ok(hash.place())
    }

    /// Calls `each` with one part after the other, until it returns false.
    fn chunks<S: Store + ?Sized>(
        &self,
        store: &S,
        mut each: impl FnMut(u64, &[u8]) -> Result<bool, ContainerError>,
    ) -> Result<bool, ContainerError> {
        let mut at = 0;
        while at < self.bytes() {
            let mut chunk = [0; CHUNK];
            let count = (self.bytes() - at).min(CHUNK as u64);
            let chunk = &mut chunk[..count as usize];
            self.read(store, at, chunk)?;
            if !each(at, chunk)? {
                return Ok(false);
            }
            at += count;
        }
        Ok(true)
    }
}

impl<'a> From<&'a [u8]> for Data<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Here(bytes)
    }
}

impl From<Element> for Data<'_> {
    fn from(element: Element) -> Self {
        Self::There(element)
    }
}

/// The number of bytes that are read at a time; whole words.
const CHUNK: usize = 256;

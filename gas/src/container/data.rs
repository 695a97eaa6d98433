//! Bytes that go into a container, wherever they are, and bytes that are in it.

use super::ContainerError;
use super::hash::Hash;
use super::store::{Store, after};
use crate::address::GlobalAddr;

/// Bytes in the global memory: what ACP calls an element.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Element {
    /// Where they begin.
    pub addr: GlobalAddr,
    /// How many they are.
    pub bytes: u64,
}

/// Bytes to be stored or looked for.
#[derive(Clone, Copy, Debug)]
pub enum Data<'a> {
    /// The caller has them.
    Here(&'a [u8]),
    /// They lie in the global memory, of any rank.
    There(Element),
}

impl Element {
    /// None.
    pub const NONE: Self = Self { addr: GlobalAddr::NULL, bytes: 0 };
}

impl Data<'_> {
    /// How many they are.
    pub const fn bytes(&self) -> u64 {
        match self {
            Self::Here(bytes) => bytes.len() as u64,
            Self::There(element) => element.bytes,
        }
    }

    /// Reads some of them.
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

    /// Writes `count` of them, from `from` on, to `to`.
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

    /// Writes all of them.
    pub(super) fn write<S: Store + ?Sized>(
        &self,
        store: &S,
        to: GlobalAddr,
    ) -> Result<(), ContainerError> {
        if self.bytes() == 0 { Ok(()) } else { self.write_part(store, (0, self.bytes()), to) }
    }

    /// Whether they are the same as those at `other`.
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

    /// What their place in a table is reckoned from.
    pub(super) fn hash<S: Store + ?Sized>(&self, store: &S) -> Result<u64, ContainerError> {
        let mut hash = Hash::new();
        self.chunks(store, |_, bytes| {
            hash.add(bytes);
            Ok(true)
        })?;
        Ok(hash.place())
    }

    /// Calls with one part after the other, as long as the answer is true.
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

/// How much is looked at in one go; whole words.
const CHUNK: usize = 256;

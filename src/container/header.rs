//! The block by which a container is known to all ranks.
//!
//! ```text
//!  mark, code of the key, code of the value │ address of the gas container │ handles
//! ```
//!
//! The last word counts the handles that were [opened](super::GlobalMap::open), and is
//! [`FREED`] once the container is freed. The block itself is never freed, so that a name
//! that is used too late is refused.

use crate::global::{GlobalAddr, GlobalPtr, Pool};
use tsumugi_gas::container::{ContainerError, Store};

/// The kind of a container, and the codes of its types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub(super) kind: u8,
    pub(super) key: u64,
    pub(super) value: u64,
}

/// A header, by its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header(pub(super) GlobalAddr);

impl Header {
    /// Writes the header of a container to a new block of its rank.
    pub(super) fn make(
        pool: &Pool,
        shape: Shape,
        object: GlobalAddr,
    ) -> Result<Self, ContainerError> {
        let rank = pool.split().rank(object).unwrap_or(pool.rank());
        let at = pool.allocate(rank, HEADER_BYTES)?;
        let [mark, key, value] = shape.words();
        pool.global().put(GlobalPtr::new(at), [mark, key, value, object.to_bits(), 0])?;
        Ok(Self(at))
    }

    /// The address of the container.
    ///
    /// # Errors
    ///
    /// [`ContainerError::NoContainer`] if there is none of this shape.
    pub(super) fn object(self, pool: &Pool, shape: Shape) -> Result<GlobalAddr, ContainerError> {
        let none = ContainerError::NoContainer { addr: self.0 };
        if !pool.has(self.0) {
            return Err(none);
        }
        let words: [u64; 5] = pool.global().get(GlobalPtr::new(self.0))?;
        let [mark, key, value, object, handles] = words;
        if [mark, key, value] != shape.words() || handles == FREED {
            return Err(none);
        }
        Ok(GlobalAddr::from_bits(object))
    }

    /// Counts a handle more.
    ///
    /// # Errors
    ///
    /// [`ContainerError::NoContainer`] if the container was freed.
    pub(super) fn enter(self, pool: &Pool) -> Result<(), ContainerError> {
        let mut handles = 0;
        loop {
            let old = pool.global().compare_swap(self.handles(pool), handles, handles + 1)?;
            match old {
                FREED => return Err(ContainerError::NoContainer { addr: self.0 }),
                old if old == handles => return Ok(()),
                old => handles = old,
            }
        }
    }

    /// Counts a handle less. If its rank has died, the word is gone with it.
    pub(super) fn leave(self, pool: &Pool) {
        let _ = pool.global().fetch_add(self.handles(pool), u64::MAX);
    }

    /// Marks the container as freed.
    ///
    /// # Errors
    ///
    /// [`ContainerError::InUse`] if there are handles.
    pub(super) fn end(self, pool: &Pool) -> Result<(), ContainerError> {
        match pool.global().compare_swap(self.handles(pool), 0, FREED)? {
            0 => Ok(()),
            FREED => Err(ContainerError::NoContainer { addr: self.0 }),
            _ => Err(ContainerError::InUse),
        }
    }

    fn handles(self, pool: &Pool) -> GlobalPtr<u64> {
        // The block has this word, so its address exists.
        GlobalPtr::new(pool.split().add(self.0, HANDLES_AT).unwrap_or(GlobalAddr::NULL))
    }
}

impl Shape {
    const fn words(self) -> [u64; 3] {
        [MARK | self.kind as u64, self.key, self.value]
    }
}

const HEADER_BYTES: u64 = 40;
const HANDLES_AT: i64 = 32;
/// Marks a block as a header; the lowest byte is the kind's.
const MARK: u64 = u64::from_be_bytes(*b"tsumugi\0");
const FREED: u64 = 1 << 63;

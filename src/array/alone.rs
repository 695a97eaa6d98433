//! Arrays that one rank makes alone, in memory that all ranks have reserved.
//!
//! ```
//! use tsumugi::Error;
//! use tsumugi::array::{ArrayHandle, ArrayOptions};
//!
//! tsumugi::run_ranks(2, |rt| {
//!     let (arrays, told) = (rt.arrays(1 << 20)?, rt.share::<u64>(1)?);
//!     let array = if rt.rank().0 == 1 {
//!         // Rank 0 does something else meanwhile.
//!         let array = arrays.make::<u64>(1000, ArrayOptions::new())?;
//!         rt.put(told.at(tsumugi::Rank(0), 0), array.handle().unwrap().to_bits())?;
//!         rt.barrier()?;
//!         array
//!     } else {
//!         rt.barrier()?;
//!         let handle = rt.get(told.at(rt.rank(), 0))?;
//!         arrays.open(ArrayHandle::from_bits(handle))?
//!     };
//!     array.fetch_add(700, 1)?;
//!     rt.barrier()?;
//!     assert_eq!(array.get(700)?, 2);
//!     rt.barrier()
//! })
//! # .map(drop)
//! # .unwrap();
//! ```
//!
//! ```text
//!  of each rank:  table │ array │ array │ free │ array │ ...
//! ```
//!
//! An array lies at the same offset in the reserved memory of every rank. Rank 0
//! has a table of the arrays, under a lock. Making, opening and ending an array
//! takes remote operations on this table, and no other rank's program takes part.
//! The rank that makes an array writes the directory entries at all homes, and
//! returns when the homes have them.
//!
//! An array lives until every rank that has made or opened it has dropped its last
//! handle. If a rank dies, the arrays that it had open stay.
//!
//! Progress: blocking, on the lock of the table.

use super::handle::check_bytes;
use super::lease::Lease;
use super::page_engine::PageEngine;
use super::room::{ArrayRoom, HOME};
use super::table::{ArrayHandle, ArrayRecord, LINE, TABLE_BYTES};
use super::{ArrayError, ArrayOptions, Directory, Distribution, GlobalArray};
use crate::lock::{LockKind, Words};
use crate::{Agent, Error, Plain, Runtime};
use std::fmt;
use std::sync::Arc;
use tsumugi_gas::page::PageLayout;
use tsumugi_pvas::config::EXPOSED;

/// Reserved memory for arrays that ranks make alone. This is a handle: cheap to
/// clone.
#[derive(Clone)]
pub struct Arrays {
    room: Arc<ArrayRoom>,
}

impl Runtime {
    /// Reserves `bytes` bytes of every rank for arrays that ranks make alone;
    /// memory is allocated on first use. Collective.
    ///
    /// # Errors
    ///
    /// Those of [`share`](Self::share).
    pub fn arrays(&self, bytes: usize) -> Result<Arrays, Error> {
        let rounded = (bytes as u64).checked_next_multiple_of(LINE);
        let Some(bytes) = rounded.and_then(|bytes| bytes.checked_add(TABLE_BYTES)) else {
            return Err(Error::OutOfMemory { bytes, variable: EXPOSED });
        };
        let words = Arc::new(Words::share(self, Agent::Cpu, bytes)?);
        let lock = self.share_lock(HOME, LockKind::Mutex)?;
        let (runtime, room) = (self.clone(), bytes);
        if self.rank() == HOME {
            self.put(words.at(HOME, 8), TABLE_BYTES)?;
        }
        // No rank may read the table before its first free offset is written.
        self.barrier()?;
        Ok(Arrays { room: Arc::new(ArrayRoom { runtime, words, lock, bytes: room }) })
    }
}

impl Arrays {
    /// Makes an array of `len` zero values. No other rank takes part.
    ///
    /// # Errors
    ///
    /// [`Error::Program`] with the text of one of these errors, or [`Error::Addr`]:
    ///
    /// - [`ArrayError::NoPlace`]: the reserved memory has no free range of this
    ///   length, or has 100 arrays.
    /// - [`ArrayError::NotAlone`]: `options` has a distribution by a function, or
    ///   another directory than [`Directory::Atomics`].
    /// - [`ArrayError::Full`]: [`ArrayOptions::room`] is less than the number of pages
    ///   that a rank has at first.
    /// - [`ArrayError::NoAddresses`]: the elements have more bytes than an address
    ///   space.
    /// - [`ShapeError`](super::ShapeError): there are no elements, or too many
    ///   pages.
    /// - [`Error::Addr`]: a rank has died.
    pub fn make<T: Plain>(
        &self,
        len: usize,
        options: ArrayOptions,
    ) -> Result<GlobalArray<T>, Error> {
        let is_cyclic = match (options.distribution, options.directory) {
            (Distribution::Block, Directory::Atomics) => false,
            (Distribution::Cyclic, Directory::Atomics) => true,
            _ => return Err(ArrayError::NotAlone.into()),
        };
        let (room, element_bytes) = (&self.room, size_of::<T>());
        let (page_len, shape) = options.shape(room.runtime.size(), len, element_bytes);
        shape.check()?;
        check_bytes::<T>(len)?;
        let record = ArrayRecord {
            handle: 0,
            start: 0,
            users: 1,
            len: len as u64,
            page_len: page_len as u64,
            element_bytes: element_bytes as u64,
            slots: shape.slots.into(),
            frames: shape.frames.into(),
            is_cyclic: is_cyclic.into(),
        };
        let (record, fresh_from) = room.with_table(|table| room.add(table, record))?;
        let array = self.array::<T>(record, options)?;
        let is_fresh = record.start >= fresh_from;
        for rank in room.runtime.ranks().filter(|_| !is_fresh) {
            room.clear(rank, record.start, shape.metadata_bytes())?;
        }
        for rank in room.runtime.ranks() {
            array.engine.deal(rank, options.distribution)?;
        }
        if !is_fresh {
            array.engine.clear_pages()?;
        }
        Ok(array)
    }

    /// Opens an array that another rank has made. Only the calling rank takes part.
    ///
    /// # Errors
    ///
    /// [`Error::Program`] with the text of [`ArrayError::Gone`] if every rank that
    /// had the array has dropped it, or there never was such an array, and with
    /// that of [`ArrayError::ElementBytes`] if its elements are of another size;
    /// [`Error::Addr`] if a rank has died.
    pub fn open<T: Plain>(&self, handle: ArrayHandle) -> Result<GlobalArray<T>, Error> {
        let record = self.room.with_table(|table| {
            let record = table.find(handle).ok_or(ArrayError::Gone)?;
            let (bytes, own) = (record.element_bytes, size_of::<T>() as u64);
            if bytes != own {
                return Err(ArrayError::ElementBytes { bytes, own });
            }
            record.users += 1;
            Ok(*record)
        })?;
        let first = if record.is_cyclic == 0 { Distribution::Block } else { Distribution::Cyclic };
        self.array(record, ArrayOptions::new().distribution(first))
    }

    fn array<T: Plain>(
        &self,
        record: ArrayRecord,
        options: ArrayOptions,
    ) -> Result<GlobalArray<T>, Error> {
        let lease = Lease { room: self.room.clone(), handle: ArrayHandle(record.handle) };
        check_bytes::<T>(record.len as usize)?;
        let shape = record.shape(self.room.runtime.size());
        let words = self.room.words.clone();
        let layout = PageLayout::new(shape, words.key(), record.start)?;
        let engine = PageEngine::alone(&self.room.runtime, words, layout, lease);
        Ok(GlobalArray::of(engine, &options, record.len as usize, record.page_len as usize))
    }
}

impl fmt::Debug for Arrays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Arrays({} bytes of each rank)", self.room.bytes - TABLE_BYTES)
    }
}

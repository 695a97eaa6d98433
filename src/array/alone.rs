//! Arrays that one rank makes alone, in memory that all ranks have reserved.
//!
//! ```
//! use tsumugi::Error;
//! use tsumugi::array::{ArrayHandle, Dealt};
//!
//! tsumugi::run_ranks(2, |rt| {
//!     let (arrays, told) = (rt.arrays(1 << 20)?, rt.share::<u64>(1)?);
//!     let array = if rt.rank().0 == 1 {
//!         // Rank 0 does something else meanwhile.
//!         let array = arrays.make::<u64>(1000, Dealt::default())?;
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

use super::page_engine::PageEngine;
use super::{ArrayError, Dealt, Directory, Distribution, GlobalArray, check_bytes};
use crate::lock::{LockKind, SharedLock, Words};
use crate::{AddrError, Agent, Error, Plain, Rank, Runtime};
use std::fmt;
use std::sync::Arc;
use tsumugi_gas::page::{Homes, PageLayout, PageShape};
use tsumugi_pvas::config::EXPOSED;

/// Reserved memory for arrays that ranks make alone. This is a handle: cheap to
/// clone.
#[derive(Clone)]
pub struct Arrays {
    room: Arc<ArrayRoom>,
}

/// The handle by which other ranks open an array: a word, which may be stored and
/// sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ArrayHandle(u64);

struct ArrayRoom {
    runtime: Runtime,
    words: Arc<Words>,
    lock: SharedLock,
    bytes: u64,
}

/// Keeps alive an array that this rank has made or opened.
pub(super) struct Lease {
    room: Arc<ArrayRoom>,
    handle: ArrayHandle,
}

/// A local copy of the table, while the lock is held.
struct ArrayTable {
    /// The handle that was assigned last.
    last: u64,
    /// The offset from which on the memory was never used.
    fresh_from: u64,
    records: Vec<ArrayRecord>,
}

/// An entry of the table: one array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ArrayRecord {
    handle: u64,
    start: u64,
    /// The number of ranks that have the array.
    users: u64,
    len: u64,
    page_len: u64,
    element_bytes: u64,
    slots: u64,
    frames: u64,
    is_cyclic: u64,
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
    /// - [`ArrayError::NotAlone`]: `dealt` has a distribution by a function, or
    ///   another directory than [`Directory::Atomics`].
    /// - [`ArrayError::Full`]: [`Dealt::room`] is less than the number of pages
    ///   that a rank has at first.
    /// - [`ArrayError::NoAddresses`]: the elements have more bytes than an address
    ///   space.
    /// - [`ShapeError`](super::ShapeError): there are no elements, or too many
    ///   pages.
    /// - [`Error::Addr`]: a rank has died.
    pub fn make<T: Plain>(&self, len: usize, dealt: Dealt) -> Result<GlobalArray<T>, Error> {
        let is_cyclic = match (dealt.first, dealt.directory) {
            (Distribution::Block, Directory::Atomics) => false,
            (Distribution::Cyclic, Directory::Atomics) => true,
            _ => return Err(ArrayError::NotAlone.into()),
        };
        let (room, element_bytes) = (&self.room, size_of::<T>());
        let (page_len, shape) = dealt.shape(room.runtime.size(), len, element_bytes);
        shape.check().map_err(Error::program)?;
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
        let array = self.array::<T>(record, dealt)?;
        let is_fresh = record.start >= fresh_from;
        for rank in room.runtime.ranks().filter(|_| !is_fresh) {
            room.clear(rank, record.start, shape.metadata_bytes())?;
        }
        for rank in room.runtime.ranks() {
            array.way.deal(rank, dealt.first)?;
        }
        if !is_fresh {
            array.way.clear_pages()?;
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
        self.array(record, Dealt { first, ..Dealt::default() })
    }

    fn array<T: Plain>(&self, record: ArrayRecord, dealt: Dealt) -> Result<GlobalArray<T>, Error> {
        let lease = Lease { room: self.room.clone(), handle: ArrayHandle(record.handle) };
        check_bytes::<T>(record.len as usize)?;
        let shape = record.shape(self.room.runtime.size());
        let words = self.room.words.clone();
        let book = PageLayout::new(shape, words.key(), record.start).map_err(Error::program)?;
        let way = PageEngine::alone(&self.room.runtime, words, book, lease);
        Ok(GlobalArray::of(way, &dealt, record.len as usize, record.page_len as usize))
    }
}

impl ArrayHandle {
    /// The handle as a word.
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// The handle from a word. A word that stands for no array is refused by
    /// [`Arrays::open`].
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}

impl ArrayRoom {
    /// Reads the table, changes it and writes the changes back, under the lock.
    fn with_table<R>(
        &self,
        change: impl FnOnce(&mut ArrayTable) -> Result<R, ArrayError>,
    ) -> Result<R, Error> {
        let guard = self.lock.write()?;
        let mut words = [0; TABLE_WORDS];
        let at = self.words.at(HOME, 0);
        self.runtime.get_slice(at, &mut words)?;
        let mut table = ArrayTable::of_words(&words);
        let changed = change(&mut table);
        if changed.is_ok() {
            let new = table.to_words();
            let first = (0..TABLE_WORDS).find(|word| words[*word] != new[*word]);
            if let Some(first) = first {
                let last = (0..TABLE_WORDS).rfind(|word| words[*word] != new[*word]);
                let range = first..last.unwrap_or(first) + 1;
                self.runtime.put_slice(at.add(first as u64), &new[range])?;
            }
        }
        guard.release()?;
        Ok(changed?)
    }

    /// Finds a place for an array. Returns its record, and the offset from which on
    /// the memory was fresh before.
    fn add(
        &self,
        table: &mut ArrayTable,
        record: ArrayRecord,
    ) -> Result<(ArrayRecord, u64), ArrayError> {
        let ranks = self.runtime.size();
        let bytes = record.bytes(ranks);
        let full = ArrayError::NoPlace { bytes };
        if table.records.len() == RECORDS {
            return Err(full);
        }
        // Takes the first gap that is wide enough; the records are sorted by their
        // starts.
        let (mut start, mut at) = (TABLE_BYTES, 0);
        for other in &table.records {
            if start + bytes <= other.start {
                break;
            }
            (start, at) = (other.start + other.bytes(ranks), at + 1);
        }
        if start + bytes > self.bytes {
            return Err(full);
        }
        table.last += 1;
        let record = ArrayRecord { handle: table.last, start, ..record };
        table.records.insert(at, record);
        let fresh_from = table.fresh_from;
        table.fresh_from = fresh_from.max(start + bytes);
        Ok((record, fresh_from))
    }

    /// Counts this rank out of an array that it has dropped.
    fn leave(&self, handle: ArrayHandle) -> Result<(), Error> {
        self.with_table(|table| {
            table.find(handle).ok_or(ArrayError::Gone)?.users -= 1;
            table.records.retain(|record| record.users > 0);
            Ok(())
        })
    }

    /// Zeroes the memory for an array's directory, which other arrays may have used
    /// before.
    fn clear(&self, rank: Rank, start: u64, bytes: u64) -> Result<(), AddrError> {
        let zeros = [0u64; 1024];
        for at in (0..bytes).step_by(size_of_val(&zeros)) {
            let words = ((bytes - at) as usize / 8).min(zeros.len());
            self.runtime.put_slice(self.words.at(rank, start + at), &zeros[..words])?;
        }
        Ok(())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // If the table cannot be reached, the array stays, as after the death of a
        // rank.
        let _ = self.room.leave(self.handle);
    }
}

impl Lease {
    pub(super) fn handle(&self) -> ArrayHandle {
        self.handle
    }
}

impl ArrayTable {
    fn of_words(words: &[u64; TABLE_WORDS]) -> Self {
        let (records, _) = words[TABLE_HEAD..].as_chunks::<RECORD_WORDS>();
        let records = records.iter().map(ArrayRecord::of_words);
        let records = records.take_while(|record| record.handle != 0).collect();
        Self { last: words[0], fresh_from: words[1], records }
    }

    fn to_words(&self) -> [u64; TABLE_WORDS] {
        let mut words = [0; TABLE_WORDS];
        words[..TABLE_HEAD].copy_from_slice(&[self.last, self.fresh_from]);
        let (places, _) = words[TABLE_HEAD..].as_chunks_mut::<RECORD_WORDS>();
        for (place, record) in places.iter_mut().zip(&self.records) {
            *place = record.to_words();
        }
        words
    }

    fn find(&mut self, handle: ArrayHandle) -> Option<&mut ArrayRecord> {
        let mut records = self.records.iter_mut();
        records.find(|record| record.handle == handle.0)
    }
}

impl ArrayRecord {
    fn shape(&self, ranks: u32) -> PageShape {
        let first = if self.is_cyclic == 0 { Distribution::Block } else { Distribution::Cyclic };
        PageShape {
            homes: Homes::new(ranks, self.len.div_ceil(self.page_len), first),
            page_bytes: self.page_len * self.element_bytes,
            slots: self.slots as u32,
            frames: self.frames as u32,
        }
    }

    fn bytes(&self, ranks: u32) -> u64 {
        self.shape(ranks).bytes().next_multiple_of(LINE)
    }

    const fn of_words(words: &[u64; RECORD_WORDS]) -> Self {
        let [handle, start, users, len, page_len, element_bytes, slots, frames, is_cyclic] = *words;
        Self { handle, start, users, len, page_len, element_bytes, slots, frames, is_cyclic }
    }

    const fn to_words(self) -> [u64; RECORD_WORDS] {
        let Self { handle, start, users, len, page_len, .. } = self;
        let Self { element_bytes, slots, frames, is_cyclic, .. } = self;
        [handle, start, users, len, page_len, element_bytes, slots, frames, is_cyclic]
    }
}

impl fmt::Debug for Arrays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Arrays({} bytes of each rank)", self.room.bytes - TABLE_BYTES)
    }
}

/// The rank that has the table.
const HOME: Rank = Rank(0);
/// The maximum number of arrays at a time.
const RECORDS: usize = 100;
const RECORD_WORDS: usize = 9;
/// The words before the records: the last handle, and the start of the fresh
/// memory.
const TABLE_HEAD: usize = 2;
const TABLE_WORDS: usize = TABLE_HEAD + RECORDS * RECORD_WORDS;
const TABLE_BYTES: u64 = (TABLE_WORDS as u64 * 8).next_multiple_of(LINE);
const LINE: u64 = 64;

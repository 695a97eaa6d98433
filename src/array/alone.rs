//! Arrays that one rank makes alone, in room that all ranks have set aside.
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
//! An array lies at the same place of every rank's room. What lies where is in
//! rank 0's table, under a lock: to make, to open and to end an array takes
//! remote operations on that, and no rank's program takes part. Who makes an
//! array writes the directory at all homes, and is done when they have it.
//!
//! An array lives until every rank that has made or opened it has dropped its
//! last handle. A rank that dies keeps what it had open.
//!
//! Progress: blocking, on the lock of the table.

use super::way::Way;
use super::{ArrayError, Dealt, Directory, Distribution, GlobalArray, check_bytes};
use crate::lock::{Kind, SharedLock, Words};
use crate::{AddrError, Agent, Error, Plain, Rank, Runtime};
use std::fmt;
use std::sync::Arc;
use tsumugi_gas::page::{Book, Homes, Shape};
use tsumugi_pvas::config::EXPOSED;

/// Room for arrays that ranks make alone. A handle: cheap to clone.
#[derive(Clone)]
pub struct Arrays {
    room: Arc<Room>,
}

/// What others open an array by: a word, which may be put anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ArrayHandle(u64);

struct Room {
    runtime: Runtime,
    words: Arc<Words>,
    lock: SharedLock,
    bytes: u64,
}

/// Keeps an array alive, which this rank has made or opened.
pub(super) struct Lease {
    room: Arc<Room>,
    handle: ArrayHandle,
}

/// The table, while it is looked at.
struct Table {
    /// The last handle that was given.
    last: u64,
    /// From here on the room was never used.
    fresh_from: u64,
    records: Vec<Record>,
}

/// An array that there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Record {
    handle: u64,
    start: u64,
    /// Ranks that have it.
    users: u64,
    len: u64,
    page_len: u64,
    element_bytes: u64,
    slots: u64,
    frames: u64,
    is_cyclic: u64,
}

impl Runtime {
    /// Sets so many bytes of every rank aside for arrays that ranks make alone;
    /// memory is taken where it is used. Collective.
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
        let lock = self.share_lock(HOME, Kind::Mutex)?;
        let (runtime, room) = (self.clone(), bytes);
        if self.rank() == HOME {
            self.put(words.at(HOME, 8), TABLE_BYTES)?;
        }
        // Nobody looks into the table before it says where it ends.
        self.barrier()?;
        Ok(Arrays { room: Arc::new(Room { runtime, words, lock, bytes: room }) })
    }
}

impl Arrays {
    /// Makes an array of `len` zero values. No other rank takes part.
    ///
    /// # Errors
    ///
    /// [`ArrayError::NoPlace`]; [`ArrayError::NotAlone`] if it is to be dealt by
    /// a function, or to have the paper's directory;
    /// [`ShapeError`](super::ShapeError).
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
        let record = Record {
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
            room.clear(rank, record.start, shape.books_bytes())?;
        }
        for rank in room.runtime.ranks() {
            array.way.deal(rank, dealt.first)?;
        }
        if !is_fresh {
            array.way.clear_pages()?;
        }
        Ok(array)
    }

    /// An array that another rank has made. Only this rank takes part.
    ///
    /// # Errors
    ///
    /// [`ArrayError::Gone`] if every rank that had it has dropped it, or there
    /// never was one; [`ArrayError::ElementBytes`] if it is one of others.
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

    fn array<T: Plain>(&self, record: Record, dealt: Dealt) -> Result<GlobalArray<T>, Error> {
        let lease = Lease { room: self.room.clone(), handle: ArrayHandle(record.handle) };
        check_bytes::<T>(record.len as usize)?;
        let shape = record.shape(self.room.runtime.size());
        let words = self.room.words.clone();
        let book = Book::new(shape, words.key(), record.start).map_err(Error::program)?;
        let way = Way::alone(&self.room.runtime, words, book, lease);
        Ok(GlobalArray::of(way, &dealt, record.len as usize, record.page_len as usize))
    }
}

impl ArrayHandle {
    /// It as a word.
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// It from a word. One that is of no array is refused where it is opened.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}

impl Room {
    /// Looks at the table and changes it, alone.
    fn with_table<R>(
        &self,
        change: impl FnOnce(&mut Table) -> Result<R, ArrayError>,
    ) -> Result<R, Error> {
        let guard = self.lock.write()?;
        let mut words = [0; TABLE_WORDS];
        let at = self.words.at(HOME, 0);
        self.runtime.get_slice(at, &mut words)?;
        let mut table = Table::of_words(&words);
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

    /// Finds a place for an array; and from where on the room was fresh.
    fn add(&self, table: &mut Table, record: Record) -> Result<(Record, u64), ArrayError> {
        let ranks = self.runtime.size();
        let bytes = record.bytes(ranks);
        let full = ArrayError::NoPlace { bytes };
        if table.records.len() == RECORDS {
            return Err(full);
        }
        // The first gap that is wide enough; they are in the order of their
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
        let record = Record { handle: table.last, start, ..record };
        table.records.insert(at, record);
        let fresh_from = table.fresh_from;
        table.fresh_from = fresh_from.max(start + bytes);
        Ok((record, fresh_from))
    }

    /// This rank has dropped an array.
    fn leave(&self, handle: ArrayHandle) -> Result<(), Error> {
        self.with_table(|table| {
            table.find(handle).ok_or(ArrayError::Gone)?.users -= 1;
            table.records.retain(|record| record.users > 0);
            Ok(())
        })
    }

    /// Others may have been where an array's books are to be.
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
        // Where the table is out of reach the array stays, as of a rank that
        // died.
        let _ = self.room.leave(self.handle);
    }
}

impl Lease {
    pub(super) fn handle(&self) -> ArrayHandle {
        self.handle
    }
}

impl Table {
    fn of_words(words: &[u64; TABLE_WORDS]) -> Self {
        let (records, _) = words[TABLE_HEAD..].as_chunks::<RECORD_WORDS>();
        let records = records.iter().map(Record::of_words);
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

    fn find(&mut self, handle: ArrayHandle) -> Option<&mut Record> {
        let mut records = self.records.iter_mut();
        records.find(|record| record.handle == handle.0)
    }
}

impl Record {
    fn shape(&self, ranks: u32) -> Shape {
        let first = if self.is_cyclic == 0 { Distribution::Block } else { Distribution::Cyclic };
        Shape {
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
/// Arrays that there can be at a time.
const RECORDS: usize = 100;
const RECORD_WORDS: usize = 9;
/// The last handle, and from where on the room is fresh.
const TABLE_HEAD: usize = 2;
const TABLE_WORDS: usize = TABLE_HEAD + RECORDS * RECORD_WORDS;
const TABLE_BYTES: u64 = (TABLE_WORDS as u64 * 8).next_multiple_of(LINE);
const LINE: u64 = 64;

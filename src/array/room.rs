//! Reserved memory of all ranks, and the table of the arrays in it.

use super::ArrayError;
use super::table::{ArrayHandle, ArrayRecord, ArrayTable, RECORDS, TABLE_BYTES, TABLE_WORDS};
use crate::lock::{SharedLock, Words};
use crate::{AddrError, Error, Rank, Runtime};
use std::sync::Arc;

/// The memory in which ranks make arrays alone.
pub(super) struct ArrayRoom {
    pub(super) runtime: Runtime,
    pub(super) words: Arc<Words>,
    pub(super) lock: SharedLock,
    pub(super) bytes: u64,
}

impl ArrayRoom {
    /// Reads the table, changes it and writes the changes back, under the lock.
    pub(super) fn with_table<R>(
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
    pub(super) fn add(
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
    pub(super) fn leave(&self, handle: ArrayHandle) -> Result<(), Error> {
        self.with_table(|table| {
            table.find(handle).ok_or(ArrayError::Gone)?.users -= 1;
            table.records.retain(|record| record.users > 0);
            Ok(())
        })
    }

    /// Zeroes the memory for an array's directory, which other arrays may have used
    /// before.
    pub(super) fn clear(&self, rank: Rank, start: u64, bytes: u64) -> Result<(), AddrError> {
        let zeros = [0u64; 1024];
        for at in (0..bytes).step_by(size_of_val(&zeros)) {
            let words = ((bytes - at) as usize / 8).min(zeros.len());
            self.runtime.put_slice(self.words.at(rank, start + at), &zeros[..words])?;
        }
        Ok(())
    }
}

/// The rank that has the table.
pub(super) const HOME: Rank = Rank(0);

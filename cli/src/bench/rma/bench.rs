//! The state of the measuring rank, which all groups share.

use crate::args::MeasureArgs;
use crate::bench::line::trip_ns;
use crate::bench::pinned::Pinned;
use crate::bench::row::Row;
use crate::bench::row_writer::RowWriter;
use crate::failure::Failure;
use crate::summary::Summary;
use tsumugi::{Remote, Runtime, Shared};

/// The state of the measuring rank.
pub struct RmaBench<'a> {
    pub rt: &'a Runtime,
    /// The words that are read and written, one for each operation of a batch.
    pub places: &'a [Remote<u64>],
    /// The parameters of these words, for the rows.
    pub params: String,
    /// The first [`BYTES_MAX`] bytes of this memory are the messages of the
    /// figures.
    pub long: Option<&'a Shared<u8>>,
    pub names: &'a [&'static str],
    pub measure: &'a MeasureArgs,
    pub rows: RowWriter,
    /// The CPU of the requesters, and the CPU of the communication thread.
    pub cpus: [usize; 2],
}

impl RmaBench<'_> {
    pub fn wants(&self, name: &str) -> bool {
        self.names.contains(&name)
    }

    /// Runs `measure` on the requesters' CPU, between two measurements of the trip.
    pub fn between_trips<T>(
        &self,
        measure: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<Timed<T>, Failure> {
        let before = trip_ns();
        let pinned = Pinned::to(self.cpus[0]);
        let value = measure()?;
        drop(pinned);
        Ok(Timed { value, before, after: trip_ns() })
    }
}

/// A result that was measured between two trips.
pub struct Timed<T> {
    pub value: T,
    pub before: Option<f64>,
    pub after: Option<f64>,
}

impl<T> Timed<T> {
    /// The samples as a row; `None` if there are none.
    pub fn row(&self, name: &str, params: &str, samples: &mut [f64]) -> Option<Row> {
        Some(Row {
            figure: "rma".to_owned(),
            system: "tsumugi".to_owned(),
            name: name.to_owned(),
            params: params.to_owned(),
            unit: "ns".to_owned(),
            summary: Summary::of(samples)?,
            line_ns_before: self.before,
            line_ns_after: self.after,
        })
    }
}

pub const REGIONS: u32 = 4;
/// 32 KiB a region, so that the calls are measured and not the memory.
pub const WORDS: u64 = 4096;
pub const SEED: u64 = 20;

/// The longest message of the figures.
pub const BYTES_MAX: usize = 16 << 20;

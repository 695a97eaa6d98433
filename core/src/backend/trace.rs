//! An endpoint that keeps a log of its last operations, and the log.
//!
//! A [`TraceLog`] is a ring in memory that the caller gives: when it is full, new records
//! replace the oldest. [`TraceLog::write_chrome`] writes the records in the Trace Event
//! Format, which Perfetto and chrome://tracing open. Each operation is a slice at
//! its post, a slice at its completion, and an arrow between the two.
//!
//! Progress: that of the wrapped endpoint; a record is one store.

use super::{Completion, Endpoint};
use crate::mem::{AddrError, Rank, RemoteAddr};
use crate::op::{Kind, Op};
use crate::tag::Tag;
use crate::time::{Clock, Instant};
use core::fmt;

/// One event of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRecord {
    /// When it happened.
    pub at: Instant,
    /// The rank that issued the operation.
    pub by: Rank,
    /// The operation's tag.
    pub tag: Tag,
    /// What happened.
    pub stage: TraceStage,
}

/// The events of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceStage {
    /// A device has accepted the operation.
    Posted {
        /// The kind of the operation.
        kind: Kind,
        /// The remote address.
        remote: RemoteAddr,
        /// The number of bytes.
        bytes: u64,
    },
    /// The operation took effect. Only the simulator can observe this moment.
    Landed,
    /// The operation's completion was polled.
    Completed(Result<u64, AddrError>),
}

/// The last records, as many as `S` has room for.
pub struct TraceLog<S> {
    records: S,
    count: u64,
}

/// An endpoint that keeps a [`TraceLog`] in `S`.
pub struct Trace<'c, E, C: ?Sized, S> {
    inner: E,
    rank: Rank,
    clock: &'c C,
    log: TraceLog<S>,
}

impl TraceRecord {
    /// The value with which the caller fills the memory of a log.
    pub const EMPTY: Self =
        Self { at: Instant::ZERO, by: Rank(0), tag: Tag::NONE, stage: TraceStage::Landed };
}

impl TraceStage {
    pub(crate) const fn posted(op: &Op) -> Self {
        Self::Posted { kind: op.kind, remote: op.remote, bytes: op.bytes() }
    }
}

impl<S: AsRef<[TraceRecord]> + AsMut<[TraceRecord]>> TraceLog<S> {
    /// An empty log, whatever `records` contains.
    ///
    /// # Panics
    ///
    /// If `records` is empty.
    pub fn new(records: S) -> Self {
        assert!(!records.as_ref().is_empty(), "a log needs room for at least one record");
        Self { records, count: 0 }
    }

    /// Adds a record, in place of the oldest if the log is full.
    #[inline]
    pub fn push(&mut self, record: TraceRecord) {
        let records = self.records.as_mut();
        records[(self.count % records.len() as u64) as usize] = record;
        self.count += 1;
    }

    /// The records, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &TraceRecord> + ExactSizeIterator {
        let records = self.records.as_ref();
        let count = self.count.min(records.len() as u64) as usize;
        let first = (self.lost() % records.len() as u64) as usize;
        (0..count).map(move |index| &records[(first + index) % records.len()])
    }

    /// The number of records that were replaced.
    pub fn lost(&self) -> u64 {
        self.count.saturating_sub(self.records.as_ref().len() as u64)
    }

    /// Writes the log in the Trace Event Format, as JSON. Each rank is a process,
    /// with one thread for posts and one for completions.
    ///
    /// # Errors
    ///
    /// The errors of `out`.
    pub fn write_chrome(&self, out: &mut impl fmt::Write) -> fmt::Result {
        out.write_str("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
        for (index, record) in self.iter().enumerate() {
            out.write_str(if index == 0 { "\n" } else { ",\n" })?;
            self.write_record(index, record, out)?;
        }
        out.write_str("\n]}\n")
    }

    fn write_record(
        &self,
        index: usize,
        record: &TraceRecord,
        out: &mut impl fmt::Write,
    ) -> fmt::Result {
        let TraceRecord { at, by, tag, stage } = *record;
        let thread = match stage {
            TraceStage::Posted { .. } => 0,
            _ => 1,
        };
        let (us, ns) = (at.as_ns() / 1000, at.as_ns() % 1000);
        // The slice and its end of the arrow lie at the same place.
        macro_rules! common {
            () => {
                format_args!("\"ts\":{us}.{ns:03},\"pid\":{},\"tid\":{thread}", by.0)
            };
        }
        macro_rules! arrow {
            ($phase:literal) => {
                write!(
                    out,
                    ",\n{{\"name\":\"in flight\",\"cat\":\"op\",\"ph\":{},\"id\":\"{}.{:x}\",{}}}",
                    $phase,
                    by.0,
                    tag.to_bits(),
                    common!()
                )
            };
        }
        match stage {
            TraceStage::Posted { kind, remote, bytes } => {
                write!(
                    out,
                    "{{\"name\":\"{kind:?}\",\"cat\":\"op\",\"ph\":\"X\",\"dur\":0.001,{},\
                     \"args\":{{\"tag\":\"{tag:?}\",\"remote\":\"{remote}\",\"bytes\":{bytes}}}}}",
                    common!()
                )?;
                arrow!("\"s\"")
            }
            TraceStage::Landed => write!(
                out,
                "{{\"name\":\"landed\",\"cat\":\"op\",\"ph\":\"i\",\"s\":\"t\",{},\
                 \"args\":{{\"tag\":\"{tag:?}\"}}}}",
                common!()
            ),
            TraceStage::Completed(result) => {
                out.write_str("{\"name\":\"")?;
                match self.kind_of(index, by, tag) {
                    Some(kind) => write!(out, "{kind:?}")?,
                    None => out.write_str("completed")?,
                }
                write!(
                    out,
                    "\",\"cat\":\"op\",\"ph\":\"X\",\"dur\":0.001,{},\"args\":{{\"tag\":\"{tag:?}\",",
                    common!()
                )?;
                match result {
                    Ok(value) => write!(out, "\"value\":\"{value:#x}\"}}}}")?,
                    Err(error) => write!(out, "\"error\":\"{error}\"}}}}")?,
                }
                arrow!("\"f\",\"bp\":\"e\"")
            }
        }
    }

    /// The kind of the operation that completed at `index`, if the record of its
    /// post is still in the log. Few operations are in flight at a time, so the
    /// search backwards is short.
    fn kind_of(&self, index: usize, by: Rank, tag: Tag) -> Option<Kind> {
        self.iter().take(index).rev().find_map(|record| match record.stage {
            TraceStage::Posted { kind, .. } if (record.by, record.tag) == (by, tag) => Some(kind),
            _ => None,
        })
    }
}

impl<'c, E, C: Clock + ?Sized, S: AsRef<[TraceRecord]> + AsMut<[TraceRecord]>> Trace<'c, E, C, S> {
    /// Wraps `inner`, an endpoint of `rank`, and keeps its log in `records`.
    ///
    /// # Panics
    ///
    /// If `records` is empty.
    pub fn new(inner: E, rank: Rank, clock: &'c C, records: S) -> Self {
        Self { inner, rank, clock, log: TraceLog::new(records) }
    }

    /// The log so far.
    pub const fn log(&self) -> &TraceLog<S> {
        &self.log
    }

    /// The wrapped endpoint.
    pub const fn inner(&mut self) -> &mut E {
        &mut self.inner
    }
}

impl<E, C, S> Endpoint for Trace<'_, E, C, S>
where
    E: Endpoint,
    C: Clock + ?Sized,
    S: AsRef<[TraceRecord]> + AsMut<[TraceRecord]> + Send,
{
    const IS_IMMEDIATE: bool = E::IS_IMMEDIATE;

    #[inline]
    fn try_now(&mut self, op: &Op) -> Option<Result<u64, AddrError>> {
        let start = self.clock.now();
        let result = self.inner.try_now(op)?;
        let end = self.clock.now();
        self.log.push(TraceRecord {
            at: start,
            by: self.rank,
            tag: op.tag,
            stage: TraceStage::posted(op),
        });
        let stage = TraceStage::Completed(result);
        self.log.push(TraceRecord { at: end, by: self.rank, tag: op.tag, stage });
        Some(result)
    }

    fn post(&mut self, ops: &[Op]) -> usize {
        let taken = self.inner.post(ops);
        if taken > 0 {
            let at = self.clock.now();
            for op in &ops[..taken] {
                let stage = TraceStage::posted(op);
                self.log.push(TraceRecord { at, by: self.rank, tag: op.tag, stage });
            }
        }
        taken
    }

    fn poll(&mut self, completions: &mut [Completion]) -> usize {
        let count = self.inner.poll(completions);
        if count > 0 {
            let at = self.clock.now();
            for &Completion { tag, result } in &completions[..count] {
                let stage = TraceStage::Completed(result);
                self.log.push(TraceRecord { at, by: self.rank, tag, stage });
            }
        }
        count
    }

    fn arm(&mut self) -> bool {
        self.inner.arm()
    }
}

impl<S> fmt::Debug for TraceLog<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TraceLog({} records so far)", self.count)
    }
}

impl<E, C: ?Sized, S> fmt::Debug for Trace<'_, E, C, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Trace({}, {:?})", self.rank, self.log)
    }
}

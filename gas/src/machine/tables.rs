//! The machine's own tables: operations under way. The caller provides the memory.

use crate::address::GlobalAddr;
use crate::cache::{CacheSlot, Fetch, FetchStep, HazardPointers};
use crate::order::{Edge, Issued};
use crate::request::GlobalRequest;
use crate::table::NameRecord;
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_core::sync::mapped::AtomicU64;
use tsumugi_core::time::Instant;

/// Memory for a rank's part in the global memory. It may have any content except for
/// `words`, `slots` and `hazards`.
#[derive(Debug)]
pub struct MachineTables<'m> {
    /// [`ControlShape::words`](crate::control::ControlShape::words) words, zero at the start. They
    /// must be registered, under the same key on every rank, before any rank uses
    /// them.
    pub words: &'m [AtomicU64],
    /// Empty; one slot for each table of another rank.
    pub slots: &'m [CacheSlot],
    /// Empty; one pair for each worker that may hold a table.
    pub hazards: &'m [HazardPointers],
    /// 255 records for each colour.
    pub records: &'m mut [NameRecord],
    /// [`ControlShape::bitmap_words`](crate::control::ControlShape::bitmap_words) words: the ranks
    /// that still have to drop their copy.
    pub awaited: &'m mut [u64],
    /// As many words: the ranks that have this rank in their list of holders.
    pub told: &'m mut [u64],
    /// One for each table that can be on its way at a time.
    pub fetches: &'m mut [Fetch],
    /// One for each own operation.
    pub issued: &'m mut [Issued],
    /// One for each condition that can be waited for.
    pub edges: &'m mut [Edge],
    /// One for each own operation, then one for each operation for another rank.
    pub jobs: &'m mut [PendingOp],
    /// One for each command.
    pub commands: &'m mut [SentCommand],
    /// One for each operation that can be in flight.
    pub flights: &'m mut [InFlightOp],
}

/// One operation under way, of this rank or for another one.
#[derive(Clone, Copy, Debug)]
pub struct PendingOp {
    pub(super) phase: OpPhase,
    pub(super) request: GlobalRequest,
    pub(super) caller: Option<RemoteCaller>,
    /// The index of the command by which another rank was asked to do it, plus one.
    pub(super) command: u32,
    /// The number of blocks or entries that were issued, and the bytes issued of the
    /// next one.
    pub(super) block: u32,
    pub(super) at: u64,
    /// The number of entries in the landing, and how many of them were issued.
    pub(super) landed: (u32, u32),
    /// The number of operations in flight.
    pub(super) flights: u32,
    pub(super) error: Option<AddrError<GlobalAddr>>,
    /// The destination reports the end to the caller.
    pub(super) is_relayed: bool,
    pub(super) value: u64,
    /// The table for which the job waits; 0: none.
    pub(super) table: u32,
    /// The table that did not list a region of the job, and the version of that
    /// copy.
    pub(super) unlisted: Option<(u32, u32)>,
    /// Keeps one end of a part in place, while the table of the other end is on its
    /// way.
    pub(super) held: OpPin,
    /// The address of the last byte that was put.
    pub(super) last: GlobalAddr,
    pub(super) is_queued: bool,
    pub(super) link: u32,
}

/// The rank for which a job is done, if that is not this rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct RemoteCaller {
    pub(super) rank: Rank,
    pub(super) index: u16,
    pub(super) stamp: u32,
    /// The caller cannot receive reports of all destinations.
    pub(super) no_relay: bool,
}

/// The stage of a job.
///
/// ```text
///   Free ─► Ordered ─► Parts ──────────► Confirm ─► Flag ─► Ended ─► Free
///    │                  │  ▲ entries of     where a put that completed
///    │                  │  │ a list         may not have landed
///    │                  ▼  │
///    │                 Asking ─► Asked ──────────► (Flag)
///    │                  ▲    │
///    │               Backoff ◄ all probed words were in use
///    └─► Command ─► Parts ... ─► Answer ─► Free       a remote caller's
///                      └── the destination answers ─► Free
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpPhase {
    Free,
    Ordered,
    Parts,
    /// The next entries of a list are to be fetched.
    Entries,
    Confirm,
    Flag,
    /// Leaves a note; `probe` counts the words that were tried.
    Asking {
        probe: u32,
    },
    Backoff {
        until: Instant,
    },
    Asked,
    /// A remote caller's command is to be fetched.
    Command,
    /// The end is to be reported to the caller.
    Answer,
    /// The end is to be reported to the driver.
    Ended,
}

/// A command that another rank has, or will have.
#[derive(Clone, Copy, Debug)]
pub struct SentCommand {
    /// The job of the command, while the command is in use.
    pub(super) job: Option<u32>,
    pub(super) stamp: u32,
    pub(super) backoffs: u32,
    /// The command was sent ahead of its note.
    pub(super) is_sent: bool,
    /// The flight of the command's note, while the note is in flight.
    pub(super) note: u32,
}

/// An operation in flight.
#[derive(Clone, Copy, Debug)]
pub struct InFlightOp {
    pub(super) generation: u64,
    pub(super) what: FlightPurpose,
    pub(super) link: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlightPurpose {
    Free,
    /// A command that is sent with its note, or a note that completes after the end
    /// of its command: no job waits for this operation.
    Hint,
    /// Asks a rank to drop its copy of this rank's tables.
    Ask(Rank),
    /// The hint for that, to be posted or in flight; and the hint for an answer.
    AskHint(Rank),
    AckHint(Rank),
    Cache(FetchStep),
    /// The note by which the destination of a copy reports the end to the caller.
    Relay {
        job: u32,
    },
    Job {
        job: u32,
        near: OpPin,
        far: OpPin,
        addr: GlobalAddr,
    },
}

/// What is pinned so that one end of an operation in flight stays in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpPin {
    Nothing,
    Record(u32),
    Slot(Option<u32>),
}

impl PendingOp {
    /// A job that is not in use.
    pub const FREE: Self = Self {
        phase: OpPhase::Free,
        request: GlobalRequest::Fence,
        caller: None,
        command: 0,
        block: 0,
        at: 0,
        landed: (0, 0),
        flights: 0,
        error: None,
        is_relayed: false,
        value: 0,
        table: 0,
        unlisted: None,
        held: OpPin::Nothing,
        last: GlobalAddr::NULL,
        is_queued: false,
        link: NONE,
    };
}

impl SentCommand {
    /// A command that is not in use.
    pub const FREE: Self = Self { job: None, stamp: 0, backoffs: 0, is_sent: false, note: NONE };
}

impl InFlightOp {
    /// An operation that is not in flight.
    pub const FREE: Self = Self { generation: 0, what: FlightPurpose::Free, link: NONE };

    /// Links all flights as free, and returns the first.
    pub(super) fn chain(flights: &mut [Self]) -> u32 {
        let count = flights.len();
        for (index, flight) in flights.iter_mut().enumerate() {
            let link = if index + 1 < count { index as u32 + 1 } else { NONE };
            *flight = Self { link, ..Self::FREE };
        }
        0
    }
}

/// A queue of jobs, linked through the jobs themselves.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpQueue {
    first: u32,
    last: u32,
}

impl OpQueue {
    pub(super) const EMPTY: Self = Self { first: NONE, last: NONE };

    /// Queues a job, unless it is in a queue.
    pub(super) fn push(&mut self, jobs: &mut [PendingOp], index: usize) {
        let job = &mut jobs[index];
        if core::mem::replace(&mut job.is_queued, true) {
            return;
        }
        job.link = NONE;
        match self.last {
            NONE => self.first = index as u32,
            last => jobs[last as usize].link = index as u32,
        }
        self.last = index as u32;
    }

    /// Puts a job before all others, unless it is in a queue.
    pub(super) fn push_front(&mut self, jobs: &mut [PendingOp], index: usize) {
        if self.first == NONE || jobs[index].is_queued {
            return self.push(jobs, index);
        }
        (jobs[index].is_queued, jobs[index].link) = (true, self.first);
        self.first = index as u32;
    }

    pub(super) fn pop(&mut self, jobs: &mut [PendingOp]) -> Option<usize> {
        let index = self.first as usize;
        let job = jobs.get_mut(index)?;
        job.is_queued = false;
        self.first = job.link;
        if self.first == NONE {
            self.last = NONE;
        }
        Some(index)
    }
}

pub(super) const NONE: u32 = u32::MAX;

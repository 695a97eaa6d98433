//! The machine's own tables: what is under way. The caller gives the memory.

use crate::address::GlobalAddr;
use crate::cache::{Fetch, Seat, Slot, Step};
use crate::error::AccessError;
use crate::order::{Edge, Issued};
use crate::request::Request;
use crate::table::Record;
use tsumugi_core::mem::Rank;
use tsumugi_core::sync::mapped::AtomicU64;
use tsumugi_core::time::Instant;

/// Memory for a rank's part in the global memory; any content but for `words`,
/// `slots` and `seats`.
#[derive(Debug)]
pub struct Tables<'m> {
    /// [`Shape::words`](crate::control::Shape::words) of them, zero at the
    /// start and registered, under the same key on every rank, before anybody
    /// uses it.
    pub words: &'m [AtomicU64],
    /// Empty; one for each table of others.
    pub slots: &'m [Slot],
    /// Empty; one for each worker that may hold a table.
    pub seats: &'m [Seat],
    /// 255 for each colour.
    pub records: &'m mut [Record],
    /// [`Shape::bitmap_words`](crate::control::Shape::bitmap_words) of them:
    /// who is to drop its copy.
    pub awaited: &'m mut [u64],
    /// As many: who knows that its table may be here.
    pub told: &'m mut [u64],
    /// Tables that can be on their way at a time.
    pub fetches: &'m mut [Fetch],
    /// One for each own operation.
    pub issued: &'m mut [Issued],
    /// Conditions that can be waited for.
    pub edges: &'m mut [Edge],
    /// One for each own operation, then one for each guest's.
    pub jobs: &'m mut [Job],
    /// One for each command.
    pub commands: &'m mut [Asked],
    /// Operations that can be in flight.
    pub flights: &'m mut [Flight],
}

/// Something under way.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    pub(super) phase: Phase,
    pub(super) request: Request,
    pub(super) guest: Option<Guest>,
    /// The command by which it was asked of somebody, plus one.
    pub(super) command: u32,
    /// Blocks or entries that were issued, and bytes of the next one.
    pub(super) block: u32,
    pub(super) at: u64,
    /// Entries in the landing, and how many of them were issued.
    pub(super) landed: (u32, u32),
    /// Operations in flight.
    pub(super) flights: u32,
    pub(super) error: Option<AccessError>,
    /// The destination tells the guest of the end.
    pub(super) is_relayed: bool,
    pub(super) value: u64,
    /// The table that it waits for; 0: none.
    pub(super) table: u32,
    /// The table that did not list a region of its, and which copy.
    pub(super) unlisted: Option<(u32, u32)>,
    /// One end of a part, while the table of the other is on its way.
    pub(super) held: Hold,
    /// The last byte that was put.
    pub(super) last: GlobalAddr,
    pub(super) is_queued: bool,
    pub(super) link: u32,
}

/// For whom a job is done, when it is not this rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guest {
    pub(super) rank: Rank,
    pub(super) index: u16,
    pub(super) stamp: u32,
    /// It cannot hear of all destinations.
    pub(super) no_relay: bool,
}

/// How far a job has come.
///
/// ```text
///   Free ─► Ordered ─► Parts ──────────► Confirm ─► Flag ─► Ended ─► Free
///    │                  │  ▲ entries of     where a put that completed
///    │                  │  │ a list         may not have landed
///    │                  ▼  │
///    │                 Asking ─► Asked ──────────► (Flag)
///    │                  ▲    │
///    │               Backoff ◄ all probed words were in use
///    └─► Command ─► Parts ... ─► Answer ─► Free       a guest's
///                      └── the destination answers ─► Free
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Free,
    Ordered,
    Parts,
    /// The next entries of a list are to be fetched.
    Entries,
    Confirm,
    Flag,
    /// The word that is probed next.
    Asking {
        probe: u32,
    },
    Backoff {
        until: Instant,
    },
    Asked,
    /// A guest's command is to be fetched.
    Command,
    /// A guest is to be told.
    Answer,
    /// The driver is to be told.
    Ended,
}

/// A command that somebody has, or will have.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// Its job, while it is in use.
    pub(super) job: Option<u32>,
    pub(super) stamp: u32,
    pub(super) backoffs: u32,
    /// It was sent ahead of its note.
    pub(super) is_sent: bool,
    /// The flight of its note, while that is in flight.
    pub(super) note: u32,
}

/// An operation in flight.
#[derive(Clone, Copy, Debug)]
pub struct Flight {
    pub(super) generation: u64,
    pub(super) what: What,
    pub(super) link: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Free,
    /// A command that comes with its note, or a note whose end was sooner there:
    /// nobody waits for it.
    Hint,
    /// Asks a rank to drop its copy of the own table.
    Ask(Rank),
    /// The hint for that, to be posted and in flight; and for an answer.
    AskHint(Rank),
    AckHint(Rank),
    Cache(Step),
    /// The destination of a copy is to tell the guest of its end.
    Relay {
        job: u32,
    },
    Job {
        job: u32,
        near: Hold,
        far: Hold,
        addr: GlobalAddr,
    },
}

/// What keeps an end of an operation in flight where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    Nothing,
    Record(u32),
    Slot(Option<u32>),
}

impl Job {
    /// Nothing.
    pub const FREE: Self = Self {
        phase: Phase::Free,
        request: Request::Fence,
        guest: None,
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
        held: Hold::Nothing,
        last: GlobalAddr::NULL,
        is_queued: false,
        link: NONE,
    };
}

impl Asked {
    /// Not in use.
    pub const FREE: Self = Self { job: None, stamp: 0, backoffs: 0, is_sent: false, note: NONE };
}

impl Flight {
    /// Not in flight.
    pub const FREE: Self = Self { generation: 0, what: What::Free, link: NONE };
}

/// A queue of jobs, linked through the jobs themselves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    first: u32,
    last: u32,
}

impl Queue {
    pub(super) const EMPTY: Self = Self { first: NONE, last: NONE };

    /// Queues a job, unless it is in a queue.
    pub(super) fn push(&mut self, jobs: &mut [Job], index: usize) {
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
    pub(super) fn push_front(&mut self, jobs: &mut [Job], index: usize) {
        if self.first == NONE || jobs[index].is_queued {
            return self.push(jobs, index);
        }
        (jobs[index].is_queued, jobs[index].link) = (true, self.first);
        self.first = index as u32;
    }

    pub(super) fn pop(&mut self, jobs: &mut [Job]) -> Option<usize> {
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

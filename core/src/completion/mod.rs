//! One operation, four waits: what happens when it has ended is chosen by the
//! caller, and costs the same.
//!
//! | the caller | begins with | and then |
//! |---|---|---|
//! | leaves a function | [`Completions::try_begin_callback`] | returns |
//! | looks | [`Completions::try_begin`] | [`Ticket::try_finish`] now and then |
//! | sleeps | [`Completions::try_begin`] | [`Ticket::wait`], [`Ticket::wait_for`] |
//! | awaits | [`Completions::try_begin`] | `ticket.await` |
//!
//! There is one slot for each tag. The requester fills it and posts the
//! operation with the tag; whoever polls the device hands each completion to
//! [`Completions::complete`]. The word of a slot says who may touch what:
//!
//! ```text
//!  word:  generation (40) | CALLBACK ABANDONED WAKER DONE CLAIMED LIVE
//!
//!                  try_begin                complete
//!   idle ─────────────► LIVE ─────────────► CLAIMED ────────► DONE ──┐
//!    ▲                 │ ▲  │ │             writes the result,       │
//!    │        wait,    ▼ │  │ │             takes the waker     try_finish,
//!    │        poll    WAKER │ │                  │                 wait
//!    │                      │ │ drop: ABANDONED  │ CALLBACK or       │
//!    │  retract             │ └─────────────────►│ ABANDONED         │
//!    └──────────────────────┴────────────────────┴───────────────────┘
//!          the slot is idle, then the tag is freed
//!
//!   what         written by                          read by
//!   result       the claimer, before DONE            the ticket, after DONE
//!   waiting      the ticket, while neither WAKER     the claimer, if WAKER was
//!                nor CLAIMED is set                  set when it claimed
//!   buffer       `try_begin`                         the ticket after DONE, the
//!                                                    claimer if ABANDONED
//! ```
//!
//! - A completion that comes twice, or for an earlier life of the tag, is
//!   dropped: `complete` answers false.
//! - The callback is copied out, then the tag is freed, then it is called: it
//!   may begin an operation although no other tag was left.
//! - A ticket *owns* the buffer of its operation and gives it back at the end.
//!   The buffer lies in the slot. A ticket that is dropped early leaves it
//!   there until the device is done; whoever polls then drops it. So a buffer
//!   is a handle of at most [`BUFFER_BYTES`] bytes: a `Box`, a `Vec`, a piece
//!   of registered memory.
//!
//! Progress: `try_begin`, `complete` and `try_finish` are lock-free; `wait`
//! blocks its caller and nobody else.
//!
//! # Example
//!
//! ```
//! use tsumugi_core::completion::CompletionTable;
//!
//! let table = CompletionTable::<1>::new();
//! let operations = table.view();
//! let ticket = operations.try_begin(0, vec![0; 4096]).expect("64 tags are free");
//! let tag = ticket.tag(); // posted with the operation
//! // Whoever polls the device:
//! assert!(operations.complete(tag, Ok(7)));
//! // The caller:
//! let outcome = ticket.try_finish().expect("it has ended");
//! assert_eq!((outcome.result, outcome.buf.len()), (Ok(7), 4096));
//! ```

mod slot;
mod ticket;

pub use ticket::{Overdue, Ticket};

use crate::mem::AddrError;
use crate::op::Op;
use crate::tag::{Tag, TagPool, TagPoolError, TagTable};
use core::fmt;
use core::ptr::NonNull;
use slot::Slot;

/// Largest buffer handle that a ticket can own.
pub const BUFFER_BYTES: usize = 48;

/// How an operation ended, and its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome<B> {
    /// Word operations: the old value. Otherwise 0.
    pub result: Result<u64, AddrError>,
    /// What was in flight.
    pub buf: B,
}

/// What a submitted operation came to.
#[derive(Debug)]
#[must_use = "a pending operation is to be waited for, or dropped on purpose"]
pub enum Status<'t, B: Send + 'static> {
    /// It ended inside the call.
    Done(Outcome<B>),
    /// It will end.
    Pending(Ticket<'t, B>),
}

/// Nothing happened: the operation and its buffer come back.
#[derive(Clone, Copy, Debug)]
pub struct Busy<B> {
    /// What was to be done.
    pub op: Op,
    /// What would have been in flight.
    pub buf: B,
    /// What there was none of.
    pub why: Why,
}

/// What there was none of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// All tags are in flight.
    NoTag,
    /// The queue to the device is full.
    RingFull,
    /// The target has no room for more from here.
    NoCredit,
    /// No registered memory is left for a bounce buffer.
    NoMemory,
}

/// A function and what it is called with when an operation has ended.
#[derive(Clone, Copy, Debug)]
pub struct Callback {
    run: fn(*mut (), Result<u64, AddrError>),
    data: *mut (),
}

/// The operations in flight: a view, cheap to copy and to send.
#[derive(Clone, Copy)]
pub struct Completions<'a> {
    tags: TagPool<'a>,
    slots: &'a [Slot],
}

/// [`Completions`] with their own memory: 64 tags in each of `SHARDS` shards.
/// Dropped while operations are in flight, it leaks their buffers, into which
/// a device may still write: drain first.
pub struct CompletionTable<const SHARDS: usize> {
    tags: TagTable<SHARDS>,
    slots: [[Slot; TagPool::PER_SHARD]; SHARDS],
}

impl<'a> Completions<'a> {
    /// What given memory is aligned to.
    pub const ALIGN: usize = TagPool::ALIGN;

    /// Bytes that `tags` operations in flight need.
    pub const fn memory_size(tags: usize) -> usize {
        Self::slots_offset(tags) + tags * size_of::<Slot>()
    }

    /// Room for `tags` operations in flight, in `memory`.
    ///
    /// # Errors
    ///
    /// [`TagPoolError`], which names the value.
    ///
    /// # Safety
    ///
    /// `memory` points to [`memory_size(tags)`](Self::memory_size) bytes,
    /// aligned to [`ALIGN`](Self::ALIGN), that are nobody else's for `'a`.
    pub unsafe fn init(memory: NonNull<u8>, tags: usize) -> Result<Self, TagPoolError> {
        let () = Self::SLOTS_ARE_ALIGNED;
        // SAFETY: the caller's; the pool comes first.
        let pool = unsafe { TagPool::init(memory, tags)? };
        // SAFETY: inside the caller's memory.
        let first = unsafe { memory.add(Self::slots_offset(tags)).cast::<Slot>() };
        for index in 0..tags {
            // SAFETY: the same; the offset keeps the alignment.
            unsafe { first.add(index).write(Slot::new()) };
        }
        // SAFETY: just written.
        let slots = unsafe { core::slice::from_raw_parts(first.as_ptr(), tags) };
        Ok(Self { tags: pool, slots })
    }

    /// Begins an operation that owns `buf`, or gives it back when no tag is
    /// free. Post the operation with the ticket's [`tag`](Ticket::tag).
    /// `hint` is the worker's number. Lock-free.
    ///
    /// # Errors
    ///
    /// The buffer.
    #[inline]
    pub fn try_begin<B: Send + 'static>(&self, hint: usize, buf: B) -> Result<Ticket<'a, B>, B> {
        match self.tags.try_take(hint) {
            Some(tag) => {
                self.slot(tag).begin(tag, buf);
                Ok(Ticket::new(*self, tag))
            }
            None => Err(buf),
        }
    }

    /// Begins an operation that calls `callback` when it has ended, on the
    /// thread that polls. `None` when no tag is free. Lock-free.
    #[inline]
    pub fn try_begin_callback(&self, hint: usize, callback: Callback) -> Option<Tag> {
        let tag = self.tags.try_take(hint)?;
        self.slot(tag).begin_callback(tag, callback);
        Some(tag)
    }

    /// Ends an operation begun with a callback that was never posted, without
    /// calling it. False if it has ended already. Lock-free.
    #[inline]
    pub fn retract_callback(&self, tag: Tag) -> bool {
        let Some(slot) = self.slots.get(tag.index()) else { return false };
        let retracted = slot.retract_callback(tag);
        if retracted {
            self.free(tag);
        }
        retracted
    }

    /// An operation has ended: lets its caller know. False, and nothing
    /// happens, for a completion that comes late or twice. Lock-free, but for
    /// the callback.
    ///
    /// A panic of the callback goes through to the caller; the tag is free by
    /// then.
    #[inline]
    pub fn complete(&self, tag: Tag, result: Result<u64, AddrError>) -> bool {
        use slot::Ended;
        let Some(slot) = self.slots.get(tag.index()) else { return false };
        match slot.end(tag, result, || self.free(tag)) {
            Ended::Stale => return false,
            Ended::Callback(callback) => callback.call(result),
            Ended::Waiting(waiting) => waiting.wake(),
            Ended::Abandoned => {
                slot.drop_buffer();
                self.free(tag);
            }
        }
        true
    }

    /// How many operations can be in flight.
    pub const fn capacity(&self) -> usize {
        self.tags.len()
    }

    /// How many are; a hint.
    pub fn in_flight(&self) -> usize {
        self.tags.len().saturating_sub(self.tags.available())
    }

    #[inline(always)]
    fn slot(&self, tag: Tag) -> &'a Slot {
        &self.slots[tag.index()]
    }

    /// Makes the slot idle, then the tag free. Only its holder calls it, once
    /// nothing in the slot is needed any more.
    #[inline(always)]
    fn free(&self, tag: Tag) {
        self.slot(tag).rest();
        self.tags.put_back(tag);
    }

    const SLOTS_ARE_ALIGNED: () = assert!(Self::ALIGN >= align_of::<Slot>());

    const fn slots_offset(tags: usize) -> usize {
        TagPool::memory_size(tags).next_multiple_of(align_of::<Slot>())
    }
}

impl<const SHARDS: usize> CompletionTable<SHARDS> {
    /// Nothing in flight.
    pub fn new() -> Self {
        let slots = core::array::from_fn(|_| core::array::from_fn(|_| Slot::new()));
        Self { tags: TagTable::new(), slots }
    }

    /// The operations.
    #[inline(always)]
    pub const fn view(&self) -> Completions<'_> {
        Completions { tags: self.tags.pool(), slots: self.slots.as_flattened() }
    }
}

impl<const SHARDS: usize> Default for CompletionTable<SHARDS> {
    fn default() -> Self {
        Self::new()
    }
}

impl Callback {
    /// Calls `run(data, result)` once, when the operation has ended.
    ///
    /// # Safety
    ///
    /// The call must be sound on any thread, until it was made or retracted.
    /// It runs on whoever polls: it must not block.
    pub const unsafe fn new(run: fn(*mut (), Result<u64, AddrError>), data: *mut ()) -> Self {
        Self { run, data }
    }

    /// Calls back.
    #[inline]
    pub(crate) fn call(self, result: Result<u64, AddrError>) {
        (self.run)(self.data, result);
    }
}

// SAFETY: `new` demands that the call be sound on any thread.
unsafe impl Send for Callback {}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoTag => "all tags are in flight",
            Self::RingFull => "the queue to the device is full",
            Self::NoCredit => "the target has no room for more from here",
            Self::NoMemory => "no registered memory is left",
        })
    }
}

impl<B> fmt::Display for Busy<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {} was not begun: {}", self.op.kind, self.op.remote, self.why)
    }
}

impl<B: fmt::Debug> core::error::Error for Busy<B> {}

impl fmt::Debug for Completions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Completions({} of {} in flight)", self.in_flight(), self.capacity())
    }
}

impl<const SHARDS: usize> fmt::Debug for CompletionTable<SHARDS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view().fmt(f)
    }
}

#[cfg(all(test, not(tsumugi_loom)))]
mod tests;

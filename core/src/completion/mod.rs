//! Operations in flight, and four ways for the caller to learn of a completion:
//! the caller chooses the way, and all four cost the same.
//!
//! | the caller | begins with | and then |
//! |---|---|---|
//! | leaves a function | [`Completions::try_begin_callback`] | returns |
//! | looks | [`Completions::try_begin`] | [`Ticket::try_finish`] now and then |
//! | sleeps | [`Completions::try_begin`] | [`Ticket::wait`], [`Ticket::wait_for`] |
//! | awaits | [`Completions::try_begin`] | `ticket.await` |
//!
//! There is one slot for each tag. The requester fills the slot and posts the
//! operation with the tag. The thread that polls the device passes each
//! completion to [`Completions::complete`]. The state word of a slot defines
//! which thread may access which field:
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
//!   field        written by                          read by
//!   result       the claimer, before DONE            the ticket, after DONE
//!   waiting      the ticket, while neither WAKER     the claimer, if WAKER was
//!                nor CLAIMED is set                  set when it claimed
//!   buffer       `try_begin`                         the ticket after DONE, the
//!                                                    claimer if ABANDONED
//! ```
//!
//! - A completion that comes twice, or for an earlier life of the tag, is
//!   dropped: `complete` returns false.
//! - The callback is copied out, then the tag is freed, then the callback is
//!   called: so the callback may begin an operation although no other tag was
//!   left.
//! - A ticket *owns* the buffer of its operation and gives it back at the end.
//!   The buffer lies in the slot. A ticket that is dropped early leaves the
//!   buffer there until the device is done; the thread that polls then drops the
//!   buffer. So a buffer is a handle of at most [`BUFFER_BYTES`] bytes: a `Box`,
//!   a `Vec`, a piece of registered memory.
//!
//! Progress: `try_begin`, `complete` and `try_finish` are lock-free; `wait`
//! blocks its caller and no other thread.
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
//! // The thread that polls the device:
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
    /// The buffer that the operation owned.
    pub buf: B,
}

/// State of an operation after its submit.
#[derive(Debug)]
#[must_use = "wait for the pending operation, or drop its ticket on purpose"]
pub enum Status<'t, B: Send + 'static> {
    /// The operation ended inside the call.
    Done(Outcome<B>),
    /// The operation is in flight; the ticket reports its end.
    Pending(Ticket<'t, B>),
}

/// The operation was not begun: the caller gets the operation and its buffer
/// back.
#[derive(Clone, Copy, Debug)]
pub struct Busy<B> {
    /// The operation that was not begun.
    pub op: Op,
    /// The buffer that the operation would have owned.
    pub buf: B,
    /// The resource that had run out.
    pub why: Why,
}

/// The resource that had run out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// All tags are in flight.
    NoTag,
    /// The queue to the device is full.
    RingFull,
    /// The target has no credit left for operations from this rank.
    NoCredit,
    /// No registered memory is left for a bounce buffer.
    NoMemory,
}

/// A function, and the argument that it gets when an operation has ended.
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

/// [`Completions`] with their own memory: 64 tags in each of `SHARDS` shards. If
/// the table is dropped while operations are in flight, it leaks their buffers,
/// because a device may still write into them: drain the device first.
pub struct CompletionTable<const SHARDS: usize> {
    tags: TagTable<SHARDS>,
    slots: [[Slot; TagPool::PER_SHARD]; SHARDS],
}

impl<'a> Completions<'a> {
    /// Alignment of the memory that [`init`](Self::init) takes.
    pub const ALIGN: usize = TagPool::ALIGN;

    /// Returns the bytes that `tags` operations in flight need.
    pub const fn memory_size(tags: usize) -> usize {
        Self::slots_offset(tags) + tags * size_of::<Slot>()
    }

    /// Makes room for `tags` operations in flight, in `memory`.
    ///
    /// # Errors
    ///
    /// [`TagPoolError::Count`] if `tags` is 0 or above [`Tag::INDEX_MAX`];
    /// [`TagPoolError::Unaligned`] if `memory` is not aligned to [`ALIGN`](Self::ALIGN).
    ///
    /// # Safety
    ///
    /// `memory` points to [`memory_size(tags)`](Self::memory_size) bytes, aligned
    /// to [`ALIGN`](Self::ALIGN), to which the caller has exclusive access for
    /// `'a`.
    pub unsafe fn init(memory: NonNull<u8>, tags: usize) -> Result<Self, TagPoolError> {
        let () = Self::SLOTS_ARE_ALIGNED;
        // SAFETY: `memory` is as the caller of `init` promises; the pool comes
        // first in it.
        let pool = unsafe { TagPool::init(memory, tags)? };
        // SAFETY: `memory_size` counts the slots, so the offset is inside the
        // memory.
        let first = unsafe { memory.add(Self::slots_offset(tags)).cast::<Slot>() };
        for index in 0..tags {
            // SAFETY: inside the memory as above; the offset keeps the alignment.
            unsafe { first.add(index).write(Slot::new()) };
        }
        // SAFETY: the loop has just written all `tags` slots.
        let slots = unsafe { core::slice::from_raw_parts(first.as_ptr(), tags) };
        Ok(Self { tags: pool, slots })
    }

    /// Begins an operation that owns `buf`, or gives `buf` back when no tag is
    /// free. The caller must post the operation with the ticket's
    /// [`tag`](Ticket::tag). `hint` is the worker's number. Lock-free.
    ///
    /// # Errors
    ///
    /// Returns the buffer: all tags are in flight.
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

    /// Begins an operation that calls `callback` when it has ended, on the thread
    /// that polls. Returns `None` when no tag is free. Lock-free.
    #[inline]
    pub fn try_begin_callback(&self, hint: usize, callback: Callback) -> Option<Tag> {
        let tag = self.tags.try_take(hint)?;
        self.slot(tag).begin_callback(tag, callback);
        Some(tag)
    }

    /// Ends an operation that was begun with a callback and never posted, without
    /// calling the callback. Returns false if the operation has ended already.
    /// Lock-free.
    #[inline]
    pub fn retract_callback(&self, tag: Tag) -> bool {
        let Some(slot) = self.slots.get(tag.index()) else { return false };
        let retracted = slot.retract_callback(tag);
        if retracted {
            self.free(tag);
        }
        retracted
    }

    /// Ends an operation: wakes its waiter or calls its callback. Returns false,
    /// and does nothing, for a completion that comes late or twice. Lock-free,
    /// except for the callback.
    ///
    /// A panic of the callback propagates to the caller of `complete`; the tag is
    /// free by then.
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

    /// Returns how many operations can be in flight.
    pub const fn capacity(&self) -> usize {
        self.tags.len()
    }

    /// Returns how many operations are in flight; a hint.
    pub fn in_flight(&self) -> usize {
        self.tags.len().saturating_sub(self.tags.available())
    }

    #[inline(always)]
    fn slot(&self, tag: Tag) -> &'a Slot {
        &self.slots[tag.index()]
    }

    /// Makes the slot idle, then the tag free. Only the holder of the tag calls
    /// this function, after its last access to the slot.
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
    /// Makes a table with no operation in flight.
    pub fn new() -> Self {
        let slots = core::array::from_fn(|_| core::array::from_fn(|_| Slot::new()));
        Self { tags: TagTable::new(), slots }
    }

    /// Returns the view of the operations in flight.
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
    /// Makes a callback that calls `run(data, result)` once, when the operation
    /// has ended.
    ///
    /// # Safety
    ///
    /// The call must be sound on any thread, until it was made or retracted. It
    /// runs on the thread that polls, so it must not block.
    pub const unsafe fn new(run: fn(*mut (), Result<u64, AddrError>), data: *mut ()) -> Self {
        Self { run, data }
    }

    /// Calls the function with `result`.
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
            Self::NoCredit => "the target has no room for another operation of this rank",
            Self::NoMemory => "no registered memory is free",
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

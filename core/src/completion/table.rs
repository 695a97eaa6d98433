//! The table of the operations in flight: one slot for each tag.

use super::callback::{Callback, OnEnd};
use super::slot::{CompletionSlot, EndedOperation};
use crate::mem::AddrError;
use crate::tag::{Tag, TagPool, TagPoolError, TagTable};
use core::fmt;
use core::ptr::NonNull;

/// The operations in flight: a view, cheap to copy and to send.
#[derive(Clone, Copy)]
pub struct Completions<'a> {
    pub(super) tags: TagPool<'a>,
    slots: &'a [CompletionSlot],
}

/// [`Completions`] with their own memory: 64 tags in each of `SHARDS` shards. If
/// the table is dropped while operations are in flight, it leaks their buffers,
/// because a device may still write into them: drain the device first.
pub struct CompletionTable<const SHARDS: usize> {
    tags: TagTable<SHARDS>,
    slots: [[CompletionSlot; TagPool::PER_SHARD]; SHARDS],
}

impl<'a> Completions<'a> {
    /// Alignment of the memory that [`init`](Self::init) takes.
    pub const ALIGN: usize = TagPool::ALIGN;

    /// Returns the bytes that `tags` operations in flight need.
    pub const fn memory_size(tags: usize) -> usize {
        Self::slots_offset(tags) + tags * size_of::<CompletionSlot>()
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
        let first = unsafe { memory.add(Self::slots_offset(tags)).cast::<CompletionSlot>() };
        for index in 0..tags {
            // SAFETY: inside the memory as above; the offset keeps the alignment.
            unsafe { first.add(index).write(CompletionSlot::new()) };
        }
        // SAFETY: the loop has just written all `tags` slots.
        let slots = unsafe { core::slice::from_raw_parts(first.as_ptr(), tags) };
        Ok(Self { tags: pool, slots })
    }

    /// Begins an operation that calls `callback` when it has ended, on the thread
    /// that polls. Returns `None` when no tag is free. Lock-free.
    #[inline]
    pub fn try_begin_callback(&self, hint: usize, callback: Callback) -> Option<Tag> {
        let tag = self.tags.try_take(hint)?;
        self.slot(tag).begin_callback(tag, callback);
        Some(tag)
    }

    /// Begins an operation that owns its callback, in its slot, and calls it when the
    /// operation has ended, on the thread that polls. Lock-free.
    ///
    /// # Errors
    ///
    /// Returns the callback: all tags are in flight.
    #[inline]
    pub fn try_begin_owned<C: OnEnd>(&self, hint: usize, callback: C) -> Result<Tag, C> {
        match self.tags.try_take(hint) {
            Some(tag) => {
                self.slot(tag).begin_owned(tag, callback);
                Ok(tag)
            }
            None => Err(callback),
        }
    }

    /// Gives back the callback of an operation that was begun with
    /// [`try_begin_owned`](Self::try_begin_owned) and never posted.
    ///
    /// # Panics
    ///
    /// If the operation was completed all the same.
    ///
    /// # Safety
    ///
    /// The operation with this tag owns a `C`, and was not and will not be given to a
    /// device.
    pub unsafe fn retract_owned<C: OnEnd>(&self, tag: Tag) -> C {
        let slot = self.slot(tag);
        assert!(slot.retract_callback(tag), "{tag:?} was completed although never posted");
        // SAFETY: the slot is claimed, so it is the caller's; the rest is promised.
        let callback = unsafe { slot.take_buffer::<C>() };
        self.free(tag);
        callback
    }

    /// The buffer of an operation in flight: where it lies in its slot.
    ///
    /// The pointer may be used until the operation is completed, by whatever carries the
    /// operation out; the value at it must then be a valid `B`.
    #[inline]
    pub fn buffer_of<B: Send + 'static>(&self, tag: Tag) -> NonNull<B> {
        self.slot(tag).buffer().cast()
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
        let Some(slot) = self.slots.get(tag.index()) else { return false };
        match slot.end(tag, result, || self.free(tag)) {
            EndedOperation::Stale => return false,
            EndedOperation::Callback(callback) => callback.call(result),
            EndedOperation::Owned(run, mut bytes) => {
                // SAFETY: `begin_owned` stored the function together with a value of its
                // type, which was moved to these bytes.
                unsafe { run(bytes.as_mut_ptr().cast(), result) }
            }
            EndedOperation::Waiting(waiting) => waiting.wake(),
            EndedOperation::Abandoned => {
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
    pub(super) fn slot(&self, tag: Tag) -> &'a CompletionSlot {
        &self.slots[tag.index()]
    }

    /// Makes the slot idle, then the tag free. Only the holder of the tag calls
    /// this function, after its last access to the slot.
    #[inline(always)]
    pub(super) fn free(&self, tag: Tag) {
        self.slot(tag).rest();
        self.tags.put_back(tag);
    }

    const SLOTS_ARE_ALIGNED: () = assert!(Self::ALIGN >= align_of::<CompletionSlot>());

    const fn slots_offset(tags: usize) -> usize {
        TagPool::memory_size(tags).next_multiple_of(align_of::<CompletionSlot>())
    }
}

impl<const SHARDS: usize> CompletionTable<SHARDS> {
    /// Makes a table with no operation in flight.
    pub fn new() -> Self {
        let slots = core::array::from_fn(|_| core::array::from_fn(|_| CompletionSlot::new()));
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

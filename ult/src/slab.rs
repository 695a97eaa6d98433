//! The descriptors of a scheduler's ULTs, in chunks that stay until the scheduler
//! ends.
//!
//! A free slot is in a worker's cache or in the depot. When neither has one, the slab
//! adds a chunk. Chunks are numbered, so that a dump can visit all ULTs.

use crate::lock::Lock;
use crate::pool::{Depot, WorkerCache};
use crate::task::{Origin, Task};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::ptr::NonNull;
use tsumugi_core::sync::Ordering;

/// A free slot, or a ULT's descriptor: valid as long as its slab.
pub(crate) type TaskSlot = NonNull<Task>;

pub(crate) struct Slab {
    depot: Depot<FreeSlot>,
    chunks: Lock<Vec<NonNull<SlabChunk>>>,
    /// Held while a name is read or dropped.
    names: Lock<Names>,
}

#[repr(C)]
struct SlabChunk {
    origin: Origin,
    tasks: [Task; CHUNK],
}

/// The latest names of ULTs that have ended while a trace is on.
struct Names {
    /// The trace's number, and how many names it keeps.
    wanted: Option<(usize, usize)>,
    /// The names with slot and generation, the oldest first.
    gone: VecDeque<((u32, u32), Box<str>)>,
}

/// A slot without a ULT.
pub(crate) struct FreeSlot(TaskSlot);

// SAFETY: a free slot belongs to its holder alone.
unsafe impl Send for FreeSlot {}
// SAFETY: chunks are reached under the lock, tasks by the rules in `task`.
unsafe impl Send for Slab {}
// SAFETY: as for `Send`.
unsafe impl Sync for Slab {}

impl Slab {
    pub(crate) fn new() -> Self {
        Self { depot: Depot::new(), chunks: Lock::new(Vec::new()), names: Lock::new(Names::none()) }
    }

    /// Takes a free slot, for a worker.
    #[inline]
    pub(crate) fn take(&self, cache: &mut WorkerCache<FreeSlot>, home: *const ()) -> TaskSlot {
        match cache.take(&self.depot) {
            Some(free) => free.0,
            None => self.grow(home),
        }
    }

    /// Takes a free slot, for any other thread.
    pub(crate) fn take_shared(&self, home: *const ()) -> TaskSlot {
        match self.depot.take() {
            Some(free) => free.0,
            None => self.grow(home),
        }
    }

    /// Returns a slot; its last user is a worker.
    ///
    /// # Safety
    ///
    /// No thread uses the task any more; its closure and result are gone.
    #[inline]
    pub(crate) unsafe fn put(&self, slot: TaskSlot, cache: &mut WorkerCache<FreeSlot>) {
        self.clear(slot);
        cache.put(FreeSlot(slot), &self.depot);
    }

    /// As [`put`](Self::put), for any other thread.
    ///
    /// # Safety
    ///
    /// As for [`put`](Self::put).
    pub(crate) unsafe fn put_shared(&self, slot: TaskSlot) {
        self.clear(slot);
        self.depot.put(FreeSlot(slot));
    }

    /// Moves a worker's cache to the depot.
    pub(crate) fn drain(&self, cache: &mut WorkerCache<FreeSlot>) {
        cache.drain(&self.depot);
    }

    /// Shows every slot. ULTs may start and end meanwhile.
    pub(crate) fn each(&self, show: &mut dyn FnMut(&Task)) {
        let mut index = 0;
        while let Some(chunk) = self.chunks.with(|chunks| chunks.get(index).copied()) {
            // SAFETY: chunks stay as long as the slab.
            unsafe { chunk.as_ref() }.tasks.iter().for_each(&mut *show);
            index += 1;
        }
    }

    /// A copy of the ULT's name.
    pub(crate) fn name(&self, task: &Task) -> Option<String> {
        // SAFETY: names are dropped under the same lock.
        self.names.with(|_| unsafe { task.name().map(String::from) })
    }

    /// Keeps the names of ULTs that end from now on, the last `room` of them, for
    /// trace number `trace`. Names that were kept for another trace are dropped.
    #[cfg(all(feature = "std", not(tsumugi_loom)))]
    pub(crate) fn keep_names(&self, trace: usize, room: usize) {
        let names = Names { wanted: Some((trace, room)), gone: VecDeque::new() };
        drop(self.names.with(|kept| core::mem::replace(kept, names)));
    }

    /// Stops keeping names, and returns what was kept for `trace`, with slot and
    /// generation.
    #[cfg(all(feature = "std", not(tsumugi_loom)))]
    pub(crate) fn take_names(
        &self,
        trace: usize,
    ) -> impl Iterator<Item = ((u32, u32), Box<str>)> + use<> {
        let names = self.names.with(|kept| {
            let mine = kept.wanted.is_some_and(|(wanted, _)| wanted == trace);
            mine.then(|| core::mem::replace(kept, Names::none()))
        });
        names.into_iter().flat_map(|names| names.gone)
    }

    #[inline]
    fn clear(&self, slot: TaskSlot) {
        // SAFETY: slots stay as long as the slab.
        let task = unsafe { slot.as_ref() };
        if task.clear() {
            self.clear_particulars(task);
        }
    }

    /// Clears what few ULTs have. A call of its own, so that the rest can be inlined.
    #[cold]
    #[inline(never)]
    fn clear_particulars(&self, task: &Task) {
        drop(self.names.with(|names| names.part_with(task)));
    }

    #[cold]
    fn grow(&self, home: *const ()) -> TaskSlot {
        let chunk = self.chunks.with(|chunks| {
            let chunk = SlabChunk::new(Origin { home, first: (chunks.len() * CHUNK) as u32 });
            chunks.push(chunk);
            chunk
        });
        // SAFETY: the chunk was just made.
        let mut slots = unsafe { chunk.as_ref() }.tasks.iter().map(NonNull::from);
        let first = slots.next().expect("a chunk has a slot");
        // In reverse, because the depot returns the last slot first.
        self.depot.put_all(slots.rev().map(FreeSlot));
        first
    }
}

impl SlabChunk {
    fn new(origin: Origin) -> NonNull<Self> {
        let chunk = Box::leak(Box::<Self>::new_uninit()).as_mut_ptr();
        // Written in place, because a stack may be smaller than a chunk. SAFETY: new
        // memory; each part is written once.
        unsafe {
            (&raw mut (*chunk).origin).write(origin);
            let tasks = (&raw mut (*chunk).tasks).cast::<Task>();
            (0..CHUNK).for_each(|place| tasks.add(place).write(Task::new(place as u32)));
        }
        // A descriptor computes the origin's address from its own.
        let _ = chunk.expose_provenance();
        NonNull::new(chunk).expect("a box is somewhere")
    }
}

impl Names {
    const fn none() -> Self {
        Self { wanted: None, gone: VecDeque::new() }
    }

    /// Takes the particulars of a ULT that was cleared; returns what is to be
    /// dropped.
    fn part_with(&mut self, task: &Task) -> impl Sized + use<> {
        let mut particulars = task.take_particulars();
        let mut oldest = None;
        if let Some((_, room)) = self.wanted
            && let Some(name) = particulars.as_mut().and_then(|all| all.name.take())
        {
            if self.gone.len() >= room {
                oldest = self.gone.pop_front();
            }
            // Clearing has already counted the generation up.
            let generation = task.generation.load(Ordering::Relaxed).wrapping_sub(1);
            self.gone.push_back(((task.slot(), generation), name));
        }
        (particulars, oldest)
    }
}

impl Drop for Slab {
    fn drop(&mut self) {
        self.chunks.with(|chunks| {
            for chunk in chunks.drain(..) {
                // SAFETY: `grow` leaked the chunk; the slab's owner has made sure
                // that no ULT is left.
                drop(unsafe { Box::from_raw(chunk.as_ptr()) });
            }
        });
    }
}

// See `Task::origin`.
const _: () = assert!(core::mem::offset_of!(SlabChunk, tasks) == size_of::<Origin>());
const CHUNK: usize = if cfg!(tsumugi_loom) { 2 } else { 64 };

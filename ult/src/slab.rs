//! The descriptors of a scheduler's ULTs: chunks that stay until it ends.
//!
//! A free slot is in a worker's cache or in the depot; when neither has one, a
//! chunk is added. Chunks are found again by number, for whoever wants to see
//! all ULTs.

use crate::lock::Lock;
use crate::pool::{Cache, Depot};
use crate::task::{Origin, Task};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::ptr::NonNull;
use tsumugi_core::sync::Ordering;

/// A free slot, or a ULT: valid as long as its slab.
pub(crate) type Slot = NonNull<Task>;

pub(crate) struct Slab {
    depot: Depot<Free>,
    chunks: Lock<Vec<NonNull<Chunk>>>,
    /// Held while a name is read or dropped.
    names: Lock<Names>,
}

#[repr(C)]
struct Chunk {
    origin: Origin,
    tasks: [Task; CHUNK],
}

/// The names of ULTs that are gone, while a trace is on: the latest.
struct Names {
    /// The trace's number, and how many it keeps.
    wanted: Option<(usize, usize)>,
    /// By slot and generation, the oldest first.
    gone: VecDeque<((u32, u32), Box<str>)>,
}

/// A slot that nobody uses.
pub(crate) struct Free(Slot);

// SAFETY: a free slot is its holder's.
unsafe impl Send for Free {}
// SAFETY: the chunks are reached under the lock, tasks by their own rules.
unsafe impl Send for Slab {}
// SAFETY: the same.
unsafe impl Sync for Slab {}

impl Slab {
    pub(crate) fn new() -> Self {
        Self { depot: Depot::new(), chunks: Lock::new(Vec::new()), names: Lock::new(Names::none()) }
    }

    /// A free slot for a worker.
    #[inline]
    pub(crate) fn take(&self, cache: &mut Cache<Free>, home: *const ()) -> Slot {
        match cache.take(&self.depot) {
            Some(free) => free.0,
            None => self.grow(home),
        }
    }

    /// A free slot for any other thread.
    pub(crate) fn take_shared(&self, home: *const ()) -> Slot {
        match self.depot.take() {
            Some(free) => free.0,
            None => self.grow(home),
        }
    }

    /// Takes a slot back from its last user, a worker.
    ///
    /// # Safety
    ///
    /// Nobody uses the task any more; its closure and result are gone.
    #[inline]
    pub(crate) unsafe fn put(&self, slot: Slot, cache: &mut Cache<Free>) {
        self.clear(slot);
        cache.put(Free(slot), &self.depot);
    }

    /// The same for any other thread.
    ///
    /// # Safety
    ///
    /// As for [`put`](Self::put).
    pub(crate) unsafe fn put_shared(&self, slot: Slot) {
        self.clear(slot);
        self.depot.put(Free(slot));
    }

    /// Takes a worker's cache back.
    pub(crate) fn drain(&self, cache: &mut Cache<Free>) {
        cache.drain(&self.depot);
    }

    /// Shows every slot there is. ULTs may come and go meanwhile.
    pub(crate) fn each(&self, mut show: impl FnMut(&Task)) {
        let mut index = 0;
        while let Some(chunk) = self.chunks.with(|chunks| chunks.get(index).copied()) {
            // SAFETY: chunks stay as long as the slab.
            unsafe { chunk.as_ref() }.tasks.iter().for_each(&mut show);
            index += 1;
        }
    }

    /// Its name, copied.
    pub(crate) fn name(&self, task: &Task) -> Option<String> {
        // SAFETY: names are dropped under the same lock.
        self.names.with(|_| unsafe { task.name().map(String::from) })
    }

    /// Keeps the names of ULTs that go from now on, of the last `room` of them,
    /// for trace number `trace`. Those that another kept are dropped.
    #[cfg(all(feature = "std", not(tsumugi_loom)))]
    pub(crate) fn keep_names(&self, trace: usize, room: usize) {
        let names = Names { wanted: Some((trace, room)), gone: VecDeque::new() };
        drop(self.names.with(|kept| core::mem::replace(kept, names)));
    }

    /// Keeps no more, and hands out what was kept for `trace`, by slot and
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
    fn clear(&self, slot: Slot) {
        // SAFETY: slots stay as long as the slab.
        let task = unsafe { slot.as_ref() };
        if task.clear() {
            self.clear_particulars(task);
        }
    }

    /// What few ULTs need: a call, so that the rest is inlined.
    #[cold]
    #[inline(never)]
    fn clear_particulars(&self, task: &Task) {
        drop(self.names.with(|names| names.part_with(task)));
    }

    #[cold]
    fn grow(&self, home: *const ()) -> Slot {
        let chunk = self.chunks.with(|chunks| {
            let chunk = Chunk::new(Origin { home, first: (chunks.len() * CHUNK) as u32 });
            chunks.push(chunk);
            chunk
        });
        // SAFETY: just made.
        let mut slots = unsafe { chunk.as_ref() }.tasks.iter().map(NonNull::from);
        let first = slots.next().expect("a chunk has a slot");
        // The last comes out of the depot first.
        self.depot.put_all(slots.rev().map(Free));
        first
    }
}

impl Chunk {
    fn new(origin: Origin) -> NonNull<Self> {
        let chunk = Box::leak(Box::<Self>::new_uninit()).as_mut_ptr();
        // In place: a stack may be smaller than a chunk.
        // SAFETY: new memory; each part is written once.
        unsafe {
            (&raw mut (*chunk).origin).write(origin);
            let tasks = (&raw mut (*chunk).tasks).cast::<Task>();
            (0..CHUNK).for_each(|place| tasks.add(place).write(Task::new(place as u32)));
        }
        // Descriptors find the origin by their places.
        let _ = chunk.expose_provenance();
        NonNull::new(chunk).expect("a box is somewhere")
    }
}

impl Names {
    const fn none() -> Self {
        Self { wanted: None, gone: VecDeque::new() }
    }

    /// Takes the particulars of a ULT that was cleared; what is to be dropped.
    fn part_with(&mut self, task: &Task) -> impl Sized + use<> {
        let mut particulars = task.take_particulars();
        let mut oldest = None;
        if let Some((_, room)) = self.wanted
            && let Some(name) = particulars.as_mut().and_then(|all| all.name.take())
        {
            if self.gone.len() >= room {
                oldest = self.gone.pop_front();
            }
            // Clearing has counted it up.
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
                // SAFETY: leaked in `grow`; whoever drops the slab has seen to
                // it that no ULT is left.
                drop(unsafe { Box::from_raw(chunk.as_ptr()) });
            }
        });
    }
}

// See `Task::origin`.
const _: () = assert!(core::mem::offset_of!(Chunk, tasks) == size_of::<Origin>());
const CHUNK: usize = if cfg!(tsumugi_loom) { 2 } else { 64 };

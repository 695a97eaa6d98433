//! The descriptor itself: two cache lines.

use super::join_word::ALONE;
use super::origin::Origin;
use super::particulars::Particulars;
use super::state::{FREE, NEW};
use crate::body::{ClosureStorage, ClosureVtable};
use crate::inject::Linked;
use crate::local::Locals;
use crate::stack::{Saved, Stack, StackHead};
use crate::token::ParkWord;
use alloc::boxed::Box;
use core::hint::cold_path;
use core::ptr::{self, NonNull};
use tsumugi_core::sync::{AtomicPtr, AtomicU32, AtomicUsize, Ordering, UnsafeCell};
use tsumugi_core::wait::Race;

/// One ULT.
#[repr(C, align(64))]
pub(crate) struct Task {
    /// The place where the ULT left off.
    pub(super) saved: Saved,
    /// The top of the stack that the ULT is on, or null before it has one. Low bits
    /// show what is to be checked when the ULT leaves or resumes, see the constants.
    pub(super) head: AtomicPtr<StackHead>,
    /// The options of the ULT: a worker to stay on, flags, a size of stack.
    pub(super) traits: AtomicU32,
    pub(crate) park: ParkWord,
    pub(super) link: AtomicPtr<Task>,
    /// `count << 3 | UltState`. The count shows whether a copy of the reason is
    /// consistent.
    pub(super) state: AtomicU32,
    pub(crate) generation: AtomicU32,
    pub(super) join: AtomicUsize,
    /// The ULT-local values, a spare block, or null. Used by the running ULT only.
    pub(crate) locals: UnsafeCell<*mut Locals>,
    /// The ULT's sleep, if it may be cancelled; under the alarms' lock.
    pub(super) sleeper: UnsafeCell<*const Race>,

    pub(super) particulars: AtomicPtr<Particulars>,
    /// The worker on which the ULT slept last, and whose caches may still have its
    /// data.
    pub(super) last: AtomicU32,
    /// How many other descriptors lie before this one in its chunk.
    pub(super) place: u32,
    pub(super) body: UnsafeCell<Option<&'static ClosureVtable>>,
    /// The closure until it runs, then the result.
    pub(super) room: ClosureStorage,
}

// SAFETY: the state determines which thread may access the fields, see the module's
// documentation.
unsafe impl Send for Task {}
// SAFETY: as for `Send`.
unsafe impl Sync for Task {}

impl Task {
    pub(crate) fn new(place: u32) -> Self {
        Self {
            saved: Saved::new(),
            link: AtomicPtr::new(ptr::null_mut()),
            state: AtomicU32::new(FREE),
            generation: AtomicU32::new(0),
            head: AtomicPtr::new(NO_STACK),
            join: AtomicUsize::new(ALONE),
            park: ParkWord::new(),
            locals: UnsafeCell::new(ptr::null_mut()),
            sleeper: UnsafeCell::new(ptr::null()),
            particulars: AtomicPtr::new(ptr::null_mut()),
            last: AtomicU32::new(0),
            place,
            traits: AtomicU32::new(0),
            body: UnsafeCell::new(None),
            room: ClosureStorage::new(),
        }
    }

    /// The scheduler's shared part.
    #[inline(always)]
    pub(crate) fn home(&self) -> *const () {
        self.origin().home
    }

    /// The ULT's number.
    pub(crate) fn slot(&self) -> u32 {
        self.origin().first + self.place
    }

    #[inline(always)]
    fn origin(&self) -> &Origin {
        let first = ptr::from_ref(self).addr() - self.place as usize * size_of::<Self>();
        // SAFETY: a chunk is one allocation that stays, its origin lies before the
        // descriptors, and the slab has exposed its provenance.
        unsafe { &*ptr::with_exposed_provenance(first - size_of::<Origin>()) }
    }

    /// Makes a ULT of a free slot.
    ///
    /// # Safety
    ///
    /// The slot is free and belongs to the caller. What `f` and its result borrow
    /// stays valid until the ULT has ended, whatever their lifetimes say.
    #[inline]
    pub(crate) unsafe fn fill<T, F: FnOnce() -> T>(&self, f: F) {
        // SAFETY: the caller's.
        unsafe { self.fill_with(f, ClosureVtable::of::<T, F>()) }
    }

    /// Makes a ULT of a free slot: `body` is the table of functions for `value`.
    ///
    /// # Safety
    ///
    /// As for [`fill`](Self::fill).
    #[inline(always)]
    pub(crate) unsafe fn fill_with<V>(&self, value: V, body: &'static ClosureVtable) {
        // SAFETY: the room of a free slot is empty, and the slot belongs to the
        // caller.
        unsafe { self.room.put(value) };
        // SAFETY: as above.
        self.body.with_mut(|place| unsafe { *place = Some(body) });
        self.join.store(ALONE, Ordering::Relaxed);
        self.park.reset();
        self.traits.store(0, Ordering::Relaxed);
        self.set_state(NEW);
    }

    /// The top of the stack that the ULT is on.
    ///
    /// # Safety
    ///
    /// The caller has the right to the task's fields, see the module's documentation,
    /// or the task is this thread's running ULT.
    #[inline(always)]
    pub(crate) unsafe fn head(&self) -> Option<&StackHead> {
        // SAFETY: the stack stays while the task is on it.
        unsafe { self.head_at().as_ref() }
    }

    #[inline(always)]
    pub(super) fn head_at(&self) -> *mut StackHead {
        self.head.load(Ordering::Relaxed).map_addr(|addr| addr & !BITS)
    }

    /// The place where the ULT left off.
    #[inline(always)]
    pub(crate) fn saved(&self) -> &Saved {
        &self.saved
    }

    /// The top of the running ULT's stack, if the ULT may leave without a check by
    /// the worker: it is plain, keeps no control words, and the canary of its stack,
    /// if it has one, is unchanged.
    #[inline(always)]
    pub(crate) fn free_head(&self) -> Option<&StackHead> {
        let word = self.head.load(Ordering::Relaxed);
        let bits = word.addr() & BITS;
        if bits == 0 {
            // SAFETY: the ULT runs, so it is on a stack, and no bits are set beside
            // the address.
            return unsafe { word.as_ref() };
        }
        cold_path();
        // SAFETY: the ULT runs, so it is on a stack.
        unsafe { self.head() }.filter(|head| bits == HAS_CANARY && head.is_intact())
    }

    /// Whether the ULT is on a stack and keeps no control words, so that a switch is
    /// enough to resume it. A guess, if the caller does not have the ULT.
    #[inline(always)]
    pub(crate) fn is_usual(&self) -> bool {
        self.head.load(Ordering::Relaxed).addr() & UNUSUAL == 0
    }

    /// Whether a ULT on a stack may go to the queues that any worker takes from. A
    /// ULT that ran in its joiner's place may if the joiner may.
    #[inline(always)]
    pub(crate) fn is_for_all(&self) -> bool {
        self.head.load(Ordering::Relaxed).addr() & PARTICULAR == 0
    }

    /// Puts the ULT on a stack of its own.
    ///
    /// # Safety
    ///
    /// As for [`head`](Self::head), and the ULT is on no stack.
    #[inline]
    pub(crate) unsafe fn bind(&self, stack: Stack) -> &StackHead {
        // SAFETY: a head stays as long as its stack.
        let head = unsafe { stack.head().as_ref() };
        head.begin(&self.saved);
        let canary = if head.is_watched() { HAS_CANARY } else { 0 };
        let particular = if self.is_plain() { 0 } else { PARTICULAR };
        let unusual = if self.keeps_fp() { UNUSUAL } else { 0 };
        let word = stack.head().as_ptr().map_addr(|addr| addr | canary | particular | unusual);
        self.head.store(word, Ordering::Relaxed);
        head
    }

    /// Puts the ULT, which is plain and keeps no control words, on a stack of its own.
    ///
    /// # Safety
    ///
    /// As for [`bind`](Self::bind).
    #[inline(always)]
    pub(crate) unsafe fn bind_usual(&self, stack: Stack) -> &StackHead {
        // SAFETY: a head stays as long as its stack.
        let head = unsafe { stack.head().as_ref() };
        head.begin(&self.saved);
        let canary = usize::from(head.is_watched()) * HAS_CANARY;
        self.head.store(stack.head().as_ptr().map_addr(|addr| addr | canary), Ordering::Relaxed);
        head
    }

    /// Puts the ULT on an OS thread's own stack.
    ///
    /// # Safety
    ///
    /// As for [`bind`](Self::bind), and the ULT is plain. The head stays until
    /// [`unbind_thread`](Self::unbind_thread).
    pub(crate) unsafe fn bind_thread(&self, head: NonNull<StackHead>) {
        self.head.store(head.as_ptr(), Ordering::Relaxed);
    }

    /// Takes the ULT off an OS thread's own stack.
    pub(crate) fn unbind_thread(&self) {
        self.head.store(NO_STACK, Ordering::Relaxed);
    }

    /// Takes the stack of a ULT that has ended on it.
    ///
    /// # Safety
    ///
    /// As for [`head`](Self::head).
    #[inline(always)]
    pub(crate) unsafe fn unbind(&self) -> Stack {
        let head = NonNull::new(self.head_at());
        self.head.store(NO_STACK, Ordering::Relaxed);
        // SAFETY: the ULT had the stack alone, and has ended.
        let stack = unsafe { Stack::from_head(head.expect("a ULT that ended has a stack")) };
        #[cfg(tsumugi_tsan)]
        // SAFETY: a head stays as long as its stack.
        unsafe { stack.head().as_ref() }.end();
        stack
    }

    /// Sets the race of a sleep that may be cancelled.
    ///
    /// # Safety
    ///
    /// The caller holds the alarms' lock.
    pub(crate) unsafe fn set_sleeper(&self, race: *const Race) {
        // SAFETY: the caller holds the alarms' lock.
        self.sleeper.with_mut(|sleeper| unsafe { *sleeper = race });
    }

    /// The race of a sleep that may be cancelled, or null.
    ///
    /// # Safety
    ///
    /// The caller holds the alarms' lock.
    pub(crate) unsafe fn sleeper(&self) -> *const Race {
        // SAFETY: the caller holds the alarms' lock.
        self.sleeper.with(|sleeper| unsafe { *sleeper })
    }

    /// Empties the slot. If true, the caller must also take the particulars out,
    /// under the lock of the names.
    #[inline]
    pub(crate) fn clear(&self) -> bool {
        self.generation.store(self.generation.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.set_state(FREE);
        !self.particulars.load(Ordering::Relaxed).is_null()
    }

    /// Takes the particulars out; the caller drops them.
    pub(crate) fn take_particulars(&self) -> Option<Box<Particulars>> {
        let have = self.particulars.swap(ptr::null_mut(), Ordering::Relaxed);
        // SAFETY: the pointer comes from `Box::into_raw` in `adorn`.
        (!have.is_null()).then(|| unsafe { Box::from_raw(have) })
    }

    /// The ULT's name.
    ///
    /// # Safety
    ///
    /// The task is not cleared meanwhile: the ULT runs, or the caller has the names'
    /// lock.
    pub(crate) unsafe fn name(&self) -> Option<&str> {
        // Acquire: pairs with the Release in `adorn`. SAFETY: particulars are valid
        // until the task is cleared.
        unsafe { self.particulars.load(Ordering::Acquire).as_ref() }?.name.as_deref()
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        // SAFETY: the scheduler has ended, so no ULT runs.
        unsafe { Locals::free(&self.locals) };
    }
}

// SAFETY: a task is in one queue at a time, and only queues use `link`.
unsafe impl Linked for Task {
    #[inline(always)]
    fn link(&self) -> &AtomicPtr<Self> {
        &self.link
    }
}

// The bits beside a head's address, which is a multiple of 16.
/// The stack has a canary.
const HAS_CANARY: usize = 1;
/// A switch is not enough to resume the ULT: it keeps control words, or is on no
/// stack.
const UNUSUAL: usize = 2;
/// The ULT is urgent, or pinned to a worker.
const PARTICULAR: usize = 4;
const BITS: usize = HAS_CANARY | UNUSUAL | PARTICULAR;
pub(super) const NO_STACK: *mut StackHead = ptr::without_provenance_mut(UNUSUAL);

#[cfg(not(tsumugi_loom))]
const _: () = assert!(size_of::<Task>() == 128, "two cache lines");

//! The head at the top of a stack: its context, and other data that belong to the
//! stack.

use super::class::Class;
#[cfg(all(feature = "std", not(tsumugi_loom)))]
use super::layout::GUARDED;
use super::layout::{CANARY, CANARY_LINE, FLAGS, WATCHED};
use super::switch::{Left, Lives, ResumeLink, Saved, Switch};
use crate::cleanup::CleanupRecord;
use crate::host::page_bytes;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use core::arch::asm;
use core::ptr;
use tsumugi_core::sync::{AtomicPtr, AtomicU64, AtomicUsize, Ordering, UnsafeCell, fence};
use tsumugi_core::wait::{Reason, Waker};

/// The stack pointer of the function that this is inlined into: all calls from there
/// use memory below it. The address of a local is not used, because it may be the
/// highest of the frame.
#[inline(always)]
pub(crate) fn stack_pointer() -> usize {
    let at: usize;
    // SAFETY: the instruction reads a register.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!("mov {}, rsp", out(reg) at, options(nomem, nostack, preserves_flags))
    };
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!("mov {}, sp", out(reg) at, options(nomem, nostack, preserves_flags))
    };
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        #[inline(never)]
        fn below() -> usize {
            let local = 0u8;
            core::hint::black_box(&raw const local).addr()
        }
        at = below();
    }
    at
}

/// The top of a stack: the data that belong to the stack, whichever ULT runs on it.
#[repr(C, align(16))]
pub(crate) struct StackHead {
    pub(super) switch: Switch,
    /// The stack's lowest byte. It is a multiple of the page, so its low bits hold
    /// flags.
    pub(super) floor: usize,
    /// When the sleeper on this stack went to sleep.
    pub(crate) since: AtomicU64,
    /// The reason of that sleep.
    pub(crate) reason: ReasonCells,
    /// The waker of a park with a limit, while the park word shows such a park.
    pub(crate) park_waker: UnsafeCell<Option<Waker>>,
    /// The cleanup record of a sleeper that may be handed something; null while there
    /// is none.
    cleanup: UnsafeCell<*mut CleanupRecord>,
    pub(super) pages: u32,
    pub(super) class: Class,
}

/// A reason that other threads may read while it changes.
#[derive(Default)]
pub(crate) struct ReasonCells {
    pub(crate) what: AtomicPtr<u8>,
    pub(crate) what_bytes: AtomicUsize,
    pub(crate) at: AtomicU64,
    pub(crate) wanted: AtomicU64,
}

impl StackHead {
    /// Resumes the context, until a context leaves to the link. If the life on this
    /// stack has ended, the next one begins, with `life` as its argument.
    ///
    /// # Safety
    ///
    /// The caller has the ULT that is on the stack, and `saved` is that ULT's. The
    /// link is used by no other resume until the context has left to it, and stays
    /// until the context is linked anew.
    #[inline(always)]
    pub(crate) unsafe fn resume(&self, saved: &Saved, link: &ResumeLink, life: *const ()) -> Left {
        // SAFETY: by the caller's contract the context is suspended at `saved`;
        // `make` gave each stack its context.
        unsafe { self.switch.resume(saved, link, life) }
    }

    /// Copies the place of the idle context into `saved`, for the ULT that gets the
    /// stack.
    #[inline(always)]
    pub(crate) fn begin(&self, saved: &Saved) {
        saved.begin(&self.switch);
    }

    /// Tells the thread sanitizer that the life on this stack is over.
    #[cfg(tsumugi_tsan)]
    pub(crate) fn end(&self) {
        self.switch.end();
    }

    /// Sets another link, to which the context leaves in place of its resumer.
    ///
    /// # Safety
    ///
    /// The caller has the ULT on this stack; the link stays until the context is
    /// linked anew.
    #[inline(always)]
    pub(crate) unsafe fn relink(&self, link: &ResumeLink) {
        // SAFETY: the caller has the context, so it does not run.
        unsafe { self.switch.relink(link) };
    }

    /// Leaves the worker; returns when this stack is resumed, perhaps by another
    /// worker.
    ///
    /// # Safety
    ///
    /// The caller runs on this stack, as the ULT with this `saved`.
    #[inline(always)]
    pub(crate) unsafe fn suspend(&self, saved: &Saved, left: Left) {
        // SAFETY: the caller runs on this stack.
        unsafe { self.switch.suspend(saved, left) };
    }

    /// Switches from one ULT to another; returns when the first is resumed, or at
    /// once if both are the same. `both` returns the two heads, where the switch
    /// needs them.
    ///
    /// # Safety
    ///
    /// The caller runs on the first stack, as the ULT with `from`. It has the ULT on
    /// the second stack, with `to`; that ULT has begun and has the same link.
    #[inline(always)]
    pub(crate) unsafe fn pass<'a>(from: &Saved, to: &Saved, both: impl FnOnce() -> [&'a Self; 2]) {
        // SAFETY: the caller runs on the first stack and has the ULT on the second.
        unsafe { Switch::pass(from, to, || both().map(|head| &head.switch)) };
    }

    /// Leaves the ULT at `from` and begins a life on this stack, where `after(arg)` is
    /// called first: the ULT at `from` may be resumed from then on. Returns when it is
    /// resumed.
    ///
    /// # Safety
    ///
    /// The caller runs as the ULT with `from`. `to` is that of a new ULT, which is bound
    /// to this stack and belongs to the caller; `life` is its argument. The stack is
    /// linked to the caller's resumer. `after` may be called on any stack of this thread.
    #[inline(always)]
    pub(crate) unsafe fn enter(
        &self,
        from: &Saved,
        to: &Saved,
        life: *const (),
        after: unsafe extern "C" fn(*const ()),
        arg: *const (),
    ) {
        // SAFETY: the caller's.
        unsafe { self.switch.enter(from, to, life, after, arg) };
    }

    /// The head of a new stack, on which no ULT has been.
    pub(super) fn new(switch: Switch, floor: usize, pages: u32, class: Class) -> Self {
        Self {
            switch,
            floor,
            since: AtomicU64::new(0),
            reason: ReasonCells::default(),
            park_waker: UnsafeCell::new(None),
            cleanup: UnsafeCell::new(ptr::null_mut()),
            pages,
            class,
        }
    }

    /// The head of an OS thread's stack, which does not lie on it. A ULT on that stack
    /// is never given another one.
    pub(crate) fn of_thread(floor: usize, bytes: usize) -> Self {
        let (first, pages) = (floor.next_multiple_of(page_bytes()), bytes / page_bytes());
        Self::new(Switch::new(), first, pages.min(u32::MAX as usize) as u32, Class::default())
    }

    /// Gives a new stack other lives.
    ///
    /// # Safety
    ///
    /// The caller has the stack, on which nothing has run.
    pub(crate) unsafe fn begin_lives(&self, lives: Lives) {
        // SAFETY: the caller's; the frames of a stack lie below its head.
        unsafe { self.switch.begin(ptr::from_ref(self).cast_mut().cast(), lives) };
    }

    /// Sets the cleanup record, or null, for the end of the scheduler; returns the
    /// previous one.
    ///
    /// # Safety
    ///
    /// Called by the ULT on the stack, or when no ULT ever runs on the stack again. A
    /// cleanup record stays valid until it is taken back.
    #[inline(always)]
    pub(crate) unsafe fn set_cleanup(&self, cleanup: *mut CleanupRecord) -> *mut CleanupRecord {
        // SAFETY: by the caller's contract no other thread looks at the cleanup record
        // now.
        self.cleanup.with_mut(|place| unsafe { ptr::replace(place, cleanup) })
    }

    /// Sets the reason of the sleep that follows. Called by the ULT on the stack.
    #[inline]
    pub(crate) fn set_reason(&self, reason: &Reason) {
        // Release: the stores stay behind the state's change to "running"; pairs with
        // the Acquire fence in `Task::look`.
        fence(Ordering::Release);
        self.reason.what.store(reason.what.as_ptr().cast_mut(), Ordering::Relaxed);
        self.reason.what_bytes.store(reason.what.len(), Ordering::Relaxed);
        self.reason.at.store(reason.at, Ordering::Relaxed);
        self.reason.wanted.store(reason.wanted, Ordering::Relaxed);
    }

    /// The stack's usable bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.pages as usize * page_bytes()
    }

    /// How many bytes of the stack are left below `at`.
    #[inline]
    pub(crate) fn room_below(&self, at: usize) -> usize {
        at.saturating_sub(self.floor())
    }

    /// Whether `at` is in this stack's guard page, so that an access there is an
    /// overflow.
    #[cfg(all(feature = "std", not(tsumugi_loom)))]
    pub(crate) fn is_guard(&self, at: usize) -> bool {
        self.floor & GUARDED != 0 && (self.floor() - page_bytes()..self.floor()).contains(&at)
    }

    /// Whether the canary below is unchanged, or there is none.
    #[inline(always)]
    pub(crate) fn is_intact(&self) -> bool {
        !self.is_watched() || self.has_canary()
    }

    /// Whether there is a canary below.
    #[inline(always)]
    pub(crate) fn is_watched(&self) -> bool {
        self.floor & WATCHED != 0
    }

    #[inline]
    fn has_canary(&self) -> bool {
        let line = ptr::with_exposed_provenance::<u64>(self.floor() - CANARY_LINE);
        // SAFETY: the line below a stack belongs to the area. It is written only when
        // the stack is carved, or by an overflow, which this looks for.
        unsafe { line.read_volatile() == CANARY && line.add(7).read_volatile() == CANARY }
    }

    pub(super) fn floor(&self) -> usize {
        self.floor & !FLAGS
    }

    /// The lowest byte of the stack, or of the guard page below.
    #[cfg(any(not(all(target_arch = "x86_64", target_os = "linux")), tsumugi_asan))]
    pub(super) fn limit(&self) -> usize {
        self.floor() - if self.floor & super::layout::GUARDED != 0 { page_bytes() } else { 0 }
    }
}

pub(super) const HEAD_BYTES: usize = size_of::<StackHead>();

#[cfg(all(
    target_arch = "x86_64",
    target_os = "linux",
    not(any(tsumugi_loom, tsumugi_asan, tsumugi_tsan))
))]
const _: () = assert!(HEAD_BYTES == 96, "half a cache line, and one");

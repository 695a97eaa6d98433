//! The top of a stack: its context, and what else belongs to it.

#[cfg(all(feature = "std", not(tsumugi_loom)))]
use super::GUARDED;
use super::class::Class;
use super::switch::{Left, Link, Saved, Switch};
use super::{CANARY, CANARY_LINE, FLAGS, WATCHED};
use crate::host::page_bytes;
use crate::stake::Stake;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use core::arch::asm;
use core::ptr;
use tsumugi_core::sync::{AtomicPtr, AtomicU64, AtomicUsize, Ordering, UnsafeCell, fence};
use tsumugi_core::wait::{Reason, Waker};

/// Where the frame ends that this is inlined in: everything that is called from
/// there lies below. Not the address of a local, which may be the frame's
/// highest.
#[inline(always)]
pub(crate) fn stack_pointer() -> usize {
    let at: usize;
    // SAFETY: reads a register.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!("mov {}, rsp", out(reg) at, options(nomem, nostack, preserves_flags))
    };
    // SAFETY: the same.
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

/// The top of a stack: what belongs to it, whoever runs on it.
#[repr(C, align(16))]
pub(crate) struct Head {
    pub(super) switch: Switch,
    /// The lowest byte; a multiple of the page, so its low bits are flags.
    pub(super) floor: usize,
    /// When the sleeper on this stack went to sleep.
    pub(crate) since: AtomicU64,
    /// What it waits for.
    pub(crate) reason: ReasonCells,
    /// The waker of a park with a limit, while the park word says so.
    pub(crate) park_waker: UnsafeCell<Option<Waker>>,
    /// Of the sleeper that may be handed something; null while there is none.
    stake: UnsafeCell<*mut Stake>,
    pub(super) pages: u32,
    pub(super) class: Class,
}

/// A reason that others may read while it changes.
#[derive(Default)]
pub(crate) struct ReasonCells {
    pub(crate) what: AtomicPtr<u8>,
    pub(crate) what_bytes: AtomicUsize,
    pub(crate) at: AtomicU64,
    pub(crate) wanted: AtomicU64,
}

impl Head {
    /// Goes on with the context, until somebody leaves who has its place. Where
    /// one life ended, the next begins, with `life` as its argument.
    ///
    /// # Safety
    ///
    /// The caller has the ULT that is on the stack, and `saved` is that one's.
    /// The link is for no other resume until it has left, and stays until it is
    /// linked anew.
    #[inline(always)]
    pub(crate) unsafe fn resume(&self, saved: &Saved, link: &Link, life: *const ()) -> Left {
        // SAFETY: the caller's; each stack was given its context by `make`.
        unsafe { self.switch.resume(saved, link, life) }
    }

    /// Where the context is of a stack that no ULT has, for the one that gets it.
    #[inline(always)]
    pub(crate) fn begin(&self, saved: &Saved) {
        saved.begin(&self.switch);
    }

    /// The life on it is over, and the thread sanitizer forgets it.
    #[cfg(tsumugi_tsan)]
    pub(crate) fn end(&self) {
        self.switch.end();
    }

    /// Has it leave for another one than the one who resumed it.
    ///
    /// # Safety
    ///
    /// The caller has the ULT that is on it; the link stays until it is linked
    /// anew.
    #[inline(always)]
    pub(crate) unsafe fn relink(&self, link: &Link) {
        // SAFETY: the caller's.
        unsafe { self.switch.relink(link) };
    }

    /// Leaves the worker; returns when it is resumed, perhaps by another one.
    ///
    /// # Safety
    ///
    /// The caller runs on this stack, as the ULT whose `saved` is given.
    #[inline(always)]
    pub(crate) unsafe fn suspend(&self, saved: &Saved, left: Left) {
        // SAFETY: the caller's.
        unsafe { self.switch.suspend(saved, left) };
    }

    /// Leaves the worker to another ULT; returns when it is resumed, or, if it
    /// is its own, at once. Both heads are asked for where the switch needs them.
    ///
    /// # Safety
    ///
    /// The caller runs on the first stack, as the ULT whose is `from`, and has the
    /// ULT on the second, whose is `to`, and which has begun and has the same link.
    #[inline(always)]
    pub(crate) unsafe fn pass<'a>(from: &Saved, to: &Saved, both: impl FnOnce() -> [&'a Self; 2]) {
        // SAFETY: the caller's.
        unsafe { Switch::pass(from, to, || both().map(|head| &head.switch)) };
    }

    /// A head of a stack that nobody has been on.
    pub(super) fn new(switch: Switch, floor: usize, pages: u32, class: Class) -> Self {
        Self {
            switch,
            floor,
            since: AtomicU64::new(0),
            reason: ReasonCells::default(),
            park_waker: UnsafeCell::new(None),
            stake: UnsafeCell::new(ptr::null_mut()),
            pages,
            class,
        }
    }

    /// Leaves a stake for who ends the scheduler, or null; answers what there
    /// was.
    ///
    /// # Safety
    ///
    /// By the ULT on the stack, or when nobody ever runs on it again. A stake
    /// stays until it is taken back.
    #[inline(always)]
    pub(crate) unsafe fn set_stake(&self, stake: *mut Stake) -> *mut Stake {
        // SAFETY: the caller's: nobody else looks.
        self.stake.with_mut(|place| unsafe { ptr::replace(place, stake) })
    }

    /// Says what the sleep that follows is for. By the ULT on the stack.
    #[inline]
    pub(crate) fn set_reason(&self, reason: &Reason) {
        // The stores stay behind the state that says "running".
        fence(Ordering::Release);
        self.reason.what.store(reason.what.as_ptr().cast_mut(), Ordering::Relaxed);
        self.reason.what_bytes.store(reason.what.len(), Ordering::Relaxed);
        self.reason.at.store(reason.at, Ordering::Relaxed);
        self.reason.wanted.store(reason.wanted, Ordering::Relaxed);
    }

    /// The usable bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.pages as usize * page_bytes()
    }

    /// How much of the stack is left below `at`.
    #[inline]
    pub(crate) fn room_below(&self, at: usize) -> usize {
        at.saturating_sub(self.floor())
    }

    /// Whether `at` is in the page whose touch is this stack's overflow.
    #[cfg(all(feature = "std", not(tsumugi_loom)))]
    pub(crate) fn is_guard(&self, at: usize) -> bool {
        self.floor & GUARDED != 0 && (self.floor() - page_bytes()..self.floor()).contains(&at)
    }

    /// Whether the canary below is alive, or there is none.
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
        // SAFETY: the line below a stack is of the area and is written only
        // when the stack is carved, or by an overflow, which is what we are
        // looking for.
        unsafe { line.read_volatile() == CANARY && line.add(7).read_volatile() == CANARY }
    }

    pub(super) fn floor(&self) -> usize {
        self.floor & !FLAGS
    }

    /// The lowest byte, or that of the guard below.
    #[cfg(any(not(all(target_arch = "x86_64", target_os = "linux")), tsumugi_asan))]
    pub(super) fn limit(&self) -> usize {
        self.floor() - if self.floor & super::GUARDED != 0 { page_bytes() } else { 0 }
    }
}

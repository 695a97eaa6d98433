//! The top of a stack: its context, and the switch.

#[cfg(all(feature = "std", not(tsumugi_loom)))]
use super::GUARDED;
use super::class::Class;
use super::{CANARY, CANARY_LINE, FLAGS, Stack, WATCHED};
use crate::host::page_bytes;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use core::arch::asm;
use core::convert::Infallible;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};
use corosensei::{Coroutine, CoroutineResult, Yielder};
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

/// What a context that leaves says to whoever resumed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Left(*mut ());

/// What a stack runs, again and again: one life at a time.
pub(crate) type Life = unsafe fn(*const ());

/// A context on a stack.
type Switch = Coroutine<*const (), Left, Infallible, Stack>;

/// The top of a stack: what belongs to it, whoever runs on it.
#[repr(C, align(16))]
pub(crate) struct Head {
    pub(super) switch: UnsafeCell<MaybeUninit<Switch>>,
    pub(super) yielder: UnsafeCell<*const Yielder<*const (), Left>>,
    /// The lowest byte; a multiple of the page, so its low bits are flags.
    pub(super) floor: usize,
    /// What the sleeper on this stack waits for.
    pub(crate) reason: ReasonCells,
    /// The waker of a park with a limit, while the park word says so.
    pub(crate) park_waker: UnsafeCell<Option<Waker>>,
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
    pub(crate) since: AtomicU64,
}

impl Left {
    /// It lets others run.
    // The largest first: that is the order in which they are compared.
    pub(crate) const YIELD: Self = Self(ptr::without_provenance_mut(2));
    /// It sleeps until its park word says otherwise.
    pub(crate) const PARK: Self = Self(ptr::without_provenance_mut(1));
    /// Its life is over, the next can begin.
    const ENDED: Self = Self(ptr::null_mut());

    /// It asks for something; the request lies on its stack.
    pub(crate) fn request<T>(request: *mut T) -> Self {
        Self(request.cast())
    }

    #[inline(always)]
    pub(crate) fn is_yield(self) -> bool {
        self == Self::YIELD
    }

    #[inline(always)]
    pub(crate) fn is_end(self) -> bool {
        self == Self::ENDED
    }

    #[inline(always)]
    pub(crate) fn is_park(self) -> bool {
        self == Self::PARK
    }

    /// The request, if it is one.
    pub(crate) fn into_request<T>(self) -> *mut T {
        self.0.cast()
    }
}

impl Head {
    /// Goes on with the context, until it leaves. Where one life ended, the
    /// next begins, with `life` as its argument.
    ///
    /// # Safety
    ///
    /// The caller has the stack, or the ULT that is on it.
    #[inline(always)]
    pub(crate) unsafe fn resume(&self, life: *const ()) -> Left {
        // SAFETY: the caller's; each stack was given its context by `make`.
        self.switch.with_mut(|switch| match unsafe { (*switch).assume_init_mut() }.resume(life) {
            CoroutineResult::Yield(left) => left,
            CoroutineResult::Return(never) => match never {},
        })
    }

    /// Gives the stack its context, which never ends: when a life is over, it
    /// waits for the next.
    ///
    /// # Safety
    ///
    /// The stack is the caller's, and new.
    pub(super) unsafe fn begin(&self, run: Life) {
        let this = self as *const Self;
        let switch = Coroutine::with_stack(
            Stack(NonNull::from(self)),
            move |yielder: &Yielder<*const (), Left>, mut life| {
                // SAFETY: heads stay as long as their stacks; we run on this one.
                unsafe { (*this).yielder.with_mut(|slot| *slot = yielder) };
                loop {
                    // SAFETY: whoever resumes an ended life gives the next.
                    unsafe { run(life) };
                    life = yielder.suspend(Left::ENDED);
                }
            },
        );
        // SAFETY: the caller's.
        self.switch.with_mut(|slot| unsafe { (*slot).write(switch) });
    }

    /// Leaves the worker; returns when it is resumed, perhaps by another one.
    ///
    /// # Safety
    ///
    /// The caller runs on this stack.
    #[inline(always)]
    pub(crate) unsafe fn suspend(&self, left: Left) {
        // SAFETY: set before the first instruction, valid until the last.
        let yielder = self.yielder.with(|yielder| unsafe { *yielder });
        // SAFETY: as above.
        unsafe { (*yielder).suspend(left) };
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

    /// Whether `at` is an address that a stack pointer on it may have.
    #[cfg(all(feature = "std", target_arch = "x86_64", not(tsumugi_loom)))]
    pub(crate) fn holds(&self, at: usize) -> bool {
        // The context has the address of the head too, which is no such one.
        at > self.floor() && at < self.top()
    }

    /// Where the first frame begins.
    #[cfg(all(feature = "std", target_arch = "x86_64", not(tsumugi_loom)))]
    pub(crate) fn top(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    /// The words that its context is made of: addresses, all of them.
    ///
    /// # Safety
    ///
    /// Nobody runs on the stack meanwhile.
    #[cfg(all(feature = "std", target_arch = "x86_64", not(tsumugi_loom)))]
    pub(crate) unsafe fn switch_words(&self) -> [usize; SWITCH_WORDS] {
        // SAFETY: the caller's; `make` gave it a context, which has no padding:
        // the assertion below.
        self.switch.with(|switch| unsafe { switch.cast::<[usize; SWITCH_WORDS]>().read() })
    }

    /// Whether `at` is in the page whose touch is this stack's overflow.
    #[cfg(all(feature = "std", not(tsumugi_loom)))]
    pub(crate) fn is_guard(&self, at: usize) -> bool {
        self.floor & GUARDED != 0 && (self.floor() - page_bytes()..self.floor()).contains(&at)
    }

    /// Whether the canary below is alive, or there is none.
    #[inline(always)]
    pub(crate) fn is_intact(&self) -> bool {
        self.floor & WATCHED == 0 || self.has_canary()
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
}

#[cfg(all(target_arch = "x86_64", not(tsumugi_loom)))]
const SWITCH_WORDS: usize = size_of::<Switch>() / size_of::<usize>();
// The stack's, two stack pointers, one function: no room for padding. For the
// sanitizer, its two bounds.
#[cfg(all(target_arch = "x86_64", not(tsumugi_loom)))]
const _: () = assert!(
    SWITCH_WORDS == if cfg!(tsumugi_asan) { 6 } else { 4 },
    "a switch is not made of the words that it should be"
);

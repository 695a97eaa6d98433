//! Who runs on this OS thread: the one door to thread-local state.
//!
//! A ULT may go on on another OS thread after any call that suspends it. A
//! compiler does not know that: within one function it may compute the address
//! of a thread-local once and use it on both sides of a suspension, and then
//! it is the wrong thread's. `#[inline(never)]` alone does not help, because
//! LLVM finds out that the function reads no memory and uses its answer again;
//! seen with rustc 1.95 at `-O`, never in debug builds. So [`worker`] asks the
//! processor: an `asm!` block that no compiler may merge with another reads a
//! word of the thread's own storage. Where that is not written down for the
//! processor, it is kept out of line and holds an empty `asm!`, which may have
//! read anything. Without std that word is the process's where there is no such
//! storage.
//!
//! The rule for this crate: call [`worker`] again after each suspension, and
//! never keep its answer across one. User code has the same hazard with its
//! own `thread_local!`s: a reference into one must not live across a call that
//! may suspend.

use super::worker::Worker;
use crate::slab::Slot;
#[cfg(feature = "std")]
use core::cell::Cell;
use core::ptr::{self, NonNull};
#[cfg(not(any(
    feature = "std",
    all(target_arch = "x86_64", target_os = "linux", not(miri))
)))]
use tsumugi_core::sync::AtomicPtr;
#[cfg(not(feature = "std"))]
use tsumugi_core::sync::{AtomicU32, Ordering};

#[cfg(feature = "std")]
struct Local {
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(any(tsumugi_loom, miri)))))]
    worker: Cell<*const Worker>,
    callbacks: Cell<u32>,
}

#[cfg(feature = "std")]
impl Local {
    const fn new() -> Self {
        Self {
            #[cfg(not(all(
                target_arch = "x86_64",
                target_os = "linux",
                not(any(tsumugi_loom, miri))
            )))]
            worker: Cell::new(ptr::null()),
            callbacks: Cell::new(0),
        }
    }
}

#[cfg(all(feature = "std", not(tsumugi_loom)))]
std::thread_local! {
    static LOCAL: Local = const { Local::new() };
}

#[cfg(tsumugi_loom)]
tsumugi_core::sync::model::thread_local! {
    static LOCAL: Local = Local::new();
}

/// The worker that this OS thread is, if it is one.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(any(tsumugi_loom, miri)))))]
#[inline(never)]
pub(crate) fn worker() -> Option<NonNull<Worker>> {
    barrier();
    #[cfg(feature = "std")]
    return LOCAL.with(|local| NonNull::new(local.worker.get().cast_mut()));
    #[cfg(not(feature = "std"))]
    NonNull::new(WORKER.load(Ordering::Relaxed))
}

/// Makes this OS thread `worker`, or none; answers what it was.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(any(tsumugi_loom, miri)))))]
#[inline(never)]
pub(super) fn set_worker(worker: *const Worker) -> *const Worker {
    barrier();
    #[cfg(feature = "std")]
    return LOCAL.with(|local| local.worker.replace(worker));
    #[cfg(not(feature = "std"))]
    WORKER.swap(worker.cast_mut(), Ordering::Relaxed).cast_const()
}

// One word per thread that code anywhere can read in two instructions.
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(any(tsumugi_loom, miri))))]
core::arch::global_asm!(
    ".pushsection .tbss.tsumugi_ult_worker, \"awT\", @nobits",
    ".globl tsumugi_ult_worker",
    ".hidden tsumugi_ult_worker",
    ".type tsumugi_ult_worker, @object",
    ".size tsumugi_ult_worker, 8",
    ".p2align 3",
    "tsumugi_ult_worker:",
    ".zero 8",
    ".popsection",
);

/// The worker that this OS thread is, if it is one.
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(any(tsumugi_loom, miri))))]
#[inline(always)]
pub(crate) fn worker() -> Option<NonNull<Worker>> {
    let worker: *mut Worker;
    // SAFETY: reads this thread's word. The block is not `pure`, so each call
    // reads again.
    unsafe {
        core::arch::asm!(
            "mov {worker}, qword ptr [rip + tsumugi_ult_worker@GOTTPOFF]",
            "mov {worker}, qword ptr fs:[{worker}]",
            worker = out(reg) worker,
            options(nostack, preserves_flags, readonly),
        );
    }
    NonNull::new(worker)
}

/// Makes this OS thread `worker`, or none; answers what it was.
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(any(tsumugi_loom, miri))))]
#[inline(never)]
pub(super) fn set_worker(new: *const Worker) -> *const Worker {
    let before = self::worker().map_or(ptr::null(), |worker| worker.as_ptr().cast_const());
    // SAFETY: writes this thread's word.
    unsafe {
        core::arch::asm!(
            "mov {word}, qword ptr [rip + tsumugi_ult_worker@GOTTPOFF]",
            "mov qword ptr fs:[{word}], {new}",
            word = out(reg) _,
            new = in(reg) new,
            options(nostack, preserves_flags),
        );
    }
    before
}

/// A number that no two have who call at the same time: a ULT's, a foreign
/// task's, or an OS thread's.
pub(crate) fn caller() -> usize {
    // SAFETY: this thread's worker, not kept.
    if let Some(slot) = worker().and_then(|worker| unsafe { worker.as_ref() }.current()) {
        return slot.addr().get();
    }
    #[cfg(feature = "std")]
    return LOCAL.with(|local| ptr::from_ref(local).addr());
    #[cfg(not(feature = "std"))]
    0
}

/// Calls `f` as a callback: something that runs for another, on a thread that
/// others wait for. A call in it that would sleep panics; one that would let
/// other ULTs run lets other OS threads run instead. The ULT on whose stack it
/// may run is not the one that runs meanwhile: [`id`](super::id) is `None`.
pub fn callback<R>(f: impl FnOnce() -> R) -> R {
    let _inside = Inside::enter();
    f()
}

/// Whether this OS thread is inside a [`callback`].
#[inline(never)]
pub fn in_callback() -> bool {
    callbacks(0) > 0
}

/// Refuses to sleep inside a [`callback`], as any call does that would: for one
/// that is about to lend what must not be given up by a panic, before it sleeps.
///
/// # Panics
///
/// Inside a callback, with `what` the caller would wait for.
#[inline(always)]
pub fn assert_may_block(what: &str) {
    // SAFETY: this thread's worker, not kept. A ULT that runs is in no callback.
    let runs = worker().is_some_and(|worker| unsafe { worker.as_ref() }.current().is_some());
    if !runs {
        assert_no_callback(what);
    }
}

/// The same, of a thread that runs no ULT.
#[cold]
#[inline(never)]
pub(crate) fn assert_no_callback(what: &str) {
    assert!(
        !in_callback(),
        "a callback or handler must not block (here: {what}); spawn a ULT for what must wait"
    );
}

/// This thread is in a callback, as long as it lives; on no other.
struct Inside {
    /// The ULT on whose stack that runs: nothing of the thread's leaves it
    /// meanwhile.
    on: Option<Slot>,
}

impl Inside {
    fn enter() -> Self {
        callbacks(1);
        // SAFETY: this thread's worker, not kept.
        let on = worker().and_then(|worker| unsafe { worker.as_ref() }.take_current());
        Self { on }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        if let Some(on) = self.on {
            let worker = worker().expect("a ULT runs on a worker");
            // SAFETY: this thread's worker, which it was at first, too: no ULT
            // leaves its thread while none runs on it.
            unsafe { worker.as_ref() }.set_current(on);
        }
        callbacks(-1);
    }
}

/// How many callbacks this thread is in, once that has changed. Without std
/// all threads count as one.
#[inline(always)]
fn callbacks(change: i32) -> u32 {
    barrier();
    #[cfg(feature = "std")]
    return LOCAL.with(|local| {
        let now = local.callbacks.get().wrapping_add_signed(change);
        local.callbacks.set(now);
        now
    });
    #[cfg(not(feature = "std"))]
    CALLBACKS.fetch_add(change as u32, Ordering::Relaxed).wrapping_add_signed(change)
}

#[inline(always)]
fn barrier() {
    // SAFETY: no instructions; it claims to read and write any memory.
    unsafe { core::arch::asm!("", options(nostack, preserves_flags)) };
}

#[cfg(not(feature = "std"))]
static CALLBACKS: AtomicU32 = AtomicU32::new(0);
#[cfg(not(any(feature = "std", all(target_arch = "x86_64", target_os = "linux", not(miri)))))]
static WORKER: AtomicPtr<Worker> = AtomicPtr::new(ptr::null_mut());

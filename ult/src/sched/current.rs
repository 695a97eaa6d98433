//! The worker and the ULT of this OS thread: the only module that accesses
//! thread-local state.
//!
//! After any call that suspends it, a ULT may continue on another OS thread. The
//! compiler does not know that: within one function it may compute the address of
//! a thread-local once and use it on both sides of a suspension, and then the
//! address is the other thread's. `#[inline(never)]` alone does not help, because
//! LLVM finds out that the function reads no memory and uses its result again
//! (seen with rustc 1.95 at `-O`, never in debug builds). So [`worker`] reads a
//! word of the thread's own storage with an `asm!` block, which the compiler must
//! not merge with another one. On processors for which there is no such block,
//! [`worker`] is kept out of line and holds an empty `asm!`, which for the
//! compiler may have read anything. Without std, and where there is no such
//! storage, the word is one for the whole process.
//!
//! The rule for this crate: call [`worker`] again after each suspension, and
//! never keep its result across one. User code has the same hazard with its own
//! `thread_local!`s: a reference into one must not live across a call that may
//! suspend.

use super::worker::Worker;
use crate::slab::TaskSlot;
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

/// Returns the worker that this OS thread is, if it is one.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(any(tsumugi_loom, miri)))))]
#[inline(never)]
pub(crate) fn worker() -> Option<NonNull<Worker>> {
    barrier();
    #[cfg(feature = "std")]
    return LOCAL.with(|local| NonNull::new(local.worker.get().cast_mut()));
    #[cfg(not(feature = "std"))]
    NonNull::new(WORKER.load(Ordering::Relaxed))
}

/// Makes this OS thread `worker`, or none. Returns what it was before.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(any(tsumugi_loom, miri)))))]
#[inline(never)]
pub(super) fn set_worker(worker: *const Worker) -> *const Worker {
    barrier();
    #[cfg(feature = "std")]
    return LOCAL.with(|local| local.worker.replace(worker));
    #[cfg(not(feature = "std"))]
    WORKER.swap(worker.cast_mut(), Ordering::Relaxed).cast_const()
}

// One word per thread, which code anywhere can read in two instructions.
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

/// Returns the worker that this OS thread is, if it is one.
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

/// Makes this OS thread `worker`, or none. Returns what it was before.
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

/// Returns a number that differs between any two callers at the same time: the
/// number of a ULT, of a foreign task, or of an OS thread.
pub(crate) fn caller() -> usize {
    // SAFETY: the pointer is this thread's own worker, and it is not kept.
    if let Some(slot) = worker().and_then(|worker| unsafe { worker.as_ref() }.current()) {
        return slot.addr().get();
    }
    #[cfg(feature = "std")]
    return LOCAL.with(|local| ptr::from_ref(local).addr());
    #[cfg(not(feature = "std"))]
    0
}

/// Calls `f` as a callback: code that runs on behalf of another thread or rank, on a
/// thread that others wait for. A call in `f` that would sleep panics. A call
/// that would let other ULTs run lets other OS threads run instead. `f` may run
/// on the stack of a ULT, but it does not run as that ULT: [`id`](super::id) is
/// `None` in it, and the values of [`ult_local!`] are the OS thread's. So what goes in
/// and what comes back must be `Send`. An `Rc` out of a value of the thread would go
/// with the ULT to other threads:
///
/// ```compile_fail,E0277
/// use std::rc::Rc;
/// tsumugi_ult::ult_local! { static NAME: Rc<str> = Rc::from("a name"); }
///
/// let of_the_thread = tsumugi_ult::callback(|| NAME.with(Rc::clone));
/// ```
///
/// And an `Rc` of the ULT would stay behind in such a value:
///
/// ```compile_fail,E0277
/// use std::cell::RefCell;
/// use std::rc::Rc;
/// tsumugi_ult::ult_local! { static NAMES: RefCell<Vec<Rc<str>>> = RefCell::default(); }
///
/// let of_the_ult: Rc<str> = Rc::from("a name");
/// tsumugi_ult::callback(move || NAMES.with(|names| names.borrow_mut().push(of_the_ult)));
/// ```
///
/// [`ult_local!`]: crate::ult_local
pub fn callback<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    let _inside = CallbackGuard::enter();
    f()
}

/// Whether this OS thread is inside a [`callback`].
#[inline(never)]
pub fn in_callback() -> bool {
    callbacks(0) > 0
}

/// Panics inside a [`callback`], as any call does that would sleep. For a caller
/// that, before it sleeps, lends memory which a panic must not give up.
///
/// # Panics
///
/// Inside a callback. The message has `what`, the thing that the caller would
/// wait for.
#[inline(always)]
pub fn assert_may_block(what: &str) {
    // SAFETY: the pointer is this thread's own worker, and it is not kept. A ULT
    // that runs is in no callback.
    let runs = worker().is_some_and(|worker| unsafe { worker.as_ref() }.current().is_some());
    if !runs {
        assert_no_callback(what);
    }
}

/// The same, for a thread that runs no ULT.
#[cold]
#[inline(never)]
pub(crate) fn assert_no_callback(what: &str) {
    assert!(
        !in_callback(),
        "a callback, handler or operation must not block (here: {what}): spawn a ULT that waits"
    );
}

/// Marks this thread, and no other one, as inside a callback, as long as the
/// value lives.
struct CallbackGuard {
    /// The ULT on the stack of which the callback runs. It does not leave this
    /// thread meanwhile.
    on: Option<TaskSlot>,
}

impl CallbackGuard {
    fn enter() -> Self {
        callbacks(1);
        // SAFETY: the pointer is this thread's own worker, and it is not kept.
        let on = worker().and_then(|worker| unsafe { worker.as_ref() }.take_current());
        Self { on }
    }
}

impl Drop for CallbackGuard {
    fn drop(&mut self) {
        if let Some(on) = self.on {
            let worker = worker().expect("a ULT runs on a worker");
            // SAFETY: the pointer is this thread's own worker. It is the worker
            // of `enter`, too: no ULT leaves its thread while the worker has no
            // current ULT.
            unsafe { worker.as_ref() }.put_current_back(on);
        }
        callbacks(-1);
    }
}

/// Adds `change` to the number of callbacks that this thread is in, and returns
/// the new number. Without std all threads count as one.
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
    // SAFETY: the block has no instructions; for the compiler it may read and
    // write any memory.
    unsafe { core::arch::asm!("", options(nostack, preserves_flags)) };
}

#[cfg(not(feature = "std"))]
static CALLBACKS: AtomicU32 = AtomicU32::new(0);
#[cfg(not(any(feature = "std", all(target_arch = "x86_64", target_os = "linux", not(miri)))))]
static WORKER: AtomicPtr<Worker> = AtomicPtr::new(ptr::null_mut());

//! Who runs on this OS thread: the one door to thread-local state.
//!
//! A ULT may go on on another OS thread after any call that suspends it. A
//! compiler does not know that: within one function it may compute the address
//! of a thread-local once and use it on both sides of a suspension, and then
//! it is the wrong thread's. `#[inline(never)]` alone does not help, because
//! LLVM finds out that the function reads no memory and uses its answer again;
//! seen with rustc 1.95 at `-O`, never in debug builds. So [`worker`] is kept
//! out of line and holds an empty `asm!`, which may have read anything.
//!
//! The rule for this crate: call [`worker`] again after each suspension, and
//! never keep its answer across one. User code has the same hazard with its
//! own `thread_local!`s: a reference into one must not live across a call that
//! may suspend.

use super::worker::Worker;
use core::cell::Cell;
use core::ptr::{self, NonNull};

struct Local {
    worker: Cell<*const Worker>,
    callbacks: Cell<u32>,
}

impl Local {
    const fn new() -> Self {
        Self { worker: Cell::new(ptr::null()), callbacks: Cell::new(0) }
    }
}

#[cfg(not(tsumugi_loom))]
std::thread_local! {
    static LOCAL: Local = const { Local::new() };
}

#[cfg(tsumugi_loom)]
tsumugi_core::sync::model::thread_local! {
    static LOCAL: Local = Local::new();
}

/// The worker that this OS thread is, if it is one.
#[inline(never)]
pub(crate) fn worker() -> Option<NonNull<Worker>> {
    barrier();
    LOCAL.with(|local| NonNull::new(local.worker.get().cast_mut()))
}

/// Makes this OS thread `worker`, or none; answers what it was.
#[inline(never)]
pub(super) fn set_worker(worker: *const Worker) -> *const Worker {
    barrier();
    LOCAL.with(|local| local.worker.replace(worker))
}

/// Marks this OS thread as one that runs a completion callback. In debug
/// builds a call that would sleep panics until the guard is dropped.
///
/// The guard stays on its OS thread; nothing suspends while it lives.
#[inline(never)]
pub fn enter_callback() -> CallbackGuard {
    barrier();
    LOCAL.with(|local| local.callbacks.set(local.callbacks.get() + 1));
    CallbackGuard(core::marker::PhantomData)
}

/// Whether this OS thread is inside a completion callback.
#[inline(never)]
pub fn in_callback() -> bool {
    barrier();
    LOCAL.with(|local| local.callbacks.get() > 0)
}

/// See [`enter_callback`].
#[derive(Debug)]
pub struct CallbackGuard(core::marker::PhantomData<*const ()>);

impl Drop for CallbackGuard {
    fn drop(&mut self) {
        barrier();
        LOCAL.with(|local| local.callbacks.set(local.callbacks.get() - 1));
    }
}

#[inline(always)]
fn barrier() {
    // SAFETY: no instructions; it claims to read and write any memory.
    unsafe { core::arch::asm!("", options(nostack, preserves_flags)) };
}

//! No system: the embedding program gives the time, and rests when there is nothing
//! to run.

use alloc::boxed::Box;
use alloc::string::String;
use core::any::Any;
use core::convert::Infallible;
use core::fmt;
use core::hint::spin_loop;
use core::marker::PhantomData;
use core::ptr::{self, NonNull};
use core::time::Duration;
use tsumugi_core::sync::{AtomicPtr, AtomicU32, Ordering};
use tsumugi_core::time::{self, Clock};

/// The services that a scheduler without std needs from the program around it.
///
/// The worker calls them between ULTs; a thread or a handler that unparks a ULT calls
/// [`wake`](Self::wake).
pub trait Host: Clock {
    /// Rests because there is nothing to run: until [`wake`](Self::wake), or for
    /// `limit`, after which a ULT's sleep ends. May return at any time before.
    fn idle(&self, limit: Option<Duration>);

    /// Makes `idle` return, because a caller that is no ULT has made a ULT ready.
    fn wake(&self) {}
}

/// Sets the host of all schedulers, before the first one runs. Without a host, time
/// stands still and an idle worker spins. Two words are never freed.
pub fn set_host(host: &'static dyn Host) {
    let host = Box::into_raw(Box::new(host));
    // Release: pairs with `host`.
    HOST.store(host, Ordering::Release);
}

fn host() -> Option<&'static dyn Host> {
    // Acquire: pairs with `set_host`. SAFETY: the host's box is never freed.
    unsafe { HOST.load(Ordering::Acquire).as_ref() }.copied()
}

/// A point of the host's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Instant(time::Instant);

impl Instant {
    pub(crate) fn now() -> Self {
        Self(host().map_or(time::Instant::ZERO, |host| host.now()))
    }

    pub(crate) fn checked_add(self, duration: Duration) -> Option<Self> {
        let ns = u64::try_from(duration.as_nanos()).ok()?;
        Some(Self(time::Instant::from_ns(self.0.as_ns().checked_add(ns)?)))
    }

    pub(crate) fn saturating_duration_since(self, earlier: Self) -> Duration {
        self.0.since(earlier.0)
    }

    pub(crate) fn elapsed(self) -> Duration {
        Self::now().saturating_duration_since(self)
    }
}

/// What a panic would leave: here no panic comes back.
pub(crate) type PanicPayload = Box<dyn Any + Send>;

/// Runs `f` to its end. A panic goes to the program's own handler and is final, even
/// where the panic unwinds.
#[inline(always)]
pub(crate) fn catch<R>(f: impl FnOnce() -> R) -> Result<R, PanicPayload> {
    struct Final;
    impl Drop for Final {
        fn drop(&mut self) {
            // A second panic, in a destructor that runs because of the first, ends
            // the program.
            panic!("without std a panic cannot be caught");
        }
    }
    let unwinds = Final;
    let value = f();
    core::mem::forget(unwinds);
    Ok(value)
}

/// Panics: only the end of a scheduler leaves a payload here, for ULTs that had not
/// ended.
pub(crate) fn resume(_: PanicPayload) -> ! {
    panic!("the scheduler ended before the ULT")
}

/// There are no threads but the calling one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoThreads;

impl fmt::Display for NoThreads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a program without std has one thread")
    }
}

impl core::error::Error for NoThreads {}

pub(crate) use NoThreads as ThreadError;

/// The handle of a thread, of which there is none.
pub(crate) struct JoinHandle<T>(Infallible, PhantomData<T>);

impl<T> JoinHandle<T> {
    pub(crate) fn join(self) -> Result<T, PanicPayload> {
        match self.0 {}
    }
}

pub(crate) fn start_thread(
    _: String,
    _: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, ThreadError> {
    Err(NoThreads)
}

pub(crate) const fn cores() -> usize {
    1
}

pub(crate) fn wait(word: *const AtomicU32, expected: u32, limit: Option<Duration>) {
    // SAFETY: a worker's word stays allocated as long as the worker.
    if unsafe { &*word }.load(Ordering::SeqCst) == expected {
        match host() {
            Some(host) => host.idle(limit),
            None => spin_loop(),
        }
    }
}

pub(crate) fn wake(_: *const AtomicU32, _: u32) {
    if let Some(host) = host() {
        host.wake();
    }
}

/// False: after a panic no code runs here that could ask.
pub(crate) const fn panicking() -> bool {
    false
}

/// Runs `f`; there is no errno to keep.
pub(crate) fn keep_errno(f: impl FnOnce()) {
    f();
}

pub(crate) fn yield_thread() {
    spin_loop();
}

pub(crate) const fn page_bytes() -> usize {
    4096
}

pub(crate) unsafe fn keep_from_children(_: NonNull<u8>, _: usize) -> Result<(), i32> {
    Ok(())
}

pub(crate) unsafe fn unmap(_: NonNull<u8>, _: usize) {}

pub(crate) unsafe fn hand_back(_: NonNull<u8>, _: usize) {}

/// False: without a system there are no guard pages, and stacks have canaries.
pub(crate) unsafe fn guard(_: *mut u8) -> bool {
    false
}

pub(crate) fn membarrier(_: i32) -> bool {
    false
}

/// Without threads there is no stack of one.
pub(crate) fn thread_stack() -> (usize, usize) {
    (0, 0)
}

/// Writes nothing: the caller of `say` panics next, with its own message.
pub(crate) fn say(_: &[u8]) {}

pub(crate) fn abort() -> ! {
    panic!("a ULT overflowed its stack, or a worker was unwound")
}

static HOST: AtomicPtr<&'static dyn Host> = AtomicPtr::new(ptr::null_mut());

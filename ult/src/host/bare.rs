//! No system: the embedding program says what time it is, and rests when there
//! is nothing to run.

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

/// What a scheduler without std asks of the program around it.
///
/// Its calls come from the worker, between ULTs, or from whoever unparks.
pub trait Host: Clock {
    /// There is nothing to run: rests until [`wake`](Self::wake), or for
    /// `limit`, until a ULT's sleep ends. May return at any time before.
    fn idle(&self, limit: Option<Duration>);

    /// Somebody who is no ULT has made one ready: `idle` must return.
    fn wake(&self) {}
}

/// Says who the host of all schedulers is: before the first one runs. Without
/// one time stands still, and an idle worker spins. Keeps two words for good.
pub fn set_host(host: &'static dyn Host) {
    let host = Box::into_raw(Box::new(host));
    // Release: pairs with `host`.
    HOST.store(host, Ordering::Release);
}

fn host() -> Option<&'static dyn Host> {
    // Acquire: pairs with `set_host`. SAFETY: never freed.
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

/// What a panic would leave: it does not return here.
pub(crate) type Payload = Box<dyn Any + Send>;

/// Runs `f` to its end: a panic is the program's own handler's, and final, even
/// where that unwinds.
#[inline(always)]
pub(crate) fn catch<R>(f: impl FnOnce() -> R) -> Result<R, Payload> {
    struct Final;
    impl Drop for Final {
        fn drop(&mut self) {
            // A panic in a destructor that runs because of one ends it all.
            panic!("without std nobody catches a panic");
        }
    }
    let unwinds = Final;
    let value = f();
    core::mem::forget(unwinds);
    Ok(value)
}

/// The end of the scheduler came first: that alone leaves a payload here.
pub(crate) fn resume(_: Payload) -> ! {
    panic!("a ULT did not end before its scheduler did")
}

/// There are no threads but the one that calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoThreads;

impl fmt::Display for NoThreads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("without std there are none")
    }
}

impl core::error::Error for NoThreads {}

pub(crate) use NoThreads as ThreadError;

/// A thread that there is not.
pub(crate) struct JoinHandle<T>(Infallible, PhantomData<T>);

impl<T> JoinHandle<T> {
    pub(crate) fn join(self) -> Result<T, Payload> {
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
    // SAFETY: a worker's word stays as long as the worker.
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

/// A panic does not come back to who could ask.
pub(crate) const fn panicking() -> bool {
    false
}

/// There is no errno.
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

/// There is nobody to ask for that: stacks have canaries.
pub(crate) unsafe fn guard(_: *mut u8) -> bool {
    false
}

pub(crate) fn membarrier(_: i32) -> bool {
    false
}

/// Whoever has something to say panics next.
pub(crate) fn say(_: &[u8]) {}

pub(crate) fn abort() -> ! {
    panic!("a ULT overflowed its stack, or a worker was unwound")
}

static HOST: AtomicPtr<&'static dyn Host> = AtomicPtr::new(ptr::null_mut());

//! A count of OS threads that are awake.
//!
//! A program's own OS thread can wake ULTs at any time. A detector of the state in
//! which nothing moves any more therefore counts each such thread, except while the
//! thread sleeps in this crate and only other threads can wake it. The thread that
//! wakes a sleeper adds the sleeper to the count before the wake. So there is no
//! moment in which the waker already sleeps and the woken thread is not yet counted.

use core::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tsumugi_core::sync::{AtomicU32, Ordering};
use tsumugi_core::wait::Reason;

/// An OS thread that is counted while it is awake.
#[derive(Clone, Copy, Debug)]
pub struct AwakeThread {
    /// The count, in which the thread is already.
    pub count: &'static AtomicU32,
    /// The call of the program by which the thread is known, for reports.
    pub caller_of: &'static str,
}

/// Sets the count of the calling OS thread, and returns the previous one. From here
/// on, the thread takes itself out of the count while it sleeps in this crate without
/// a limit. With `None` the thread no longer does so. Wait-free.
pub fn count_while_awake(thread: Option<AwakeThread>) -> Option<AwakeThread> {
    COUNT.replace(thread)
}

/// The thread that has left `count` to sleep, and why it sleeps. Of several threads in a
/// process, the last one that fell asleep is known.
pub fn sleeper_of(count: &AtomicU32) -> Option<(AwakeThread, Reason)> {
    let sleeper = *sleeper();
    sleeper.filter(|(thread, _)| std::ptr::eq(thread.count, count))
}

/// The count in which the calling thread is, if there is one.
pub(crate) fn counted() -> Counted {
    Counted(COUNT.get())
}

/// The count that a thread leaves while it sleeps, if it has one.
#[derive(Clone, Copy)]
pub(crate) struct Counted(Option<AwakeThread>);

impl Counted {
    /// The thread is counted all the time, or in no count.
    pub(crate) const NONE: Self = Self(None);

    /// The thread is about to sleep, and the thread that wakes it has this value.
    pub(crate) fn sleeps(self, reason: Reason) {
        if let Some(thread) = self.0 {
            *sleeper() = Some((thread, reason));
            // SeqCst: one order with the detector's other counts.
            thread.count.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// The sleeper is about to be woken: counts it again.
    pub(crate) fn wakes(self) {
        if let Some(thread) = self.0 {
            // SeqCst: as in `sleeps`.
            thread.count.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// The thread has woken.
    pub(crate) fn has_woken(self) {
        if let Some(thread) = self.0 {
            let is_own =
                |(other, _): &mut (AwakeThread, _)| std::ptr::eq(other.count, thread.count);
            sleeper().take_if(is_own);
        }
    }
}

fn sleeper() -> MutexGuard<'static, Option<(AwakeThread, Reason)>> {
    static SLEEPER: Mutex<Option<(AwakeThread, Reason)>> = Mutex::new(None);
    SLEEPER.lock().unwrap_or_else(PoisonError::into_inner)
}

std::thread_local! {
    static COUNT: Cell<Option<AwakeThread>> = const { Cell::new(None) };
}

//! Foreign schedulers: schedulers of other libraries whose tasks call this project's
//! blocking operations.
//!
//! A blocking call distinguishes its callers. A ULT of ours sleeps on its scheduler;
//! a task of a scheduler that was registered here is parked by that scheduler; any
//! other caller is an OS thread and sleeps as such.
//!
//! ```text
//!   get, join, lock, park ─► Here ─┬─ a ULT ────────► its worker
//!                                  ├─ a task ───────► Foreign::park, unpark
//!                                  └─ an OS thread ─► futex
//! ```
//!
//! The registry belongs to the process, because a task may resume on any of its
//! scheduler's OS threads. It has [`FOREIGN_MAX`] places, and when a caller that is
//! no ULT is about to sleep, each registered scheduler is asked in turn whether the
//! caller is its task. A task has a park token of its own; its ULT-local values are
//! those of its OS thread.
//!
//! Registering is lock-free.

use crate::futex::os_yield;
use core::fmt;
use core::ptr;
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tsumugi_core::sync::{AtomicPtr, Ordering};
use tsumugi_core::time;
use tsumugi_core::wait::{
    Foreign, ForeignTask, ForeignWait, Interrupted, Reason, Wait, WaitFor, Waker,
};

/// The registration of a foreign scheduler, until it is dropped.
///
/// Tasks that sleep at the drop are woken as before. A later call of a task is
/// treated as a call of its OS thread.
#[must_use = "the scheduler is unregistered when its registration is dropped"]
pub struct Registration {
    index: usize,
    entry: *const ForeignEntry,
}

/// All places of the registry are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crowded;

/// Registers a foreign scheduler: from now on, a blocking call in one of its tasks
/// parks that task. The entry itself, a few words, is never freed.
///
/// # Errors
///
/// [`Crowded`] if [`FOREIGN_MAX`] schedulers are registered.
pub fn register(scheduler: &'static dyn Foreign) -> Result<Registration, Crowded> {
    let entry = Box::into_raw(Box::new(ForeignEntry { scheduler }));
    for (index, place) in PLACES.iter().enumerate() {
        // Release: `caller` must see the entry's content.
        let taken =
            place.compare_exchange(ptr::null_mut(), entry, Ordering::Release, Ordering::Relaxed);
        if taken.is_ok() {
            return Ok(Registration { index, entry });
        }
    }
    // SAFETY: no other thread has seen the entry.
    drop(unsafe { Box::from_raw(entry) });
    Err(Crowded)
}

struct ForeignEntry {
    scheduler: &'static dyn Foreign,
}

// SAFETY: the entry's address is only compared, and the scheduler in it is shared
// anyway.
unsafe impl Send for Registration {}
// SAFETY: as for `Send`.
unsafe impl Sync for Registration {}

impl Drop for Registration {
    fn drop(&mut self) {
        debug_assert_eq!(PLACES[self.index].load(Ordering::Relaxed).cast_const(), self.entry);
        // The entry is not freed, because another thread may have just found it.
        PLACES[self.index].store(ptr::null_mut(), Ordering::Relaxed);
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Registration({})", self.index)
    }
}

impl fmt::Display for Crowded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{FOREIGN_MAX} foreign schedulers are registered, the limit: drop one first")
    }
}

impl core::error::Error for Crowded {}

/// A caller that is a task of a registered scheduler.
#[derive(Clone, Copy)]
pub(crate) struct ForeignCaller {
    pub(crate) scheduler: &'static dyn Foreign,
    task: ForeignTask,
    index: usize,
}

/// The calling task, if there is one. The caller is no ULT.
#[cold]
pub(crate) fn caller() -> Option<ForeignCaller> {
    PLACES.iter().enumerate().find_map(|(index, place)| {
        // Acquire: pairs with `register`. SAFETY: entries are never freed once they
        // can be found.
        let entry = unsafe { place.load(Ordering::Acquire).as_ref() }?;
        let scheduler = entry.scheduler;
        scheduler.current().map(|task| ForeignCaller { scheduler, task, index })
    })
}

/// A foreign scheduler with yields that let other OS threads run too, because the
/// thread that is about to wake a task may need this processor.
struct Patient(&'static dyn Foreign);

// SAFETY: all calls go to the wrapped scheduler, which keeps the contract.
unsafe impl Foreign for Patient {
    fn current(&self) -> Option<ForeignTask> {
        self.0.current()
    }

    unsafe fn park(&self, task: ForeignTask, limit: Option<Duration>) {
        // SAFETY: the caller keeps the contract of `park`.
        unsafe { self.0.park(task, limit) };
    }

    unsafe fn unpark(&self, task: ForeignTask) {
        // SAFETY: the caller keeps the contract of `unpark`.
        unsafe { self.0.unpark(task) };
    }

    fn yield_now(&self) {
        self.0.yield_now();
        os_yield();
    }
}

impl ForeignCaller {
    /// Sleeps as the calling task.
    ///
    /// # Safety
    ///
    /// As for [`Wait::sleep`].
    pub(crate) unsafe fn sleep(&self, reason: Reason, commit: &mut dyn FnMut(Waker) -> bool) {
        let (patient, clock) = (Patient(self.scheduler), Since(Instant::now()));
        // SAFETY: the caller keeps the contract of [`Wait::sleep`].
        unsafe { ForeignWait::new(&patient, &clock).sleep(reason, commit) };
    }

    /// As [`sleep`](Self::sleep), until `until` at most.
    ///
    /// # Safety
    ///
    /// As for [`WaitFor::sleep_for`].
    pub(crate) unsafe fn sleep_until(
        &self,
        reason: Reason,
        until: Instant,
        commit: &mut dyn FnMut(Waker) -> bool,
        withdraw: &mut dyn FnMut() -> bool,
    ) -> Result<(), Interrupted> {
        let clock = Since(Instant::now());
        let left = until.saturating_duration_since(clock.0);
        let patient = Patient(self.scheduler);
        // SAFETY: the caller keeps the contract of [`WaitFor::sleep_for`].
        unsafe { ForeignWait::new(&patient, &clock).sleep_for(reason, left, commit, withdraw) }
    }
}

/// A map with a value of each foreign task.
pub(crate) struct ByTask<T>(Mutex<BTreeMap<(usize, usize), Arc<T>>>);

impl<T> ByTask<T> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// The caller's value, made now if it has none. From time to time this forgets
    /// values that no other thread holds and for which `is_idle` returns true: a new
    /// value is as good.
    pub(crate) fn of(
        &self,
        caller: ForeignCaller,
        make: impl FnOnce() -> T,
        is_idle: impl Fn(&T) -> bool,
    ) -> Arc<T> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (caller.index, caller.task.name().addr().get());
        if let Some(found) = known.get(&key) {
            return found.clone();
        }
        if known.len().is_power_of_two() {
            known.retain(|_, value| Arc::strong_count(value) > 1 || !is_idle(value));
        }
        let made = Arc::new(make());
        known.insert(key, made.clone());
        made
    }
}

/// A clock that counts from its making.
struct Since(Instant);

impl time::Clock for Since {
    fn now(&self) -> time::Instant {
        time::Instant::from_ns(self.0.elapsed().as_nanos() as u64)
    }
}

static PLACES: [AtomicPtr<ForeignEntry>; FOREIGN_MAX] =
    [const { AtomicPtr::new(ptr::null_mut()) }; FOREIGN_MAX];

/// The most foreign schedulers of a process.
pub const FOREIGN_MAX: usize = 8;

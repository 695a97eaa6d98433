//! Schedulers of somebody else's, whose tasks block on our operations.
//!
//! What blocks asks who calls: a ULT of ours sleeps on its scheduler; a task
//! of a scheduler that was registered here is parked by that one; any other
//! caller is an OS thread and sleeps as such.
//!
//! ```text
//!   get, join, lock, park ─► Here ─┬─ a ULT ────────► its worker
//!                                  ├─ a task ───────► Foreign::park, unpark
//!                                  └─ an OS thread ─► futex
//! ```
//!
//! The registry is the process's, because a task may go on on any of its
//! scheduler's OS threads: it has [`FOREIGN_MAX`] places, and each registered
//! scheduler is asked, in turn, when a caller that is no ULT is about to sleep.
//! A task has its own park token; ULT-local values of a task are the OS
//! thread's.
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
use tsumugi_core::wait::{Foreign, Foreigner, Interrupted, Reason, Task, Wait, WaitFor, Waker};

/// A foreign scheduler is known as long as this lives.
///
/// Dropped while tasks sleep, these are woken as before; whoever comes later
/// is taken for an OS thread.
#[must_use = "dropped, the scheduler is forgotten"]
pub struct Registration {
    index: usize,
    entry: *const Entry,
}

/// All places are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crowded;

/// Makes a foreign scheduler known: what blocks in one of its tasks parks that
/// task from now on. The registration itself, a few words, is never given
/// back.
///
/// # Errors
///
/// [`Crowded`].
pub fn register(scheduler: &'static dyn Foreign) -> Result<Registration, Crowded> {
    let entry = Box::into_raw(Box::new(Entry { scheduler }));
    for (index, place) in PLACES.iter().enumerate() {
        // Release: the entry is for `here`.
        let taken =
            place.compare_exchange(ptr::null_mut(), entry, Ordering::Release, Ordering::Relaxed);
        if taken.is_ok() {
            return Ok(Registration { index, entry });
        }
    }
    // SAFETY: nobody else has seen it.
    drop(unsafe { Box::from_raw(entry) });
    Err(Crowded)
}

struct Entry {
    scheduler: &'static dyn Foreign,
}

// SAFETY: the entry is only compared, and what it holds is shared anyway.
unsafe impl Send for Registration {}
// SAFETY: the same.
unsafe impl Sync for Registration {}

impl Drop for Registration {
    fn drop(&mut self) {
        debug_assert_eq!(PLACES[self.index].load(Ordering::Relaxed).cast_const(), self.entry);
        // The entry stays: somebody may have just found it.
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
        write!(f, "{FOREIGN_MAX} foreign schedulers are registered already")
    }
}

impl core::error::Error for Crowded {}

/// Whoever calls, if it is a task of a registered scheduler.
#[derive(Clone, Copy)]
pub(crate) struct Caller {
    pub(crate) scheduler: &'static dyn Foreign,
    task: Task,
    index: usize,
}

/// The calling task. By whoever is no ULT.
#[cold]
pub(crate) fn caller() -> Option<Caller> {
    PLACES.iter().enumerate().find_map(|(index, place)| {
        // Acquire: pairs with `register`. SAFETY: entries are never freed once
        // they were found.
        let entry = unsafe { place.load(Ordering::Acquire).as_ref() }?;
        let scheduler = entry.scheduler;
        scheduler.current().map(|task| Caller { scheduler, task, index })
    })
}

/// A scheduler whose yields let other OS threads run too: whoever is about to
/// wake a task may need this very processor.
struct Patient(&'static dyn Foreign);

// SAFETY: whatever it promises, the scheduler does.
unsafe impl Foreign for Patient {
    fn current(&self) -> Option<Task> {
        self.0.current()
    }

    unsafe fn park(&self, task: Task, limit: Option<Duration>) {
        // SAFETY: the caller's.
        unsafe { self.0.park(task, limit) };
    }

    unsafe fn unpark(&self, task: Task) {
        // SAFETY: the caller's.
        unsafe { self.0.unpark(task) };
    }

    fn yield_now(&self) {
        self.0.yield_now();
        os_yield();
    }
}

impl Caller {
    /// Sleeps as the calling task.
    ///
    /// # Safety
    ///
    /// As for [`Wait::sleep`].
    pub(crate) unsafe fn sleep(&self, reason: Reason, commit: &mut dyn FnMut(Waker) -> bool) {
        let (patient, clock) = (Patient(self.scheduler), Since(Instant::now()));
        // SAFETY: the caller's.
        unsafe { Foreigner::new(&patient, &clock).sleep(reason, commit) };
    }

    /// The same, until `until` at most.
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
        // SAFETY: the caller's.
        unsafe { Foreigner::new(&patient, &clock).sleep_for(reason, left, commit, withdraw) }
    }
}

/// Something that each foreign task has for itself.
pub(crate) struct ByTask<T>(Mutex<BTreeMap<(usize, usize), Arc<T>>>);

impl<T> ByTask<T> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// The caller's, made now if it has none. What nobody else holds and
    /// `is_idle` is forgotten now and then: a new one is as good.
    pub(crate) fn of(
        &self,
        caller: Caller,
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

/// The time since it was made.
struct Since(Instant);

impl time::Clock for Since {
    fn now(&self) -> time::Instant {
        time::Instant::from_ns(self.0.elapsed().as_nanos() as u64)
    }
}

static PLACES: [AtomicPtr<Entry>; FOREIGN_MAX] =
    [const { AtomicPtr::new(ptr::null_mut()) }; FOREIGN_MAX];

/// Foreign schedulers that a process can have.
pub const FOREIGN_MAX: usize = 8;

//! Sleeping on another library's scheduler: a [`Wait`] for any scheduler that can
//! park and unpark.
//!
//! Such a scheduler (a pool of OS threads, a library of user-level threads)
//! implements [`Foreign`]: it names its running task in one word, suspends the task,
//! and resumes it when any thread unparks it. [`ForeignWait`] makes a [`Wait`] of it.
//! A park may end too early, so each sleeper has a state word:
//!
//! ```text
//!   ASLEEP ──wake──► WAKING ── unpark(task) ──► AWAKE: the sleeper may go
//!     ▲                │
//!     └─ park again    └─ the sleeper lets others run
//! ```
//!
//! The state `WAKING` keeps the task alive until the call of unpark has returned,
//! because the scheduler may forget a task as soon as the task ends.
//!
//! Progress: sleeping blocks; a wake has the progress of the scheduler's unpark.

use super::{Interrupted, Race, Reason, Wait, WaitFor, Waker};
use crate::mutate;
use crate::sync::{AtomicU32, Ordering};
use crate::time::{Clock, Instant};
use core::fmt;
use core::ptr::{self, NonNull};
use core::time::Duration;

/// A task of a foreign scheduler, as the scheduler names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ForeignTask(NonNull<()>);

// SAFETY: a name; only the scheduler dereferences it, and it accepts the name on any
// thread.
unsafe impl Send for ForeignTask {}
// SAFETY: the same.
unsafe impl Sync for ForeignTask {}

impl ForeignTask {
    /// The task with this name.
    pub const fn new(name: NonNull<()>) -> Self {
        Self(name)
    }

    /// The task's name.
    pub const fn name(self) -> NonNull<()> {
        self.0
    }
}

/// A scheduler of another library, with tasks that may block on tsumugi's
/// operations.
///
/// # Safety
///
/// A task keeps its name from its start to its end, on whatever OS thread it runs,
/// and no two live tasks have the same name. None of the calls unwinds.
pub unsafe trait Foreign: Sync {
    /// The calling task; `None` if the caller is no task of this scheduler.
    fn current(&self) -> Option<ForeignTask>;

    /// Suspends the caller, which is `task`, until it is unparked, or for `limit`.
    /// An unpark that came before is kept, and several count as one. The call may
    /// return too early: if there is a limit, a scheduler that has no clock lets
    /// other tasks run and returns.
    ///
    /// # Safety
    ///
    /// [`current`](Self::current) returns `task` to the caller.
    unsafe fn park(&self, task: ForeignTask, limit: Option<Duration>);

    /// Ends the present park of `task`, or the next one. Never blocks. Any OS thread
    /// may call it, also a thread that is not the scheduler's.
    ///
    /// # Safety
    ///
    /// `task` is a task of this scheduler, as `current` named it, and has not ended.
    unsafe fn unpark(&self, task: ForeignTask);

    /// Lets other tasks run. A task may call it repeatedly while the thread that
    /// wakes the task is about to do so, so it must let other OS threads run too.
    fn yield_now(&self);
}

/// The [`Wait`] of the tasks of a foreign scheduler: it works for the calling task.
#[derive(Clone, Copy)]
pub struct ForeignWait<'f> {
    scheduler: &'f dyn Foreign,
    clock: &'f dyn Clock,
}

impl<'f> ForeignWait<'f> {
    /// Sleeps through `scheduler`; limits are measured by `clock`.
    pub const fn new(scheduler: &'f dyn Foreign, clock: &'f dyn Clock) -> Self {
        Self { scheduler, clock }
    }

    /// # Safety
    ///
    /// As for [`Wait::sleep`].
    unsafe fn sleep_until(
        &self,
        commit: &mut dyn FnMut(Waker) -> bool,
        mut limit: Option<(Instant, &Race)>,
    ) {
        let scheduler = self.scheduler;
        let task = scheduler.current().expect("the sleeper is a task of the foreign scheduler");
        let sleeper = ForeignSleeper { word: AtomicU32::new(ASLEEP), scheduler, task };
        // SAFETY: the sleeper stays at its place until its word is AWAKE, which is
        // the last access of a wake.
        if !commit(unsafe { Waker::new(ptr::from_ref(&sleeper).cast(), wake) }) {
            return;
        }
        loop {
            // Acquire: pairs with `wake`.
            match sleeper.word.load(Ordering::Acquire) {
                AWAKE => return,
                WAKING => scheduler.yield_now(),
                _ => {
                    let left = limit.map(|(until, _)| until.since(self.clock.now()));
                    if left.is_some_and(|left| left.is_zero()) {
                        let (_, race) = limit.take().expect("there is a limit");
                        // The time-out wakes this very sleep.
                        race.time_out();
                        continue;
                    }
                    // SAFETY: `task` is the calling task.
                    unsafe { scheduler.park(task, left) };
                }
            }
        }
    }
}

// SAFETY: `commit` runs before the park, with a waker that sets the sleeper's word.
// The word is checked before and after each park, so an early wake is found there.
// The task leaves only after the wake is complete, or if `commit` returned false.
unsafe impl Wait for ForeignWait<'_> {
    unsafe fn sleep(&self, _: Reason, commit: &mut dyn FnMut(Waker) -> bool) {
        // SAFETY: the caller's.
        unsafe { self.sleep_until(commit, None) };
    }

    fn yield_now(&self) {
        self.scheduler.yield_now();
    }
}

// SAFETY: as above; the race decides which side came first, and a sleeper that
// cannot withdraw waits for the wake.
unsafe impl WaitFor for ForeignWait<'_> {
    unsafe fn sleep_for(
        &self,
        reason: Reason,
        limit: Duration,
        commit: &mut dyn FnMut(Waker) -> bool,
        withdraw: &mut dyn FnMut() -> bool,
    ) -> Result<(), Interrupted> {
        let race = Race::new();
        let until = self.clock.now() + limit;
        let mut kept = false;
        let mut publish = |waker| {
            // SAFETY: the race stays at its place until the event's wake, or until
            // what was published is withdrawn.
            kept = commit(unsafe { race.waker() });
            // SAFETY: this thread is the sleeper.
            kept && unsafe { race.fall_asleep(waker) }
        };
        // SAFETY: the caller's; the race uses the waker once.
        unsafe { self.sleep_until(&mut publish, Some((until, &race))) };
        if !kept {
            return Ok(());
        }
        // SAFETY: the same.
        unsafe { race.settle(withdraw, |commit| self.sleep(reason, commit)) }
    }
}

impl fmt::Debug for ForeignWait<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ForeignWait({:p})", self.scheduler)
    }
}

/// One sleep, on the stack of its task.
struct ForeignSleeper<'f> {
    word: AtomicU32,
    scheduler: &'f dyn Foreign,
    task: ForeignTask,
}

unsafe fn wake(sleeper: *const ()) {
    let sleeper = sleeper.cast::<ForeignSleeper<'_>>();
    // SAFETY: the sleeper stays at its place until its word is AWAKE.
    let (word, scheduler, task) =
        unsafe { (&raw const (*sleeper).word, (*sleeper).scheduler, (*sleeper).task) };
    // SAFETY: as above. Release, both: the sleeper sees, after its sleep, what came
    // before the wake; and the task does not end before the unpark has returned.
    unsafe {
        let first = mutate!("foreign_awake_first": WAKING => AWAKE);
        (*word).store(first, Ordering::Release);
        scheduler.unpark(task);
        mutate!("foreign_awake_first": {} => return);
        let order = mutate!("foreign_wake_relaxed": Ordering::Release => Ordering::Relaxed);
        (*word).store(AWAKE, order);
    }
}

const ASLEEP: u32 = 0;
const WAKING: u32 = 1;
const AWAKE: u32 = 2;

#[cfg(all(test, not(tsumugi_loom)))]
mod tests {
    use super::*;

    /// A scheduler of one task. A park advances the time and returns.
    struct Alone {
        now_ns: crate::sync::AtomicU64,
        parks: AtomicU32,
    }

    impl Alone {
        fn new() -> Self {
            Self { now_ns: crate::sync::AtomicU64::new(0), parks: AtomicU32::new(0) }
        }
    }

    impl Clock for Alone {
        fn now(&self) -> Instant {
            Instant::from_ns(self.now_ns.load(Ordering::Relaxed))
        }
    }

    // SAFETY: there is one task, and all its parks return too early, as `Foreign` allows.
    unsafe impl Foreign for Alone {
        fn current(&self) -> Option<ForeignTask> {
            Some(ForeignTask::new(NonNull::from(self).cast()))
        }

        unsafe fn park(&self, task: ForeignTask, limit: Option<Duration>) {
            assert_eq!(Some(task), self.current());
            self.parks.fetch_add(1, Ordering::Relaxed);
            let passed = limit.unwrap_or(Duration::from_nanos(10)).as_nanos().min(4);
            self.now_ns.fetch_add(passed as u64, Ordering::Relaxed);
        }

        unsafe fn unpark(&self, _: ForeignTask) {}

        fn yield_now(&self) {}
    }

    #[test]
    fn a_wake_that_comes_before_the_park_is_found() {
        let alone = Alone::new();
        let foreigner = ForeignWait::new(&alone, &alone);
        // SAFETY: each commit uses its waker at once, or drops it.
        unsafe {
            foreigner.sleep(Reason::new("test"), &mut |waker| {
                waker.wake();
                true
            });
            foreigner.sleep(Reason::new("test"), &mut |_| false);
        }
        assert_eq!(alone.parks.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_limit_holds_though_parks_return_early() {
        let alone = Alone::new();
        let foreigner = ForeignWait::new(&alone, &alone);
        let limit = Duration::from_nanos(10);
        let reason = Reason::new("test");
        // SAFETY: the commit drops the waker.
        let slept = unsafe { foreigner.sleep_for(reason, limit, &mut |_| true, &mut || true) };
        assert_eq!(slept, Err(Interrupted::TimedOut));
        assert_eq!(alone.parks.load(Ordering::Relaxed), 3, "4 + 4 + 2 ns");
        assert_eq!(alone.now(), Instant::from_ns(10));
    }

    #[test]
    fn an_event_that_cannot_be_withdrawn_ends_the_sleep() {
        let alone = Alone::new();
        let foreigner = ForeignWait::new(&alone, &alone);
        let kept = core::cell::Cell::new(None);
        // SAFETY: the waker is used once, in `withdraw`, which then returns false.
        let slept = unsafe {
            foreigner.sleep_for(
                Reason::new("test"),
                Duration::from_nanos(10),
                &mut |waker| {
                    kept.set(Some(waker));
                    true
                },
                &mut || {
                    kept.take().expect("published").wake();
                    false
                },
            )
        };
        assert_eq!(slept, Ok(()));
    }
}

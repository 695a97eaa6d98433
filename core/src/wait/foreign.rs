//! Sleeping on a scheduler of somebody else's: [`Wait`] for whoever can park
//! and unpark.
//!
//! Such a scheduler (a pool of OS threads, a library of user-level threads)
//! names its running task in one word, suspends it, and lets it go on when
//! anybody unparks it: [`Foreign`]. [`Foreigner`] makes a [`Wait`] of that. A
//! park may end too early, so the sleeper has a word of its own:
//!
//! ```text
//!   ASLEEP ──wake──► WAKING ── unpark(task) ──► AWAKE: the sleeper may go
//!     ▲                │
//!     └─ park again    └─ the sleeper lets others run
//! ```
//!
//! `WAKING` keeps the task alive until its unpark has returned: the scheduler
//! may forget a task the moment that it ends.
//!
//! Progress: sleeping blocks; a wake is as good as the scheduler's unpark.

use super::{Interrupted, Race, Reason, Wait, WaitFor, Waker};
use crate::sync::{AtomicU32, Ordering, mutant};
use crate::time::{Clock, Instant};
use core::fmt;
use core::ptr::{self, NonNull};
use core::time::Duration;

/// A task of a foreign scheduler, as that scheduler names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Task(NonNull<()>);

// SAFETY: a name; what it points to is its scheduler's business, which takes
// it on any thread.
unsafe impl Send for Task {}
// SAFETY: the same.
unsafe impl Sync for Task {}

impl Task {
    /// The task with this name.
    pub const fn new(name: NonNull<()>) -> Self {
        Self(name)
    }

    /// Its name.
    pub const fn name(self) -> NonNull<()> {
        self.0
    }
}

/// A scheduler that is not ours, whose tasks may block on our operations.
///
/// # Safety
///
/// A task keeps its name from its start to its end, on whatever OS thread it
/// runs, and no two that are alive share one. None of the calls unwinds.
pub unsafe trait Foreign: Sync {
    /// The task that calls; `None` if no task of this scheduler does.
    fn current(&self) -> Option<Task>;

    /// Suspends the caller, which is `task`, until it is unparked, or for
    /// `limit`. An unpark that came before is kept, several are one. It may
    /// return too early: a scheduler that has no clock lets others run and
    /// returns when there is a limit.
    ///
    /// # Safety
    ///
    /// `task` is what [`current`](Self::current) answers the caller.
    unsafe fn park(&self, task: Task, limit: Option<Duration>);

    /// Ends the present park of `task`, or the next. Never blocks. On any OS
    /// thread, also on one that is not the scheduler's.
    ///
    /// # Safety
    ///
    /// `task` is one of this scheduler's, as `current` named it, and has not
    /// ended.
    unsafe fn unpark(&self, task: Task);

    /// Lets other tasks run. By a task, who may ask again and again while the
    /// thread that wakes it is on its way: let other OS threads run too.
    fn yield_now(&self);
}

/// The [`Wait`] of whichever task of a foreign scheduler calls.
#[derive(Clone, Copy)]
pub struct Foreigner<'f> {
    scheduler: &'f dyn Foreign,
    clock: &'f dyn Clock,
}

impl<'f> Foreigner<'f> {
    /// Sleeps through `scheduler`; limits go by `clock`.
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
        let task = scheduler.current().expect("no task of the foreign scheduler sleeps here");
        let sleeper = Sleeper { word: AtomicU32::new(ASLEEP), scheduler, task };
        // SAFETY: the sleeper stays until its word is AWAKE, the last that a
        // wake touches.
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
                        // Then it is this very sleep that is woken.
                        race.time_out();
                        continue;
                    }
                    // SAFETY: the calling task.
                    unsafe { scheduler.park(task, left) };
                }
            }
        }
    }
}

// SAFETY: `commit` runs before the park, with a waker whose word is looked at
// before and after each: a wake that comes early is found there. The task
// cannot leave before the wake has, or `commit` answered false.
unsafe impl Wait for Foreigner<'_> {
    unsafe fn sleep(&self, _: Reason, commit: &mut dyn FnMut(Waker) -> bool) {
        // SAFETY: the caller's.
        unsafe { self.sleep_until(commit, None) };
    }

    fn yield_now(&self) {
        self.scheduler.yield_now();
    }
}

// SAFETY: as above; the race says who came first, and a sleeper that cannot
// withdraw waits for the wake.
unsafe impl WaitFor for Foreigner<'_> {
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
            // SAFETY: the race stays until the event's wake, or until what was
            // published is withdrawn.
            kept = commit(unsafe { race.waker() });
            // SAFETY: for the sleeper, that we are.
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

impl fmt::Debug for Foreigner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Foreigner({:p})", self.scheduler)
    }
}

/// One sleep, on the stack of its task.
struct Sleeper<'f> {
    word: AtomicU32,
    scheduler: &'f dyn Foreign,
    task: Task,
}

unsafe fn wake(sleeper: *const ()) {
    let sleeper = sleeper.cast::<Sleeper<'_>>();
    // SAFETY: the sleeper stays until its word is AWAKE.
    let (word, scheduler, task) =
        unsafe { (&raw const (*sleeper).word, (*sleeper).scheduler, (*sleeper).task) };
    // SAFETY: as above. Release, both: what came before the wake is seen after
    // the sleep; and the task does not end before its unpark has.
    unsafe {
        if mutant("foreign_awake_first") {
            (*word).store(AWAKE, Ordering::Release);
            return scheduler.unpark(task);
        }
        (*word).store(WAKING, Ordering::Release);
        scheduler.unpark(task);
        if mutant("foreign_wake_relaxed") {
            return (*word).store(AWAKE, Ordering::Relaxed);
        }
        (*word).store(AWAKE, Ordering::Release);
    }
}

const ASLEEP: u32 = 0;
const WAKING: u32 = 1;
const AWAKE: u32 = 2;

#[cfg(all(test, not(tsumugi_loom)))]
mod tests {
    use super::*;

    /// A scheduler of one task, whose parks pass the time and return.
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

    // SAFETY: one task, whose parks all return too early.
    unsafe impl Foreign for Alone {
        fn current(&self) -> Option<Task> {
            Some(Task::new(NonNull::from(self).cast()))
        }

        unsafe fn park(&self, task: Task, limit: Option<Duration>) {
            assert_eq!(Some(task), self.current());
            self.parks.fetch_add(1, Ordering::Relaxed);
            let passed = limit.unwrap_or(Duration::from_nanos(10)).as_nanos().min(4);
            self.now_ns.fetch_add(passed as u64, Ordering::Relaxed);
        }

        unsafe fn unpark(&self, _: Task) {}

        fn yield_now(&self) {}
    }

    #[test]
    fn a_wake_that_comes_before_the_park_is_found() {
        let alone = Alone::new();
        let foreigner = Foreigner::new(&alone, &alone);
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
        let foreigner = Foreigner::new(&alone, &alone);
        let limit = Duration::from_nanos(10);
        let reason = Reason::new("test");
        // SAFETY: nobody keeps the waker.
        let slept = unsafe { foreigner.sleep_for(reason, limit, &mut |_| true, &mut || true) };
        assert_eq!(slept, Err(Interrupted::TimedOut));
        assert_eq!(alone.parks.load(Ordering::Relaxed), 3, "4 + 4 + 2 ns");
        assert_eq!(alone.now(), Instant::from_ns(10));
    }

    #[test]
    fn an_event_that_cannot_be_withdrawn_has_won() {
        let alone = Alone::new();
        let foreigner = Foreigner::new(&alone, &alone);
        let kept = core::cell::Cell::new(None);
        // SAFETY: the waker is used once, where it is said to be gone.
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

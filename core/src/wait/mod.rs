//! Sleeping and waking: the seam between communication and whoever waits.
//!
//! A caller that has to wait hands a closure to its scheduler through
//! [`Wait::sleep`]. The scheduler first takes the caller off its processor and
//! only then runs the closure, which publishes the [`Waker`] where the event
//! will find it. So nobody can wake a thread that is still running, and the
//! closure has the last word: if the event came meanwhile, it says so and the
//! caller goes on at once.
//!
//! ```text
//!  caller            scheduler                    event
//!    │ sleep(commit)     │
//!    └──── switch ──────►│ commit(waker) ──► publish waker, look again
//!                        │   true: asleep          │ happens
//!                        │◄──────── waker.wake() ──┘
//!    ┌──── switch ───────┘
//! ```
//!
//! Below that lie the words on which processors themselves sleep:
//! [`EventWord`] for one, [`Bells`] for all workers of a rank. They live in
//! memory that other processes see, so that a peer can wake a rank.
//!
//! A sleep with a limit ([`WaitFor`]) is a [`Race`] between the event and the
//! clock. A scheduler that is not ours need not know any of this: one that can
//! park and unpark is [`Foreign`], and [`Foreigner`] is its [`Wait`].

mod bells;
mod event;
mod race;
mod foreign;
#[cfg(all(test, not(tsumugi_loom)))]
pub(crate) mod threads;

pub use bells::Bells;
pub use event::{EventWord, Ticket};
pub use foreign::{Foreign, Foreigner, Task};
pub use race::Race;

use crate::stats::Counter;
use crate::sync::AtomicU32;
use core::fmt;
use core::time::Duration;

/// What a sleeper waits for, for whoever asks why nothing moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason {
    /// In one word: `join`, `mutex`, `signal`, `barrier`, ...
    pub what: &'static str,
    /// Where: a word's address, a ULT's number.
    pub at: u64,
    /// The value that is waited for, where there is one.
    pub wanted: u64,
}

impl Reason {
    /// A reason without particulars.
    pub const fn new(what: &'static str) -> Self {
        Self { what, at: 0, wanted: 0 }
    }
}

/// Wakes one sleeper once.
///
/// Two words, no allocation: a function and what it is called with. A ULT, an
/// OS thread and a foreign scheduler's thread all look the same from here.
pub struct Waker {
    data: *const (),
    wake: unsafe fn(*const ()),
}

// SAFETY: `Waker::new` demands that `wake` may be called on any thread.
unsafe impl Send for Waker {}

impl Waker {
    /// A waker that calls `wake(data)`.
    ///
    /// # Safety
    ///
    /// The call is sound on any thread, once, at any time until the sleep that
    /// handed the waker out has returned. Whom a sleep gives a waker keeps to
    /// that: see [`Wait::sleep`].
    pub const unsafe fn new(data: *const (), wake: unsafe fn(*const ())) -> Self {
        Self { data, wake }
    }

    /// Ends the sleep. Never blocks.
    ///
    /// Safe, although it resumes a thread: only a commit gets a waker, and who
    /// passes that on to a later wake has promised, by its sleep, that there is one
    /// to end.
    #[inline]
    pub fn wake(self) {
        // SAFETY: the contract of `new`; `self` is consumed, so it is once, and
        // the sleep has not returned, by the contract of `Wait::sleep`.
        unsafe { (self.wake)(self.data) }
    }

    /// The two words, for a structure that keeps them in atomics.
    pub fn into_raw(self) -> (*const (), unsafe fn(*const ())) {
        (self.data, self.wake)
    }
}

impl fmt::Debug for Waker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Waker({:p})", self.data)
    }
}

/// A scheduler whose threads can sleep: tsumugi's own ULTs, an OS thread, or
/// the embedding program's.
///
/// # Safety
///
/// `sleep` must run `commit` exactly once, on another stack than the caller's,
/// when a wake on any thread would be taken; and return only after the waker
/// was woken or `commit` answered false.
pub unsafe trait Wait: Sync {
    /// Puts the calling thread to sleep. `commit` publishes the waker and
    /// answers whether to stay asleep.
    ///
    /// From the moment that the waker is published the caller may run again and
    /// return.
    ///
    /// # Safety
    ///
    /// `commit` neither blocks nor panics, and touches nothing that it borrowed
    /// once the waker is published. If it answers false, the waker is neither
    /// kept nor used; if true, it is used at most once.
    unsafe fn sleep(&self, reason: Reason, commit: &mut dyn FnMut(Waker) -> bool);

    /// Lets other threads run.
    fn yield_now(&self);

    /// As [`sleep`](Self::sleep), of one who has something that others get if it
    /// gives it up: its place, a tag, a turn. A scheduler that may end while it
    /// sleeps runs `leave` then, once, in its place, and it never goes on. One
    /// that ends under nobody, as those do that say nothing here, never does.
    ///
    /// # Safety
    ///
    /// As there. `leave` neither suspends nor panics, takes no lock that one who
    /// is suspended may have, and may be called on any thread until this returns.
    unsafe fn sleep_or_leave(
        &self,
        reason: Reason,
        commit: &mut dyn FnMut(Waker) -> bool,
        leave: &mut dyn FnMut(),
    ) {
        let _ = leave;
        // SAFETY: the caller's.
        unsafe { self.sleep(reason, commit) }
    }

    /// As [`yield_now`](Self::yield_now), of one who has such a thing.
    ///
    /// # Safety
    ///
    /// That of `leave` in [`sleep_or_leave`](Self::sleep_or_leave).
    unsafe fn yield_or_leave(&self, leave: &mut dyn FnMut()) {
        let _ = leave;
        self.yield_now();
    }

    /// Counts something that happened to the caller, where somebody keeps
    /// such counts.
    fn count(&self, counter: Counter) {
        let _ = counter;
    }
}

/// Why a sleep ended without its event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupted {
    /// Its limit passed.
    TimedOut,
    /// The sleeper was asked to give up.
    Cancelled,
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TimedOut => "the time limit passed",
            Self::Cancelled => "cancelled while waiting",
        })
    }
}

impl core::error::Error for Interrupted {}

/// A scheduler whose threads can sleep with a limit.
///
/// # Safety
///
/// As for [`Wait`]; and `withdraw` runs on the sleeper's own stack, after an
/// interruption and before `sleep_for` returns. If it answers false,
/// `sleep_for` must not return before the waker was woken.
pub unsafe trait WaitFor: Wait {
    /// As [`Wait::sleep`], for `limit` at most. `withdraw` takes back what
    /// `commit` published and answers whether it was still there; if it was
    /// not, the event has the waker and has won. So exactly one of the two
    /// counts: `Ok`, the event came; or `Err`, nothing is published any more.
    ///
    /// # Errors
    ///
    /// [`Interrupted`].
    ///
    /// # Safety
    ///
    /// As for [`sleep`](Wait::sleep). `withdraw` neither blocks nor panics; if
    /// it answers true, the waker that was published is never used.
    unsafe fn sleep_for(
        &self,
        reason: Reason,
        limit: Duration,
        commit: &mut dyn FnMut(Waker) -> bool,
        withdraw: &mut dyn FnMut() -> bool,
    ) -> Result<(), Interrupted>;

    /// The same, as [`Wait::sleep_or_leave`].
    ///
    /// # Errors
    ///
    /// [`Interrupted`].
    ///
    /// # Safety
    ///
    /// As for both.
    unsafe fn sleep_for_or_leave(
        &self,
        reason: Reason,
        limit: Duration,
        commit: &mut dyn FnMut(Waker) -> bool,
        withdraw: &mut dyn FnMut() -> bool,
        leave: &mut dyn FnMut(),
    ) -> Result<(), Interrupted> {
        let _ = leave;
        // SAFETY: the caller's.
        unsafe { self.sleep_for(reason, limit, commit, withdraw) }
    }
}

/// Starts a thread of somebody's for a handler that must block.
pub trait Spawn: Sync {
    /// Runs `run(data)` on a thread that may block. False: there was no room,
    /// nothing happened.
    ///
    /// # Safety
    ///
    /// `run(data)` must be sound on any thread.
    unsafe fn spawn_detached(&self, run: unsafe fn(*mut ()), data: *mut ()) -> bool;
}

/// The system's wait on a word, between processes.
pub trait Futex: Sync {
    /// Sleeps while `*word == expected`; may return early.
    fn wait(&self, word: &AtomicU32, expected: u32, limit: Option<Duration>);

    /// Wakes up to `count` threads that sleep on `word`.
    fn wake(&self, word: &AtomicU32, count: u32);
}

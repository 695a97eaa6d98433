//! Initialization that one thread does, once.
//!
//! ```text
//!   NEW ──call──► RUNNING ──► DONE            for ever
//!    ▲               │ panic, or an error
//!    └───────────────┘ the first waiter tries next
//! ```

use super::queue::{self, WaitNode, WaitQueue, WaitSite};
use crate::limit::Limit;
use crate::lock::Lock;
use core::convert::Infallible;
use core::fmt;
use tsumugi_core::sync::{AtomicU32, Ordering, UnsafeCell};
use tsumugi_core::wait::{Interrupted, Reason};

/// An action that is done once. A panic in it does not count and poisons nothing:
/// the next caller tries again.
///
/// ```
/// use tsumugi_ult::sync::Once;
///
/// let (once, mut calls) = (Once::new(), 0);
/// once.call(|| calls += 1);
/// once.call(|| calls += 1);
/// assert_eq!(calls, 1);
/// ```
pub struct Once {
    word: AtomicU32,
    queue: Lock<WaitQueue>,
}

/// A value that is made once, by the first caller that needs it.
///
/// ```
/// use tsumugi_ult::sync::OnceCell;
///
/// let cell = OnceCell::new();
/// assert_eq!(*cell.get_or_init(|| 5), 5);
/// assert_eq!(*cell.get_or_init(|| 6), 5);
/// assert_eq!(cell.set(7), Err(7));
/// ```
pub struct OnceCell<T> {
    once: Once,
    value: UnsafeCell<Option<T>>,
}

/// The right to run the action. If it is dropped before the action is done, the
/// next waiter has the turn.
struct OnceTurn<'a>(&'a Once);

// SAFETY: only the thread that has the turn writes the value, and threads share
// it only after that.
unsafe impl<T: Send> Send for OnceCell<T> {}
// SAFETY: as for `Send`; any thread may be the one that makes the value.
unsafe impl<T: Send + Sync> Sync for OnceCell<T> {}

impl Once {
    /// Makes a `Once` that is not done yet.
    #[cfg(not(tsumugi_loom))]
    pub const fn new() -> Self {
        Self { word: AtomicU32::new(NEW), queue: Lock::new(WaitQueue::new()) }
    }

    /// Makes a `Once` that is not done yet.
    #[cfg(tsumugi_loom)]
    pub fn new() -> Self {
        Self { word: AtomicU32::new(NEW), queue: Lock::new(WaitQueue::new()) }
    }

    /// Runs `f`, unless it was run before. If another thread runs its `f` now,
    /// waits for it. A call from inside `f` sleeps for ever.
    pub fn call(&self, f: impl FnOnce()) {
        // Without a limit nothing interrupts the wait.
        let _ = self.call_within(Limit::NONE, f);
    }

    /// Does what [`call`](Self::call) does, but waits within a limit.
    ///
    /// # Errors
    ///
    /// [`Interrupted::TimedOut`] if the limit's point in time came before the end of
    /// another thread's action, [`Interrupted::Cancelled`] if a cancellation of the ULT did.
    /// The action may not be done yet then.
    pub fn call_within(
        &self,
        limit: impl Into<Limit>,
        f: impl FnOnce(),
    ) -> Result<(), Interrupted> {
        if let Some(turn) = self.turn(limit.into())? {
            f();
            turn.done();
        }
        Ok(())
    }

    /// Whether the action is done.
    #[inline]
    pub fn is_done(&self) -> bool {
        // Acquire: pairs with the Release in `end`.
        self.word.load(Ordering::Acquire) == DONE
    }

    /// Returns the right to run, or `None` if the action is done.
    fn turn(&self, limit: Limit) -> Result<Option<OnceTurn<'_>>, Interrupted> {
        loop {
            // Acquire: pairs with the Release in `end`.
            match self.word.compare_exchange(NEW, RUNNING, Ordering::Relaxed, Ordering::Acquire) {
                Ok(_) => return Ok(Some(OnceTurn(self))),
                Err(DONE) => return Ok(None),
                Err(_) => queue::wait(
                    self,
                    &self.queue,
                    Reason { what: "once", at: self as *const Self as u64, wanted: 0 },
                    limit,
                    |node| node,
                    |queue| queue,
                    // The thread that ends a turn takes a waiter out of the queue
                    // after that.
                    |_| self.word.load(Ordering::Relaxed) == RUNNING,
                )?,
            }
        }
    }

    fn end(&self, word: u32) {
        // Release: a thread that finds the action done sees what the turn did.
        self.word.store(word, Ordering::Release);
        if word == DONE {
            queue::wake_each(&self.queue, WaitQueue::pop);
        } else {
            queue::tell(self.queue.with(WaitQueue::pop));
        }
    }
}

impl WaitSite for Once {
    unsafe fn take_out(&self, node: *mut WaitNode) -> bool {
        // SAFETY: by the caller's contract the node is there, and was pushed to
        // this queue if to any.
        unsafe { queue::take_out(&self.queue, node, |queue| queue, |_| {}) }
    }

    unsafe fn pass_on(&self, _: *mut WaitNode, waited: bool) {
        // This waiter was to try next. The waiter that is woken now looks for
        // itself.
        if !waited {
            queue::tell(self.queue.with(WaitQueue::pop));
        }
    }
}

impl OnceTurn<'_> {
    fn done(self) {
        self.0.end(DONE);
        core::mem::forget(self);
    }
}

impl Drop for OnceTurn<'_> {
    fn drop(&mut self) {
        self.0.end(NEW);
    }
}

impl<T> OnceCell<T> {
    /// Makes an empty cell.
    #[cfg(not(tsumugi_loom))]
    pub const fn new() -> Self {
        Self { once: Once::new(), value: UnsafeCell::new(None) }
    }

    /// Makes an empty cell.
    #[cfg(tsumugi_loom)]
    pub fn new() -> Self {
        Self { once: Once::new(), value: UnsafeCell::new(None) }
    }

    /// Returns the value, if it is there.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        if !self.once.is_done() {
            return None;
        }
        // SAFETY: the action is done, so no thread writes the value any more.
        self.value.with(|value| unsafe { (*value).as_ref() })
    }

    /// Returns the value. Makes it with `f` if it is not there; waits if another
    /// thread is making it.
    pub fn get_or_init(&self, f: impl FnOnce() -> T) -> &T {
        match self.get_or_try_init(|| Ok::<T, Infallible>(f())) {
            Ok(value) => value,
            Err(never) => match never {},
        }
    }

    /// Does what [`get_or_init`](Self::get_or_init) does, but `f` may fail; then
    /// the next caller tries.
    ///
    /// # Errors
    ///
    /// The error that `f` returned.
    pub fn get_or_try_init<E>(&self, f: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        if let Some(value) = self.get() {
            return Ok(value);
        }
        // Without a limit nothing interrupts the wait.
        if let Ok(Some(turn)) = self.once.turn(Limit::NONE) {
            let made = f()?;
            // SAFETY: this thread has the turn, and no thread reads the value
            // before it is done.
            self.value.with_mut(|value| unsafe { *value = Some(made) });
            turn.done();
        }
        Ok(self.get().expect("the cell has a value"))
    }

    /// Fills the cell. If another thread is making a value, waits for it.
    ///
    /// # Errors
    ///
    /// `value`, if the cell has a value already, or another thread has made one meanwhile.
    pub fn set(&self, value: T) -> Result<(), T> {
        let mut value = Some(value);
        self.get_or_init(|| value.take().expect("the closure runs once"));
        value.map_or(Ok(()), Err)
    }

    /// Takes the value out.
    pub fn into_inner(self) -> Option<T> {
        self.value.into_inner()
    }
}

impl Default for Once {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Default for OnceCell<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_done() { "Once(done)" } else { "Once" })
    }
}

impl<T: fmt::Debug> fmt::Debug for OnceCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OnceCell").field(&self.get()).finish()
    }
}

const NEW: u32 = 0;
const RUNNING: u32 = 1;
const DONE: u32 = 2;

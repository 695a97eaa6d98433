//! Active-target epochs of a window: fences, and post, start, complete and wait
//! (PSCW).
//!
//! ```text
//!  target                              origin
//!  post ── posted + 1 ───────────────► start waits for it
//!                                      puts, gets
//!  wait waits for all ◄─ completed + 1 ── complete, when they have landed
//! ```
//!
//! Progress: blocking, except `post`. A waiter sleeps on a word of its own rank.

use super::epoch_counts::EpochCounts;
use super::inner::WindowInner;
use super::{Window, WindowError};
use crate::{AddrError, Error, Plain, Rank, Signal, Until};
use std::sync::{MutexGuard, PoisonError};

/// An exposure epoch: this rank's memory is open to some ranks, until they have
/// completed.
#[derive(Debug)]
#[must_use = "the exposure lasts until `wait` returns"]
pub struct Exposure<'w, T: Plain> {
    window: &'w Window<T>,
    /// The count of completed epochs at which this one is over.
    until: u64,
}

/// An access epoch: the memory of some ranks is open to this rank, until it
/// completes.
#[derive(Debug)]
#[must_use = "the targets wait until the epoch is completed"]
pub struct Epoch<'w, T: Plain> {
    window: &'w Window<T>,
    targets: Vec<Rank>,
    is_over: bool,
}

impl<T: Plain> Window<T> {
    /// Waits until all puts of any rank before its fence have landed at all targets.
    /// Collective.
    ///
    /// # Errors
    ///
    /// The error of the first put that failed; [`Error::Coll`]: the barrier failed.
    pub fn fence(&self) -> Result<(), Error> {
        self.inner.runtime.handle().check_process()?;
        let flushed = self.inner.puts.flush_all();
        self.inner.runtime.barrier()?;
        flushed.map_err(Error::from)
    }

    /// Opens this rank's memory to `origins`, each of which must call
    /// [`start`](Self::start). Does not wait for them.
    ///
    /// # Errors
    ///
    /// [`WindowError::Addr`]: an origin is no rank of the job, or has died.
    pub fn post(&self, origins: &[Rank]) -> Result<Exposure<'_, T>, WindowError> {
        let inner = &*self.inner;
        origins.iter().try_for_each(|&origin| inner.check(origin))?;
        let until = {
            let mut counts = inner.counts();
            counts.completed += origins.len() as u64;
            counts.completed
        };
        for &origin in origins {
            let at = inner.words.posted(origin, inner.runtime.rank());
            inner.runtime.signal(at, Signal::Add(1))?;
        }
        Ok(Exposure { window: self, until })
    }

    /// Waits until each of `targets` has opened its memory to this rank by
    /// [`post`](Self::post).
    ///
    /// # Errors
    ///
    /// [`WindowError::Addr`]: a target is no rank of the job, or a rank has died.
    pub fn start(&self, targets: &[Rank]) -> Result<Epoch<'_, T>, WindowError> {
        let inner = &*self.inner;
        targets.iter().try_for_each(|&target| inner.check(target))?;
        for &target in targets {
            let count = {
                let mut counts = inner.counts();
                let started = counts.started.entry(target).or_default();
                *started += 1;
                *started
            };
            let at = inner.words.posted(inner.runtime.rank(), target);
            inner.runtime.wait_until(at, Until::AtLeast(count))?;
        }
        Ok(Epoch { window: self, targets: targets.to_vec(), is_over: false })
    }
}

impl<T: Plain> Exposure<'_, T> {
    /// Waits until all origins have completed: their puts have landed.
    ///
    /// # Errors
    ///
    /// [`AddrError::PeerLost`]: a rank has died; the error names it.
    pub fn wait(self) -> Result<(), AddrError> {
        let inner = &*self.window.inner;
        let at = inner.words.completed(inner.runtime.rank());
        inner.runtime.wait_until(at, Until::AtLeast(self.until)).map(drop)
    }

    /// Whether all origins have completed. Wait-free.
    ///
    /// # Errors
    ///
    /// [`AddrError`] of reading the counter.
    pub fn is_over(&self) -> Result<bool, AddrError> {
        let inner = &*self.window.inner;
        let count = inner.runtime.get(inner.words.completed(inner.runtime.rank()))?;
        Ok(Until::AtLeast(self.until).holds(count))
    }
}

impl<T: Plain> Epoch<'_, T> {
    /// Ends the epoch: waits until all puts have landed, and then notifies the
    /// targets.
    ///
    /// # Errors
    ///
    /// The error of the first put that failed; the targets are notified all the
    /// same.
    pub fn complete(mut self) -> Result<(), AddrError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), AddrError> {
        if std::mem::replace(&mut self.is_over, true) {
            return Ok(());
        }
        let inner = &*self.window.inner;
        let mut ended = Ok(());
        for &target in &self.targets {
            ended = ended.and(inner.puts.flush(target));
            let told = inner.runtime.signal(inner.words.completed(target), Signal::Add(1));
            ended = ended.and(told.map(drop));
        }
        ended
    }
}

impl<T: Plain> Drop for Epoch<'_, T> {
    fn drop(&mut self) {
        // A target that is gone does not wait any more.
        let _ = self.end();
    }
}

impl WindowInner {
    fn counts(&self) -> MutexGuard<'_, EpochCounts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! Epochs that both sides take part in: fences, and post, start, complete and
//! wait.
//!
//! ```text
//!  target                              origin
//!  post ── posted + 1 ───────────────► start waits for it
//!                                      puts, gets
//!  wait waits for all ◄─ completed + 1 ── complete, when they have landed
//! ```
//!
//! Progress: blocking, but for `post`. Nobody polls what is not its own.

use super::{Inner, Window, WindowError};
use crate::{AddrError, Error, Plain, Rank, Signal, Until};
use std::collections::HashMap;
use std::sync::{MutexGuard, PoisonError};

/// How often has been waited for what, in the words that peers count up.
#[derive(Default)]
pub(super) struct Counts {
    started: HashMap<Rank, u64>,
    completed: u64,
}

/// This rank's memory is open to some ranks, until they have completed.
#[derive(Debug)]
#[must_use = "it is over when it was waited for"]
pub struct Exposure<'w, T: Plain> {
    window: &'w Window<T>,
    /// What the count of those that have completed will be.
    until: u64,
}

/// Some ranks' memory is open to this rank, until it completes.
#[derive(Debug)]
#[must_use = "the targets wait until it is completed"]
pub struct Epoch<'w, T: Plain> {
    window: &'w Window<T>,
    targets: Vec<Rank>,
    is_over: bool,
}

impl<T: Plain> Window<T> {
    /// Waits until all that was put by any rank before its fence has landed
    /// everywhere. Collective.
    ///
    /// # Errors
    ///
    /// That of the first put that failed; [`Error::Coll`].
    pub fn fence(&self) -> Result<(), Error> {
        let flushed = self.inner.puts.flush_all();
        self.inner.runtime.barrier()?;
        flushed.map_err(Error::from)
    }

    /// Opens this rank's memory to `origins`, each of which
    /// [`start`](Self::start)s. Does not wait for them.
    ///
    /// # Errors
    ///
    /// [`WindowError::Addr`]: one of them is no rank, or has died.
    pub fn post(&self, origins: &[Rank]) -> Result<Exposure<'_, T>, WindowError> {
        let inner = &*self.inner;
        origins.iter().try_for_each(|&origin| inner.check(origin))?;
        let until = {
            let mut counts = inner.counts();
            counts.completed += origins.len() as u64;
            counts.completed
        };
        for &origin in origins {
            let at = inner.ways.posted(origin, inner.runtime.rank());
            inner.runtime.signal(at, Signal::Add(1))?;
        }
        Ok(Exposure { window: self, until })
    }

    /// Waits until each of `targets` has opened its memory to this rank by
    /// [`post`](Self::post).
    ///
    /// # Errors
    ///
    /// [`WindowError::Addr`]: one of them is no rank, or a rank has died.
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
            let at = inner.ways.posted(inner.runtime.rank(), target);
            inner.runtime.wait_until(at, Until::AtLeast(count))?;
        }
        Ok(Epoch { window: self, targets: targets.to_vec(), is_over: false })
    }
}

impl<T: Plain> Exposure<'_, T> {
    /// Waits until all origins have completed: what they put is there.
    ///
    /// # Errors
    ///
    /// [`AddrError::PeerLost`], which names a rank that died.
    pub fn wait(self) -> Result<(), AddrError> {
        let inner = &*self.window.inner;
        let at = inner.ways.completed(inner.runtime.rank());
        inner.runtime.wait_until(at, Until::AtLeast(self.until)).map(drop)
    }

    /// Whether they have. Wait-free.
    ///
    /// # Errors
    ///
    /// [`AddrError`].
    pub fn is_over(&self) -> Result<bool, AddrError> {
        let inner = &*self.window.inner;
        let count = inner.runtime.get(inner.ways.completed(inner.runtime.rank()))?;
        Ok(Until::AtLeast(self.until).holds(count))
    }
}

impl<T: Plain> Epoch<'_, T> {
    /// Tells the targets that it is over, when all that was put has landed.
    ///
    /// # Errors
    ///
    /// That of the first put that failed; the targets are told all the same.
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
            let told = inner.runtime.signal(inner.ways.completed(target), Signal::Add(1));
            ended = ended.and(told.map(drop));
        }
        ended
    }
}

impl<T: Plain> Drop for Epoch<'_, T> {
    fn drop(&mut self) {
        // Who is gone is not waiting any more.
        let _ = self.end();
    }
}

impl Inner {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

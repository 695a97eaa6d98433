//! Puts to ranks of other nodes that have not landed yet.

use crate::{AddrError, Plain, Rank, Remote, Runtime};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tsumugi_ult::sync::Latch;

/// The open puts of a window.
pub(super) struct Puts {
    /// Whether a rank is on another node; if not, all puts are done at once.
    is_remote: bool,
    to: Mutex<HashMap<Rank, Open>>,
}

/// The open puts to one rank.
#[derive(Default)]
struct Open {
    count: usize,
    /// Threads that wait until all of them have landed.
    waiting: Vec<Arc<Latch>>,
    failed: Option<AddrError>,
}

impl Puts {
    pub(super) fn new(is_remote: bool) -> Self {
        Self { is_remote, to: Mutex::default() }
    }

    /// Writes values to `to`: they have landed after the next flush. Those at `from` may
    /// change as soon as this returns.
    ///
    /// # Safety
    ///
    /// `from` is valid for a read of `count` values, aligned or not, until this returns,
    /// and for ever if it does not return because its ULT is cut off.
    pub(super) unsafe fn put<T: Plain>(
        self: &Arc<Self>,
        runtime: &Runtime,
        to: Remote<T>,
        from: *const T,
        count: usize,
    ) -> Result<(), AddrError> {
        let target = to.addr().rank;
        let (from, bytes) = (from.cast::<u8>(), count * size_of::<T>());
        // SAFETY: the caller's.
        let put = || unsafe { runtime.handle().store_from(to.addr(), from, bytes) };
        if !self.is_remote || runtime.handle().node().member().is_near(target) {
            return put();
        }
        let Ok(mut buf) = runtime.buffer::<T>(count) else {
            return put();
        };
        // SAFETY: the buffer has as many values, and is new.
        unsafe { buf.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(from, bytes) };
        self.lock().entry(target).or_default().count += 1;
        let puts = self.clone();
        let begun = runtime
            .ops()
            .put_buffer(to, buf)
            .then(move |outcome| puts.landed(target, outcome.result.map(drop)));
        if begun.is_err() {
            // No room to begin a put: it is carried out before this returns.
            let result = put();
            self.landed(target, Ok(()));
            return result;
        }
        Ok(())
    }

    /// Waits until all puts to `target` have landed.
    ///
    /// # Errors
    ///
    /// The error of the first put that has failed since the last flush.
    #[inline]
    pub(super) fn flush(&self, target: Rank) -> Result<(), AddrError> {
        if self.is_remote { self.lands(target) } else { Ok(()) }
    }

    fn lands(&self, target: Rank) -> Result<(), AddrError> {
        let latch = {
            let mut to = self.lock();
            let Some(open) = to.get_mut(&target) else { return Ok(()) };
            if open.count == 0 {
                let failed = open.failed;
                to.remove(&target);
                return failed.map_or(Ok(()), Err);
            }
            let latch = Arc::new(Latch::new(1));
            open.waiting.push(latch.clone());
            latch
        };
        latch.wait();
        let mut to = self.lock();
        let failed = to.get_mut(&target).and_then(|open| open.failed.take());
        failed.map_or(Ok(()), Err)
    }

    /// Waits until all puts to all targets have landed.
    pub(super) fn flush_all(&self) -> Result<(), AddrError> {
        if !self.is_remote {
            return Ok(());
        }
        let targets: Vec<Rank> = self.lock().keys().copied().collect();
        let mut ended = Ok(());
        for target in targets {
            ended = ended.and(self.flush(target));
        }
        ended
    }

    fn landed(&self, target: Rank, result: Result<(), AddrError>) {
        let mut to = self.lock();
        let open = to.entry(target).or_default();
        open.count -= 1;
        open.failed = open.failed.or(result.err());
        let waiting = match open.count {
            0 => std::mem::take(&mut open.waiting),
            _ => Vec::new(),
        };
        drop(to);
        waiting.iter().for_each(|latch| latch.count_down(1));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Rank, Open>> {
        self.to.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
